"""The rows of a stream in the window of one input, now or after a logged commit.

    [RANGE w], [NOW]            a range of positions that ends with the newest row
    [ROWS n]                    the same: starts ascend with position, so the newest n are alive
    [PARTITION BY k ROWS n]     a range, and a mask of the rows in it that have been displaced
    each with RANGE w           what both hold
    any, of a keyed stream      a range, and a mask of the rows in it that have been ended (`eddy/lives/early_ends.py`)

Reading a logged commit needs the ends as they were then (`CommitPoint`): rows may end others while the clock stands still.
"""

from __future__ import annotations

import numpy as np

from eddy.lives.early_ends import CommitPoint, EarlyEnds
from eddy.lives.ranks import Ranks
from eddy.streams.source import Source
from lineage.elements import FOREVER, Elements
from windows.delta import SCHEDULED

#: Before anything had come.
_BEFORE_ALL = CommitPoint(0, 0, 0)


class WindowRows:
    """The rows in one window of one stream; `ends` is None if only the clock ends them."""

    __slots__ = ("_source", "_width", "_ends")

    def __init__(self, source: Source, width_us: int, ends: EarlyEnds | None) -> None:
        self._source = source
        self._width = width_us
        self._ends = ends

    def first_alive(self, at: CommitPoint) -> int:
        """A position below which no row was alive; if rows leave in order, every row from it on was alive."""
        first = self._source.store.first_after(at.clock - self._width)
        return first if self._ends is None else max(first, self._ends.first_alive(at))

    def keep_alive(self, mask: np.ndarray, first: int, at: CommitPoint) -> np.ndarray:
        """Clear from a mask of the positions from `first` on, which is at least `first_alive`, the rows that had ended."""
        if self._ends is None or self._ends.in_order:
            return mask
        kept: np.ndarray = mask & (self._ends.ends_at(np.arange(first, first + len(mask)), at) > at.clock)
        return kept

    def first_staying(self, at: CommitPoint) -> int:
        """A position with no ended row at or after it; if rows leave in order, all rows before it have ended."""
        scattered = self._ends is not None and not self._ends.in_order
        return at.taken if scattered else self.first_alive(at)

    def keep_leaving(self, mask: np.ndarray, first: int, at: CommitPoint) -> np.ndarray:
        """Clear from a mask of the positions from `first` up to `first_staying` the rows that had not ended."""
        if self._ends is None or self._ends.in_order:
            return mask
        rows = first + np.flatnonzero(mask)
        left = np.zeros(len(mask), np.bool_)
        left[rows[self.lives(rows, at).ends <= at.clock] - first] = True
        return left

    def end_ranks(self, positions: np.ndarray, times: np.ndarray, at: CommitPoint, ranks: Ranks) -> np.ndarray:
        """The rank, in the last commit, of the event that ended each row at these times: SCHEDULED for the clock or the row's own
        column, FOREVER where the row did not end then."""
        if self._ends is None:
            found = np.full(len(positions), FOREVER)
        else:
            found = self._ends.end_ranks(positions, times, at, ranks)
        ended = self.lives(positions, at).ends == times
        found[ended & (found == FOREVER)] = SCHEDULED
        found[self.scheduled(positions) == times] = SCHEDULED
        return found

    def scheduled(self, positions: np.ndarray) -> np.ndarray:
        """The scheduled ends of rows at held positions."""
        ends: np.ndarray = self.lives(positions, _BEFORE_ALL).ends
        return ends

    def lives(self, positions: np.ndarray, at: CommitPoint) -> Elements:
        """The lives of rows at positions held, in any order."""
        starts, ends = self._source.store.elements_at(positions, self._width)
        if self._ends is not None:
            ends = np.minimum(ends, self._ends.ends_at(positions, at))
        return Elements(starts, ends)
