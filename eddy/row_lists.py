"""Which rows each query has in a part of a commit, as CSR lists, from the lineage of a batch.

`Outputs` says which queries read which slots; `Matches` turns bits and pairs into lists of row numbers per query, with the
kernels of `lineage/bits.py`. Queries without rows are not listed. The arrays are views of pooled buffers.
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


@kernel("int64(uint64[:,::1], int64, int64, uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[::1])")
def list_few_rows(
    lin: np.ndarray,
    n_rows: int,
    n_words: int,
    legs: np.ndarray,
    queries_at: np.ndarray,
    queries: np.ndarray,
    listed: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
) -> int:
    """Row lists straight from row-major bits; returns how many queries are listed, -1 when `rows` is too small."""
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
            slot = w * 64 + np.int64(b)
            for k in range(queries_at[slot], queries_at[slot + 1]):
                if at + n_rows > len(rows):
                    return -1
                listed[n] = queries[k]
                offsets[n] = at
                n += 1
                for i in range(n_rows):
                    rows[at] = i
                    at += (lin[i, w] & bit) != 0
    offsets[n] = at
    return n


class Outputs:
    """Which queries read which slots of a source: derived from its legs, rebuilt when they change."""

    def __init__(self, source: Source) -> None:
        self.version = source.version
        slots, queries, born = [], [], []
        n_slots = source.slots.n_words * 64
        counts = np.zeros(n_slots + 1, np.int64)
        sparse_counts = np.zeros(source.sparse_slots.n_words * 64 + 1, np.int64)
        sparse_queries = []
        for leg in sorted((leg for leg in source.legs.values() if leg.slot is not None), key=lambda leg: leg.slot or 0):
            assert leg.slot is not None
            if leg.dense:
                counts[leg.slot + 1] = len(leg.queries)
                for query in leg.queries:
                    slots.append(leg.slot)
                    queries.append(query.id)
                    born.append(query.born)
            else:
                sparse_counts[leg.slot + 1] = len(leg.queries)
                sparse_queries.extend((query.id, query.born) for query in leg.queries)
        #: one entry per dense query, by slot
        self.slot = np.array(slots, np.int32)
        self.query = np.array(queries, np.int64)
        self.born = np.array(born, np.int64)
        self.first_row = np.zeros(len(slots), np.int32)
        #: the queries of a slot are `query[queries_at[slot]:queries_at[slot + 1]]`
        self.queries_at = np.cumsum(counts)
        self.sparse_at = np.cumsum(sparse_counts)
        self.sparse_query = np.array([query for query, _ in sparse_queries], np.int64)
        self.sparse_born = np.array([born for _, born in sparse_queries], np.int64)
        self.sparse_single = bool((sparse_counts <= 1).all())
        self.class_of = source.slot_class[self.slot]


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

    __slots__ = ("_source", "_lineage", "_outputs", "_buffers", "_base", "_n_rows", "_window", "_class_first", "_lists")

    def __init__(
        self, source: Source, lineage: Lineage, outputs: Outputs, buffers: Buffers, base: int, n_rows: int, window: int | None,
        class_first: np.ndarray | None,
    ) -> None:  # fmt: skip
        self._source = source
        self._lineage = lineage
        self._outputs = outputs
        self._buffers = buffers
        #: position of the batch's first row
        self._base = base
        self._n_rows = n_rows
        #: for rows that left: the number of their window class
        self._window = window
        #: for rows that came: by window class the first row that counts; None when all do
        self._class_first = class_first
        self._lists: RowLists | None = None

    def row_lists(self) -> RowLists:
        """`(query_ids, offsets, row_numbers)`: query k has the part's rows `row_numbers[offsets[k]:offsets[k + 1]]`."""
        if self._lists is None:
            dense = self._dense_lists() if len(self._outputs.slot) else None
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
        if self._lists is None and not self._lineage.n_pairs and self._lineage.by_query and len(self._outputs.slot):
            slot, query, first = self._dense_outputs()
            counts = np.zeros(len(slot), np.int64)
            count_rows(self._lineage.rows_of(self._n_rows), words(self._n_rows), slot, first, counts)
            return query[counts > 0], counts[counts > 0]
        queries, offsets, _ = self.row_lists()
        return queries, np.diff(offsets)

    def _dense_outputs(self) -> RowLists:
        """(slot, query, first row) of the dense queries this part is about."""
        outputs = self._outputs
        if self._window is None:
            if self._class_first is None:
                return outputs.slot, outputs.query, outputs.first_row
            return outputs.slot, outputs.query, self._class_first[outputs.class_of]
        mine = outputs.class_of == self._window
        first = np.clip(outputs.born[mine] - (self._base), 0, self._n_rows).astype(np.int32)
        return outputs.slot[mine], outputs.query[mine], first

    def _dense_lists(self) -> RowLists | None:
        lineage, buffers, outputs = self._lineage, self._buffers, self._outputs
        if not lineage.by_query and self._n_rows <= FEW_ROWS and self._class_first is None:
            buffers.room(self._n_rows * len(outputs.slot) + self._n_rows, len(outputs.slot))
            n = list_few_rows(
                lineage.lin, self._n_rows, lineage.n_words, self._source.legs_mask, outputs.queries_at, outputs.query,
                buffers.listed, buffers.offsets, buffers.rows,
            )  # fmt: skip
            return buffers.listed[:n], buffers.offsets[: n + 1], buffers.rows[: buffers.offsets[n]]
        rows_of = lineage.to_query_major()
        slot, query, first = self._dense_outputs()
        n_words = words(self._n_rows)
        buffers.room(0, len(slot))
        total = count_rows(rows_of, n_words, slot, first, buffers.listed)
        buffers.room(total + SPARE, len(slot))
        n = list_rows(rows_of, n_words, slot, first, buffers.offsets, buffers.which, buffers.rows, BYTE_BITS)
        return query[buffers.which[:n]], buffers.offsets[: n + 1], buffers.rows[:total]

    def _sparse_lists(self) -> RowLists:
        lineage, outputs = self._lineage, self._outputs
        n_pairs = lineage.n_pairs
        n_slots = self._source.sparse_slots.n_words * 64
        listed = np.empty(min(n_pairs, n_slots), np.int32)
        offsets = np.empty(len(listed) + 1, np.int64)
        rows = np.empty(n_pairs, np.int32)
        count = self._buffers.counters(n_slots)
        n = group_pairs(lineage.pair_slot, lineage.pair_row, n_pairs, count, listed, offsets, rows)
        first = outputs.sparse_at[listed[:n]]
        if outputs.sparse_single and self._window is None and self._class_first is None:
            return outputs.sparse_query[first], offsets[: n + 1], rows
        return self._expand(listed[:n], offsets, rows)

    def _expand(self, listed: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> RowLists:
        """Lists per query where queries share a slot, or where births cut them short."""
        outputs = self._outputs
        base = self._base
        queries, parts, ends = [], [], [0]
        for k, slot in enumerate(listed.tolist()):
            mine = rows[offsets[k] : offsets[k + 1]]
            if self._class_first is not None:
                mine = mine[mine >= self._class_first[self._source.sparse_class[slot]]]
            for q in range(int(outputs.sparse_at[slot]), int(outputs.sparse_at[slot + 1])):
                part = mine if self._window is None else mine[mine >= outputs.sparse_born[q] - base]
                if len(part):
                    queries.append(int(outputs.sparse_query[q]))
                    parts.append(part)
                    ends.append(ends[-1] + len(part))
        joined = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        return np.array(queries, np.int64), np.array(ends, np.int64), joined
