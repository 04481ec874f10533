"""Nodes: the records of events that are not over, found by start and payload; what R3 and R4 keep in common.

    nodes[n]        start, payload, order, due, two links, what is out, and then what each input has
    table           from a hash of (start, payload) to the node (`lineage/hash_table.py`)
    buckets         the due calendar (`lmerge/cases/due.py`)
    free, pool      numbers of nodes (`lineage/numbers.py`)
    by_start[n]     a calendar of starts, with buckets of its own; only under insert="unfrozen"

A state is a tuple of these, and in R4 of its bags. A field holds `absent` where an input has nothing: in R3 that is no end,
else it has one event; in R4 it is 0, else the upper half of a field is the number of copies.

Invariant: a node is in the table, in the calendar of starts if there is one, and in the due calendar if it can ever be due,
exactly while its order is not 0.
"""

from __future__ import annotations

import numpy as np

from lineage.hash_table import delete_entry, entry_of, hash_of, number_of, table_shift
from lineage.kernels import Number, called, inline, kernel
from lineage.numbers import hand_out
from lmerge.cases.due import DUE, NEXT, ORDER, PAYLOAD, START, link, n_buckets_of, unlink
from lmerge.cases.header import (
    ADJUSTS,
    DECIDED,
    DENOMINATOR,
    INSERTS,
    LACKS,
    LAST_ORDER,
    LEAD,
    LOOKED,
    N_FREED,
    N_LIVE,
    N_OUT,
    NODES,
    NUMERATOR,
    PASSED,
    PENDING,
    ROOM,
    SHIFT,
    START_SHIFT,
)
from lmerge.cases.inputs import ENTERED, JOINED, N_UNFROZEN, POINT, STATE, TOP, has_most
from lmerge.cases.policies import EVERY, FIRST, FOLLOW, FRACTION, HALF_FROZEN, HIGHEST, LEADER, UNFROZEN
from lmerge.streams.elements import hash_event

#: Fields of a node: what is out of it, and where those of the inputs begin.
SHOWN, FIELDS = 6, 7

#: The type of a state, as numba writes it; R4 adds to it.
STATE_ARRAYS = "int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1]"


@inline
def find_hash(table: Number, shift: Number, h: Number) -> Number:
    """Return the first place with a hash in the table, or the free place where it would be."""
    mask = np.int64(len(table) - 1)
    at = h >> shift
    entry = table[np.uint64(at)]
    if hash_of(entry) != h:
        while entry != 0:
            if hash_of(entry) == h:
                break
            at = (at + 1) & mask
            entry = table[np.uint64(at)]
    return at


@called
def find_event(nodes: Number, table: Number, at: Number, start: Number, payload: Number) -> Number:
    """Return the place of an event's node in the table, or the free place where it would be; the search begins at a place."""
    mask = np.int64(len(table) - 1)
    entry = table[at]
    while entry != 0:
        node = number_of(entry)
        if nodes[node, START] == start and nodes[node, PAYLOAD] == payload:
            break
        at = (at + 1) & mask
        entry = table[at]
    return at


@inline
def n_probes(table: Number, shift: Number, h: Number, at: Number) -> Number:
    """Return how many places were looked at to find one."""
    return ((at - (h >> shift)) & (len(table) - 1)) + 1


@inline
def n_in(field: Number, absent: Number) -> Number:
    """Return how many events a field of a node stands for."""
    return field >> 32 if absent == 0 else np.int64(field != absent)


@inline
def has_node(pool: Number, header: Number) -> Number:
    """Whether a node is free; if not, the header says what is lacking."""
    found = pool[1] > 0 or pool[0] < pool[2]
    if not found:
        header[LACKS] = NODES
    return found


@inline
def has_room(out: Number, header: Number) -> Number:
    """Whether there is room for an output; if not, the header says what is lacking."""
    found = header[N_OUT] < out.shape[1]
    if not found:
        header[LACKS] = ROOM
    return found


@inline
def make_node(
    state: Number, header: Number, at: Number, h: Number, start: Number, payload: Number, absent: Number
) -> Number:  # fmt: skip
    """Return the node of a new event, which no input has yet; there is a free one."""
    nodes = state[0]
    node = hand_out(state[3], state[4])
    state[1][at] = entry_of(h, node)
    nodes[node, START] = start
    nodes[node, PAYLOAD] = payload
    header[LAST_ORDER] += 1
    nodes[node, ORDER] = header[LAST_ORDER]
    for field in range(SHOWN, nodes.shape[1]):
        nodes[node, field] = absent
    link(nodes, DUE, state[2], header[SHIFT], node, start)
    if len(state[5]) > 0:
        link(state[5], 0, state[6], header[START_SHIFT], node, start)
    header[N_LIVE] += 1
    return node


@inline
def forget_node(state: Number, header: Number, node: Number) -> None:
    """Take a node out of the table; it is in no bucket of the due calendar any more. Until the push is over it stands at the far
    end of the stack of free numbers."""
    nodes = state[0]
    table = state[1]
    free = state[3]
    shift = table_shift(table)
    mask = np.int64(len(table) - 1)
    at = hash_event(nodes[node, START], nodes[node, PAYLOAD]) >> shift
    while number_of(table[at]) != node:
        at = (at + 1) & mask
    delete_entry(table, at, shift)
    if len(state[5]) > 0:
        unlink(state[5], 0, state[6], header[START_SHIFT], node)
    nodes[node, ORDER] = 0
    header[N_FREED] += 1
    free[len(free) - header[N_FREED]] = node
    header[N_LIVE] -= 1


@inline
def let_go(state: Number, header: Number, node: Number, absent: Number) -> None:
    """Let go of a node if nothing of it is out and no input has it."""
    nodes = state[0]
    held = False
    for field in range(SHOWN, nodes.shape[1]):
        held |= nodes[node, field] != absent
    if not held:
        unlink(nodes, DUE, state[2], header[SHIFT], node)
        forget_node(state, header, node)


@kernel(f"void(Tuple(({STATE_ARRAYS})), int64[::1], int64)")
def let_go_of_all(state: tuple[np.ndarray, ...], header: np.ndarray, absent: int) -> None:
    """Let go of all nodes of which nothing is out and that no input has."""
    nodes, pool = state[0], state[4]
    for node in range(pool[0]):
        if nodes[node, ORDER] != 0:
            let_go(state, header, node, absent)


@called
def gives_out(header: Number, inputs: Number, number: Number, nodes: Number, node: Number, absent: Number) -> Number:
    """Whether an event, or copy, that an input gives and that is not out goes out now."""
    policy = header[INSERTS]
    found = policy == FIRST
    if inputs[number, STATE] == JOINED:
        if policy == LEADER:
            found = number == header[LEAD]
        elif policy == HIGHEST:
            found = has_most(inputs, number, TOP)
        elif policy == UNFROZEN:
            found = has_most(inputs, number, N_UNFROZEN)
        elif policy == FRACTION:
            n_having = np.int64(0)
            n_joined = np.int64(0)
            for other in range(len(inputs)):
                if inputs[other, STATE] == JOINED:
                    n_joined += 1
                    n_having += np.int64(n_in(nodes[node, FIELDS + other], absent) > n_in(nodes[node, SHOWN], absent))
            found = n_having * header[DENOMINATOR] >= n_joined * header[NUMERATOR]
    return found


@inline
def skim_nothing(
    i: Number, ahead: Number, number: Number, batch: Number, outcomes: Number, taken: Number, nodes: Number, table: Number,
    bits: Number, inputs: Number, header: Number,
) -> Number:  # fmt: skip
    """Take no elements: any of them may give out something."""
    return i, ahead


@inline
def give_nothing(
    out: Number, header: Number, inputs: Number, number: Number, nodes: Number, node: Number, end: Number
) -> None:  # fmt: skip
    """Give out nothing when a node is made: the policy has the say."""


@inline
def follows(header: Number, number: Number) -> Number:
    """Whether changes of an input go out at once."""
    return header[ADJUSTS] == EVERY or (header[ADJUSTS] == FOLLOW and number == header[LEAD])


@inline
def be_listed(nodes: Number, node: Number, header: Number) -> None:
    """List a node, which is in no bucket, among those with something to give out."""
    nodes[node, NEXT] = header[PENDING]
    header[PENDING] = node


@inline
def expect(header: Number, inputs: Number, start: Number) -> None:
    """Let every input look at a start again under "half-frozen": something of it that may be due is not out."""
    if header[INSERTS] == HALF_FROZEN:
        for number in range(len(inputs)):
            inputs[number, ENTERED] = min(inputs[number, ENTERED], start)


@inline
def count_unfrozen(header: Number, inputs: Number, number: Number, start: Number, n: Number) -> None:
    """Count events of an input more, or fewer, that are not below its own point."""
    if header[INSERTS] == UNFROZEN and start >= inputs[number, POINT]:
        inputs[number, N_UNFROZEN] += n


@inline
def uncount_node(header: Number, inputs: Number, nodes: Number, node: Number, absent: Number) -> None:
    """Take what the inputs have of a node that goes out of their counts."""
    if header[INSERTS] == UNFROZEN:
        for number in range(len(inputs)):
            count_unfrozen(header, inputs, number, nodes[node, START], -n_in(nodes[node, FIELDS + number], absent))


@called
def uncount_passed(
    state: Number, header: Number, inputs: Number, number: Number, low: Number, high: Number, absent: Number
) -> None:  # fmt: skip
    """Take the events of an input that start in [low, high) out of its count: its own point passes them."""
    nodes = state[0]
    links = state[5]
    buckets = state[6]
    shift = header[START_SHIFT]
    n_buckets = n_buckets_of(buckets, shift, low, high)
    n_passed = np.int64(0)
    if n_buckets > state[4][0]:
        header[LOOKED] += state[4][0]
        for node in range(state[4][0]):
            if nodes[node, ORDER] != 0 and low <= nodes[node, START] < high:
                n_passed += n_in(nodes[node, FIELDS + number], absent)
                header[DECIDED] += 1
    else:
        header[PASSED] += n_buckets
        for step in range(n_buckets):
            node = buckets[((low >> shift) + step) & (len(buckets) - 1)]
            while node >= 0:
                header[LOOKED] += 1
                if low <= nodes[node, START] < high:
                    n_passed += n_in(nodes[node, FIELDS + number], absent)
                    header[DECIDED] += 1
                node = links[node, 1]
    inputs[number, N_UNFROZEN] -= n_passed
