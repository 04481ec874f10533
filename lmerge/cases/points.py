"""How a stable point is taken, in phases: R3 and R4 differ in what they decide about a node.

    freezing    nodes that are due before the new point give out what it would freeze wrongly
    entering    under "half-frozen" and a lag, events that the input's point has passed and the merge's has not go out
    ended       the point moves, and inputs that waited for it join

A phase may stop for lack of room. Nodes with something to give out then stay listed, and the kernel goes on with them when it
is called again.
"""

from __future__ import annotations

from lineage.elements import FOREVER
from lineage.kernels import Number, called, inline
from lmerge.cases.due import DUE, NEXT, NO_NODE, ORDER, START, link, n_buckets_of, unlink
from lmerge.cases.header import (
    DECIDED,
    INSERTS,
    LAG,
    LEAD,
    LOOKED,
    MOVED_BY,
    N_MOVES,
    PASSED,
    PENDING,
    PHASE,
    POINT_OUT,
    SHIFT,
    TARGET,
)
from lmerge.cases.inputs import ENTERED, JOINED, POINT, STATE, join_waiting
from lmerge.cases.merged import write_output
from lmerge.cases.nodes import FIELDS, SHOWN, be_listed, has_room, n_in, uncount_passed
from lmerge.cases.outcomes import IGNORED, MOVED
from lmerge.cases.pending import sort_pending
from lmerge.cases.policies import HALF_FROZEN, UNFROZEN
from lmerge.streams.elements import STABLE

IDLE, FREEZING, ENTERING, ENDED = range(4)


@inline
def begin_stable(inputs: Number, number: Number, header: Number, time: Number) -> None:
    """Let an input's point move; the header says where the merge's goes and in which phase that is, idle if nothing happens."""
    time = min(time, FOREVER)
    inputs[number, POINT] = max(inputs[number, POINT], time)
    if inputs[number, STATE] == JOINED:
        header[TARGET] = time - header[LAG] if time < FOREVER else time
        if header[TARGET] > header[POINT_OUT]:
            header[PHASE] = FREEZING
        elif header[INSERTS] == HALF_FROZEN and header[LAG] > 0:
            header[PHASE] = ENTERING


@inline
def freeze(state: Number, number: Number, inputs: Number, header: Number, decide: Number) -> None:
    """Decide about the nodes that are due before the new point; those with something to give out are listed in order.

    They are found by the calendar, or one by one where that is less to look at.
    """
    nodes = state[0]
    buckets = state[2]
    high = state[4][0]
    point = header[TARGET]
    shift = header[SHIFT]
    first = header[POINT_OUT] >> shift
    n_buckets = n_buckets_of(buckets, shift, header[POINT_OUT], point)
    n_looked = 0
    n_decided = 0
    if n_buckets > high:
        n_looked = high
        for node in range(high):
            if nodes[node, ORDER] != 0 and nodes[node, DUE] < point:
                unlink(nodes, DUE, buckets, shift, node)
                n_decided += 1
                decide(state, number, inputs, header, node)
    else:
        header[PASSED] += n_buckets
        for step in range(n_buckets):
            bucket = (first + step) & (len(buckets) - 1)
            node = buckets[bucket]
            buckets[bucket] = NO_NODE
            while node >= 0:
                after = nodes[node, NEXT]
                due = nodes[node, DUE]
                n_looked += 1
                if due >= point:
                    link(nodes, DUE, buckets, shift, node, due)
                else:
                    n_decided += 1
                    decide(state, number, inputs, header, node)
                node = after
    header[LOOKED] += n_looked
    header[DECIDED] += n_decided
    header[PENDING] = sort_pending(nodes, header[PENDING])


@called
def list_entering(state: Number, number: Number, inputs: Number, header: Number, time: Number, absent: Number) -> None:
    """List the nodes that an input's point has passed and the merge's has not, and of which it has more than is out.

    Where the point has not passed a start, that is when the node is due.
    """
    nodes = state[0]
    buckets = state[2]
    high = state[4][0]
    shift = header[SHIFT]
    time = min(time, FOREVER)
    low = max(header[TARGET], header[POINT_OUT], inputs[number, ENTERED])
    if low < time:
        n_buckets = n_buckets_of(buckets, shift, low, time)
        if n_buckets > high:
            header[LOOKED] += high
            for node in range(high):
                if nodes[node, ORDER] != 0 and low <= nodes[node, START] < time:
                    header[DECIDED] += 1
                    if n_in(nodes[node, FIELDS + number], absent) > n_in(nodes[node, SHOWN], absent):
                        unlink(nodes, DUE, buckets, shift, node)
                        be_listed(nodes, node, header)
        else:
            header[PASSED] += n_buckets
            for step in range(n_buckets):
                node = buckets[((low >> shift) + step) & (len(buckets) - 1)]
                while node >= 0:
                    after = nodes[node, NEXT]
                    header[LOOKED] += 1
                    if low <= nodes[node, START] < time:
                        header[DECIDED] += 1
                        if n_in(nodes[node, FIELDS + number], absent) > n_in(nodes[node, SHOWN], absent):
                            unlink(nodes, DUE, buckets, shift, node)
                            be_listed(nodes, node, header)
                    node = after
        inputs[number, ENTERED] = time
        header[PENDING] = sort_pending(nodes, header[PENDING])


@inline
def end_stable(out: Number, header: Number, inputs: Number, number: Number) -> None:
    """Move the merge's point, give out the stable, and let those join who waited for it; there is room."""
    write_output(out, header, inputs, number, STABLE, 0, 0, 0, header[TARGET], NO_NODE)
    if header[N_MOVES] > 0 and header[TARGET] < FOREVER:
        header[MOVED_BY] += header[TARGET] - header[POINT_OUT]
    header[N_MOVES] += 1
    header[POINT_OUT] = header[TARGET]
    header[LEAD] = number
    header[PHASE] = IDLE
    join_waiting(inputs, header[POINT_OUT])


@inline
def take_stable(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, time: Number, absent: Number, decide: Number,
    give: Number,
) -> Number:  # fmt: skip
    """Take a stable point, or go on with it where something was lacking; returns the outcome, or -1 if something is lacking.

    `decide` lists a due node if it has something to give out, keeps it or lets go of it; `give` has the listed ones give it, and
    says whether it came to the end.
    """
    outcome = IGNORED
    if header[PHASE] == IDLE:
        before = inputs[number, POINT]
        begin_stable(inputs, number, header, time)
        if header[INSERTS] == UNFROZEN and inputs[number, POINT] > before:
            uncount_passed(state, header, inputs, number, before, inputs[number, POINT], absent)
        if header[PHASE] == FREEZING:
            freeze(state, number, inputs, header, decide)
        elif header[PHASE] == ENTERING:
            list_entering(state, number, inputs, header, time, absent)
    if header[PHASE] == FREEZING:
        if not give(out, header, inputs, number, state):
            return -1
        header[PHASE] = ENDED
        if header[INSERTS] == HALF_FROZEN and header[LAG] > 0:
            header[PHASE] = ENTERING
            list_entering(state, number, inputs, header, time, absent)
    if header[PHASE] == ENTERING:
        if not give(out, header, inputs, number, state):
            return -1
        header[PHASE] = ENDED if header[TARGET] > header[POINT_OUT] else IDLE
    if header[PHASE] == ENDED:
        if not has_room(out, header):
            return -1
        end_stable(out, header, inputs, number)
        outcome = MOVED
    return outcome
