"""Nodes: the records of events that are not over, found by start and payload; what R3 and R4 keep in common.

    nodes[n]     start, payload, due, order, two links, what is out, and then what each input has
    table        from a hash of (start, payload) to the node (`lineage/hash_table.py`)
    buckets      the due calendar (`lmerge/cases/due.py`)
    header       the merge's point, its leader, its policies, counters of work, and how far an interrupted push has come

Invariant: a node is in the table, and in the calendar if it can ever be due, exactly while its order is not 0.
"""

from __future__ import annotations

import numpy as np

from lineage.hash_table import delete_entry, entry_of, hash_of, number_of, table_shift
from lineage.kernels import Number, inline, kernel
from lineage.numbers import hand_out
from lmerge.cases.due import NEXT, ORDER, PAYLOAD, START, link, unlink
from lmerge.cases.inputs import JOINED, N_UNFROZEN, OUT, REMOVED, STATE, TOP, has_most
from lmerge.cases.merged import OUT_END, OUT_KIND, OUT_NODE, OUT_OLD, OUT_PAYLOAD, OUT_START
from lmerge.cases.policies import EVERY, FIRST, FOLLOW, HIGHEST, LEADER, UNFROZEN
from lmerge.streams.elements import hash_event

#: Fields of a node: what is out of it, and where those of the inputs begin.
SHOWN, FIELDS = 6, 7

#: Places of `header`: the merge's point and leader; nodes and the order of the last; the calendar's shift; how far a stable has
#: come: nodes with something to give out, the new point, the phase; nodes let go of; outputs written; what is lacking; policies;
#: work: places of the table and nodes looked at, nodes that were due, buckets passed; steps of the point, and how far they were.
(
    POINT_OUT, LEAD, N_LIVE, LAST_ORDER, SHIFT, PENDING, TARGET, PHASE, N_FREED, N_OUT, LACKS,
    INSERTS, ADJUSTS, KEEP_ANY, LAG, NUMERATOR, DENOMINATOR, PROBED, LOOKED, DECIDED, PASSED, N_MOVES, MOVED_BY,
) = range(23)  # fmt: skip
N_HEADER = 23

#: What a kernel lacks.
NODES, ROOM, ENTRIES = range(3)


@inline
def find_event(nodes: Number, table: Number, shift: Number, h: Number, start: Number, payload: Number) -> Number:
    """Return the place of an event's node in the table, or the free place where it would be."""
    mask = np.int64(len(table) - 1)
    at = h >> shift
    entry = table[at]
    while entry != 0:
        if hash_of(entry) == h:
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
    nodes: Number, table: Number, buckets: Number, free: Number, pool: Number, header: Number, at: Number, h: Number,
    start: Number, payload: Number, absent: Number,
) -> Number:  # fmt: skip
    """Return the node of a new event, which no input has yet; there is a free one."""
    node = hand_out(free, pool)
    table[at] = entry_of(h, node)
    nodes[node, START] = start
    nodes[node, PAYLOAD] = payload
    header[LAST_ORDER] += 1
    nodes[node, ORDER] = header[LAST_ORDER]
    for field in range(SHOWN, nodes.shape[1]):
        nodes[node, field] = absent
    link(nodes, buckets, header[SHIFT], node, start)
    header[N_LIVE] += 1
    return node


@inline
def forget_node(nodes: Number, table: Number, free: Number, header: Number, node: Number) -> None:
    """Take a node out of the table; it is in no bucket any more. Until the push is over it stands at the far end of the stack of
    free numbers."""
    shift = table_shift(table)
    mask = np.int64(len(table) - 1)
    at = hash_event(nodes[node, START], nodes[node, PAYLOAD]) >> shift
    while number_of(table[at]) != node:
        at = (at + 1) & mask
    delete_entry(table, at, shift)
    nodes[node, ORDER] = 0
    header[N_FREED] += 1
    free[len(free) - header[N_FREED]] = node
    header[N_LIVE] -= 1


@inline
def let_go(
    nodes: Number, table: Number, buckets: Number, free: Number, header: Number, node: Number, absent: Number
) -> None:  # fmt: skip
    """Let go of a node if nothing of it is out and no input has it."""
    held = False
    for field in range(SHOWN, nodes.shape[1]):
        held |= nodes[node, field] != absent
    if not held:
        unlink(nodes, buckets, header[SHIFT], node)
        forget_node(nodes, table, free, header, node)


@kernel("void(Tuple((int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1])), int64[::1], int64)")
def let_go_of_all(state: tuple[np.ndarray, ...], header: np.ndarray, absent: int) -> None:
    """Let go of all nodes of which nothing is out and that no input has."""
    nodes, table, buckets, free, pool = state
    for node in range(pool[0]):
        if nodes[node, ORDER] != 0:
            let_go(nodes, table, buckets, free, header, node, absent)


@inline
def write_output(
    out: Number, header: Number, inputs: Number, number: Number, nodes: Number, node: Number, kind: Number, old: Number,
    end: Number,
) -> None:  # fmt: skip
    """Give out an insert or adjust of a node's event; there is room."""
    n = header[N_OUT]
    out[OUT_KIND, n] = kind
    out[OUT_START, n] = nodes[node, START]
    out[OUT_PAYLOAD, n] = nodes[node, PAYLOAD]
    out[OUT_OLD, n] = old
    out[OUT_END, n] = end
    out[OUT_NODE, n] = node
    header[N_OUT] = n + 1
    inputs[number, OUT + kind] += 1
    if end == nodes[node, START]:
        inputs[number, REMOVED] += 1


@inline
def gives_out(header: Number, inputs: Number, number: Number) -> Number:
    """Whether an event that an input gives goes out now, by the policies that look at the input only."""
    policy = header[INSERTS]
    found = policy == FIRST
    if inputs[number, STATE] == JOINED:
        if policy == LEADER:
            found = number == header[LEAD]
        elif policy == HIGHEST:
            found = has_most(inputs, number, TOP)
        elif policy == UNFROZEN:
            found = has_most(inputs, number, N_UNFROZEN)
    return found


@inline
def follows(header: Number, number: Number) -> Number:
    """Whether changes of an input go out at once."""
    return header[ADJUSTS] == EVERY or (header[ADJUSTS] == FOLLOW and number == header[LEAD])


@inline
def be_listed(nodes: Number, node: Number, header: Number) -> None:
    """List a node, which is in no bucket, among those with something to give out."""
    nodes[node, NEXT] = header[PENDING]
    header[PENDING] = node
