"""The matches of a part of a commit, and which of them each query has, as CSR lists."""

from __future__ import annotations

import numpy as np

from eddy.join_group import JoinGroup, Part
from eddy.row_lists import Buffers, RowLists
from filters.vector import Frame, ListFrame
from lineage.bits import SPARE


class MatchRows:
    """Matches found by a group, listed when somebody asks."""

    __slots__ = ("n_rows", "_group", "_part", "_buffers", "_lists")

    def __init__(self, group: JoinGroup, part: Part, buffers: Buffers) -> None:
        self.n_rows = len(part.found)
        self._group = group
        self._part = part
        self._buffers = buffers
        self._lists: RowLists | None = None

    def frame(self) -> Frame:
        """The columns of all inputs side by side."""
        return self._group.walker.frame(self._part.found)

    def times(self) -> np.ndarray:
        return self._part.times.copy()

    def numbers(self) -> np.ndarray:
        """Row numbers `[matches, inputs]`."""
        sources, found = self._group.sources, self._part.found
        return np.column_stack([source.store.numbers_at(found.at(k)) for k, source in enumerate(sources)])

    def row_lists(self) -> RowLists:
        if self._lists is None:
            group, buffers = self._group, self._buffers
            buffers.room(group.slots.taken * self.n_rows + SPARE, group.slots.taken)
            n = self._part.prepared.lists(
                self._part.mask, group.outputs.arrays(), self._results(), buffers.listed, buffers.offsets, buffers.rows
            )
            offsets = buffers.offsets[: n + 1]
            self._lists = buffers.listed[:n], offsets, buffers.rows[: offsets[n]]
        return self._lists

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        queries, offsets, _ = self.row_lists()
        return queries, np.diff(offsets)

    def finish(self) -> None:
        """Count the results that nobody had listed."""
        if self._part.counted and self._lists is None:
            self._part.prepared.lists(
                self._part.mask, self._group.outputs.arrays(), self._group.results, _NOTHING, _NOTHING, _NO_ROWS
            )

    def _results(self) -> np.ndarray:
        """Where results are counted."""
        group = self._group
        return group.results if self._part.counted else self._buffers.results(len(group.results))


class NoRows:
    """An empty part: the end of a commit whose last part was not known to be the last."""

    n_rows = 0

    def frame(self) -> Frame:
        return ListFrame([], 0)

    def times(self) -> np.ndarray:
        return _NOTHING

    def numbers(self) -> np.ndarray:
        return _NOTHING

    def row_lists(self) -> RowLists:
        return _NOTHING, np.zeros(1, np.int64), _NO_ROWS

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        return _NOTHING, _NOTHING


_NOTHING = np.zeros(0, np.int64)
_NO_ROWS = np.zeros(0, np.int32)
