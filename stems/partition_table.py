"""The keys of a `PARTITION BY`, each with its rows that no newer row has displaced yet.

    place = (count, oldest, newest, hash, key ...)         int64 words; count = 0: free
    link[position]                                         rows to the next newer row of its key, 0 while there is none;
                                                           once the row is displaced, rows to the one that displaced it
    back[position]                                         rows to the one that it displaced, 0 if it displaced none

The rows of a key that are not displaced are a list from `oldest` to `newest`, through the links, of at most n: a new row goes
behind the newest and, if there are n already, displaces the oldest. So a row costs one look-up whatever n is, and what is held
grows with the rows that are there, never with n. A key without rows has no place.

A key is its cells with floats folded (NaN = NaN, -0.0 = 0.0) and texts by code, a NULL as 0 with its bit set in the words that
follow them: NULL is a key like any other. Places are found by linear probing; the table doubles when half of them are taken and
halves when an eighth would do, which costs as much as it has keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.comparisons import float_keys
from lineage.elements import FOREVER
from lineage.kernels import Number, inline, kernel
from lineage.memory import load_int64, load_uint32, store_int64, store_uint32
from lineage.schema import Schema, Type
from stems.keys import hash_columns
from stems.row_store import Page

#: The words of a place before its key.
COUNT = 0
OLDEST = 1
NEWEST = 2
HASH = 3
KEY = 4

_MIN_PLACES = 16


@inline
def page_at(addresses: Number, bits: Number, position: Number) -> Number:
    """Where the page of a position is (`stems/paged_words.py`)."""
    return addresses[(position >> bits) & (len(addresses) - 1)]


@inline
def load_end(addresses: Number, bits: Number, position: Number) -> Number:
    return load_int64(page_at(addresses, bits, position), position & ((1 << bits) - 1))


@inline
def store_end(addresses: Number, bits: Number, position: Number, end: Number) -> None:
    store_int64(page_at(addresses, bits, position), position & ((1 << bits) - 1), end)


@inline
def load_link(addresses: Number, bits: Number, position: Number) -> Number:
    return load_uint32(page_at(addresses, bits, position), position & ((1 << bits) - 1))


@inline
def store_link(addresses: Number, bits: Number, position: Number, link: Number) -> None:
    store_uint32(page_at(addresses, bits, position), position & ((1 << bits) - 1), link)


@inline
def copy_place(table: Number, place: Number, target: Number, at: Number) -> None:
    for k in range(table.shape[1]):
        target[at, k] = table[place, k]


@inline
def find_place(table: Number, hash_: Number, keys: Number, i: Number) -> Number:
    """The place of key `i`, or the free one where it would go."""
    mask = len(table) - 1
    at = hash_ & mask
    while table[at, COUNT] != 0:
        same = table[at, HASH] == hash_
        for k in range(len(keys)):
            same &= table[at, KEY + k] == keys[k, i]
        if same:
            break
        at = (at + 1) & mask
    return at


@kernel(
    "int64(int64[:,::1], int64[::1], int64, int64, int64[::1], int64, int64[:,::1], int64[::1], int64[::1], int64[::1], "
    "int64[::1], int64)"
)
def enter_rows(
    keys: np.ndarray, hashes: np.ndarray, done: int, first: int, starts: np.ndarray, n: int, table: np.ndarray,
    n_keys: np.ndarray, ends: np.ndarray, links: np.ndarray, backs: np.ndarray, bits: int,
) -> int:  # fmt: skip
    """Put rows `done ..` of a batch whose first has position `first` behind those of their keys, writing the ends of the rows
    they displace. Returns how many rows are in: fewer than all when the table needs more places."""
    for i in range(done, len(hashes)):
        position = first + i
        at = find_place(table, hashes[i], keys, i)
        if table[at, COUNT] == 0:
            if 2 * n_keys[0] >= len(table):
                return i
            n_keys[0] += 1
            table[at, OLDEST] = position
            table[at, HASH] = hashes[i]
            for k in range(len(keys)):
                table[at, KEY + k] = keys[k, i]
        else:
            newest = table[at, NEWEST]
            store_link(links, bits, newest, position - newest)
        store_end(ends, bits, position, FOREVER)
        store_link(links, bits, position, 0)
        store_link(backs, bits, position, 0)
        table[at, NEWEST] = position
        if table[at, COUNT] == n:
            oldest = table[at, OLDEST]
            table[at, OLDEST] = oldest + load_link(links, bits, oldest)
            store_end(ends, bits, oldest, starts[i])
            store_link(links, bits, oldest, position - oldest)
            store_link(backs, bits, position, position - oldest)
        else:
            table[at, COUNT] += 1
    return len(hashes)


@inline
def free_place(table: Number, at: Number) -> None:
    """Give a place back; keys that were put behind it for lack of room move up."""
    mask = len(table) - 1
    table[at, COUNT] = 0
    later = (at + 1) & mask
    while table[later, COUNT] != 0:
        home = table[later, HASH] & mask
        if (later - home) & mask >= (later - at) & mask:
            copy_place(table, later, table, at)
            table[later, COUNT] = 0
            at = later
        later = (later + 1) & mask


@kernel("void(int64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[::1], int64)")
def leave_rows(
    keys: np.ndarray, hashes: np.ndarray, positions: np.ndarray, table: np.ndarray, n_keys: np.ndarray, links: np.ndarray,
    bits: int,
) -> None:  # fmt: skip
    """Take rows that are not displaced, the oldest of the store, from their keys; a key that has no other goes."""
    for i in range(len(positions)):
        at = find_place(table, hashes[i], keys, i)
        table[at, COUNT] -= 1
        if table[at, COUNT] != 0:
            table[at, OLDEST] = positions[i] + load_link(links, bits, positions[i])
            continue
        n_keys[0] -= 1
        free_place(table, at)


@kernel("void(int64[:,::1], int64[:,::1])")
def move_keys(table: np.ndarray, target: np.ndarray) -> None:
    """Copy all places to an empty table."""
    mask = len(target) - 1
    for place in range(len(table)):
        if table[place, COUNT] != 0:
            at = table[place, HASH] & mask
            while target[at, COUNT] != 0:
                at = (at + 1) & mask
            copy_place(table, place, target, at)


class PartitionTable:
    """The keys of some columns of a stream; ends and links are pages of its owner."""

    __slots__ = ("columns", "_is_float", "_width", "_table", "_n_keys")

    def __init__(self, schema: Schema, columns: Sequence[int]) -> None:
        self.columns = tuple(columns)
        self._is_float = [schema.columns[column].type is Type.FLOAT for column in columns]
        self._width = KEY + len(self.columns) + (len(self.columns) + 63) // 64
        self.clear()

    def clear(self) -> None:
        self._table = np.zeros((_MIN_PLACES, self._width), np.int64)
        self._n_keys = np.zeros(1, np.int64)

    def keys_of(self, page: Page, at: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        """The keys of rows of a page, `[words, rows]`, and their hashes."""
        nulls = [None if page.nulls is None else page.nulls[column, at] for column in self.columns]
        return self.fold([page.cells[column, at] for column in self.columns], nulls, len(page.times[at]))

    def fold(
        self, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], n_rows: int
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The same of 64-bit cells of the key columns, and their NULL bytes where there are any."""
        keys = np.zeros((self._width - KEY, n_rows), np.int64)
        for k, (column, column_nulls) in enumerate(zip(cells, nulls, strict=True)):
            keys[k] = float_keys(column.view(np.float64)) if self._is_float[k] else column
            if column_nulls is not None:
                null = column_nulls != 0
                keys[k, null] = 0
                keys[len(self.columns) + k // 64, null] |= np.int64(1) << np.int64(k % 64)
        hashes = np.empty(n_rows, np.int64)
        hash_columns(keys, n_rows, hashes)
        return keys, hashes

    def enter(
        self, page: Page, at: int, stop: int, starts: np.ndarray, n: int, ends: np.ndarray, links: np.ndarray, backs: np.ndarray,
        bits: int,
    ) -> None:  # fmt: skip
        """Rows at offsets at..stop of a page, the newest of the store, displace those that n newer ones of their key follow."""
        keys, hashes = self.keys_of(page, slice(at, stop))
        done = 0
        while done < stop - at:
            done = enter_rows(
                keys, hashes, done, page.base + at, starts, n, self._table, self._n_keys, ends, links, backs, bits
            )  # fmt: skip
            if done < stop - at:
                self._resize(2 * len(self._table))

    def leave(self, page: Page, offsets: np.ndarray, links: np.ndarray, bits: int) -> None:
        """Rows of a page that were not displaced, the oldest of the store, are forgotten."""
        keys, hashes = self.keys_of(page, offsets)
        leave_rows(keys, hashes, page.base + offsets, self._table, self._n_keys, links, bits)
        self._shrink()

    def _shrink(self) -> None:
        size = len(self._table)
        while size > _MIN_PLACES and 8 * int(self._n_keys[0]) <= size:
            size //= 2
        if size < len(self._table):
            self._resize(size)

    def _resize(self, size: int) -> None:
        table = np.zeros((size, self._width), np.int64)
        move_keys(self._table, table)
        self._table = table

    def places(self) -> dict[tuple[int, ...], tuple[int, int, int]]:
        """Key -> (count, oldest, newest); for checks."""
        used = self._table[self._table[:, COUNT] != 0]
        return {tuple(place[KEY:]): (place[COUNT], place[OLDEST], place[NEWEST]) for place in used.tolist()}

    def key_bytes(self) -> int:
        """The greatest cost of a key in bytes: three of four places are free when the table has just doubled."""
        return 4 * 8 * self._width

    def bytes(self) -> int:
        return self._table.nbytes

    def check(self) -> None:
        used = self._table[:, COUNT] != 0
        assert int(used.sum()) == int(self._n_keys[0]) <= len(self._table) // 2, "keys are counted, and half of the places free"
        assert len(self.places()) == int(self._n_keys[0]), "a key has one place"
        mask = len(self._table) - 1
        for at in np.flatnonzero(used).tolist():
            home = int(self._table[at, HASH]) & mask
            assert used[(home + np.arange((at - home) & mask)) & mask].all(), "a search for a key finds it before a free place"
