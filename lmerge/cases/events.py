"""The loop of R3 and R4 over the elements of a push.

Elements between two stables are taken in blocks: first the nodes of a block are looked up, all searches at once, then its elements
are taken one after the other. Until the push is over no number of a node is used again, so what was looked up is the element's
node, or is no node any more, or is missing because an element of the same block made it.
"""

from __future__ import annotations

import numpy as np

from lineage.hash_table import number_of, table_shift
from lineage.kernels import Number, inline
from lmerge.cases.due import DUE, NO_NODE, ORDER, PAYLOAD, START, link, unlink
from lmerge.cases.header import POINT_OUT, SHIFT
from lmerge.cases.inputs import TOP, count_stable, count_tally, tallied
from lmerge.cases.nodes import FIELDS, find_block, find_event, has_node, make_node
from lmerge.cases.outcomes import CHANGED, IGNORED, KNOWN, SETTLED, UNKNOWN
from lmerge.cases.points import take_stable
from lmerge.streams.elements import ADJUST, INSERT, STABLE, hash_event


@inline
def merge_events(
    number: Number, done: Number, batch: Number, out: Number, outcomes: Number, taken: Number, state: Number, inputs: Number,
    header: Number, absent: Number, always: Number, is_ready: Number, take: Number, decide: Number, give: Number,
) -> Number:  # fmt: skip
    """Merge the elements `done ..` of an input; returns how many are done, fewer where the header says what is lacking.

    `take` takes an element into its node and returns the outcome. Before a node is made, or with `always` before every element,
    `is_ready` says whether there is room for what that may give out. The others are those of `take_stable`.
    """
    kinds, starts, payloads, olds, ends = batch
    nodes = state[0]
    table = state[1]
    bits = table_shift(table)
    i = done
    while True:
        stop = find_block(i, batch, nodes, table, bits, FIELDS + number, taken, header)
        point = header[POINT_OUT]
        tally = np.int64(0)
        while i < stop:
            kind = kinds[i]
            start = starts[i]
            end = ends[i]
            if always:
                if not is_ready(out, header, state):
                    break
                if kind == INSERT:
                    inputs[number, TOP] = max(inputs[number, TOP], start)
            node = taken[i]
            made = False
            outcome = np.int64(SETTLED)
            if node < 0 or nodes[node, START] != start or nodes[node, PAYLOAD] != payloads[i] or nodes[node, ORDER] == 0:
                h = hash_event(start, payloads[i])
                at = find_event(nodes, table, bits, h, start, payloads[i])
                node = number_of(table[at])
                if node < 0 and start >= point:
                    if kind == ADJUST:
                        outcome = np.int64(UNKNOWN)
                    elif end <= start:
                        outcome = np.int64(IGNORED)
                    else:
                        if not is_ready(out, header, state) or not has_node(state[4], header):
                            break
                        node = make_node(state, header, at, h, start, payloads[i], absent)
                        made = True
            if node >= 0:
                outcome = take(out, header, inputs, number, state, node, kind, olds[i], end, made)
                if start < point <= end < nodes[node, DUE] and (outcome == KNOWN or outcome == CHANGED):
                    unlink(nodes, DUE, state[2], header[SHIFT], node)
                    link(nodes, DUE, state[2], header[SHIFT], node, end)
            taken[i] = node
            outcomes[i] = outcome
            tally += tallied(kind, outcome)
            i += 1
        count_tally(inputs, number, tally)
        if i < stop or i == len(kinds):
            break
        if kinds[i] == STABLE:
            outcome = take_stable(out, header, inputs, number, state, ends[i], absent, decide, give)
            if outcome < 0:
                break
            taken[i] = NO_NODE
            outcomes[i] = outcome
            count_stable(inputs, number, outcome)
            i += 1
    return i
