"""The rows of each key, newest first: links between rows, and sealed blocks where a key has many.

A row's **link** is one uint32: how far back the previous row of its key is. Distances need no base, so positions grow for
ever and nothing is ever renumbered:

    link = DELETED? | SEALED? | distance        NO_OLDER reaches below any row held: fewer than 2**30 rows are
    link = DELETED? | SEALED  | block number    for rows that stand in a sealed block

A chain ends where its position falls below the `low` of whoever walks it, so expiry costs nothing here: it only moves `low`.

Walking a long chain is one cache miss a row. So when `seal_at` rows of a key are linked one by one, they are **sealed**: their
distances from the newest of them (the owner) go into a block, read in sequence; measured in docs/decisions/0006. A block is
BLOCK_WORDS uint32 words:

    0, 1  position + 1 of the next older row of the key, 0 for none      4  rows in the block
    2, 3  position of the owner                                          5  how many of them are deleted
    6...  DELETED? | owner - position, ascending

Blocks are numbered in the order of their owners, so those of dead owners are the first and go by number, like pages.

Links and blocks are in pages (`stems/paged_words.py`). Helpers take addresses, as tuples of numbers, never arrays: an array
handed to a helper is counted in and out, with every row, by an atomic instruction.

    ring       (address of page addresses, their number - 1)      of links or blocks
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline
from lineage.memory import address_of, load_int64, load_uint32, prefetch, store_uint32

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
