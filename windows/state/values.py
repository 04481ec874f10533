"""Codes of values: rows of several columns, numbered so that equal rows have equal numbers.

    code(a) = code(b)  iff  a and b are equal in every column      NULL = NULL, NaN = NaN, -0.0 = 0.0, texts by their letters

Codes are dense: counts, groups and ranks of values are plain arrays by code. Each `encode` takes one reference for each of its
rows; `release` gives references back, and a code without any is free for another value. Until then its value can be read back.
Capacity follows the number of live values (`lineage/numbers.py`).

    table    from the hash of a value to its code (`lineage/hash_table.py`)
    cells    the values by code (`windows/state/cells.py`), floats in one form
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array, Vector
from lineage.growth import LEAST, fitted
from lineage.hash_table import delete_entry, entry_of, hash_of, move_entries, number_of, table_shift
from lineage.kernels import Number, inline, kernel
from lineage.memory import prefetch
from lineage.numbers import Numbers, hand_out, take_back
from lineage.schema import Type
from stems.keys import mix
from windows.state.cells import Cells

U64 = np.uint64
_HASH = U64(0x9E3779B97F4A7C15)

#: Rows encoded between two looks at the capacity: a batch of equal rows reserves no room for itself.
_STEP = 4096
#: Rows between asking for a table entry and looking at it.
_AHEAD = 8


@inline
def _hash_row(cells: Number, nulls: Number, row: Number) -> Number:
    """Return a hash of 32 bits, as an int64 that is never negative."""
    h = _HASH
    for k in range(len(cells)):
        h = mix(h ^ U64(cells[k, row]) ^ (U64(nulls[k, row]) << U64(63))) + _HASH
    return np.int64(h >> U64(32))


@inline
def _same_row(cells: Number, nulls: Number, row: Number, stored: Number, stored_nulls: Number, code: Number) -> Number:
    k = 0
    while k < len(cells):
        if cells[k, row] != stored[k, code] or nulls[k, row] != stored_nulls[k, code]:
            break
        k += 1
    return k == len(cells)


@kernel("void(int64[:,::1], uint8[:,::1], int64[::1])")
def hash_rows(cells: np.ndarray, nulls: np.ndarray, hashes: np.ndarray) -> None:
    """Write the hash of each row, by which the table finds it."""
    for row in range(len(hashes)):
        hashes[row] = _hash_row(cells, nulls, row)


@kernel(
    "int64(int64[:,::1], uint8[:,::1], int64[::1], int64[::1], int64, int64[:,::1], uint8[:,::1], int64[::1],"
    "int64[::1], int64[::1], int64[::1])"
)
def encode_rows(
    cells: np.ndarray, nulls: np.ndarray, hashes: np.ndarray, table: np.ndarray, table_address: int, stored: np.ndarray,
    stored_nulls: np.ndarray, counts: np.ndarray, free: np.ndarray, header: np.ndarray, codes: np.ndarray,
) -> int:  # fmt: skip
    """Write the code of each row and add a reference; new values take free codes, of which there are enough. Returns how many."""
    n_new = np.int64(0)
    mask = np.int64(len(table) - 1)
    shift = table_shift(table)
    for row in range(len(codes)):
        if row + _AHEAD < len(codes):
            prefetch(table_address + 8 * (hashes[row + _AHEAD] >> shift))
        h = hashes[row]
        at = h >> shift
        code = np.int64(-1)
        while table[at] != 0:
            if hash_of(table[at]) == h:
                known = number_of(table[at])
                if _same_row(cells, nulls, row, stored, stored_nulls, known):
                    code = known
                    break
            at = (at + 1) & mask
        if code < 0:
            code = hand_out(free, header)
            n_new += 1
            table[at] = entry_of(h, code)
            for k in range(len(cells)):
                stored[k, code] = cells[k, row]
                stored_nulls[k, code] = nulls[k, row]
        counts[code] += 1
        codes[row] = code
    return int(n_new)


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, int64[:,::1], uint8[:,::1], int64[::1], int64[::1], int64[::1])")
def release_codes(
    codes: np.ndarray, hashes: np.ndarray, table: np.ndarray, table_address: int, stored: np.ndarray,
    stored_nulls: np.ndarray, counts: np.ndarray, free: np.ndarray, header: np.ndarray,
) -> int:  # fmt: skip
    """Take a reference from each code; codes without any leave the table. Returns how many; `hashes` is scratch."""
    n_gone = np.int64(0)
    mask = np.int64(len(table) - 1)
    shift = table_shift(table)
    for k in range(len(codes)):
        hashes[k] = _hash_row(stored, stored_nulls, codes[k])
    for k in range(len(codes)):
        if k + _AHEAD < len(codes):
            prefetch(table_address + 8 * (hashes[k + _AHEAD] >> shift))
        code = codes[k]
        counts[code] -= 1
        if counts[code] == 0:
            take_back(code, free, header)
            n_gone += 1
            at = hashes[k] >> shift
            while number_of(table[at]) != code:
                at = (at + 1) & mask
            delete_entry(table, at, shift)
    return int(n_gone)


class ValueCodes:
    """The values of live rows, by code.

    >>> codes = ValueCodes([Type.INT])
    >>> first = codes.encode([Vector(Type.INT, np.array([7, 8, 7]))], 3)
    >>> first.tolist(), codes.take(first)[0].to_pylist(), len(codes)
    ([0, 1, 0], [7, 8, 7], 2)
    >>> codes.release(first[:2]); len(codes)
    1
    """

    __slots__ = ("types", "_n_live", "_numbers", "_table", "_cells", "_counts")

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        self._reset()

    def _reset(self) -> None:
        self._n_live = 0
        #: the codes
        self._numbers = Numbers()
        self._table = np.zeros(2 * LEAST, np.int64)
        self._cells = Cells(self.types)
        #: references of each code; 0 iff it is free
        self._counts = np.zeros(LEAST, np.int64)

    def __len__(self) -> int:
        return self._n_live

    @property
    def capacity(self) -> int:
        """The size of arrays by code: every code is below it."""
        return self._numbers.capacity

    def encode(self, columns: Sequence[Vector], n_rows: int) -> Array:
        """Return the code of each row, new for values that are not alive; every row takes a reference."""
        cells, nulls = self._cells.encoded(columns, n_rows, folded=True)
        codes = np.empty(n_rows, np.int64)
        for start in range(0, n_rows, _STEP):
            part = slice(start, min(start + _STEP, n_rows))
            rows = np.ascontiguousarray(cells[:, part])
            row_nulls = np.ascontiguousarray(nulls[:, part])
            hashes = np.empty(part.stop - start, np.int64)
            hash_rows(rows, row_nulls, hashes)
            if self._numbers.reserve(len(hashes), self._counts):
                self._fit()
            self._n_live += encode_rows(
                rows, row_nulls, hashes, self._table, self._table.ctypes.data, self._cells.cells, self._cells.nulls,
                self._counts, self._numbers.free, self._numbers.header, codes[part],
            )  # fmt: skip
        return codes

    def _fit(self) -> None:
        """Resize the arrays to the new capacity."""
        self._cells.fit(self.capacity)
        self._counts = fitted(self._counts, self.capacity)
        table = np.zeros(2 * self.capacity, np.int64)
        move_entries(self._table, table)
        self._table = table

    def acquire(self, codes: Array) -> None:
        """Add a reference for each entry, of values that are alive."""
        np.add.at(self._counts, codes, 1)

    def release(self, codes: Array) -> None:
        """Take a reference for each entry. Values without any are gone, their codes free."""
        if len(codes) == 0:
            return
        stored = self._cells
        n_gone = release_codes(
            codes, np.empty(len(codes), np.int64), self._table, self._table.ctypes.data, stored.cells, stored.nulls,
            self._counts, self._numbers.free, self._numbers.header,
        )  # fmt: skip
        self._n_live -= n_gone
        if self._n_live == 0:
            self._reset()
            return
        if stored.many_texts(self._n_live):
            self._compact_texts()
        if self._numbers.shrink(n_gone, self._counts, self._n_live):
            self._fit()

    def _compact_texts(self) -> None:
        """Drop the texts of values that are gone; cells change, so the table is made again."""
        live = self.live()
        self._cells.compact_texts(live)
        self._enter_again(live)

    def recode(self, column: int, new_cell: Array) -> None:
        """Replace each cell of a column of integers by another, different ones by different ones."""
        live = self.live()
        stored = self._cells
        valid = live[stored.nulls[column, live] == 0]
        stored.cells[column, valid] = new_cell[stored.cells[column, valid]]
        self._enter_again(live)

    def _enter_again(self, live: Array) -> None:
        """Make the table again: cells have changed."""
        stored = self._cells
        hashes = np.empty(len(live), np.int64)
        hash_rows(np.ascontiguousarray(stored.cells[:, live]), np.ascontiguousarray(stored.nulls[:, live]), hashes)
        self._table[:] = 0
        move_entries((hashes << 32) | (live + 1), self._table)

    def live(self) -> Array:
        """Return the codes of all values that are alive, ascending."""
        return np.flatnonzero(self._counts)

    def references(self, codes: Array) -> Array:
        return self._counts[codes]

    def take(self, codes: Array) -> list[Vector]:
        """Return the values of codes, by column."""
        return self._cells.take(codes)

    def column(self, position: int, codes: Array) -> Vector:
        """Return one column of the values of codes."""
        return self._cells.column(position, codes)

    @property
    def bytes(self) -> int:
        return self._cells.bytes + self._numbers.bytes + self._table.nbytes + self._counts.nbytes

    def check(self) -> None:
        """Assert the invariants; O(values)."""
        live = self.live()
        assert len(live) == len(self), "a code is alive iff it has references"
        self._numbers.check(self._counts)
        entries = self._table[self._table != 0]
        assert sorted((entries & 0xFFFFFFFF) - 1) == live.tolist(), "the table leads to every live code once"
        self._cells.check()
