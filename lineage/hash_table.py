"""Open addressing inside kernels: a table of `(32 bits of a hash) << 32 | (number + 1)`, 0 where free, at most half full.

An entry holds its hash: the table grows, and closes the gap of a deleted entry, without its owner.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel

_LOW = np.int64(0xFFFFFFFF)


@inline
def table_shift(table: Number) -> Number:
    """Return the shift from the 32 bits of a hash to the place where a search begins."""
    shift = np.int64(32)
    while (np.int64(1) << (np.int64(32) - shift)) < len(table):
        shift -= 1
    return shift


@inline
def entry_of(h: Number, number: Number) -> Number:
    return (h << 32) | (number + 1)


@inline
def hash_of(entry: Number) -> Number:
    return (entry >> 32) & _LOW


@inline
def number_of(entry: Number) -> Number:
    return (entry & _LOW) - 1


@inline
def delete_entry(table: Number, at: Number, shift: Number) -> None:
    """Free a place; entries behind it move back unless that would put them before their first place."""
    mask = np.int64(len(table) - 1)
    then = at
    while True:
        then = (then + 1) & mask
        entry = table[then]
        if entry == 0:
            break
        if ((then - (hash_of(entry) >> shift)) & mask) >= ((then - at) & mask):
            table[at] = entry
            at = then
    table[at] = 0


@kernel("void(int64[::1], int64[::1])")
def move_entries(entries: np.ndarray, table: np.ndarray) -> None:
    """Put the entries of another table, or of a list, into an empty table."""
    mask = np.int64(len(table) - 1)
    shift = table_shift(table)
    for k in range(len(entries)):
        entry = entries[k]
        if entry != 0:
            at = hash_of(entry) >> shift
            while table[at] != 0:
                at = (at + 1) & mask
            table[at] = entry
