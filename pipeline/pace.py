"""The clock of a replay: when rows are due.

    due(t)  =  start + (t - first) / speed        `start` is the moment of the first row, `first` its event time

Every due time is counted from the start and not from the row before, so nothing adds up: a replay that was slow for a while
catches up, and lag is how far behind it is now. With speed None all rows are due at once and nothing ever lags.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from lineage.errors import EddyError

_SPEED = re.compile(r"(\d+(?:\.\d+)?)x?")


def parse_speed(text: str) -> float | None:
    """How many seconds of the data pass in one; None is as fast as can be.

    >>> parse_speed("60x"), parse_speed("0.5"), parse_speed("max")
    (60.0, 0.5, None)
    """
    if text == "max":
        return None
    match = _SPEED.fullmatch(text)
    speed = float(match[1]) if match else 0.0
    if not 0 < speed <= 1e9:
        raise EddyError(f'"{text}" is no speed', code="bad_option", hint="60x plays a minute in a second; max does not wait")
    return speed


class ReplayPace:
    """Waits until rows are due; `clock` and `sleep` are the machine's unless a test passes its own."""

    def __init__(
        self,
        speed: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.speed = speed
        self._clock = clock
        self._sleep = sleep
        self._start: float | None = None
        self._first_us = 0
        #: seconds by which the last rows were late, and the largest of all
        self.lag = 0.0
        self.max_lag = 0.0

    def begin(self, first_us: int) -> None:
        """Start the clock with the event time of the first row."""
        self._start, self._first_us = self._clock(), first_us

    def wait(self, time_us: int) -> None:
        """Wait until a row of that event time is due, and note the lag."""
        if self.speed is None:
            return
        assert self._start is not None, "begin comes first"
        due = self._start + (time_us - self._first_us) / 1e6 / self.speed
        while (ahead := due - self._clock()) > 0:
            self._sleep(ahead)
        self.lag = -ahead
        self.max_lag = max(self.max_lag, self.lag)
