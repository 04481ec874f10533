"""The window of a shared group as a range of positions of the row store.

    RANGE, NOW    t > T - w                      until the end of the store
    SLIDE         B - w <= t and start < B       B = the last boundary up to the clock T (semantics 7)

Times and starts ascend with positions, so both are a range, and what a commit does is that rows join it at one end and leave it
at the other. A row that is over before it could be in the range (too late, or in a hole between extents) is in it at no clock.
"""

from __future__ import annotations

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.streams.source import Source
from filters.values.vector import Array
from windows.spec import WindowSpec


class WindowRange:
    """The positions of a window at any clock, and when rows join and leave it."""

    __slots__ = ("_source", "_width", "slide")

    def __init__(self, source: Source, window: WindowSpec) -> None:
        self._source = source
        self._width = window.width_us
        #: 0 iff the window moves with the clock
        self.slide = window.slide_us

    def boundary(self, clock: int) -> int:
        """The clock of the window: the last boundary, where it moves in steps."""
        return clock // self.slide * self.slide if self.slide else clock

    def low(self, clock: int) -> int:
        """The first position whose row has not left at a clock."""
        last = self.boundary(clock) - self._width
        return self._source.store.first_after(last - 1 if self.slide else last)

    def high(self, clock: int, first: int) -> int:
        """The first position from `first` on whose row has not joined at a clock."""
        if not self.slide:
            return self._source.store.end
        boundary = self.boundary(clock)
        for page, at, stop in self._source.store.slices(first, self._source.store.end):
            starts = (page.times if page.starts is None else page.starts)[at:stop]
            found = int(np.searchsorted(starts, boundary))
            if found < stop - at:
                return page.base + at + found
        return self._source.store.end

    def spans(self, low: int, end: int, record: LoggedCommit) -> list[tuple[int, int]]:
        """The positions that join the range low .. end in a commit, those that are never in it included, and those that leave."""
        gone, last = self.low(record.after), self.high(record.after, end)
        first = end
        if not self.slide:
            # rows that were over when they came
            before = self.low(record.before)
            first, low = max(end, before), max(low, before)
        return [(first, last), (low, max(low, min(last, gone)))]

    def never_in(self, first: int, last: int) -> Array:
        """The positions of first .. last whose rows are never in the range."""
        if not self.slide or first >= last:
            return np.zeros(0, np.int64)
        positions = np.arange(first, last)
        times, starts = self._source.gatherer.lives(positions)
        return positions[starts // self.slide >= (times + self._width) // self.slide]

    def times(self, spans: list[tuple[int, int]]) -> Array:
        """When each row of the first span joins, and when each of the second leaves."""
        slices = self._source.store.slices
        starts = [page.elements(slice(at, stop), self._width).starts for page, at, stop in slices(*spans[0])]
        ends = [page.elements(slice(at, stop), self._width).ends for page, at, stop in slices(*spans[1])]
        found = np.concatenate([np.zeros(0, np.int64), *starts, *ends])
        return (found // self.slide + 1) * self.slide if self.slide else found

    def missed(self, first: int, last: int) -> tuple[Array, Array]:
        """Of the rows first .. last those that were too late for extents that held their time, and for how many each."""
        late = []
        for page, at, stop in self._source.store.slices(first, last) if self.slide else ():
            if page.starts is not None:
                late.append(page.base + at + np.flatnonzero(page.starts[at:stop] > page.times[at:stop]))
        if not late:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        positions = np.concatenate(late)
        times, starts = self._source.gatherer.lives(positions)
        missed = np.minimum(starts // self.slide, (times + self._width) // self.slide) - times // self.slide
        return positions[missed > 0], missed[missed > 0]
