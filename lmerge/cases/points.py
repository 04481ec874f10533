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
from lmerge.cases.due import DUE, NEXT, NO_NODE, ORDER, link, unlink
from lmerge.cases.inputs import JOINED, OUT, POINT, STATE, join_waiting
from lmerge.cases.merged import OUT_END, OUT_KIND, OUT_NODE
from lmerge.cases.nodes import (
    INSERTS,
    LAG,
    LEAD,
    LOOKED,
    MOVED_BY,
    N_MOVES,
    N_OUT,
    PASSED,
    PHASE,
    POINT_OUT,
    SHIFT,
    TARGET,
    has_room,
)
from lmerge.cases.outcomes import IGNORED, MOVED
from lmerge.cases.policies import HALF_FROZEN, UNFROZEN
from lmerge.streams.elements import STABLE

IDLE, FREEZING, ENTERING, ENDED = range(4)


@called
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


@called
def take_due(state: Number, header: Number) -> Number:
    """Take the nodes that are due before the new point out of the calendar; returns the head of a list of them.

    They are found by the calendar, or one by one where that is less to look at.
    """
    nodes = state[0]
    buckets = state[2]
    high = state[4][0]
    point = header[TARGET]
    shift = header[SHIFT]
    first = header[POINT_OUT] >> shift
    n_buckets = min(((point - 1) >> shift) - first, len(buckets) - 1) + 1
    head = NO_NODE
    if n_buckets > high:
        header[LOOKED] += high
        for node in range(high):
            if nodes[node, ORDER] != 0 and nodes[node, DUE] < point:
                unlink(nodes, buckets, shift, node)
                nodes[node, NEXT] = head
                head = node
    else:
        header[PASSED] += n_buckets
        for step in range(n_buckets):
            bucket = (first + step) & (len(buckets) - 1)
            node = buckets[bucket]
            buckets[bucket] = NO_NODE
            while node >= 0:
                after = nodes[node, NEXT]
                due = nodes[node, DUE]
                header[LOOKED] += 1
                if due >= point:
                    link(nodes, buckets, shift, node, due)
                else:
                    nodes[node, NEXT] = head
                    head = node
                node = after
    return head


@called
def end_stable(out: Number, header: Number, inputs: Number, number: Number) -> None:
    """Move the merge's point, give out the stable, and let those join who waited for it; there is room."""
    n = header[N_OUT]
    for row in range(len(out)):
        out[row, n] = 0
    out[OUT_KIND, n] = STABLE
    out[OUT_END, n] = header[TARGET]
    out[OUT_NODE, n] = NO_NODE
    header[N_OUT] = n + 1
    inputs[number, OUT + STABLE] += 1
    if header[N_MOVES] > 0 and header[TARGET] < FOREVER:
        header[MOVED_BY] += header[TARGET] - header[POINT_OUT]
    header[N_MOVES] += 1
    header[POINT_OUT] = header[TARGET]
    header[LEAD] = number
    join_waiting(inputs, header[POINT_OUT])


@inline
def take_stable(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, time: Number, decide: Number, enter: Number,
    give: Number, recount: Number,
) -> Number:  # fmt: skip
    """Take a stable point, or go on with it where something was lacking; returns the outcome, or -1 if something is lacking.

    `decide` lists those of a list of due nodes that have something to give out, `enter` those that the input's point lets out;
    `give` has them give it, and says whether it came to the end; `recount` counts what is unfrozen.
    """
    outcome = IGNORED
    if header[PHASE] == IDLE:
        begin_stable(inputs, number, header, time)
        if header[PHASE] == FREEZING:
            decide(state, number, inputs, header, take_due(state, header))
        elif header[PHASE] == ENTERING:
            enter(state, number, header, time)
    if header[PHASE] == FREEZING:
        if not give(out, header, inputs, number, state):
            return -1
        header[PHASE] = ENDED
        if header[INSERTS] == HALF_FROZEN and header[LAG] > 0:
            header[PHASE] = ENTERING
            enter(state, number, header, time)
    if header[PHASE] == ENTERING:
        if not give(out, header, inputs, number, state):
            return -1
        header[PHASE] = ENDED if header[TARGET] > header[POINT_OUT] else IDLE
    if header[PHASE] == ENDED:
        if not has_room(out, header):
            return -1
        end_stable(out, header, inputs, number)
        header[PHASE] = IDLE
        outcome = MOVED
    if header[INSERTS] == UNFROZEN:
        recount(state, inputs)
    return outcome
