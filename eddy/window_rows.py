"""Which rows of a stream the window of one input holds, now or after a commit that is logged.

    [RANGE w], [NOW]            a range of positions that ends with the newest row
    [ROWS n]                    the same: starts ascend with position, so the newest n are alive
    [PARTITION BY k ROWS n]     a range, and a mask of the rows in it that have been displaced
    each with RANGE w           what both hold

`taken` is the end of the stream's rows at the time in question: a row that came later has displaced nobody yet
(`stems/row_ends.py`). What is read of a commit needs the ends as they were, for rows may come and displace others while the clock
stands still.
"""

from __future__ import annotations

import numpy as np

from eddy.source import Source
from lineage.elements import Elements
from stems.row_ends import RowEnds
from windows.spec import FOREVER


class WindowRows:
    """The rows in one window of one stream, by its width and the ends of rows in it; those are None unless it counts rows."""

    __slots__ = ("_source", "_width", "_ends")

    def __init__(self, source: Source, width_us: int, ends: RowEnds | None) -> None:
        self._source = source
        self._width = width_us
        self._ends = ends

    def first_alive(self, clock: int, taken: int) -> int:
        """A position below which no row is alive at a clock; without PARTITION BY all from it on are."""
        first = self._source.store.first_after(clock - self._width)
        return first if self._ends is None else max(first, self._ends.first_alive(taken))

    def keep_alive(self, mask: np.ndarray, first: int, taken: int) -> np.ndarray:
        """Leave in a mask of the positions from `first` on, which is at least `first_alive`, only rows that are not displaced."""
        if self._ends is None or not self._ends.partition:
            return mask
        kept: np.ndarray = mask & (self._ends.ends_at(np.arange(first, first + len(mask)), taken) == FOREVER)
        return kept

    def first_staying(self, clock: int, taken: int) -> int:
        """A position from which on no row's life ends by a clock; without PARTITION BY all before it do."""
        by_key = self._ends is not None and self._ends.partition
        return taken if by_key else self.first_alive(clock, taken)

    def keep_leaving(self, mask: np.ndarray, first: int, clock: int, taken: int) -> np.ndarray:
        """Leave in a mask of the positions from `first` on, up to `first_staying`, only rows whose life ends by a clock."""
        if self._ends is None or not self._ends.partition:
            return mask
        rows = first + np.flatnonzero(mask)
        left = np.zeros(len(mask), np.bool_)
        left[rows[self.lives(rows, taken).ends <= clock] - first] = True
        return left

    def displacers(self, positions: np.ndarray, times: np.ndarray, taken: int) -> np.ndarray:
        """Of rows at positions held, the row that displaces each at the given time, -1 where none does."""
        found = np.full(len(positions), -1)
        if self._ends is not None:
            rows = np.flatnonzero(self._ends.ends_at(positions, taken) == times)
            found[rows] = self._ends.displacers(positions[rows])
        return found

    def lives(self, positions: np.ndarray, taken: int) -> Elements:
        """The lives of rows at positions held, in any order."""
        starts, ends = self._source.store.elements_at(positions, self._width)
        if self._ends is not None:
            ends = np.minimum(ends, self._ends.ends_at(positions, taken))
        return Elements(starts, ends)
