"""Copies: how many events of one payload and start have each end, in each input and in the output (the third tier of in3t).

a field of a node    how many copies there are << 32 | (the first entry + 1); 0: none
entries[e]           an end, how many copies have it, and the entry with the next larger end
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, called, inline
from lineage.numbers import hand_out, take_back
from lmerge.cases.header import ENTRIES, LACKS

END, COUNT, AFTER = range(3)
NO_ENTRY = -1
_LOW = np.int64(0xFFFFFFFF)
_ONE = np.int64(1) << np.int64(32)


@inline
def first_entry(field: Number) -> Number:
    return (field & _LOW) - 1


@inline
def n_copies(field: Number) -> Number:
    return field >> 32


@inline
def has_entries(pool: Number, header: Number) -> Number:
    """Whether two entries are free; if not, the header says what is lacking."""
    found = pool[1] + pool[2] - pool[0] >= 2
    if not found:
        header[LACKS] = ENTRIES
    return found


@inline
def add_first_copy(
    nodes: Number, node: Number, field: Number, entries: Number, free: Number, pool: Number, end: Number
) -> None:  # fmt: skip
    """Add a copy with an end where there is none yet; there is an entry for it."""
    made = hand_out(free, pool)
    entries[made, END] = end
    entries[made, COUNT] = 1
    entries[made, AFTER] = NO_ENTRY
    nodes[node, field] = _ONE + made + 1


@inline
def is_only_copy(field: Number, entries: Number, end: Number) -> Number:
    """Whether there is one copy, with that end."""
    return n_copies(field) == 1 and entries[first_entry(field), END] == end


@inline
def is_same_copy(one: Number, other: Number, entries: Number) -> Number:
    """Whether two fields have one copy each, with the same end."""
    return n_copies(other) == 1 and is_only_copy(one, entries, entries[first_entry(other), END])


@called
def add_copy(nodes: Number, node: Number, field: Number, entries: Number, free: Number, pool: Number, end: Number) -> None:
    """Add a copy with an end; there is an entry for it."""
    before = np.int64(NO_ENTRY)
    entry = first_entry(nodes[node, field])
    while entry >= 0 and entries[entry, END] < end:
        before = entry
        entry = entries[entry, AFTER]
    nodes[node, field] += _ONE
    if entry >= 0 and entries[entry, END] == end:
        entries[entry, COUNT] += 1
    else:
        made = hand_out(free, pool)
        entries[made, END] = end
        entries[made, COUNT] = 1
        entries[made, AFTER] = entry
        if before < 0:
            nodes[node, field] += made - entry
        else:
            entries[before, AFTER] = made


@called
def drop_copy(nodes: Number, node: Number, field: Number, entries: Number, free: Number, pool: Number, end: Number) -> Number:
    """Take away a copy with an end; returns whether there was one."""
    before = np.int64(NO_ENTRY)
    entry = first_entry(nodes[node, field])
    while entry >= 0 and entries[entry, END] < end:
        before = entry
        entry = entries[entry, AFTER]
    found = entry >= 0 and entries[entry, END] == end
    if found:
        nodes[node, field] -= _ONE
        entries[entry, COUNT] -= 1
        if entries[entry, COUNT] == 0:
            after = entries[entry, AFTER]
            if before < 0:
                nodes[node, field] += after - entry
            else:
                entries[before, AFTER] = after
            take_back(entry, free, pool)
    return found


@inline
def has_copy(field: Number, entries: Number, end: Number) -> Number:
    """Whether a copy has an end."""
    entry = first_entry(field)
    while entry >= 0 and entries[entry, END] < end:
        entry = entries[entry, AFTER]
    return entry >= 0 and entries[entry, END] == end


@inline
def first_end(field: Number, entries: Number, point: Number, otherwise: Number) -> Number:
    """Return the first end at or after a point."""
    entry = first_entry(field)
    while entry >= 0 and entries[entry, END] < point:
        entry = entries[entry, AFTER]
    return entries[entry, END] if entry >= 0 else otherwise


@inline
def free_copies(nodes: Number, node: Number, field: Number, entries: Number, free: Number, pool: Number) -> None:
    """Take away all copies."""
    entry = first_entry(nodes[node, field])
    while entry >= 0:
        entries[entry, COUNT] = 0
        take_back(entry, free, pool)
        entry = entries[entry, AFTER]
    nodes[node, field] = 0


@called
def compare_copies(said: Number, shown: Number, entries: Number, floor: Number) -> Number:
    """Compare the copies of an input with those that are out, of ends from `floor` on.

    Returns how many the output lacks and how many it has too much, and the smallest end of each.
    """
    a = first_entry(said)
    b = first_entry(shown)
    lacking = np.int64(0)
    extra = np.int64(0)
    first_lacking = np.int64(0)
    first_extra = np.int64(0)
    while a >= 0 or b >= 0:
        more = np.int64(0)
        if b < 0 or (a >= 0 and entries[a, END] < entries[b, END]):
            end = entries[a, END]
            more = entries[a, COUNT]
            a = entries[a, AFTER]
        elif a < 0 or entries[b, END] < entries[a, END]:
            end = entries[b, END]
            more = -entries[b, COUNT]
            b = entries[b, AFTER]
        else:
            end = entries[a, END]
            more = entries[a, COUNT] - entries[b, COUNT]
            a = entries[a, AFTER]
            b = entries[b, AFTER]
        if end >= floor:
            if more > 0:
                if lacking == 0:
                    first_lacking = end
                lacking += more
            elif more < 0:
                if extra == 0:
                    first_extra = end
                extra -= more
    return lacking, extra, first_lacking, first_extra
