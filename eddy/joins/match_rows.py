"""The part of a commit made of matches, with the matches of each query as CSR lists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddy.joins.join_group import JoinGroup, Part
from eddy.matching.row_lists import ListBuffers, RowLists
from filters.values.vector import Frame, ListFrame
from lineage.bits import SPARE


class MatchRows:
    """Matches found by a group, listed on demand.

    Ended matches are not even searched for before a listener asks: many listeners only use new matches.
    """

    __slots__ = ("_group", "_part", "_parts", "_buffers", "_lists")

    def __init__(self, group: JoinGroup, parts: Iterator[Part], buffers: ListBuffers, part: Part | None = None) -> None:
        """The given part, or else the next one of `parts`, taken on demand."""
        self._group = group
        self._parts = parts
        self._part = part
        self._buffers = buffers
        self._lists: RowLists | None = None

    @property
    def asked(self) -> bool:
        return self._part is not None

    def _found(self) -> Part:
        if self._part is None:
            self._part = next(self._parts, None) or self._group.nothing()
        return self._part

    @property
    def n_rows(self) -> int:
        return len(self._found().found)

    def frame(self) -> Frame:
        """The columns of all inputs side by side."""
        return self._group.walker.frame(self._found().found)

    def times(self) -> np.ndarray:
        """The latest start of each match's rows, or their earliest end, or the time of a table change."""
        part = self._found()
        if part.at is not None:
            return np.full(len(part.found), part.at)
        times, latest = self._group.lives(part.found)
        if part.widths is None:
            return latest
        ends = np.minimum((times + np.array(part.widths)[:, None]).min(axis=0), self._group.early_ends(part.found))
        settled: np.ndarray = np.minimum(ends, part.upto)
        return settled

    def numbers(self) -> np.ndarray:
        """Row numbers `[matches, inputs]`; of one input `[matches]`."""
        return self._group.numbers(self._found().found)

    def row_lists(self) -> RowLists:
        if self._lists is None:
            group, buffers, part = self._group, self._buffers, self._found()
            buffers.room(group.slots.taken * self.n_rows + SPARE, group.slots.taken)
            results = group.results if part.widths is None else buffers.results(len(group.results))
            n = part.prepared.lists(
                part.mask, group.outputs.arrays(), results, buffers.listed, buffers.offsets, buffers.rows
            )  # fmt: skip
            offsets = buffers.offsets[: n + 1]
            self._lists = buffers.listed[:n], offsets, buffers.rows[: offsets[n]]
        return self._lists

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        queries, offsets, _ = self.row_lists()
        return queries, np.diff(offsets)

    def finish(self) -> None:
        """Count the results of new matches if no listener asked for the lists."""
        if self._lists is None:
            part, group = self._found(), self._group
            part.prepared.lists(part.mask, group.outputs.arrays(), group.results, _NOTHING, _NOTHING, _NO_ROWS)


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
