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
from lineage.hash_table import hash_of, number_of
from lineage.kernels import Number, called, inline, kernel
from lmerge.cases.ahead import look_ahead
from lmerge.cases.due import DUE, NEXT, NO_NODE, PAYLOAD, START, link
from lmerge.cases.events import merge_events
from lmerge.cases.header import ADJUSTS, INSERTS, KEEP_ANY, PENDING, PHASE, POINT_OUT, PROBED, SHIFT, TARGET
from lmerge.cases.inputs import ENTERED, JOINED, POINT, STATE, TALLIED, count_tally, tallied
from lmerge.cases.merged import write_output
from lmerge.cases.node_merge import NodeMerge
from lmerge.cases.nodes import (
    FIELDS,
    SHOWN,
    STATE_ARRAYS,
    be_listed,
    count_unfrozen,
    expect,
    follows,
    forget_node,
    give_nothing,
    gives_out,
    has_room,
    let_go,
    skim_nothing,
    uncount_node,
)
from lmerge.cases.outcomes import KNOWN, NEW, SETTLED, UNKNOWN
from lmerge.cases.points import ENTERING
from lmerge.cases.policies import FIRST, LAZY
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch

#: No end.
ABSENT = -(2**63)


@inline
def is_ready(out: Number, header: Number, state: Number) -> Number:
    return has_room(out, header)


@inline
def show(
    out: Number, header: Number, inputs: Number, number: Number, nodes: Number, node: Number, kind: Number, end: Number
) -> None:  # fmt: skip
    """Give out an insert or adjust of an event; there is room."""
    start = nodes[node, START]
    old = nodes[node, SHOWN] if kind == ADJUST else 0
    write_output(out, header, inputs, number, kind, start, nodes[node, PAYLOAD], old, end, node)
    nodes[node, SHOWN] = end if end > start else ABSENT


@inline
def note_end(nodes: Number, node: Number, number: Number, kind: Number, end: Number) -> Number:
    """Note the end that an input tells of an event, without jumps: most elements do no more; returns the outcome."""
    had = nodes[node, FIELDS + number]
    has = np.int64(had != ABSENT)
    told = end if end > nodes[node, START] else ABSENT
    takes = (has == kind) & ((told != ABSENT) | (kind == ADJUST))
    nodes[node, FIELDS + number] = told if takes else had
    return KNOWN + has if kind == INSERT else UNKNOWN - has


@called
def skim_known(
    i: Number, ahead: Number, number: Number, batch: Number, outcomes: Number, taken: Number, nodes: Number, table: Number,
    bits: Number, inputs: Number, header: Number,
) -> Number:  # fmt: skip
    """Take elements up to a stable, or to one that makes a node or is due earlier than its node; returns how many are done, and
    the first without a hash."""
    kinds, starts, payloads, _, ends = batch
    n = len(kinds)
    field = np.uint64(FIELDS + number)
    mask = np.int64(len(table) - 1)
    tally = np.int64(0)
    n_probed = np.int64(0)
    point = header[POINT_OUT]
    begun = i
    while i < n:
        ahead = look_ahead(ahead, i, batch, nodes, FIELDS + number, table, bits, taken)
        at_i = np.uint64(i)
        kind = kinds[at_i]
        if kind == STABLE:
            break
        start = starts[at_i]
        end = ends[at_i]
        h = taken[at_i]
        at = h >> bits
        entry = table[np.uint64(at)]
        if hash_of(entry) != h:
            while entry != 0:
                if hash_of(entry) == h:
                    break
                at = (at + 1) & mask
                entry = table[np.uint64(at)]
                n_probed += 1
        node = np.uint64(number_of(entry))
        outcome = np.int64(SETTLED)
        if entry == 0:
            if start >= point:
                break
            taken[at_i] = NO_NODE
        else:
            if nodes[node, START] != start or nodes[node, PAYLOAD] != payloads[at_i]:
                break
            had = nodes[node, field]
            has = np.int64(had != ABSENT)
            told = end if end > start else ABSENT
            takes = (has == kind) & ((told != ABSENT) | (kind == ADJUST))
            if takes and start < point and point <= end < nodes[node, DUE]:
                break
            nodes[node, field] = told if takes else had
            outcome = KNOWN + has if kind == INSERT else UNKNOWN - has
            taken[at_i] = np.int64(node)
        outcomes[at_i] = outcome
        tally += tallied(kind, outcome)
        i += 1
        if (i - begun) & (TALLIED - 1) == 0:
            count_tally(inputs, number, tally)
            tally = np.int64(0)
    count_tally(inputs, number, tally)
    header[PROBED] += n_probed + i - begun
    return i, ahead


@inline
def give_first(
    out: Number, header: Number, inputs: Number, number: Number, nodes: Number, node: Number, end: Number
) -> None:  # fmt: skip
    """Give out an event when its node is made; there is room."""
    show(out, header, inputs, number, nodes, node, INSERT, end)


@inline
def take_lazily(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, kind: Number, old: Number,
    end: Number, made: Number,
) -> Number:  # fmt: skip
    """Take an element into its node where first inserts go out, and ends lazily; returns the outcome."""
    outcome = note_end(state[0], node, number, kind, end)
    return np.int64(NEW) if made else outcome


@called
def take_by_policy(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, kind: Number, old: Number,
    end: Number, made: Number,
) -> Number:  # fmt: skip
    """Take an element into its node, and give out what the policies say at once; returns the outcome."""
    nodes = state[0]
    had = nodes[node, FIELDS + number]
    outcome = note_end(nodes, node, number, kind, end)
    now = nodes[node, FIELDS + number]
    start = nodes[node, START]
    count_unfrozen(header, inputs, number, start, np.int64(now != ABSENT) - np.int64(had != ABSENT))
    shown = nodes[node, SHOWN]
    if (had == ABSENT) == (kind == INSERT) and (kind == ADJUST or now != ABSENT):
        if shown == ABSENT:
            # an event that is taken back and given again is not new, but goes out anew
            if had == ABSENT:
                if gives_out(header, inputs, number, nodes, node, ABSENT):
                    show(out, header, inputs, number, nodes, node, INSERT, now)
                else:
                    inputs[number, ENTERED] = min(inputs[number, ENTERED], start)
        elif follows(header, number):
            last = start if now == ABSENT else now
            if last != shown and last >= header[POINT_OUT]:
                show(out, header, inputs, number, nodes, node, ADJUST, last)
                if last == start:
                    expect(header, inputs, start)
        if now == ABSENT:
            let_go(state, header, node, ABSENT)
    return np.int64(NEW) if made else outcome


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
def settle(
    state: Number, inputs: Number, header: Number, node: Number, end: Number
) -> None:  # fmt: skip
    """Let go of a node whose decided end is passed, or put it back into the calendar: its start is passed."""
    nodes = state[0]
    if end < header[TARGET]:
        uncount_node(header, inputs, nodes, node, ABSENT)
        forget_node(state, header, node)
    else:
        due = nodes[node, SHOWN]
        for field in range(FIELDS, nodes.shape[1]):
            if header[TARGET] <= nodes[node, field] < due:
                due = nodes[node, field]
        link(nodes, DUE, state[2], header[SHIFT], node, due)


@inline
def decide(state: Number, number: Number, inputs: Number, header: Number, node: Number) -> None:
    """Decide about a node that is due: it has something to give out, is kept, or is let go of."""
    nodes = state[0]
    point = header[TARGET]
    end = decided_end(nodes, node, number, inputs, header)
    shown = nodes[node, SHOWN]
    changes = end > nodes[node, START]
    if shown != ABSENT:
        changes = end != shown and (end < point or shown < point)
    if changes:
        be_listed(nodes, node, header)
    else:
        settle(state, inputs, header, node, end)


@called
def give_listed(out: Number, header: Number, inputs: Number, number: Number, state: Number) -> Number:
    """Give out what the listed nodes have to, in order; returns whether there was room."""
    nodes = state[0]
    while header[PENDING] >= 0:
        if not has_room(out, header):
            return False
        node = header[PENDING]
        header[PENDING] = nodes[node, NEXT]
        if header[PHASE] == ENTERING:
            show(out, header, inputs, number, nodes, node, INSERT, nodes[node, FIELDS + number])
            link(nodes, DUE, state[2], header[SHIFT], node, nodes[node, DUE])
        else:
            end = decided_end(nodes, node, number, inputs, header)
            show(out, header, inputs, number, nodes, node, INSERT if nodes[node, SHOWN] == ABSENT else ADJUST, end)
            settle(state, inputs, header, node, end)
    return True


@kernel(
    "int64(int64, int64, UniTuple(int64[::1], 5), int64[:,::1], int8[::1], int64[::1], "
    f"Tuple(({STATE_ARRAYS})), int64[:,::1], int64[::1])"
)
def merge_r3(
    number: int, done: int, batch: tuple[np.ndarray, ...], out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray,
    state: tuple[np.ndarray, ...], inputs: np.ndarray, header: np.ndarray,
) -> int:  # fmt: skip
    """Merge the elements `done ..` of an input; returns how many are done, fewer where the header says what is lacking."""
    if header[INSERTS] == FIRST and header[ADJUSTS] == LAZY:
        n = merge_events(
            number, done, batch, out, outcomes, taken, state, inputs, header, ABSENT, False, skim_known, is_ready, give_first,
            take_lazily, decide, give_listed,
        )  # fmt: skip
    else:
        n = merge_events(
            number, done, batch, out, outcomes, taken, state, inputs, header, ABSENT, True, skim_nothing, is_ready, give_nothing,
            take_by_policy, decide, give_listed,
        )  # fmt: skip
    return int(n)


class R3Merge(NodeMerge):
    """A merge of the case R3."""

    __slots__ = ()

    case = "R3"
    absent = ABSENT

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        return merge_r3(number, done, tuple(batch), out, outcomes, taken, self._state, self._inputs.rows, self._header)

    def _counts(self, fields: np.ndarray) -> np.ndarray:
        counts: np.ndarray = fields != ABSENT
        return counts

    def _latest_due(self, live: np.ndarray) -> np.ndarray:
        nodes = self._nodes[live]
        passed = nodes[:, START] < self.stable
        assert (nodes[passed, SHOWN] >= self.stable).all(), "what is half frozen is out, and not over"
        ends = nodes[:, SHOWN:]
        first: np.ndarray = np.where(ends >= self.stable, ends, FOREVER).min(1)
        dues: np.ndarray = np.where(passed, first, nodes[:, START])
        return dues
