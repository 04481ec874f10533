"""Changing chains (`stems/links.py`): rows put in front of those of their key, sealed where there are many, and deleted.

A row that is deleted is marked, and taken out of its chain where it is found near the head or next to another deleted row.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel
from lineage.memory import address_of, load_int64, load_uint32, store_int64, store_uint32
from stems.key_search import AHEAD, begin_search, prefetch_cells, reuse_dead, search_columns, search_word, segment_of, table_of
from stems.key_table import COUNT_BITS, COUNT_MASK, NO_ROWS
from stems.links import BLOCK_HEADER, BLOCK_ROWS, DELETED, NO_OLDER, SEALED, block_address, load_link, ring_of, store_link

U64 = np.uint64

#: Rows of a chain whose distances tell whether it can have enough rows to be sealed.
LOOKED_AT = 4
#: How far from the head a deleted row is looked for, to take it out of its chain.
UNLINK_STEPS = 64


@inline
def seal(position: Number, number: Number, block: Number, links: Number, watermark: Number, seal_at: Number) -> Number:
    """Collect the rows that are linked one by one from `position` on, down to the last block; seal them if `seal_at` are alive.

    Returns whether they were: a block that is not full of live rows costs more than it saves. A chain whose nearest rows lie so
    far apart that only half as many could be alive is not walked to its end: a step of it is a cache miss.
    """
    n = np.int64(0)
    steps = np.int64(0)
    p = position
    while p >= watermark and n < BLOCK_ROWS:
        link = load_link(links, p)
        sparse = (steps == LOOKED_AT) & ((position - p) * seal_at > 2 * LOOKED_AT * (position - watermark))
        if (link & SEALED != 0) | sparse:
            break
        steps += 1
        store_uint32(block, BLOCK_HEADER + n, position - p)
        n += (link & DELETED) == 0
        p -= link & NO_OLDER
    enough = n >= seal_at
    if enough:
        for k in range(n):
            store_link(links, position - load_uint32(block, BLOCK_HEADER + k), SEALED | (number & NO_OLDER))
        store_int64(block, 0, p + 1 if p >= watermark else 0)
        store_int64(block, 1, position)
        store_uint32(block, 4, n)
        store_uint32(block, 5, 0)
    return enough


@kernel(
    "int64(int64[::1], int64[:,::1], uint8[::1], int64, int64, int64[:,::1], int64, int64[::1], int64[::1], int64[::1], "
    "int64, int64[::1], int64, int64, int64[:,::1], int64[::1])"
)
def build_chains(
    words: np.ndarray, columns: np.ndarray, usable: np.ndarray, start: int, first: int, directory: np.ndarray, watermark: int,
    link_pages: np.ndarray, block_pages: np.ndarray, next_block: np.ndarray, seal_at: int, pages: np.ndarray, origin: int,
    page_bits: int, compared: np.ndarray, begins: np.ndarray,
) -> int:  # fmt: skip
    """Put the rows `start ..` at the positions `first + start ..` in front of the chains of their keys.

    Returns how many rows there are; or the row at which the segment of its key was full; or `-1 - row` where a block is needed
    and there is no memory for one (`next_block` is the number of the next and the number that memory ends at). The row is not
    built then.
    `begins` is scratch for the places of `2 * AHEAD` keys.
    """
    links = ring_of(link_pages)
    blocks = ring_of(block_pages)
    table = table_of(directory)
    stored = (address_of(pages), origin, page_bits, address_of(compared), len(compared))
    key_at = address_of(columns)
    n_rows = len(words)
    all_usable = len(usable) == 0
    several = len(compared) > 0
    for i in range(start, min(start + 2 * AHEAD, n_rows)):
        begins[U64(i & (2 * AHEAD - 1))] = begin_search(words[U64(i)], table)
    for i in range(start, n_rows):
        position = np.int64(first + i)
        place = begins[U64(i & (2 * AHEAD - 1))]
        if i + 2 * AHEAD < n_rows:
            begins[U64(i & (2 * AHEAD - 1))] = begin_search(words[U64(i + 2 * AHEAD)], table)
        if not all_usable and usable[U64(i)] == 0:
            store_link(links, position, NO_OLDER)
            continue
        word = words[U64(i)]
        if several:
            if i + AHEAD < n_rows:
                prefetch_cells(begins[U64((i + AHEAD) & (2 * AHEAD - 1))], stored)
            place = search_columns(word, (key_at + 8 * i, n_rows), place, table, watermark, stored)
        else:
            place = search_word(word, place, table)
        head = load_int64(place, 1)
        if head == 0:
            if not several:
                place = reuse_dead(place, word, table, watermark)
            if load_int64(place, 1) == 0:
                segment, _, _ = segment_of(word, table)
                used = load_int64(segment, 0)
                if used >= load_int64(segment, 1):
                    return int(i)
                store_int64(segment, 0, used + 1)
        older = (head >> COUNT_BITS) - 1
        # whether an older row lives is anybody's guess: no branch depends on it
        lives = older >= watermark
        count = (head & COUNT_MASK if lives else 0) + 1
        if count >= seal_at and next_block[0] == next_block[1]:
            return int(-1 - i)
        store_link(links, position, position - older if lives else NO_OLDER)
        if count >= seal_at:
            number = next_block[0]
            sealed = seal(position, number, block_address(blocks, number & NO_OLDER), links, watermark, seal_at)
            next_block[0] = number + sealed
            # if there were too few, the next try is as many rows away
            count = np.int64(0)
        store_int64(place, 0, word)
        store_int64(place, 1, ((position + 1) << COUNT_BITS) | count)
    return n_rows


@inline
def join_distance(near: Number, far: Number) -> Number:
    """The distance from a row to the one after the next."""
    return NO_OLDER if far == NO_OLDER else near + far


@kernel(
    "void(int64[::1], int64[::1], int64[:,::1], uint8[::1], int64[:,::1], int64, int64[::1], int64[::1], int64[::1], int64, "
    "int64, int64[:,::1])"
)
def delete_rows(
    positions: np.ndarray, words: np.ndarray, columns: np.ndarray, usable: np.ndarray, directory: np.ndarray, watermark: int,
    link_pages: np.ndarray, block_pages: np.ndarray, pages: np.ndarray, origin: int, page_bits: int, compared: np.ndarray,
) -> None:  # fmt: skip
    """Mark rows as deleted and take them out of their chains where that is near."""
    links = ring_of(link_pages)
    blocks = ring_of(block_pages)
    table = table_of(directory)
    stored = (address_of(pages), origin, page_bits, address_of(compared), len(compared))
    key_at = address_of(columns)
    n_rows = len(words)
    all_usable = len(usable) == 0
    for i in range(n_rows):
        p = positions[i]
        link = load_link(links, p)
        if link & DELETED:
            continue
        store_link(links, p, link | DELETED)
        if not all_usable and usable[i] == 0:
            continue
        if link & SEALED:
            block = block_address(blocks, link & NO_OLDER)
            distance = load_int64(block, 1) - p
            size = load_uint32(block, 4)
            k = np.int64(0)
            while size > 1:
                half = size >> 1
                k = k + half if load_uint32(block, BLOCK_HEADER + k + half) & NO_OLDER <= distance else k
                size -= half
            store_uint32(block, BLOCK_HEADER + k, distance | DELETED)
            store_uint32(block, 5, load_uint32(block, 5) + 1)
            continue
        # one step over the deleted rows behind it
        distance = link & NO_OLDER
        while p - distance >= watermark:
            behind = load_link(links, p - distance)
            if behind & DELETED == 0 or behind & SEALED:
                break
            distance = join_distance(distance, behind & NO_OLDER)
        store_link(links, p, DELETED | distance)
        if len(compared) > 0:
            place = search_columns(words[i], (key_at + 8 * i, n_rows), begin_search(words[i], table), table, watermark, stored)
        else:
            place = search_word(words[i], begin_search(words[i], table), table)
        head = load_int64(place, 1)
        newer = (head >> COUNT_BITS) - 1
        count = head & COUNT_MASK
        if newer == p:
            older = p - distance
            head = NO_ROWS if older < watermark else ((older + 1) << COUNT_BITS) | max(np.int64(0), count - 1)
            store_int64(place, 1, head)
            continue
        for _ in range(UNLINK_STEPS):
            if newer < p:
                break
            link = load_link(links, newer)
            if link & SEALED:
                break
            if newer - (link & NO_OLDER) == p:
                store_link(links, newer, (link & DELETED) | join_distance(newer - p, distance))
                store_int64(place, 1, head - 1 if count else head)
                break
            newer -= link & NO_OLDER
