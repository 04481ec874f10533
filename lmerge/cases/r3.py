"""R3: inserts, adjusts and stables in any order, where payload and start are a key (the paper's §IV-D, with L5, L8 and L9).

    nodes[n]    the end of the event in the output, and in each input; ABSENT if it is not out, or the input does not have it

When the point moves from V to t, the input that moved it decides for every node whose start t passes, and for every node with
an end that t passes:

    the input has the event                        its end
    it does not, and the start was not yet passed  no event: it goes, or with missing="any" stays if another joined input has it
    it does not, and the start had been passed     nothing: the input has no say in it (L5), nor where its end is below V

The output changes if either end would be frozen while they differ. A node whose decided end is passed is let go of.

Invariant: a node whose start is below V is out, with an end at or after V.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import FOREVER
from lineage.hash_table import number_of, table_shift
from lineage.kernels import Number, called, inline, kernel
from lmerge.cases.due import DUE, NEXT, NO_NODE, ORDER, START, link, unlink
from lmerge.cases.inputs import JOINED, N_UNFROZEN, POINT, STATE, TALLY_MASK, TOP, count_stable, count_tally, tallied
from lmerge.cases.node_merge import NodeMerge
from lmerge.cases.nodes import (
    ADJUSTS,
    DECIDED,
    DENOMINATOR,
    FIELDS,
    INSERTS,
    KEEP_ANY,
    LOOKED,
    NUMERATOR,
    PENDING,
    PHASE,
    POINT_OUT,
    PROBED,
    SHIFT,
    SHOWN,
    TARGET,
    be_listed,
    find_event,
    follows,
    forget_node,
    gives_out,
    has_node,
    has_room,
    let_go,
    make_node,
    n_probes,
    write_output,
)
from lmerge.cases.outcomes import IGNORED, KNOWN, NEW, SETTLED, UNKNOWN
from lmerge.cases.pending import sort_pending
from lmerge.cases.points import ENTERING, take_stable
from lmerge.cases.policies import FIRST, FRACTION, LAZY
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch, hash_event

#: No end.
ABSENT = -(2**63)


@inline
def show(
    out: Number, header: Number, inputs: Number, number: Number, nodes: Number, node: Number, kind: Number, end: Number
) -> None:  # fmt: skip
    """Give out an insert or adjust of an event; there is room."""
    write_output(out, header, inputs, number, nodes, node, kind, nodes[node, SHOWN] if kind == ADJUST else 0, end)
    nodes[node, SHOWN] = end if end > nodes[node, START] else ABSENT


@called
def respond(out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, had: Number) -> None:
    """Give out, under the policies that do, what an input has just told about an event; `had` is the end it told before."""
    nodes, table, buckets, free, _ = state
    start = nodes[node, START]
    now = nodes[node, FIELDS + number]
    if (had == ABSENT) != (now == ABSENT) and start >= inputs[number, POINT]:
        inputs[number, N_UNFROZEN] += 1 if had == ABSENT else -1
    shown = nodes[node, SHOWN]
    if shown == ABSENT:
        wanted = gives_out(header, inputs, number)
        if header[INSERTS] == FRACTION and inputs[number, STATE] == JOINED:
            n_having = np.int64(0)
            n_joined = np.int64(0)
            for other in range(len(inputs)):
                if inputs[other, STATE] == JOINED:
                    n_joined += 1
                    n_having += np.int64(nodes[node, FIELDS + other] != ABSENT)
            wanted = n_having * header[DENOMINATOR] >= n_joined * header[NUMERATOR]
        # an event that is taken back and given again is not new, but goes out anew
        if had == ABSENT and now != ABSENT and wanted:
            show(out, header, inputs, number, nodes, node, INSERT, now)
    elif follows(header, number):
        end = start if now == ABSENT else now
        if end != shown and end >= header[POINT_OUT]:
            show(out, header, inputs, number, nodes, node, ADJUST, end)
    if now == ABSENT:
        let_go(nodes, table, buckets, free, header, node, ABSENT)


@called
def end_of_another(nodes: Number, node: Number, inputs: Number) -> Number:
    """Return the end that the furthest joined input that has an event tells, the largest end of equally far ones."""
    end = np.int64(ABSENT)
    best = np.int64(ABSENT)
    for other in range(len(inputs)):
        told = nodes[node, FIELDS + other]
        if inputs[other, STATE] == JOINED and told != ABSENT:
            if inputs[other, POINT] > best or (inputs[other, POINT] == best and told > end):
                best = inputs[other, POINT]
                end = told
    return end


@inline
def decided_end(nodes: Number, node: Number, number: Number, inputs: Number, header: Number) -> Number:
    """Return the end that an input decides for an event, its start if there is no such event."""
    end = nodes[node, FIELDS + number]
    if end == ABSENT and header[KEEP_ANY] != 0:
        end = end_of_another(nodes, node, inputs)
    if nodes[node, START] < header[POINT_OUT]:
        if end < header[POINT_OUT]:
            end = nodes[node, SHOWN]
    elif end == ABSENT:
        end = nodes[node, START]
    return end


@inline
def keep_node(nodes: Number, node: Number, buckets: Number, header: Number) -> None:
    """Put a node whose start is passed back into the calendar."""
    due = nodes[node, SHOWN]
    for field in range(FIELDS, nodes.shape[1]):
        if header[TARGET] <= nodes[node, field] < due:
            due = nodes[node, field]
    link(nodes, buckets, header[SHIFT], node, due)


@called
def decide(state: Number, number: Number, inputs: Number, header: Number, node: Number) -> None:
    """Decide about a list of nodes that are due: each has something to give out, is kept, or is let go of."""
    nodes, table, buckets, free, _ = state
    point = header[TARGET]
    while node >= 0:
        after = nodes[node, NEXT]
        header[DECIDED] += 1
        end = decided_end(nodes, node, number, inputs, header)
        shown = nodes[node, SHOWN]
        changes = end > nodes[node, START]
        if shown != ABSENT:
            changes = end != shown and (end < point or shown < point)
        if changes:
            be_listed(nodes, node, header)
        elif end < point:
            forget_node(nodes, table, free, header, node)
        else:
            keep_node(nodes, node, buckets, header)
        node = after
    header[PENDING] = sort_pending(nodes, header[PENDING])


@called
def list_half_frozen(state: Number, number: Number, header: Number, time: Number) -> None:
    """List the events of an input that its point has passed and the merge's has not, and that are not out."""
    nodes, _, buckets, _, pool = state
    high = pool[0]
    header[LOOKED] += high
    point = max(header[TARGET], header[POINT_OUT])
    for node in range(high):
        if nodes[node, ORDER] != 0 and nodes[node, SHOWN] == ABSENT and nodes[node, FIELDS + number] != ABSENT:
            if point <= nodes[node, START] < time:
                unlink(nodes, buckets, header[SHIFT], node)
                be_listed(nodes, node, header)
    header[PENDING] = sort_pending(nodes, header[PENDING])


@called
def give_listed(out: Number, header: Number, inputs: Number, number: Number, state: Number) -> Number:
    """Give out what the listed nodes have to, in order; returns whether there was room."""
    nodes, table, buckets, free, _ = state
    while header[PENDING] >= 0:
        if not has_room(out, header):
            return False
        node = header[PENDING]
        header[PENDING] = nodes[node, NEXT]
        if header[PHASE] == ENTERING:
            show(out, header, inputs, number, nodes, node, INSERT, nodes[node, FIELDS + number])
            link(nodes, buckets, header[SHIFT], node, nodes[node, DUE])
        else:
            end = decided_end(nodes, node, number, inputs, header)
            show(out, header, inputs, number, nodes, node, INSERT if nodes[node, SHOWN] == ABSENT else ADJUST, end)
            if end < header[TARGET]:
                forget_node(nodes, table, free, header, node)
            else:
                keep_node(nodes, node, buckets, header)
    return True


@called
def recount_unfrozen(state: Number, inputs: Number) -> None:
    """Count for each input the events it has that are not below its own point."""
    nodes, _, _, _, pool = state
    for number in range(len(inputs)):
        inputs[number, N_UNFROZEN] = 0
    for node in range(pool[0]):
        if nodes[node, ORDER] != 0:
            for number in range(len(inputs)):
                if nodes[node, FIELDS + number] != ABSENT and nodes[node, START] >= inputs[number, POINT]:
                    inputs[number, N_UNFROZEN] += 1


@called
def take_events(
    number: Number, i: Number, batch: Number, out: Number, outcomes: Number, taken: Number, state: Number, inputs: Number,
    header: Number,
) -> Number:  # fmt: skip
    """Merge the elements from the i-th to the next stable; returns how many are done; the header may say what is lacking."""
    kinds, starts, payloads, _, ends = batch
    nodes, table, buckets, free, pool = state
    bits = table_shift(table)
    plain = header[INSERTS] == FIRST and header[ADJUSTS] == LAZY
    field = FIELDS + number
    point = header[POINT_OUT]
    probed = np.int64(0)
    tally = np.int64(0)
    while i < len(kinds) and kinds[i] != STABLE:
        kind = kinds[i]
        start = starts[i]
        end = ends[i]
        if not plain:
            if not has_room(out, header):
                break
            if kind == INSERT:
                inputs[number, TOP] = max(inputs[number, TOP], start)
        h = hash_event(start, payloads[i])
        at = find_event(nodes, table, bits, h, start, payloads[i])
        node = number_of(table[at])
        if node >= 0:
            # what most elements of most inputs are: decided without jumps
            had = nodes[node, field]
            has = np.int64(had != ABSENT)
            outcome = KNOWN + has if kind == INSERT else UNKNOWN - has
            told = end if end > start else ABSENT
            takes = (has == kind) & ((told != ABSENT) | (kind == ADJUST))
            nodes[node, field] = told if takes else had
            if takes and start < point and point <= end < nodes[node, DUE]:
                unlink(nodes, buckets, header[SHIFT], node)
                link(nodes, buckets, header[SHIFT], node, end)
            if takes and not plain:
                respond(out, header, inputs, number, state, node, had)
        elif start < point:
            outcome = np.int64(SETTLED)
        elif kind == ADJUST:
            outcome = np.int64(UNKNOWN)
        elif end <= start:
            outcome = np.int64(IGNORED)
        else:
            if not has_room(out, header) or not has_node(pool, header):
                break
            node = make_node(nodes, table, buckets, free, pool, header, at, h, start, payloads[i], ABSENT)
            nodes[node, field] = end
            if plain:
                show(out, header, inputs, number, nodes, node, INSERT, end)
            else:
                respond(out, header, inputs, number, state, node, ABSENT)
            outcome = np.int64(NEW)
        probed += n_probes(table, bits, h, at)
        taken[i] = node
        outcomes[i] = outcome
        tally += tallied(kind, outcome)
        i += 1
        if i & TALLY_MASK == 0:
            tally = count_tally(inputs, number, tally)
    count_tally(inputs, number, tally)
    header[PROBED] += probed
    return i


@kernel(
    "int64(int64, int64, UniTuple(int64[::1], 5), int64[:,::1], int8[::1], int64[::1], "
    "Tuple((int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1])), int64[:,::1], int64[::1])"
)
def merge_r3(
    number: int, done: int, batch: tuple[np.ndarray, ...], out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray,
    state: tuple[np.ndarray, ...], inputs: np.ndarray, header: np.ndarray,
) -> int:  # fmt: skip
    """Merge the elements `done ..` of an input; returns how many are done, fewer where the header says what is lacking."""
    kinds = batch[0]
    ends = batch[4]
    i = done
    while True:
        i = take_events(number, i, batch, out, outcomes, taken, state, inputs, header)
        if i == len(kinds) or kinds[i] != STABLE:
            return int(i)
        outcome = take_stable(
            out, header, inputs, number, state, ends[i], decide, list_half_frozen, give_listed, recount_unfrozen
        )  # fmt: skip
        if outcome < 0:
            return int(i)
        taken[i] = NO_NODE
        outcomes[i] = outcome
        count_stable(inputs, number, outcome)
        i += 1


class R3Merge(NodeMerge):
    """A merge of the case R3."""

    __slots__ = ()

    case = "R3"
    absent = ABSENT

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        return merge_r3(number, done, tuple(batch), out, outcomes, taken, self._state, self._inputs.rows, self._header)

    def _latest_due(self, live: np.ndarray) -> np.ndarray:
        nodes = self._nodes[live]
        passed = nodes[:, START] < self.stable
        assert (nodes[passed, SHOWN] >= self.stable).all(), "what is half frozen is out, and not over"
        ends = nodes[:, SHOWN:]
        first: np.ndarray = np.where(ends >= self.stable, ends, FOREVER).min(1)
        dues: np.ndarray = np.where(passed, first, nodes[:, START])
        return dues
