"""Finding the place of a key in a key table, inside kernels.

Most searches end where they begin, so kernels ask for that place `2 * AHEAD` rows before its turn and remember its address: a key
is hashed once, and its place is in the cache when it is needed. Where a search goes on, it is hashed again. What a key of several
columns is compared with is asked for `AHEAD` rows before.

    table      (address of the directory, 63 - depth)
    stored     (address of page addresses, base of the first page, bits of a page, address of (column, is float), columns)
    key        (address of column 0 of the key, columns apart)
"""

from __future__ import annotations

import numpy as np

from lineage.bits import trailing_zeros
from lineage.kernels import Number, inline
from lineage.memory import address_of, load_int64, prefetch
from lineage.order_keys import order_key
from stems.key_table import COUNT_BITS, HEADER, directory_index, first_place, hash_word

#: Half of how many rows before its turn the place of a key is asked for from memory; a power of two.
AHEAD = 16


@inline
def table_of(directory: Number) -> Number:
    """Return the arguments of a search in a directory of `2 ** depth` entries."""
    return address_of(directory), np.int64(63) - np.int64(trailing_zeros(np.uint64(len(directory))))


@inline
def segment_of(word: Number, table: Number) -> Number:
    """(Segment, its places - 1, where the search for a key word begins)."""
    h = hash_word(word)
    entry = 4 * np.int64(directory_index(h, table[1]))
    mask = load_int64(table[0], entry + 1)
    return load_int64(table[0], entry), mask, np.int64(first_place(h, mask, load_int64(table[0], entry + 2)))


@inline
def place_address(segment: Number, at: Number) -> Number:
    return segment + 8 * (HEADER + 2 * at)


@inline
def begin_search(word: Number, table: Number) -> Number:
    """The place where the search for a key word begins, asked for from memory."""
    segment, _, at = segment_of(word, table)
    place = place_address(segment, at)
    prefetch(place)
    return place


@inline
def same_key(key: Number, position: Number, stored: Number) -> Number:
    """Whether a stored row has a key."""
    offset = position - stored[1]
    page = load_int64(stored[0], offset >> stored[2])
    row = offset & ((np.int64(1) << stored[2]) - 1)
    k = np.int64(0)
    # left at the first that differs; a loop without an exit would be vectorized, for two or three columns
    while k < stored[4]:
        cell = load_int64(page, (load_int64(stored[3], 2 * k) << stored[2]) + row)
        if order_key(cell, load_int64(stored[3], 2 * k + 1) != 0) != load_int64(key[0], k * key[1]):
            break
        k += 1
    return k == stored[4]


@inline
def search_word(word: Number, place: Number, table: Number) -> Number:
    """The place of a key of one column, live or dead; a free one if it has none. The search begins at `place`."""
    if (load_int64(place, 0) != word) & (load_int64(place, 1) != 0):
        segment, mask, at = segment_of(word, table)
        while True:
            at = (at + 1) & mask
            place = place_address(segment, at)
            if (load_int64(place, 0) == word) | (load_int64(place, 1) == 0):
                break
    return place


@inline
def prefetch_cells(place: Number, stored: Number) -> None:
    """Begin to load the cells of the newest row of a place, with which a key of several columns is compared."""
    # a place that has no row, or a dead one, stands for the first row held
    offset = (load_int64(place, 1) >> COUNT_BITS) - 1 - stored[1]
    offset &= ~(offset >> 63)
    page = load_int64(stored[0], offset >> stored[2])
    row = offset & ((np.int64(1) << stored[2]) - 1)
    for k in range(stored[4]):
        prefetch(page + 8 * ((load_int64(stored[3], 2 * k) << stored[2]) + row))


@inline
def search_columns(word: Number, key: Number, place: Number, table: Number, watermark: Number, stored: Number) -> Number:
    """The place of a key of several columns; another, dead or free, if no live row has it. The search begins at `place`.

    Whose a dead place was cannot be told: the cells of its row may be gone.
    """
    newest = (load_int64(place, 1) >> COUNT_BITS) - 1
    if newest < watermark or load_int64(place, 0) != word or not same_key(key, newest, stored):
        segment, mask, at = segment_of(word, table)
        free = np.int64(0)
        while True:
            place = place_address(segment, at)
            head = load_int64(place, 1)
            if head == 0:
                place = place if free == 0 else free
                break
            newest = (head >> COUNT_BITS) - 1
            if newest < watermark:
                free = place if free == 0 else free
            elif load_int64(place, 0) == word and same_key(key, newest, stored):
                break
            at = (at + 1) & mask
    return place


@inline
def reuse_dead(place: Number, word: Number, table: Number, watermark: Number) -> Number:
    """The place that a key which `search_word` did not find should take: the first dead one on the way, if any."""
    segment, mask, at = segment_of(word, table)
    free = place_address(segment, at)
    while free != place and (load_int64(free, 1) >> COUNT_BITS) > watermark:
        at = (at + 1) & mask
        free = place_address(segment, at)
    return free
