"""The clock of the timeline `arrival`, which times rows without a time column.

    at start      the wall clock, or the last time that was recorded if that is later
    from then on  as the monotonic clock goes, wherever the wall clock is put meanwhile

So a window of five seconds is empty five seconds after the last row, and time never goes back; who puts the wall clock back meets
it again only by waiting. That the wall clock was put elsewhere is noticed, logged and counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_log = logging.getLogger("eddy.clock")

#: The least step of the wall clock that is noticed, in microseconds.
STEP_US = 1_000_000


def wall_us() -> int:
    """Return the wall clock."""
    return time.time_ns() // 1000


def monotonic_us() -> int:
    """Return the monotonic clock, which nobody can set."""
    return time.monotonic_ns() // 1000


class ArrivalClock:
    """The arrival clock; `last_us` is the last recorded time."""

    def __init__(
        self, last_us: int, wall: Callable[[], int] = wall_us, monotonic: Callable[[], int] = monotonic_us
    ) -> None:  # fmt: skip
        self._wall = wall
        self._monotonic = monotonic
        began = monotonic()
        self._ahead = wall() - began
        #: what the monotonic clock lacks
        self._offset = max(self._ahead, last_us - began)
        #: times that the wall clock was found put elsewhere
        self.steps = 0
        if self._offset - self._ahead >= STEP_US:
            self._note(self._ahead - self._offset)

    def read(self) -> tuple[int, int]:
        """Return the arrival time, which never goes back, and the wall time; log a wall clock that was set."""
        monotonic, wall = self._monotonic(), self._wall()
        step = wall - monotonic - self._ahead
        if abs(step) >= STEP_US:
            self._ahead += step
            self._note(step)
        return self._offset + monotonic, wall

    def reach(self, time_us: int) -> None:
        """Continue from a time that the timeline has already reached, if it is ahead."""
        self._offset = max(self._offset, time_us - self._monotonic())

    def _note(self, step_us: int) -> None:
        self.steps += 1
        _log.warning("the wall clock was put %+.3f s; arrivals are timed as if it had not been", step_us / 1e6)
