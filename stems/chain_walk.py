"""Walking chains: the newest row of each probing key, then pair after pair of probing row and stored position.

Chains are walked breadth first: every probing row takes one step and asks for what its next one needs, then those whose chain
goes on take it. No load waits for another, and no branch depends on how long a chain is. A step is one linked row or one
sealed block. Measured against 16 chains in turn: experiments/bench/joins/kernels.py and docs/decisions/0006.

A walk stops when its part is full, anywhere, and goes on from there. It stands on rows it has not given yet; between parts they
may be deleted (then they are passed over) or sealed into a block with younger rows, which were given already.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel
from lineage.memory import address_of, load_int64, load_uint32, store_int64, store_uint32
from stems.key_search import AHEAD, begin_search, prefetch_cells, search_columns, search_word, table_of
from stems.key_table import COUNT_BITS
from stems.links import BLOCK_HEADER, DELETED, NO_OLDER, SEALED, block_address, load_link, prefetch_link, ring_of

U64 = np.uint64

#: How many rows before its turn a link is asked for from memory.
FAR = 64


@kernel(
    "void(int64[::1], int64[:,::1], uint8[::1], int64[:,::1], int64, int64, int64[::1], int64, int64, int64[:,::1], "
    "int64[::1], int32[::1], int64[::1], int64[::1])"
)
def find_heads(
    words: np.ndarray, columns: np.ndarray, usable: np.ndarray, directory: np.ndarray, watermark: int, low: int,
    pages: np.ndarray, origin: int, page_bits: int, compared: np.ndarray, heads: np.ndarray, head_rows: np.ndarray,
    progress: np.ndarray, begins: np.ndarray,
) -> None:  # fmt: skip
    """List (newest position, probing row) of the keys that have a row at `low` or above: where `walk_chains` begins.

    `begins` is scratch for the places of `2 * AHEAD` keys.
    """
    table = table_of(directory)
    stored = (address_of(pages), origin, page_bits, address_of(compared), len(compared))
    key_at = address_of(columns)
    n_keys = len(words)
    all_usable = len(usable) == 0
    several = len(compared) > 0
    compared_until = n_keys if len(pages) else 0
    for i in range(min(2 * AHEAD, n_keys)):
        begins[U64(i)] = begin_search(words[U64(i)], table)
    n = np.int64(0)
    for i in range(n_keys):
        place = begins[U64(i & (2 * AHEAD - 1))]
        if i + 2 * AHEAD < n_keys:
            begins[U64(i & (2 * AHEAD - 1))] = begin_search(words[U64(i + 2 * AHEAD)], table)
        if several:
            if i + AHEAD < compared_until:
                prefetch_cells(begins[U64((i + AHEAD) & (2 * AHEAD - 1))], stored)
            place = search_columns(words[U64(i)], (key_at + 8 * i, n_keys), place, table, watermark, stored)
        else:
            place = search_word(words[U64(i)], place, table)
        newest = (load_int64(place, 1) >> COUNT_BITS) - 1
        heads[U64(n)] = newest
        head_rows[U64(n)] = i
        n += (newest >= low) & (all_usable or usable[U64(i)] != 0)
    progress[0] = 0
    progress[1] = 0
    progress[2] = n
    progress[3] = 0


@inline
def give_block(
    block: Number, begin: Number, end: Number, row: Number, low: Number, limit: Number, out: Number, n: Number
) -> Number:  # fmt: skip
    """Write the pairs of a row with the entries `begin .. end` of a block behind the `n` there are; returns how many there are.

    `out` is (address of rows, address of positions).
    """
    owner = load_int64(block, 1)
    last = load_uint32(block, BLOCK_HEADER + load_uint32(block, 4) - 1) & NO_OLDER
    if owner < limit and owner - last >= low and load_uint32(block, 5) == 0:
        for k in range(begin, end):
            store_uint32(out[0], n, row)
            store_int64(out[1], n, owner - load_uint32(block, BLOCK_HEADER + k))
            n += 1
    else:
        for k in range(begin, end):
            entry = load_uint32(block, BLOCK_HEADER + k)
            position = owner - (entry & NO_OLDER)
            store_uint32(out[0], n, row)
            store_int64(out[1], n, position)
            n += (position < limit) & (position >= low) & (entry < DELETED)
    return n


@kernel("int64(int64[::1], int32[::1], int64[::1], int64, int64, int64[::1], int64[::1], int64, int32[::1], int64[::1])")
def walk_chains(
    heads: np.ndarray, head_rows: np.ndarray, progress: np.ndarray, low: int, hi: int, link_pages: np.ndarray,
    block_pages: np.ndarray, room: int, out_row: np.ndarray, out_position: np.ndarray,
) -> int:  # fmt: skip
    """The next pairs (probing row, position) with `low <= position < hi`, at most `room`; 0 when there are no more.

    `head_rows[:left]` stand at the positions `heads[:left]`; `done` of them have taken this step, the `kept` that go on are put
    in front. `progress` is (done, kept, left, rows already taken from the block that the next one stands in).
    """
    links = ring_of(link_pages)
    blocks = ring_of(block_pages)
    out = (address_of(out_row), address_of(out_position))
    done, kept, left, begin = progress[0], progress[1], progress[2], progress[3]
    n = np.int64(0)
    while left > 0 and n < room:
        if done == 0:
            for k in range(min(left, FAR)):
                prefetch_link(links, heads[U64(k)])
        stop = min(left, done + room - n)
        sealed = np.int64(0)
        while done < stop:
            prefetch_link(links, heads[U64(done + FAR)])
            p = heads[U64(done)]
            row = head_rows[U64(done)]
            link = load_link(links, p)
            if link & SEALED:
                sealed = link
                break
            out_row[U64(n)] = row
            out_position[U64(n)] = p
            n += (p < hi) & (link < DELETED)
            p -= link & NO_OLDER
            heads[U64(kept)] = p
            head_rows[U64(kept)] = row
            kept += p >= low
            done += 1
        if sealed:
            p = heads[U64(done)]
            row = head_rows[U64(done)]
            block = block_address(blocks, sealed & NO_OLDER)
            size = load_uint32(block, 4)
            end = min(size, begin + room - n)
            # a row that was sealed while a walk stood on it has younger rows in its block, which were given already
            limit = min(hi, p + 1)
            n = give_block(block, begin, end, row, low, limit, out, n)
            begin = end
            if end == size:
                begin = np.int64(0)
                p = load_int64(block, 0) - 1
                heads[U64(kept)] = p
                head_rows[U64(kept)] = row
                kept += p >= low
                done += 1
        if done == left:
            left = kept
            done = np.int64(0)
            kept = np.int64(0)
    progress[0] = done
    progress[1] = kept
    progress[2] = left
    progress[3] = begin
    return int(n)
