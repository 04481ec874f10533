"""The rows of a part of a commit, and which of them each query has, as CSR lists.

`eddy/streams/outputs.py` says which queries read which slots; `MatchedRows` turns the bits and pairs of the lineage of a batch
that came into lists of row numbers per query, with the kernels of `lineage/bits.py`; `eddy/matching/leaving_rows.py` does it for
rows that leave. Queries without rows are not listed. The arrays are views of pooled buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from eddy.base.plans import Kept
from eddy.matching.eddy import FEW_ROWS
from eddy.streams.outputs import Outputs
from filters.index.candidates import group_pairs
from filters.values.vector import Frame
from lineage.batch import Lineage
from lineage.bits import BYTE_BITS, SPARE, OutputArrays, count_rows, list_rows, trailing_zeros, words
from lineage.kernels import kernel
from stems.frame import PageFrame
from stems.row_store import Page

if TYPE_CHECKING:
    from eddy.streams.source import Source

#: query ids, offsets, row numbers
RowLists = tuple[np.ndarray, np.ndarray, np.ndarray]


@kernel(
    "int64(uint64[:,::1], int64, int64, uint64[::1], int64[::1], int32[::1], int64[::1], int64, int64[::1], int64[::1], "
    "int32[::1])"
)
def list_few_rows(
    lin: np.ndarray, n_rows: int, n_words: int, legs: np.ndarray, query_of: np.ndarray, more_slot: np.ndarray,
    more_query: np.ndarray, n_more: int, listed: np.ndarray, offsets: np.ndarray, rows: np.ndarray,
) -> int:  # fmt: skip
    """Make row lists straight from row-major bits; returns the number of queries listed."""
    n = 0
    at = np.int64(0)
    for w in range(n_words):
        union = np.uint64(0)
        for i in range(n_rows):
            union |= lin[i, w]
        union &= legs[w]
        while union:
            b = trailing_zeros(union)
            union &= union - np.uint64(1)
            bit = np.uint64(1) << b
            listed[n] = query_of[w * 64 + np.int64(b)]
            offsets[n] = at
            n += 1
            for i in range(n_rows):
                rows[at] = i
                at += (lin[i, w] & bit) != 0
    for k in range(n_more):
        w = more_slot[k] >> 6
        bit = np.uint64(1) << np.uint64(more_slot[k] & 63)
        start = at
        for i in range(n_rows):
            rows[at] = i
            at += (lin[i, w] & bit) != 0
        if at > start:
            listed[n] = more_query[k]
            offsets[n] = start
            n += 1
    offsets[n] = at
    return n


@kernel("int64(int32[::1], int32[::1], int64, int32[::1], int32[::1], int32[::1])")
def keep_pairs(
    pair_slot: np.ndarray, pair_row: np.ndarray, n_pairs: int, first_of: np.ndarray, stop_of: np.ndarray, shift_of: np.ndarray
) -> int:
    """Drop pairs whose row does not count for their slot, as `list_rows` does with bits; returns the number left."""
    kept = 0
    for j in range(n_pairs):
        slot, row = pair_slot[j], pair_row[j]
        counts = row >= first_of[slot]
        if len(stop_of):
            counts &= row < stop_of[slot]
            row += shift_of[slot]
        pair_slot[kept] = slot
        pair_row[kept] = row
        kept += counts
    return kept


class ListBuffers:
    """Pooled arrays for row lists, shared by the whole engine."""

    __slots__ = ("rows", "offsets", "listed", "uncounted", "_pairs", "_words")

    def __init__(self) -> None:
        self.rows = np.zeros(1 << 16, np.int32)
        self.offsets = np.zeros(1 << 10, np.int64)
        self.listed = np.zeros(1 << 10, np.int64)
        self._pairs: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None
        self._words = np.zeros(64, np.uint64)
        #: where results go that are not to be counted
        self.uncounted = np.zeros(64, np.int64)

    def __reduce__(self) -> tuple[type[ListBuffers], tuple[()]]:
        """New empty buffers on load: the contents never outlive a call."""
        return ListBuffers, ()

    def room(self, n_rows: int, n_lists: int) -> None:
        if len(self.rows) < n_rows:
            self.rows = np.empty(1 << (n_rows - 1).bit_length(), np.int32)
        if len(self.offsets) <= n_lists:
            size = 1 << n_lists.bit_length()
            self.offsets = np.zeros(size + 1, np.int64)
            self.listed = np.zeros(size, np.int64)

    def of_pairs(self, n_pairs: int, n_slots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Counters that are 0, slots, queries, offsets and rows, for lists made of pairs."""
        held = self._pairs
        if held is None or len(held[0]) < n_slots or len(held[4]) < n_pairs:
            size = 1 << max(n_pairs, 1024).bit_length()
            listed = np.zeros(n_slots, np.int64)
            counters, slots = np.zeros(n_slots, np.int32), np.zeros(n_slots, np.int32)
            held = self._pairs = (counters, slots, listed, np.zeros(n_slots + 1, np.int64), np.zeros(size, np.int32))
        return held

    def words(self, n_words: int) -> np.ndarray:
        """Scratch words."""
        if len(self._words) < n_words:
            self._words = np.zeros(n_words, np.uint64)
        return self._words

    def results(self, n: int) -> np.ndarray:
        if len(self.uncounted) < n:
            self.uncounted = np.zeros(n, np.int64)
        return self.uncounted


class PartRows(Protocol):
    """The rows of a part of a commit, with the rows of each query."""

    @property
    def n_rows(self) -> int: ...

    def frame(self) -> Frame: ...

    def times(self) -> np.ndarray:
        """The time of each change, in microseconds."""
        ...

    def numbers(self) -> np.ndarray: ...

    def row_lists(self) -> RowLists: ...

    def counts(self) -> tuple[np.ndarray, np.ndarray]: ...


class OpeningRows:
    """Rows of an answer that one query gets or gives up in the commit that opens its run."""

    __slots__ = ("n_rows", "_query", "_kept", "_rows", "_at_us")

    def __init__(self, query: int, kept: Kept, rows: np.ndarray, at_us: int) -> None:
        self.n_rows = len(rows)
        self._query = query
        self._kept = kept
        self._rows = rows
        self._at_us = at_us

    def frame(self) -> Frame:
        return self._kept.frame().select(self._rows)

    def times(self) -> np.ndarray:
        return np.full(self.n_rows, self._at_us)

    def numbers(self) -> np.ndarray:
        numbers: np.ndarray = self._kept.row_numbers[self._rows]
        return numbers

    def row_lists(self) -> RowLists:
        return np.array([self._query]), np.array([0, self.n_rows]), np.arange(self.n_rows, dtype=np.int32)

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([self._query]), np.array([self.n_rows])


class MatchedRows:
    """Newly stored rows of a page that went through the eddy."""

    __slots__ = ("n_rows", "_source", "_page", "_at", "_lineage", "_buffers", "_class_first", "_lists")

    def __init__(
        self, source: Source, page: Page, at: int, n_rows: int, lineage: Lineage, buffers: ListBuffers,
        class_first: np.ndarray | None,
    ) -> None:  # fmt: skip
        self.n_rows = n_rows
        self._source = source
        self._page = page
        self._at = at
        self._lineage = lineage
        self._buffers = buffers
        #: by window class the first row that counts; None when all do
        self._class_first = class_first
        self._lists: RowLists | None = None

    def frame(self) -> Frame:
        source = self._source
        return PageFrame(self._page, source.schema, source.dictionaries, slice(self._at, self._at + self.n_rows))

    def times(self) -> np.ndarray:
        return self._page.elements(slice(self._at, self._at + self.n_rows), 0).times(1).copy()

    def numbers(self) -> np.ndarray:
        return self._page.rows_of(self._at, self._at + self.n_rows).copy()

    def row_lists(self) -> RowLists:
        """`(query_ids, offsets, row_numbers)`: query k has the part's rows `row_numbers[offsets[k]:offsets[k + 1]]`."""
        if self._lists is None:
            dense = self._dense_lists() if self._source.placement.slots.taken else None
            sparse = self._sparse_lists() if self._lineage.n_pairs else None
            self._lists = join_lists(dense, sparse)
        return self._lists

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """`(query_ids, counts)` of the queries that have rows in the part."""
        queries, offsets, _ = self.row_lists()
        return queries, np.diff(offsets)

    def finish(self) -> None:
        """Count the results of new rows if no listener asked for the lists."""
        unlisted = self._lineage.unlisted
        if unlisted is not None:
            placement = self._source.placement
            arrays = placement.dense_outputs.arrays()
            unlisted.lists(placement.legs_mask, arrays, placement.results, _NO_OFFSETS, _NO_OFFSETS, _NO_ROWS)
            self._lineage.unlisted = None

    def _dense_outputs(self) -> OutputArrays:
        placement, first = self._source.placement, self._class_first
        outputs = placement.dense_outputs
        return outputs.arrays() if first is None else outputs.arrays_from(first, placement.slot_class)

    def _dense_lists(self) -> RowLists:
        lineage, buffers, placement, n_rows = self._lineage, self._buffers, self._source.placement, self.n_rows
        outputs = placement.dense_outputs
        n_lists = placement.slots.taken + outputs.n_more
        if not lineage.by_query and n_rows <= FEW_ROWS and self._class_first is None:
            buffers.room((n_rows + 1) * n_lists, n_lists)
            n = list_few_rows(
                lineage.lin, n_rows, lineage.n_words, placement.legs_mask, outputs.query_of, outputs.more_slot,
                outputs.more_query, outputs.n_more, buffers.listed, buffers.offsets, buffers.rows,
            )  # fmt: skip
        else:
            arrays = self._dense_outputs()
            legs = placement.legs_mask
            if lineage.unlisted is not None:
                # pages of the buffer that no row number reaches are never touched
                buffers.room(n_lists * n_rows + SPARE, n_lists)
                n = lineage.unlisted.lists(legs, arrays, placement.results, buffers.listed, buffers.offsets, buffers.rows)
                lineage.unlisted = None
            else:
                rows_of, n_words = lineage.to_query_major(), words(n_rows)
                buffers.room(count_rows(rows_of, n_words, legs, outputs.more_slot, outputs.n_more) + SPARE, n_lists)
                scratch = buffers.words(n_words)
                n = list_rows(rows_of, n_words, legs, arrays, buffers.listed, buffers.offsets, buffers.rows, BYTE_BITS, scratch)
        offsets = buffers.offsets[: n + 1]
        return buffers.listed[:n], offsets, buffers.rows[: offsets[n]]

    def _sparse_lists(self) -> RowLists:
        placement, class_first = self._source.placement, self._class_first
        first_of = None if class_first is None else class_first[placement.sparse_class]
        return list_pairs(self._lineage, placement.sparse_outputs, first_of, _NO_ROWS, _NO_ROWS, self._buffers, None)


def join_lists(dense: RowLists | None, sparse: RowLists | None) -> RowLists:
    """The lists of queries with bits and of queries found by candidate indexes, as one."""
    if dense is None or sparse is None:
        return dense or sparse or (np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32))
    offsets = np.concatenate([dense[1], sparse[1][1:] + dense[1][-1]])
    return np.concatenate([dense[0], sparse[0]]), offsets, np.concatenate([dense[2], sparse[2]])


def list_pairs(
    lineage: Lineage, outputs: Outputs, first_of: np.ndarray | None, stop_of: np.ndarray, shift_of: np.ndarray,
    buffers: ListBuffers, first_since: Callable[[int, int], int] | None,
) -> RowLists:  # fmt: skip
    """Lists of a batch's pairs, of the rows that count for each slot (`first_of` None: all).

    `first_since(slot, birth)`: the first row of a query born then, where births matter and several queries share a slot.
    """
    n_pairs = lineage.n_pairs
    if first_of is not None:
        n_pairs = keep_pairs(lineage.pair_slot, lineage.pair_row, n_pairs, first_of, stop_of, shift_of)
    count, slots, listed, offsets, rows = buffers.of_pairs(n_pairs, len(outputs.query_of))
    n = group_pairs(lineage.pair_slot, lineage.pair_row, n_pairs, count, outputs.query_of, slots, listed, offsets, rows)
    if not outputs.n_more:
        return listed[:n], offsets[: n + 1], rows[:n_pairs]
    queries, parts, ends = [], [], [0]
    for k, slot in enumerate(slots[:n].tolist()):
        mine = rows[offsets[k] : offsets[k + 1]]
        for query, born in outputs.readers(slot):
            part = mine if first_since is None else mine[mine >= first_since(slot, born)]
            if len(part):
                queries.append(query)
                parts.append(part)
                ends.append(ends[-1] + len(part))
    joined = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return np.array(queries, np.int64), np.array(ends, np.int64), joined


_NO_OFFSETS = np.zeros(0, np.int64)
_NO_ROWS = np.zeros(0, np.int32)
