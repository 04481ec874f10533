"""The rows of each key, newest first: links between rows, and sealed blocks where a key has many.

A row's **link** is one uint32: how far back the previous row of its key is. Distances need no base, so positions grow for
ever and nothing is ever renumbered:

    link = DELETED? | SEALED? | distance        NO_OLDER reaches below any row held: fewer than 2**30 rows are
    link = DELETED? | SEALED  | block number    for rows that stand in a sealed block

A chain ends where its position falls below the `low` of whoever walks it, so expiry costs nothing here: it only moves `low`.

Walking a long chain is one cache miss a row. So when `seal_at` rows of a key are linked one by one, they are **sealed**: their distances
from the newest of them (the owner) go into a block, read in sequence. A block is BLOCK_WORDS uint32 words:

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

#: What `put_row` lacked.
DONE = 0
NO_PLACE = 1
NO_BLOCK = 2

#: How far from the head a deleted row is looked for, to take it out of its chain.
UNLINK_STEPS = 64


@inline
def link_page(links: np.ndarray, position: Number) -> Number:
    return links[U64((position >> LINK_BITS) & (len(links) - 1))]


@inline
def load_link(links: np.ndarray, position: Number) -> Number:
    return load_uint32(link_page(links, position), position & LINK_MASK)


@inline
def store_link(links: np.ndarray, position: Number, link: Number) -> None:
    store_uint32(link_page(links, position), position & LINK_MASK, link)


@inline
def block_address(blocks: np.ndarray, number: Number) -> Number:
    page = blocks[U64((number >> BLOCK_BITS) & (len(blocks) - 1))]
    return page + (number & ((1 << BLOCK_BITS) - 1)) * (4 * BLOCK_WORDS)


@inline
def prefetch_key(word: Number, directory: np.ndarray, shift: Number) -> None:
    """Begin to load the place where the search for a key word begins."""
    h = hash_word(word)
    entry = directory_index(h, shift)
    at = first_place(h, directory[entry, U64(1)], directory[entry, U64(2)])
    prefetch(directory[entry, U64(0)] + 8 * (HEADER + 2 * np.int64(at)))


@inline
def same_key(
    columns: np.ndarray, i: Number, position: Number, pages: np.ndarray, origin: Number, page_bits: Number, compared: np.ndarray
) -> Number:  # fmt: skip
    """Whether the stored row has the key in column `i` of `columns`; `compared` lists (column, is float)."""
    same = True
    offset = position - origin
    page = pages[U64(offset >> page_bits)]
    for k in range(len(compared)):
        cell = load_int64(page, (compared[k, 0] << page_bits) + (offset & ((np.int64(1) << page_bits) - 1)))
        same &= order_key(cell, compared[k, 1] != 0) == columns[k, i]
    return same


@inline
def search_word(word: Number, at: Number, segment: Number, mask: Number, watermark: Number) -> Number:
    """The address of the place of a key of one column, live or dead, or else of the place that it should take."""
    free = np.int64(0)
    while True:
        place = segment + 8 * (HEADER + 2 * np.int64(at))
        head = load_int64(place, 1)
        if load_int64(place, 0) == word or head == 0:
            break
        if (head >> COUNT_BITS) <= watermark and free == 0:
            free = place
        at = (at + U64(1)) & mask
    # an empty place may hold the word 0
    return free if head == 0 and free != 0 else place


@inline
def search_columns(
    word: Number, at: Number, segment: Number, mask: Number, watermark: Number, columns: np.ndarray, i: Number, pages: np.ndarray,
    origin: Number, page_bits: Number, compared: np.ndarray,
) -> Number:  # fmt: skip
    """(The place of a key of several columns, True), or (the place that it should take, False).

    Whose a dead place was cannot be told: the cells of its row may be gone.
    """
    free = np.int64(0)
    found = False
    while True:
        place = segment + 8 * (HEADER + 2 * np.int64(at))
        head = load_int64(place, 1)
        if head == 0:
            break
        newest = (head >> COUNT_BITS) - 1
        if newest < watermark:
            free = place if free == 0 else free
        elif load_int64(place, 0) == word and same_key(columns, i, newest, pages, origin, page_bits, compared):
            found = True
            break
        at = (at + U64(1)) & mask
    return (free if not found and free != 0 else place), found


@inline
def put_row(
    position: Number, word: Number, place: Number, found: Number, segment: Number, mask: Number, watermark: Number, links: np.ndarray,
    blocks: np.ndarray, next_block: np.ndarray, seal_at: Number,
) -> Number:  # fmt: skip
    """Make a row the head of its key's chain, in front of those there if `found`; returns what was missing to do it."""
    head = load_int64(place, 1)
    count = np.int64(1)
    if found:
        count += head & COUNT_MASK
        if count >= seal_at and next_block[0] == next_block[1]:
            return NO_BLOCK
        store_link(links, position, position - ((head >> COUNT_BITS) - 1))
        if count >= seal_at:
            # collect the rows that are linked one by one, down to the last block
            number = next_block[0]
            block = block_address(blocks, number & NO_OLDER)
            n = np.int64(0)
            p = position
            while p >= watermark and n < BLOCK_ROWS:
                link = load_link(links, p)
                if link & SEALED:
                    break
                store_uint32(block, BLOCK_HEADER + n, position - p)
                n += (link & DELETED) == 0
                p -= link & NO_OLDER
            count = n
            if 2 * n >= seal_at:
                for k in range(n):
                    store_link(links, position - load_uint32(block, BLOCK_HEADER + k), SEALED | (number & NO_OLDER))
                store_int64(block, 0, p + 1 if p >= watermark else 0)
                store_int64(block, 1, position)
                store_uint32(block, 4, n)
                store_uint32(block, 5, 0)
                next_block[0] = number + 1
                count = np.int64(0)
    else:
        if head == 0:
            used = load_int64(segment, 0)
            if 2 * (used + 1) > np.int64(mask) + 1:
                return NO_PLACE
            store_int64(segment, 0, used + 1)
        store_link(links, position, NO_OLDER)
        store_int64(place, 0, word)
    store_int64(place, 1, ((position + 1) << COUNT_BITS) | count)
    return DONE


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
    links: np.ndarray,
    blocks: np.ndarray,
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
    status = np.int64(0)
    for i in range(start, n_rows):
        position = np.int64(first + i)
        if i + AHEAD < n_rows:
            prefetch_key(words[U64(i + AHEAD)], directory, shift)
        if not all_usable and usable[U64(i)] == 0:
            store_link(links, position, NO_OLDER)
            continue
        word = words[U64(i)]
        h = hash_word(word)
        entry = directory_index(h, shift)
        segment = directory[entry, U64(0)]
        mask = U64(directory[entry, U64(1)])
        at = first_place(h, mask, directory[entry, U64(2)])
        if len(compared) == 0:
            place = search_word(word, at, segment, mask, watermark)
            found = (load_int64(place, 1) >> COUNT_BITS) > watermark and load_int64(place, 0) == word
        else:
            place, found = search_columns(
                word, at, segment, mask, watermark, columns, i, pages, origin, page_bits, compared
            )  # fmt: skip
        status = put_row(
            position, word, place, found, segment, mask, watermark, links, blocks, next_block, seal_at
        )  # fmt: skip
        if status == NO_PLACE:
            return int(i)
        if status == NO_BLOCK:
            return int(-1 - i)
    return n_rows


@inline
def find_key(
    word: Number, columns: np.ndarray, i: Number, directory: np.ndarray, shift: Number, watermark: Number, pages: np.ndarray,
    origin: Number, page_bits: Number, compared: np.ndarray,
) -> Number:  # fmt: skip
    """The place of a key; another, dead or free, if no live row has it."""
    h = hash_word(word)
    entry = directory_index(h, shift)
    mask = U64(directory[entry, U64(1)])
    at = first_place(h, mask, directory[entry, U64(2)])
    place, _ = search_columns(
        word, at, directory[entry, U64(0)], mask, watermark, columns, i, pages, origin, page_bits, compared
    )  # fmt: skip
    return place


@inline
def find_word(word: Number, directory: np.ndarray, shift: Number) -> Number:
    """The place of a key of one column, live or dead; a free one if it has none."""
    h = hash_word(word)
    entry = directory_index(h, shift)
    segment = directory[entry, U64(0)]
    mask = U64(directory[entry, U64(1)])
    at = first_place(h, mask, directory[entry, U64(2)])
    while True:
        place = segment + 8 * (HEADER + 2 * np.int64(at))
        if load_int64(place, 0) == word or load_int64(place, 1) == 0:
            break
        at = (at + U64(1)) & mask
    return place


@kernel(
    "int64(int64[::1], int64[:,::1], uint8[::1], boolean, int32[::1], boolean, int64, int64[:,::1], int64, int64, int64, int64[::1], "
    "int64, int64, int64[:,::1], int64[::1], int32[::1])"
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
    n = np.int64(0)
    for i in range(n_keys):
        if i + AHEAD < n_keys:
            prefetch_key(words[U64(i + AHEAD)], directory, shift)
        if not all_usable and usable[U64(i)] == 0:
            continue
        if len(compared) == 0:
            place = find_word(words[U64(i)], directory, shift)
        else:
            place = find_key(words[U64(i)], columns, i, directory, shift, watermark, pages, origin, page_bits, compared)
        newest = (load_int64(place, 1) >> COUNT_BITS) - 1
        heads[U64(n)] = newest
        head_rows[U64(n)] = i if every_row else rows[U64(i)]
        n += newest >= low
    return int(n)


@kernel(
    "int64(int64[::1], int32[::1], int64, int64, int64, int64[::1], boolean, int64[::1], int64[::1], int64[:,::1], int64, int32[::1], "
    "int64[::1])"
)
def walk_chains(
    heads: np.ndarray,
    head_rows: np.ndarray,
    n_heads: int,
    low: int,
    hi: int,
    row_hi: np.ndarray,
    one_hi: bool,
    links: np.ndarray,
    blocks: np.ndarray,
    lanes: np.ndarray,
    room: int,
    out_row: np.ndarray,
    out_position: np.ndarray,
) -> int:
    """The next pairs (probing row, position) with `low <= position < hi`, at most `room`; 0 when there are no more.

    `lanes` is where the walk stands: position, row, bound and rows already taken from its block, for each lane; then the next
    head. A lane whose position is below `low` is free.
    """
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
                    at[lane] = p - (link & NO_OLDER)
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
                at[lane] = heads[U64(following)]
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
    "void(int64[::1], int64[::1], int64[:,::1], uint8[::1], int64, int64[:,::1], int64, int64, int64[::1], int64[::1], int64[::1], "
    "int64, int64, int64[:,::1])"
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
    links: np.ndarray,
    blocks: np.ndarray,
    pages: np.ndarray,
    origin: int,
    page_bits: int,
    compared: np.ndarray,
) -> None:
    """Mark rows as deleted and take them out of their chains where that is near."""
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
        place = find_key(words[i], columns, i, directory, shift, watermark, pages, origin, page_bits, compared)
        head = load_int64(place, 1)
        newer = (head >> COUNT_BITS) - 1
        count = head & COUNT_MASK
        if newer == p:
            older = p - distance
            head = NO_ROWS if older < watermark else ((older + 1) << COUNT_BITS) | max(np.int64(0), count - 1)
            store_int64(place, 1, head)
            continue
        for _ in range(UNLINK_STEPS):
            link = load_link(links, newer)
            if link & SEALED or newer < p:
                break
            if newer - (link & NO_OLDER) == p:
                store_link(links, newer, (link & DELETED) | join_distance(newer - p, distance))
                store_int64(place, 1, head - 1 if count else head)
                break
            newer -= link & NO_OLDER
