"""The rows of each key, newest first: links between rows, and sealed blocks where a key has many.

A row's **link** is one uint32: how far back the previous row of its key is. Distances need no base, so positions grow for
ever and nothing is ever renumbered:

    link = DELETED? | SEALED? | distance        NO_OLDER reaches below any row held: fewer than 2**30 rows are
    link = DELETED? | SEALED  | block number    for rows that stand in a sealed block

A chain ends where its position falls below the `low` of whoever walks it, so expiry costs nothing here: it only moves `low`.

Walking a long chain is one cache miss a row. So when `seal_at` rows of a key are linked one by one, they are **sealed**: their
distances from the newest of them (the owner) go into a block, read in sequence; measured in docs/decisions/0005. A block is
BLOCK_WORDS uint32 words:

    0, 1  position + 1 of the next older row of the key, 0 for none      4  rows in the block
    2, 3  position of the owner                                          5  how many of them are deleted
    6...  DELETED? | owner - position, ascending

Blocks are numbered in the order of their owners, so those of dead owners are the first and go by number, like pages.
A row that is deleted is marked, and taken out of its chain where it is found near the head or next to another deleted row.

A probe walks LANES chains in turn, so that the misses of one overlap with the work on the others.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel
from lineage.memory import load_int64, load_uint32, prefetch, store_int64, store_uint32
from lineage.order_keys import order_key
from stems.key_table import COUNT_BITS, COUNT_MASK, HEADER, NO_ROWS, directory_index, first_place, hash_word

U64 = np.uint64

DELETED = 1 << 31
SEALED = 1 << 30
#: The bits of a distance or block number; as a distance, one that leads below every row.
NO_OLDER = SEALED - 1

#: Rows of a page of links, as a power of two: that of the row store, so both are given back together.
LINK_BITS = 14
LINK_MASK = (1 << LINK_BITS) - 1

#: Words of a block, and before its first row; 128 blocks a page, 64 KB.
BLOCK_WORDS = 128
BLOCK_HEADER = 6
BLOCK_ROWS = BLOCK_WORDS - BLOCK_HEADER
BLOCK_BITS = 7

#: Chains walked in turn (prototypes/q3_stem2.py). A part of a probe needs room for two pairs a lane.
LANES = 16
MIN_ROOM = 2 * LANES

#: How many rows before its turn the place of a key is asked for from memory.
AHEAD = 16

#: How far from the head a deleted row is looked for, to take it out of its chain.
UNLINK_STEPS = 64


# Helpers take addresses, as tuples of numbers, never arrays: an array handed to a helper is counted in and out, with
# every row, by an atomic instruction.
#
#     ring       (address of page addresses, their number - 1)                     of links or blocks
#     table      (address of the directory, 63 - depth)
#     stored     (address of page addresses, base of the first page, bits of a page, address of (column, is float), columns)
#     key        (address of column 0 of the key, columns apart)


@inline
def address_of(array: np.ndarray) -> Number:
    return np.int64(array.ctypes.data)


@inline
def ring_of(pages: np.ndarray) -> Number:
    return address_of(pages), np.int64(len(pages) - 1)


@inline
def link_page(links: Number, position: Number) -> Number:
    return load_int64(links[0], (position >> LINK_BITS) & links[1])


@inline
def load_link(links: Number, position: Number) -> Number:
    return load_uint32(link_page(links, position), position & LINK_MASK)


@inline
def prefetch_link(links: Number, position: Number) -> None:
    """Begin to load the link of a position; one that no longer has one does no harm."""
    prefetch(link_page(links, position) + 4 * (position & LINK_MASK))


@inline
def store_link(links: Number, position: Number, link: Number) -> None:
    store_uint32(link_page(links, position), position & LINK_MASK, link)


@inline
def block_address(blocks: Number, number: Number) -> Number:
    page = load_int64(blocks[0], (number >> BLOCK_BITS) & blocks[1])
    return page + (number & ((1 << BLOCK_BITS) - 1)) * (4 * BLOCK_WORDS)


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
def prefetch_key(word: Number, table: Number) -> None:
    """Begin to load the place where the search for a key word begins."""
    segment, _, at = segment_of(word, table)
    prefetch(place_address(segment, at))


@inline
def same_key(key: Number, position: Number, stored: Number) -> Number:
    """Whether a stored row has a key."""
    same = True
    offset = position - stored[1]
    page = load_int64(stored[0], offset >> stored[2])
    row = offset & ((np.int64(1) << stored[2]) - 1)
    for k in range(stored[4]):
        cell = load_int64(page, (load_int64(stored[3], 2 * k) << stored[2]) + row)
        same &= order_key(cell, load_int64(stored[3], 2 * k + 1) != 0) == load_int64(key[0], k * key[1])
    return same


@inline
def search_word(word: Number, table: Number) -> Number:
    """The place of a key of one column, live or dead; a free one if it has none."""
    segment, mask, at = segment_of(word, table)
    while True:
        place = place_address(segment, at)
        if load_int64(place, 0) == word or load_int64(place, 1) == 0:
            break
        at = (at + 1) & mask
    return place


@inline
def search_columns(word: Number, key: Number, table: Number, watermark: Number, stored: Number) -> Number:
    """The place of a key of several columns; another, dead or free, if no live row has it.

    Whose a dead place was cannot be told: the cells of its row may be gone.
    """
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


@inline
def seal(position: Number, number: Number, block: Number, links: Number, watermark: Number, seal_at: Number) -> Number:
    """Collect the rows that are linked one by one from `position` on, down to the last block; seal them if `seal_at` are alive.

    Returns whether they were: a block that is not full of live rows costs more than it saves.
    """
    n = np.int64(0)
    p = position
    while p >= watermark and n < BLOCK_ROWS:
        link = load_link(links, p)
        if link & SEALED:
            break
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
    "int64(int64[::1], int64[:,::1], uint8[::1], boolean, int64, int64, int64, int64[:,::1], int64, int64, int64[::1], "
    "int64[::1], int64[::1], int64, int64[::1], int64, int64, int64[:,::1])"
)
def build_chains(
    words: np.ndarray,
    columns: np.ndarray,
    usable: np.ndarray,
    all_usable: bool,
    start: int,
    n_rows: int,
    first: int,
    directory: np.ndarray,
    shift: int,
    watermark: int,
    link_pages: np.ndarray,
    block_pages: np.ndarray,
    next_block: np.ndarray,
    seal_at: int,
    pages: np.ndarray,
    origin: int,
    page_bits: int,
    compared: np.ndarray,
) -> int:
    """Put the rows `start ..` at the positions `first + start ..` in front of the chains of their keys.

    Returns `n_rows`; or the row at which the segment of its key was full; or `-1 - row` where a block is needed and there is
    no memory for one (`next_block` is the number of the next and the number that memory ends at). The row is not built then.
    """
    links = ring_of(link_pages)
    blocks = ring_of(block_pages)
    table = (address_of(directory), shift)
    stored = (address_of(pages), origin, page_bits, address_of(compared), len(compared))
    key_at = address_of(columns)
    several = len(compared) > 0
    for i in range(start, n_rows):
        position = np.int64(first + i)
        if i + AHEAD < n_rows:
            prefetch_key(words[U64(i + AHEAD)], table)
        if not all_usable and usable[U64(i)] == 0:
            store_link(links, position, NO_OLDER)
            continue
        word = words[U64(i)]
        if several:
            place = search_columns(word, (key_at + 8 * i, n_rows), table, watermark, stored)
        else:
            place = search_word(word, table)
        head = load_int64(place, 1)
        older = (head >> COUNT_BITS) - 1
        count = np.int64(1)
        if older >= watermark:
            count += head & COUNT_MASK
            if count >= seal_at and next_block[0] == next_block[1]:
                return int(-1 - i)
            store_link(links, position, position - older)
            if count >= seal_at:
                number = next_block[0]
                sealed = seal(position, number, block_address(blocks, number & NO_OLDER), links, watermark, seal_at)
                next_block[0] = number + sealed
                # if there were too few, the next try is as many rows away
                count = np.int64(0)
        else:
            if head == 0:
                if not several:
                    place = reuse_dead(place, word, table, watermark)
                if load_int64(place, 1) == 0:
                    segment, _, _ = segment_of(word, table)
                    used = load_int64(segment, 0)
                    if used >= load_int64(segment, 1):
                        return int(i)
                    store_int64(segment, 0, used + 1)
            store_link(links, position, NO_OLDER)
            store_int64(place, 0, word)
        store_int64(place, 1, ((position + 1) << COUNT_BITS) | count)
    return n_rows


@kernel(
    "int64(int64[::1], int64[:,::1], uint8[::1], boolean, int32[::1], boolean, int64, int64[:,::1], int64, int64, int64, "
    "int64[::1], int64, int64, int64[:,::1], int64[::1], int32[::1])"
)
def find_heads(
    words: np.ndarray,
    columns: np.ndarray,
    usable: np.ndarray,
    all_usable: bool,
    rows: np.ndarray,
    every_row: bool,
    n_keys: int,
    directory: np.ndarray,
    shift: int,
    watermark: int,
    low: int,
    pages: np.ndarray,
    origin: int,
    page_bits: int,
    compared: np.ndarray,
    heads: np.ndarray,
    head_rows: np.ndarray,
) -> int:
    """List (newest position, probing row) of the keys that have a row at `low` or above; returns how many."""
    table = (address_of(directory), shift)
    stored = (address_of(pages), origin, page_bits, address_of(compared), len(compared))
    key_at = address_of(columns)
    several = len(compared) > 0
    n = np.int64(0)
    for i in range(n_keys):
        if i + AHEAD < n_keys:
            prefetch_key(words[U64(i + AHEAD)], table)
        if not all_usable and usable[U64(i)] == 0:
            continue
        if several:
            place = search_columns(words[U64(i)], (key_at + 8 * i, n_keys), table, watermark, stored)
        else:
            place = search_word(words[U64(i)], table)
        newest = (load_int64(place, 1) >> COUNT_BITS) - 1
        heads[U64(n)] = newest
        head_rows[U64(n)] = i if every_row else rows[U64(i)]
        n += newest >= low
    return int(n)


@kernel(
    "int64(int64[::1], int32[::1], int64, int64, int64, int64[::1], boolean, int64[::1], int64[::1], int64[:,::1], int64, "
    "int32[::1], int64[::1])"
)
def walk_chains(
    heads: np.ndarray,
    head_rows: np.ndarray,
    n_heads: int,
    low: int,
    hi: int,
    row_hi: np.ndarray,
    one_hi: bool,
    link_pages: np.ndarray,
    block_pages: np.ndarray,
    lanes: np.ndarray,
    room: int,
    out_row: np.ndarray,
    out_position: np.ndarray,
) -> int:
    """The next pairs (probing row, position) with `low <= position < hi`, at most `room`; 0 when there are no more.

    `lanes` is where the walk stands: position, row, bound and rows already taken from its block, for each lane; then the next
    head. A lane whose position is below `low` is free.
    """
    links = ring_of(link_pages)
    blocks = ring_of(block_pages)
    at = lanes[0]
    row = lanes[1]
    bound = lanes[2]
    taken = lanes[3]
    following = lanes[4, 0]
    n = np.int64(0)
    busy = 1
    while busy > 0 and n + MIN_ROOM <= room:
        busy = 0
        for turn in range(LANES):
            lane = U64(turn)
            p = at[lane]
            if p >= low:
                busy += 1
                probing = row[lane]
                limit = bound[lane]
                link = load_link(links, p)
                if link & SEALED == 0:
                    out_row[U64(n)] = probing
                    out_position[U64(n)] = p
                    n += (p < limit) & (link < DELETED)
                    p -= link & NO_OLDER
                    at[lane] = p
                    prefetch_link(links, p)
                    continue
                block = block_address(blocks, link & NO_OLDER)
                owner = load_int64(block, 1)
                size = load_uint32(block, 4)
                begin = taken[lane]
                # every other lane may still write one pair in this turn
                end = min(size, begin + max(np.int64(0), room - n - LANES))
                # a row that was sealed while a walk stood on it has younger rows in its block, which were given already
                limit = min(limit, p + 1)
                last = load_uint32(block, BLOCK_HEADER + size - 1) & NO_OLDER
                if owner < limit and owner - last >= low and load_uint32(block, 5) == 0:
                    for k in range(begin, end):
                        out_row[U64(n + k - begin)] = probing
                        out_position[U64(n + k - begin)] = owner - load_uint32(block, BLOCK_HEADER + k)
                    n += end - begin
                else:
                    for k in range(begin, end):
                        entry = load_uint32(block, BLOCK_HEADER + k)
                        q = owner - (entry & NO_OLDER)
                        out_row[U64(n)] = probing
                        out_position[U64(n)] = q
                        n += (q < limit) & (q >= low) & (entry < DELETED)
                if end == size:
                    at[lane] = load_int64(block, 0) - 1
                    taken[lane] = 0
                else:
                    taken[lane] = end
            elif following < n_heads:
                p = heads[U64(following)]
                at[lane] = p
                prefetch_link(links, p)
                probing = np.int64(head_rows[U64(following)])
                row[lane] = probing
                bound[lane] = hi if one_hi else row_hi[U64(probing)]
                following += 1
                busy += 1
    lanes[4, 0] = following
    return int(n)


@inline
def join_distance(near: Number, far: Number) -> Number:
    """The distance from a row to the one after the next."""
    return NO_OLDER if far == NO_OLDER else near + far


@kernel(
    "void(int64[::1], int64[::1], int64[:,::1], uint8[::1], int64, int64[:,::1], int64, int64, int64[::1], int64[::1], "
    "int64[::1], int64, int64, int64[:,::1])"
)
def delete_rows(
    positions: np.ndarray,
    words: np.ndarray,
    columns: np.ndarray,
    usable: np.ndarray,
    n_rows: int,
    directory: np.ndarray,
    shift: int,
    watermark: int,
    link_pages: np.ndarray,
    block_pages: np.ndarray,
    pages: np.ndarray,
    origin: int,
    page_bits: int,
    compared: np.ndarray,
) -> None:
    """Mark rows as deleted and take them out of their chains where that is near."""
    links = ring_of(link_pages)
    blocks = ring_of(block_pages)
    table = (address_of(directory), shift)
    stored = (address_of(pages), origin, page_bits, address_of(compared), len(compared))
    key_at = address_of(columns)
    for i in range(n_rows):
        p = positions[i]
        link = load_link(links, p)
        if link & DELETED:
            continue
        store_link(links, p, link | DELETED)
        if usable[i] == 0:
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
            place = search_columns(words[i], (key_at + 8 * i, n_rows), table, watermark, stored)
        else:
            place = search_word(words[i], table)
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
