"""A batch of tuples on its way through the eddy, and its lineage.

A `TupleBatch` is a stretch of rows in one page: columns that never change, and lineage that only loses bits. The rows are not
copied or compacted on the way, so row order survives. Lineage, what CACQ keeps per tuple, is kept per batch:

    done, ready     the modules visited and still to visit: one route for the whole batch
    queries         which queries still want which row: a bit matrix in one of two layouts (`lineage/bits.py`), or, for
                    queries found by a candidate index, (slot, row) pairs

A row is a result for a query when every module of the query's completion mask has been visited and its bit is still set.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lineage.bits import OutputArrays, transpose, words


class Unlisted(Protocol):
    """A batch whose bits are not written out yet: they can be listed without ever being."""

    def lists(
        self, legs: np.ndarray, outputs: OutputArrays, results: np.ndarray, listed: np.ndarray, offsets: np.ndarray,
        rows: np.ndarray,
    ) -> int: ...  # fmt: skip


class Lineage:
    """The query bits of a batch, in the layout that suits its size. Buffers are reused from batch to batch."""

    __slots__ = ("n_words", "lin", "_rows_of", "_block", "by_query", "n_rows", "unlisted", "pair_slot", "pair_row", "n_pairs")

    def __init__(self) -> None:
        self.n_words = 1
        #: row-major bits
        self.lin = np.zeros((64, 1), np.uint64)
        self._rows_of = np.zeros(64, np.uint64)
        #: scratch of `transpose`
        self._block = np.zeros(64, np.uint64)
        #: whether the bits are in `rows_of()` (query-major) rather than in `lin`
        self.by_query = False
        self.n_rows = 0
        #: query-major and not written out: ask this instead of `rows_of()`
        self.unlisted: Unlisted | None = None
        #: (slot, row) of the candidate indexes
        self.pair_slot = np.zeros(1024, np.int32)
        self.pair_row = np.zeros(1024, np.int32)
        self.n_pairs = 0

    def __reduce__(self) -> tuple[type[Lineage], tuple[()]]:
        """Pickle without the arrays: they hold nothing beyond a call, and loading makes new ones."""
        return Lineage, ()

    def rows_of(self, n_rows: int) -> np.ndarray:
        """The query-major matrix `[slots, words of rows]` for a batch of that size."""
        n = words(n_rows)
        size = self.n_words * 64 * n
        if len(self._rows_of) < size:
            self._rows_of = np.zeros(1 << (size - 1).bit_length(), np.uint64)
        return self._rows_of[:size].reshape(self.n_words * 64, n)

    def begin(self, n_rows: int, n_words: int, by_query: bool) -> None:
        """Make room for a batch; contents are undefined until the first visit."""
        self.n_words, self.n_rows, self.by_query, self.n_pairs, self.unlisted = n_words, n_rows, by_query, 0, None
        if not by_query and (self.lin.shape[1] != n_words or len(self.lin) < n_rows):
            self.lin = np.zeros((max(64, n_rows), n_words), np.uint64)

    def to_query_major(self) -> np.ndarray:
        """The bits query-major, turned round if they are not."""
        out = self.rows_of(self.n_rows)
        if not self.by_query:
            transpose(self.lin, self.n_rows, self.n_words, out, self._block)
            self.by_query = True
        return out

    def more_pairs(self) -> None:
        """Double the room for pairs; those there stay."""
        self.pair_slot = np.concatenate([self.pair_slot, np.zeros_like(self.pair_slot)])
        self.pair_row = np.concatenate([self.pair_row, np.zeros_like(self.pair_row)])


class TupleBatch:
    """Rows `first .. first + n_rows` of a page's columns on their way through the eddy. Columns never change."""

    __slots__ = ("cells", "nulls", "has_nulls", "first", "n_rows")

    def __init__(self, cells: np.ndarray, nulls: np.ndarray | None, first: int, n_rows: int) -> None:
        #: the page's cells [columns, rows] and NULL bytes; a dummy when no row of the page has a NULL
        self.cells = cells
        self.nulls = _NO_NULLS if nulls is None else nulls
        self.has_nulls = nulls is not None
        self.first = first
        self.n_rows = n_rows


_NO_NULLS = np.zeros((1, 1), np.uint8)
