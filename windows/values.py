"""Codes of values: rows of several columns, numbered so that equal rows have equal numbers.

    code(a) = code(b)  iff  a and b are equal in every column      NULL = NULL, NaN = NaN, -0.0 = 0.0, texts by their letters

Codes are dense: counts, groups and ranks of values are plain arrays by code. Each `encode` takes one reference for each of its
rows; `release` gives references back, and a code without any is free for another value. Until then its value can be read back.
When no value is left everything falls back to the size of nothing.

    table    open addressing; an entry is (32 bits of the hash) << 32 | (code + 1), 0 is free; deletion moves entries back
    cells    one 64-bit cell and one null byte a column and code, floats in one form, 0 under NULL
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.vector import DTYPES, Array, Vector
from lineage.kernels import Number, inline, kernel
from lineage.memory import prefetch
from lineage.schema import Type
from stems.keys import mix
from windows.growth import LEAST, fitted, room_for
from windows.texts import Texts

U64 = np.uint64
_HASH = U64(0x9E3779B97F4A7C15)
_LOW = np.int64(0xFFFFFFFF)

#: Rows encoded between two looks at the capacity: a batch of equal rows reserves no room for itself.
_STEP = 4096
#: Rows between asking for a table entry and looking at it.
_AHEAD = 8
#: Texts that nobody uses are thrown out when they are more than the live values and this many.
_SLACK_TEXTS = 1024

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
    shift = np.int64(32)
    while (np.int64(1) << (np.int64(32) - shift)) < len(table):
        shift -= 1
    for row in range(len(codes)):
        if row + _AHEAD < len(codes):
            prefetch(table_address + 8 * (hashes[row + _AHEAD] >> shift))
        h = hashes[row]
        at = h >> shift
        code = np.int64(-1)
        while table[at] != 0:
            entry = table[at]
            if ((entry >> 32) & _LOW) == h:
                known = (entry & _LOW) - 1
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
            table[at] = (h << 32) | (code + 1)
            for k in range(len(cells)):
                stored[k, code] = cells[k, row]
                stored_nulls[k, code] = nulls[k, row]
        counts[code] += 1
        codes[row] = code


@kernel("void(int64[::1], int64[::1], int64[:,::1], uint8[:,::1], int64[::1], int64[::1], int64[::1])")
def release_codes(
    codes: np.ndarray,
    table: np.ndarray,
    stored: np.ndarray,
    stored_nulls: np.ndarray,
    counts: np.ndarray,
    free: np.ndarray,
    header: np.ndarray,
) -> None:
    """One reference of each code less; those without any leave the table."""
    mask = np.int64(len(table) - 1)
    shift = np.int64(32)
    while (np.int64(1) << (np.int64(32) - shift)) < len(table):
        shift -= 1
    for k in range(len(codes)):
        code = codes[k]
        counts[code] -= 1
        if counts[code] == 0:
            free[header[_N_FREE]] = code
            header[_N_FREE] += 1
            header[_LIVE] -= 1
            at = _hash_row(stored, stored_nulls, code) >> shift
            while (table[at] & _LOW) != code + 1:
                at = (at + 1) & mask
            # entries behind the gap move back unless that would put them before their first place
            then = at
            while True:
                then = (then + 1) & mask
                entry = table[then]
                if entry == 0:
                    break
                first = ((entry >> 32) & _LOW) >> shift
                if ((then - first) & mask) >= ((then - at) & mask):
                    table[at] = entry
                    at = then
            table[at] = 0


@kernel("void(int64[::1], int64[::1])")
def move_entries(old: np.ndarray, table: np.ndarray) -> None:
    """Every entry of a table into a larger, empty one."""
    mask = np.int64(len(table) - 1)
    shift = np.int64(32)
    while (np.int64(1) << (np.int64(32) - shift)) < len(table):
        shift -= 1
    for place in range(len(old)):
        entry = old[place]
        if entry != 0:
            at = ((entry >> 32) & _LOW) >> shift
            while table[at] != 0:
                at = (at + 1) & mask
            table[at] = entry


class ValueCodes:
    """The values that some live rows have, by code.

    >>> codes = ValueCodes([Type.INT])
    >>> first = codes.encode([Vector(Type.INT, np.array([7, 8, 7]))], 3)
    >>> first.tolist(), codes.take(first)[0].to_pylist(), len(codes)
    ([0, 1, 0], [7, 8, 7], 2)
    >>> codes.release(first[:2]); len(codes)
    1
    """

    __slots__ = ("types", "capacity", "_table", "_cells", "_nulls", "_counts", "_free", "_header", "_texts")

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        self._reset()

    def _reset(self) -> None:
        width = len(self.types)
        #: every code is below it: the size of arrays by code
        self.capacity = LEAST
        self._table = np.zeros(2 * LEAST, np.int64)
        self._cells = np.zeros((width, LEAST), np.int64)
        self._nulls = np.zeros((width, LEAST), np.uint8)
        #: references of each code; 0 iff it is free
        self._counts = np.zeros(LEAST, np.int64)
        #: a stack of free codes below `_HIGH`
        self._free = np.zeros(LEAST, np.int64)
        self._header = np.zeros(3, np.int64)
        self._texts = [Texts() if type is Type.STRING else None for type in self.types]

    def __len__(self) -> int:
        return int(self._header[_LIVE])

    def encode(self, columns: Sequence[Vector], n_rows: int) -> Array:
        """The code of each row, new for values that are not alive; every row takes a reference."""
        cells = np.empty((len(self.types), n_rows), np.int64)
        nulls = np.zeros((len(self.types), n_rows), np.uint8)
        for k, column in enumerate(columns):
            self._fold(k, column, cells[k], nulls[k])
        codes = np.empty(n_rows, np.int64)
        for start in range(0, n_rows, _STEP):
            part = slice(start, min(start + _STEP, n_rows))
            rows = np.ascontiguousarray(cells[:, part])
            row_nulls = np.ascontiguousarray(nulls[:, part])
            hashes = np.empty(rows.shape[1] if len(rows) else part.stop - start, np.int64)
            hash_rows(rows, row_nulls, hashes)
            self._reserve(len(hashes))
            encode_rows(
                rows, row_nulls, hashes, self._table, self._table.ctypes.data, self._cells, self._nulls,
                self._counts, self._free, self._header, codes[part],
            )  # fmt: skip
        return codes

    def _fold(self, k: int, column: Vector, cells: Array, nulls: Array) -> None:
        """A column as cells in which equal values are equal."""
        column = column.widened(self.types[k])
        texts = self._texts[k]
        if texts is not None:
            cells[:] = texts.encode(column)
        elif column.type is Type.FLOAT:
            # the sum turns -0.0 into 0.0
            folded = column.values + 0.0
            folded[np.isnan(folded)] = np.nan
            cells[:] = folded.view(np.int64)
        else:
            cells[:] = column.values
        if column.nulls is not None:
            nulls[:] = column.nulls
            cells[column.nulls] = 0

    def _reserve(self, n_rows: int) -> None:
        needed = len(self) + n_rows
        if needed <= self.capacity:
            return
        self.capacity = capacity = room_for(needed, self.capacity)
        self._cells = fitted(self._cells, capacity)
        self._nulls = fitted(self._nulls, capacity)
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
        release_codes(codes, self._table, self._cells, self._nulls, self._counts, self._free, self._header)
        if len(self) == 0:
            self._reset()
        elif any(texts is not None and len(texts) > 2 * len(self) + _SLACK_TEXTS for texts in self._texts):
            self._compact_texts()

    def _compact_texts(self) -> None:
        """Throw out the texts of values that are gone; cells change, so the table is made anew."""
        live = self.live()
        for k, texts in enumerate(self._texts):
            if texts is not None:
                valid = live[self._nulls[k, live] == 0]
                remap = texts.compact(self._cells[k, valid])
                self._cells[k, valid] = remap[self._cells[k, valid]]
        hashes = np.empty(len(live), np.int64)
        hash_rows(np.ascontiguousarray(self._cells[:, live]), np.ascontiguousarray(self._nulls[:, live]), hashes)
        self._table[:] = 0
        move_entries((hashes << 32) | (live + 1), self._table)

    def live(self) -> Array:
        """The codes of all values that are alive, ascending."""
        return np.flatnonzero(self._counts)

    def references(self, codes: Array) -> Array:
        return self._counts[codes]

    def take(self, codes: Array) -> list[Vector]:
        """The values of codes, by column."""
        columns = []
        for k, type in enumerate(self.types):
            cells = self._cells[k, codes]
            null_bytes = self._nulls[k, codes]
            nulls = null_bytes.view(np.bool_) if null_bytes.any() else None
            texts = self._texts[k]
            if texts is not None:
                columns.append(texts.vector(cells, nulls))
            elif type is Type.FLOAT:
                columns.append(Vector(type, cells.view(np.float64), nulls))
            else:
                columns.append(Vector(type, cells.astype(DTYPES[type], copy=False), nulls))
        return columns

    @property
    def bytes(self) -> int:
        arrays = (self._table, self._cells, self._nulls, self._counts, self._free)
        return sum(array.nbytes for array in arrays) + sum(texts.bytes for texts in self._texts if texts is not None)

    def check(self) -> None:
        """Assert the invariants; O(values)."""
        live = self.live()
        assert len(live) == len(self), "a code is alive iff it has references"
        free = self._free[: self._header[_N_FREE]].tolist()
        assert len(set(free)) == len(free) and not set(free) & set(live.tolist()), "a code is free once, or alive"
        assert len(free) + len(live) == self._header[_HIGH] <= self.capacity, "every code is free or alive"
        entries = self._table[self._table != 0]
        assert sorted((entries & 0xFFFFFFFF) - 1) == live.tolist(), "the table leads to every live code once"
        for texts in self._texts:
            if texts is not None:
                texts.check()
