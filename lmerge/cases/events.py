"""The loop of R3 and R4 over the elements of a push.

Elements between two stables are taken in blocks, of as many as a tally counts. What most elements of most inputs are, an event
that another input gave, is skimmed in a loop of its own where nothing is given out for it: in a loop with all cases in it each
takes half as long again.
"""

from __future__ import annotations

import numpy as np

from lineage.hash_table import number_of, table_shift
from lineage.kernels import Number, inline
from lmerge.cases.ahead import look_ahead
from lmerge.cases.due import DUE, NO_NODE, PAYLOAD, START, link, unlink
from lmerge.cases.header import INSERTS, POINT_OUT, PROBED, SHIFT
from lmerge.cases.inputs import TALLIED, TOP, count_stable, count_tally, tallied
from lmerge.cases.nodes import FIELDS, find_event, find_hash, has_node, make_node, n_probes
from lmerge.cases.outcomes import CHANGED, IGNORED, KNOWN, SETTLED, UNKNOWN
from lmerge.cases.points import take_stable
from lmerge.cases.policies import HIGHEST
from lmerge.streams.elements import ADJUST, INSERT, STABLE

#: A run of so many skimmed elements pays for the next look.
_FEW = 4


# 17 arguments: seven say what R3 and R4 do differently, and functions cannot stand in a tuple
@inline
def merge_events(
    number: Number, done: Number, batch: Number, out: Number, outcomes: Number, taken: Number, state: Number, inputs: Number,
    header: Number, absent: Number, always: Number, skim: Number, is_ready: Number, begin: Number, take: Number, decide: Number,
    give: Number,
) -> Number:  # fmt: skip
    """Merge the elements `done ..` of an input; returns how many are done, fewer where the header says what is lacking.

    `take` takes an element into its node and returns the outcome. Before a node is made, or with `always` before every element,
    `is_ready` says whether there is room for what that may give out. Without `always`, `skim` takes a run of elements that give
    out nothing, and `begin` gives out the event of a new node. The others are those of `take_stable`.
    """
    kinds, starts, payloads, olds, ends = batch
    nodes = state[0]
    table = state[1]
    bits = table_shift(table)
    tops = header[INSERTS] == HIGHEST
    i = done
    ahead = done
    goes_on = not always
    while True:
        if goes_on:
            begun = i
            i, ahead = skim(i, ahead, number, batch, outcomes, taken, nodes, table, bits, inputs, header)
            goes_on = i - begun >= _FEW
        # a few elements, and after a run of skimmed ones only the one at which it ended
        stop = min(i + (1 if goes_on else TALLIED), len(kinds))
        point = header[POINT_OUT]
        tally = np.int64(0)
        n_probed = np.int64(0)
        while i < stop and kinds[np.uint64(i)] != STABLE:
            ahead = look_ahead(ahead, i, batch, nodes, FIELDS + number, table, bits, taken)
            at_i = np.uint64(i)
            kind = kinds[at_i]
            start = starts[at_i]
            payload = payloads[at_i]
            end = ends[at_i]
            if always:
                if not is_ready(out, header, state):
                    break
                if tops and kind == INSERT:
                    inputs[number, TOP] = max(inputs[number, TOP], start)
            h = taken[at_i]
            at = find_hash(table, bits, h)
            node = number_of(table[np.uint64(at)])
            if node >= 0:
                of = np.uint64(node)
                if nodes[of, START] != start or nodes[of, PAYLOAD] != payload:
                    at = find_event(nodes, table, at, start, payload)
                    node = number_of(table[at])
            n_probed += n_probes(table, bits, h, at)
            made = False
            outcome = np.int64(SETTLED)
            if node < 0 and start >= point:
                if kind == ADJUST:
                    outcome = np.int64(UNKNOWN)
                elif end <= start:
                    outcome = np.int64(IGNORED)
                else:
                    if not is_ready(out, header, state) or not has_node(state[4], header):
                        break
                    node = make_node(state, header, at, h, start, payload, absent)
                    begin(out, header, inputs, number, nodes, node, end)
                    made = True
            if node >= 0:
                outcome = take(out, header, inputs, number, state, node, kind, olds[at_i], end, made)
                if start < point <= end < nodes[node, DUE] and (outcome == KNOWN or outcome == CHANGED):
                    unlink(nodes, DUE, state[2], header[SHIFT], node)
                    link(nodes, DUE, state[2], header[SHIFT], node, end)
            taken[at_i] = node
            outcomes[at_i] = outcome
            tally += tallied(kind, outcome)
            i += 1
        count_tally(inputs, number, tally)
        header[PROBED] += n_probed
        if i == len(kinds) or (i < stop and kinds[i] != STABLE):
            break
        if kinds[i] == STABLE:
            outcome = take_stable(out, header, inputs, number, state, ends[i], absent, decide, give)
            if outcome < 0:
                break
            taken[i] = NO_NODE
            outcomes[i] = outcome
            count_stable(inputs, number, outcome)
            i += 1
        goes_on |= not always and i & (TALLIED - 1) == 0
    return i
