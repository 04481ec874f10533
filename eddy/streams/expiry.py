"""The windows of one stream that the clock ends: how far each has moved.

    oldest of a window = the first row with time > clock - width        of a wider window it is not above that of a narrower one

A row that comes with `time + longest <= T`, the longest life in any window of the stream, **expired**: nobody will ever see it.
With a query whose rows the clock does not end (no window, UNBOUNDED, `[ROWS n]` alone), or with no query, no row does. It is
judged when a row is pushed, by its effective time and the clock before the push.

All of them are moved by one search; what follows from the set of windows is kept until that changes. Windows are in the order of
their widths, the widest first, so the rows that leave them are in the order of their positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eddy.streams.legs import WindowClass
from lineage.elements import BEGINNING, FOREVER

if TYPE_CHECKING:
    from eddy.streams.source import Source
    from eddy.streams.timeline import Rows


class Left(NamedTuple):
    """What left the windows of a source: the rows at positions first[k]..last[k] left window k; none where these are equal."""

    windows: list[WindowClass]
    #: of the window classes
    numbers: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def listed(self) -> Left | None:
        """What left windows that some query lists the rows of; None if nothing did."""
        if all(window.n_legs for window in self.windows):
            return self
        last = np.where([window.n_legs > 0 for window in self.windows], self.last, self.first)
        return self._replace(last=last) if (last > self.first).any() else None


class Expiry:
    """The window classes of a source whose rows leave by the clock."""

    __slots__ = ("_source", "_version", "_windows", "_numbers", "_widths", "_longest_us", "narrowest_us")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._version = -1
        self._windows: list[WindowClass] = []
        self._numbers = np.zeros(0, np.int64)
        self._widths = np.zeros(0, np.int64)
        #: the longest life in any window; `FOREVER` if the clock does not end all lives
        self._longest_us = FOREVER
        #: the smallest width; right after `windows` was asked for, if there are any
        self.narrowest_us = 0

    def windows(self) -> list[WindowClass]:
        source = self._source
        if self._version != source.modules.version:
            self._version = source.modules.version
            windows = [held for held in source.placement.classes.values() if held.window.ends_by_clock]
            self._windows = sorted(windows, key=lambda held: -held.window.width_us)
            widths = [held.window.width_us for held in self._windows]
            self._numbers = np.array([held.number for held in self._windows], np.int64)
            self._widths = np.array(widths, np.int64)
            self._longest_us = max((window.life_us for window in source.placement.classes), default=FOREVER)
            self.narrowest_us = min(widths, default=0)
        return self._windows

    def over_until(self) -> int:
        """The largest time whose rows are over by the clock of the timeline wherever they could count."""
        source = self._source
        if self._version != source.modules.version:
            self.windows()
        now = source.timeline.now
        return BEGINNING if now == BEGINNING or self._longest_us == FOREVER else now - self._longest_us

    def move(self, clock: int) -> Left | None:
        """Move each window to its first row alive at a clock; returns what left, None if nothing did."""
        windows = self.windows()
        if not windows:
            return None
        lows = np.array([window.oldest for window in windows], np.int64)
        found = self._source.store.first_after_each(clock - self._widths, lows)
        moved = False
        for window, oldest in zip(windows, found.tolist()):
            if oldest > window.oldest:
                window.oldest = oldest
                moved = True
        return Left(windows, self._numbers, lows, found) if moved else None

    def ends_until(self, clock: int, arriving: Rows | None) -> int:
        """How many rows leave windows by a clock, those included that are about to come."""
        windows = self.windows()
        if not windows:
            return 0
        lows = np.array([window.oldest for window in windows], np.int64)
        left = self._source.store.first_after_each(clock - self._widths, lows)
        found = int(np.maximum(left - lows, 0).sum())
        if arriving is not None:
            found += sum(arriving.count_until(clock - window.window.width_us) for window in windows)
        return found

    def most_ends(self, n_rows: int) -> int:
        """No fewer than the rows that could leave windows if so many more came."""
        windows = self.windows()
        return len(windows) * (self._source.store.end - min(window.oldest for window in windows) + n_rows) if windows else 0
