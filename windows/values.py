"""Codes of values: rows of several columns, numbered so that equal rows have equal numbers.

    code(a) = code(b)  iff  a and b are equal in every column      NULL = NULL, NaN = NaN, -0.0 = 0.0, texts by their letters

Codes are dense: counts, groups and ranks of values are plain arrays by code. Each `encode` takes one reference for each of its
rows; `release` gives references back, and a code without any is free for another value. Until then its value can be read back.
When no value is left everything falls back to the size of nothing.

    table    from the hash of a value to its code (`windows/hashing.py`)
    cells    the values by code (`windows/cells.py`), floats in one form
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.vector import Array, Vector
from lineage.kernels import Number, inline, kernel
from lineage.memory import prefetch
from lineage.schema import Type
from stems.keys import mix
from windows.cells import Cells
from windows.growth import LEAST, fitted, room_for
from windows.hashing import delete_entry, entry_of, hash_of, move_entries, number_of, table_shift

U64 = np.uint64
_HASH = U64(0x9E3779B97F4A7C15)

#: Rows encoded between two looks at the capacity: a batch of equal rows reserves no room for itself.
_STEP = 4096
#: Rows between asking for a table entry and looking at it.
_AHEAD = 8

#: Places of `header`: codes handed out so far, free ones below that, live ones.
_HIGH, _N_FREE, _LIVE = 0, 1, 2


@inline
def _hash_row(cells: Number, nulls: Number, row: Number) -> Number:
    """32 bits, as an int64 that is never negative."""
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
    """The 32 bits by which the table finds each row."""
    for row in range(len(hashes)):
        hashes[row] = _hash_row(cells, nulls, row)


@kernel(
    "void(int64[:,::1], uint8[:,::1], int64[::1], int64[::1], int64, int64[:,::1], uint8[:,::1], int64[::1],"
    "int64[::1], int64[::1], int64[::1])"
)
def encode_rows(
    cells: np.ndarray,
    nulls: np.ndarray,
    hashes: np.ndarray,
    table: np.ndarray,
    table_address: int,
    stored: np.ndarray,
    stored_nulls: np.ndarray,
    counts: np.ndarray,
    free: np.ndarray,
    header: np.ndarray,
    codes: np.ndarray,
) -> None:
    """The code of each row, one reference more; new values take free codes. There is room for all of them."""
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
            if header[_N_FREE] > 0:
                header[_N_FREE] -= 1
                code = free[header[_N_FREE]]
            else:
                code = header[_HIGH]
                header[_HIGH] += 1
            header[_LIVE] += 1
            table[at] = entry_of(h, code)
            for k in range(len(cells)):
                stored[k, code] = cells[k, row]
                stored_nulls[k, code] = nulls[k, row]
        counts[code] += 1
        codes[row] = code


@kernel("void(int64[::1], int64[::1], int64[::1], int64, int64[:,::1], uint8[:,::1], int64[::1], int64[::1], int64[::1])")
def release_codes(
    codes: np.ndarray,
    hashes: np.ndarray,
    table: np.ndarray,
    table_address: int,
    stored: np.ndarray,
    stored_nulls: np.ndarray,
    counts: np.ndarray,
    free: np.ndarray,
    header: np.ndarray,
) -> None:
    """One reference of each code less; those without any leave the table. `hashes` is scratch."""
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
            free[header[_N_FREE]] = code
            header[_N_FREE] += 1
            header[_LIVE] -= 1
            at = hashes[k] >> shift
            while number_of(table[at]) != code:
                at = (at + 1) & mask
            delete_entry(table, at, shift)


class ValueCodes:
    """The values that some live rows have, by code.

    >>> codes = ValueCodes([Type.INT])
    >>> first = codes.encode([Vector(Type.INT, np.array([7, 8, 7]))], 3)
    >>> first.tolist(), codes.take(first)[0].to_pylist(), len(codes)
    ([0, 1, 0], [7, 8, 7], 2)
    >>> codes.release(first[:2]); len(codes)
    1
    """

    __slots__ = ("types", "capacity", "_table", "_cells", "_counts", "_free", "_header")

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        self._reset()

    def _reset(self) -> None:
        #: every code is below it: the size of arrays by code
        self.capacity = LEAST
        self._table = np.zeros(2 * LEAST, np.int64)
        self._cells = Cells(self.types)
        #: references of each code; 0 iff it is free
        self._counts = np.zeros(LEAST, np.int64)
        #: a stack of free codes below `_HIGH`
        self._free = np.zeros(LEAST, np.int64)
        self._header = np.zeros(3, np.int64)

    def __len__(self) -> int:
        return int(self._header[_LIVE])

    def encode(self, columns: Sequence[Vector], n_rows: int) -> Array:
        """The code of each row, new for values that are not alive; every row takes a reference."""
        cells, nulls = self._cells.encoded(columns, n_rows, folded=True)
        codes = np.empty(n_rows, np.int64)
        for start in range(0, n_rows, _STEP):
            part = slice(start, min(start + _STEP, n_rows))
            rows = np.ascontiguousarray(cells[:, part])
            row_nulls = np.ascontiguousarray(nulls[:, part])
            hashes = np.empty(part.stop - start, np.int64)
            hash_rows(rows, row_nulls, hashes)
            self._reserve(len(hashes))
            encode_rows(
                rows, row_nulls, hashes, self._table, self._table.ctypes.data, self._cells.cells, self._cells.nulls,
                self._counts, self._free, self._header, codes[part],
            )  # fmt: skip
        return codes

    def _reserve(self, n_rows: int) -> None:
        needed = len(self) + n_rows
        if needed <= self.capacity:
            return
        self.capacity = capacity = room_for(needed, self.capacity)
        self._cells.fit(capacity)
        self._counts = fitted(self._counts, capacity)
        self._free = fitted(self._free, capacity)
        table = np.zeros(2 * capacity, np.int64)
        move_entries(self._table, table)
        self._table = table

    def acquire(self, codes: Array) -> None:
        """One reference more for each entry, of values that are alive."""
        np.add.at(self._counts, codes, 1)

    def release(self, codes: Array) -> None:
        """One reference less for each entry. Values without any are gone, their codes free."""
        if len(codes) == 0:
            return
        stored = self._cells
        release_codes(
            codes, np.empty(len(codes), np.int64), self._table, self._table.ctypes.data, stored.cells, stored.nulls,
            self._counts, self._free, self._header,
        )  # fmt: skip
        if len(self) == 0:
            self._reset()
        elif stored.many_texts(len(self)):
            self._compact_texts()

    def _compact_texts(self) -> None:
        """Throw out the texts of values that are gone; cells change, so the table is made anew."""
        live = self.live()
        stored = self._cells
        stored.compact_texts(live)
        hashes = np.empty(len(live), np.int64)
        hash_rows(np.ascontiguousarray(stored.cells[:, live]), np.ascontiguousarray(stored.nulls[:, live]), hashes)
        self._table[:] = 0
        move_entries((hashes << 32) | (live + 1), self._table)

    def live(self) -> Array:
        """The codes of all values that are alive, ascending."""
        return np.flatnonzero(self._counts)

    def references(self, codes: Array) -> Array:
        return self._counts[codes]

    def take(self, codes: Array) -> list[Vector]:
        """The values of codes, by column."""
        return self._cells.take(codes)

    @property
    def bytes(self) -> int:
        return self._cells.bytes + sum(array.nbytes for array in (self._table, self._counts, self._free))

    def check(self) -> None:
        """Assert the invariants; O(values)."""
        live = self.live()
        assert len(live) == len(self), "a code is alive iff it has references"
        free = self._free[: self._header[_N_FREE]].tolist()
        assert len(set(free)) == len(free) and not set(free) & set(live.tolist()), "a code is free once, or alive"
        assert len(free) + len(live) == self._header[_HIGH] <= self.capacity, "every code is free or alive"
        entries = self._table[self._table != 0]
        assert sorted((entries & 0xFFFFFFFF) - 1) == live.tolist(), "the table leads to every live code once"
        self._cells.check()
