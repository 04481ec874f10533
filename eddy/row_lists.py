"""Which rows each query has in a part of a commit, as CSR lists, from the lineage of a batch.

`eddy/outputs.py` says which queries read which slots; `Matches` turns bits and pairs into lists of row numbers per query,
with the kernels of `lineage/bits.py`. Queries without rows are not listed. The arrays are views of pooled buffers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from eddy.eddy import FEW_ROWS
from filters.candidates import group_pairs
from lineage.batch import Lineage
from lineage.bits import BYTE_BITS, SPARE, count_rows, list_rows, trailing_zeros, words
from lineage.kernels import kernel

if TYPE_CHECKING:
    from eddy.source import Source

#: query ids, offsets, row numbers
RowLists = tuple[np.ndarray, np.ndarray, np.ndarray]


@kernel(
    "int64(uint64[:,::1], int64, int64, uint64[::1], int64[::1], int32[::1], int64[::1], int64, int64[::1], int64[::1], "
    "int32[::1])"
)
def list_few_rows(
    lin: np.ndarray,
    n_rows: int,
    n_words: int,
    legs: np.ndarray,
    query_of: np.ndarray,
    more_slot: np.ndarray,
    more_query: np.ndarray,
    n_more: int,
    listed: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
) -> int:
    """Row lists straight from row-major bits; returns how many queries are listed."""
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


@kernel("int64(int32[::1], int32[::1], int64, int32[::1])")
def keep_pairs(pair_slot: np.ndarray, pair_row: np.ndarray, n_pairs: int, first_of: np.ndarray) -> int:
    """Drop pairs whose row comes before the first that counts for their slot; returns how many are left."""
    kept = 0
    for j in range(n_pairs):
        slot, row = pair_slot[j], pair_row[j]
        pair_slot[kept] = slot
        pair_row[kept] = row
        kept += row >= first_of[slot]
    return kept


class Buffers:
    """Pooled arrays for row lists, shared by all parts of an engine."""

    def __init__(self) -> None:
        self.rows = np.zeros(1 << 16, np.int32)
        self.offsets = np.zeros(1 << 10, np.int64)
        self.which = np.zeros(1 << 10, np.int32)
        self.listed = np.zeros(1 << 10, np.int64)
        self.count = np.zeros(64, np.int32)

    def room(self, n_rows: int, n_lists: int) -> None:
        if len(self.rows) < n_rows:
            self.rows = np.empty(1 << (n_rows - 1).bit_length(), np.int32)
        if len(self.which) < n_lists:
            size = 1 << (n_lists - 1).bit_length()
            self.offsets = np.zeros(size + 1, np.int64)
            self.which = np.zeros(size, np.int32)
            self.listed = np.zeros(size, np.int64)

    def counters(self, n: int) -> np.ndarray:
        if len(self.count) < n:
            self.count = np.zeros(n, np.int32)
        return self.count


class Lists(Protocol):
    """What a part of a commit can tell about its queries."""

    def row_lists(self) -> RowLists: ...

    def counts(self) -> tuple[np.ndarray, np.ndarray]: ...


class WholeLists:
    """All rows of a part, for one query."""

    def __init__(self, query: int, n_rows: int) -> None:
        self._query = query
        self._n_rows = n_rows

    def row_lists(self) -> RowLists:
        return np.array([self._query]), np.array([0, self._n_rows]), np.arange(self._n_rows, dtype=np.int32)

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([self._query]), np.array([self._n_rows])


class Matches:
    """The lists of a batch that went through the eddy."""

    __slots__ = ("_source", "_lineage", "_buffers", "_base", "_n_rows", "_window", "_class_first", "_results", "_lists")

    def __init__(
        self, source: Source, lineage: Lineage, buffers: Buffers, base: int, n_rows: int, window: int | None,
        class_first: np.ndarray | None,
    ) -> None:  # fmt: skip
        self._source = source
        self._lineage = lineage
        self._buffers = buffers
        #: position of the batch's first row
        self._base = base
        self._n_rows = n_rows
        #: for rows that left: the number of their window class
        self._window = window
        #: for rows that came: by window class the first row that counts; None when all do
        self._class_first = class_first
        #: where results are counted while they are listed; rows that left count nowhere
        self._results = source.results if window is None else np.zeros(len(source.results), np.int64)
        self._lists: RowLists | None = None

    def row_lists(self) -> RowLists:
        """`(query_ids, offsets, row_numbers)`: query k has the part's rows `row_numbers[offsets[k]:offsets[k + 1]]`."""
        if self._lists is None:
            dense = self._dense_lists() if self._source.slots.taken else None
            sparse = self._sparse_lists() if self._lineage.n_pairs else None
            if dense is None or sparse is None:
                empty = (np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32))
                self._lists = dense or sparse or empty
            else:
                offsets = np.concatenate([dense[1], sparse[1][1:] + dense[1][-1]])
                self._lists = (np.concatenate([dense[0], sparse[0]]), offsets, np.concatenate([dense[2], sparse[2]]))
        return self._lists

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """`(query_ids, counts)` of the queries that have rows in the part."""
        lineage = self._lineage
        if self._lists is None and not lineage.n_pairs and lineage.by_query and lineage.unlisted is None:
            slot, query, first = self._dense_outputs()
            counts = np.zeros(len(slot), np.int64)
            count_rows(lineage.rows_of(self._n_rows), words(self._n_rows), slot, first, counts)
            return query[counts > 0], counts[counts > 0]
        queries, offsets, _ = self.row_lists()
        return queries, np.diff(offsets)

    def finish(self) -> None:
        """Count the results of a batch that nobody had listed."""
        unlisted = self._lineage.unlisted
        if unlisted is not None and self._window is None:
            outputs = self._source.outputs()
            none = _NO_OFFSETS
            unlisted.lists(outputs.slot, outputs.no_rows, outputs.n_first, self._results, none, outputs.no_rows, outputs.no_rows)
            self._lineage.unlisted = None

    def _dense_outputs(self) -> RowLists:
        """(slot, query, first row) of the dense queries this part is about."""
        outputs = self._source.outputs()
        if self._window is None:
            if self._class_first is None:
                return outputs.slot, outputs.query, outputs.no_rows
            return outputs.slot, outputs.query, self._class_first[outputs.class_of]
        mine = outputs.class_of == self._window
        first = np.clip(outputs.born[mine] - self._base, 0, self._n_rows).astype(np.int32)
        return outputs.slot[mine], outputs.query[mine], first

    def _dense_lists(self) -> RowLists:
        lineage, buffers, source = self._lineage, self._buffers, self._source
        outputs = source.dense_outputs
        if not lineage.by_query and self._n_rows <= FEW_ROWS and self._class_first is None:
            n_lists = source.slots.taken + outputs.n_more
            buffers.room((self._n_rows + 1) * n_lists, n_lists)
            n = list_few_rows(
                lineage.lin, self._n_rows, lineage.n_words, source.legs_mask, outputs.query_of, outputs.more_slot,
                outputs.more_query, outputs.n_more, buffers.listed, buffers.offsets, buffers.rows,
            )  # fmt: skip
            return buffers.listed[:n], buffers.offsets[: n + 1], buffers.rows[: buffers.offsets[n]]
        slot, query, first = self._dense_outputs()
        n_words = words(self._n_rows)
        if lineage.unlisted is not None:
            # pages of the buffer that no row number reaches are never touched
            buffers.room(len(slot) * self._n_rows + SPARE, len(slot))
            n = lineage.unlisted.lists(slot, first, outputs.n_first, self._results, buffers.offsets, buffers.which, buffers.rows)
            lineage.unlisted = None
        else:
            rows_of = lineage.to_query_major()
            buffers.room(0, len(slot))
            total = count_rows(rows_of, n_words, slot, first, buffers.listed)
            buffers.room(total + SPARE, len(slot))
            n = list_rows(rows_of, n_words, slot, first, buffers.offsets, buffers.which, buffers.rows, BYTE_BITS)
        return query[buffers.which[:n]], buffers.offsets[: n + 1], buffers.rows[: buffers.offsets[n]]

    def _sparse_lists(self) -> RowLists:
        lineage, source = self._lineage, self._source
        outputs = source.sparse_outputs
        n_pairs = lineage.n_pairs
        if self._class_first is not None:
            n_pairs = keep_pairs(lineage.pair_slot, lineage.pair_row, n_pairs, self._class_first[source.sparse_class])
        elif self._window is not None and not outputs.n_more:
            first_of = np.clip(outputs.born_of - self._base, 0, self._n_rows).astype(np.int32)
            n_pairs = keep_pairs(lineage.pair_slot, lineage.pair_row, n_pairs, first_of)
        n_slots = len(source.sparse_class)
        listed = np.empty(min(n_pairs, n_slots), np.int32)
        offsets = np.empty(len(listed) + 1, np.int64)
        rows = np.empty(n_pairs, np.int32)
        n = group_pairs(lineage.pair_slot, lineage.pair_row, n_pairs, self._buffers.counters(n_slots), listed, offsets, rows)
        if outputs.n_more:
            return self._expand(listed[:n], offsets, rows)
        return outputs.query_of[listed[:n]], offsets[: n + 1], rows

    def _expand(self, listed: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> RowLists:
        """Lists per query where queries share a slot; births cut the lists of rows that left."""
        outputs = self._source.sparse_outputs
        queries, parts, ends = [], [], [0]
        for k, slot in enumerate(listed.tolist()):
            mine = rows[offsets[k] : offsets[k + 1]]
            for query, born in outputs.readers(slot):
                part = mine if self._window is None else mine[mine >= born - self._base]
                if len(part):
                    queries.append(query)
                    parts.append(part)
                    ends.append(ends[-1] + len(part))
        joined = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        return np.array(queries, np.int64), np.array(ends, np.int64), joined


_NO_OFFSETS = np.zeros(0, np.int64)
