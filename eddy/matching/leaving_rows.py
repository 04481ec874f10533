"""The part of a commit made of rows that leave windows, with the rows of each query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddy.lives.leaving import LeavingBatch
from eddy.matching.row_lists import ListBuffers, RowLists, join_lists, list_pairs
from eddy.streams.legs import WindowClass
from eddy.streams.outputs import FIRST
from eddy.streams.source import Source
from filters.values.vector import Frame
from lineage.batch import Lineage
from lineage.bits import BYTE_BITS, SPARE, list_rows, words
from stems.frame import RowsFrame
from stems.row_store import Page


class LeavingRows:
    """The segments of a leaving batch one behind the other; rows are read on demand."""

    __slots__ = ("n_rows", "_source", "_batch", "_lineage", "_buffers", "_lists")

    def __init__(self, source: Source, batch: LeavingBatch, lineage: Lineage, buffers: ListBuffers) -> None:
        self.n_rows = batch.n_part_rows
        self._source = source
        self._batch = batch
        self._lineage = lineage
        self._buffers = buffers
        self._lists: RowLists | None = None

    def _pieces(self) -> Iterator[tuple[WindowClass, Page, int, int]]:
        """For each segment: its window class, its pages, and the first and last offset in each."""
        segments = self._batch.segments
        for window in self._batch.windows:
            position, first, behind, _ = segments[window.number].tolist()
            for page, at, stop in self._source.store.slices(position, position + behind - first):
                yield window, page, at, stop

    def frame(self) -> Frame:
        positions = np.concatenate([np.arange(page.base + at, page.base + stop) for _, page, at, stop in self._pieces()])
        return RowsFrame([self._source.gatherer], [self._source.dictionaries], [positions])

    def times(self) -> np.ndarray:
        ends = [page.elements(slice(at, stop), held.window.width_us).times(-1) for held, page, at, stop in self._pieces()]
        return np.concatenate(ends)

    def numbers(self) -> np.ndarray:
        return np.concatenate([page.rows_of(at, stop) for _, page, at, stop in self._pieces()])

    def row_lists(self) -> RowLists:
        if self._lists is None:
            dense = self._dense_lists() if self._source.placement.slots.taken else None
            sparse = self._sparse_lists() if self._lineage.n_pairs else None
            self._lists = join_lists(dense, sparse)
        return self._lists

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        queries, offsets, _ = self.row_lists()
        return queries, np.diff(offsets)

    def _dense_lists(self) -> RowLists:
        placement, batch, lineage, buffers = self._source.placement, self._batch, self._lineage, self._buffers
        outputs = placement.dense_outputs
        arrays = outputs.arrays_of(batch.segments, placement.slot_class)
        n_lists = placement.slots.taken + outputs.n_more
        # pages of the buffer that no row number reaches are never touched
        buffers.room(n_lists * batch.longest + SPARE, n_lists)
        if lineage.unlisted is not None:
            n = lineage.unlisted.lists(placement.legs_mask, arrays, _UNCOUNTED, buffers.listed, buffers.offsets, buffers.rows)
            lineage.unlisted = None
        else:
            n_words = words(batch.n_rows)
            n = list_rows(
                lineage.rows_of(batch.n_rows), n_words, placement.legs_mask, arrays, buffers.listed, buffers.offsets,
                buffers.rows, BYTE_BITS, buffers.words(n_words),
            )  # fmt: skip
        offsets = buffers.offsets[: n + 1]
        return buffers.listed[:n], offsets, buffers.rows[: offsets[n]]

    def _sparse_lists(self) -> RowLists:
        placement, segments = self._source.placement, self._batch.segments

        def first_since(slot: int, born: int) -> int:
            """The number in the part of the first row that a query on a slot has since its birth."""
            position, first, _, shift = segments[placement.sparse_class[slot]].tolist()
            return int(first + shift + max(0, born - position))

        outputs = placement.sparse_outputs
        _, first_of, *_, stop_of, shift_of = outputs.arrays_of(segments, placement.sparse_class)
        if outputs.n_more:
            # what several queries share is cut by the birth of each
            first_of = segments[placement.sparse_class, FIRST].astype(np.int32)
        return list_pairs(self._lineage, outputs, first_of, stop_of, shift_of, self._buffers, first_since)


_UNCOUNTED = np.zeros(0, np.int64)
