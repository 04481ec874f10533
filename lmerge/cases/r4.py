"""R4: inserts, adjusts and stables in any order, of bags: several events may have one payload and start (the paper's §IV-E).

    nodes[n]    copies that are out, and copies of each input (`lmerge/cases/copies.py`)

When the point moves from V to t, the input that moved it decides for every node whose start t passes, and for every node with
an end that t passes. The ends that it has and that are not out, and those out that it has not, are paired in order:

    the start was not yet passed    where one side has more, its smallest ends are inserted, or removed
    the start had been passed       only ends from V on count; what has no partner has no say (as L5)
    a pair                          is an adjust if one of its ends is passed

A removal only takes away (L3); an input may have nothing of a node (L4). A node none of whose ends that are out is left is let
go of.

Invariant: a node whose start is below V has a copy out with an end at or after V.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import BEGINNING, FOREVER
from lineage.errors import EddyError
from lineage.growth import fitted_rows
from lineage.kernels import Number, called, inline, kernel
from lineage.numbers import Numbers
from lmerge.cases.copies import (
    AFTER,
    COUNT,
    END,
    add_copy,
    add_first_copy,
    compare_copies,
    drop_copy,
    first_end,
    first_entry,
    free_copies,
    has_copy,
    has_entries,
    is_only_copy,
    is_same_copy,
    n_copies,
)
from lmerge.cases.due import DUE, NEXT, ORDER, PAYLOAD, START, link
from lmerge.cases.events import merge_events
from lmerge.cases.header import ADJUSTS, ENTRIES, INSERTS, PENDING, PHASE, POINT_OUT, SHIFT, TARGET
from lmerge.cases.inputs import ENTERED
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
from lmerge.cases.outcomes import CHANGED, IGNORED, KNOWN, NEW, UNKNOWN
from lmerge.cases.points import ENTERING
from lmerge.cases.policies import FIRST, LAZY, Policies
from lmerge.streams.elements import ADJUST, INSERT, ElementBatch

_STATE = f"Tuple(({STATE_ARRAYS}, int64[:,::1], int64[::1], int64[::1]))"


@inline
def is_ready(out: Number, header: Number, state: Number) -> Number:
    return has_room(out, header) and has_entries(state[9], header)


@inline
def floor_of(nodes: Number, node: Number, header: Number) -> Number:
    """Return the first end that still counts: the point, once it has passed the start."""
    return header[POINT_OUT] if nodes[node, START] < header[POINT_OUT] else BEGINNING


@inline
def show_copy(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, kind: Number, old: Number,
    end: Number,
) -> None:  # fmt: skip
    """Give out one copy more, another end of one, or that it is gone; there is room and an entry."""
    nodes = state[0]
    start = nodes[node, START]
    write_output(out, header, inputs, number, kind, start, nodes[node, PAYLOAD], old, end, node)
    if kind == INSERT and nodes[node, SHOWN] == 0:
        add_first_copy(nodes, node, SHOWN, state[7], state[8], state[9], end)
    elif kind == ADJUST and end > start and is_only_copy(nodes[node, SHOWN], state[7], old):
        state[7][first_entry(nodes[node, SHOWN]), END] = end
    else:
        if kind == ADJUST:
            drop_copy(nodes, node, SHOWN, state[7], state[8], state[9], old)
        if end > start:
            add_copy(nodes, node, SHOWN, state[7], state[8], state[9], end)
        else:
            expect(header, inputs, start)


@called
def offer_copy(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, end: Number
) -> Number:  # fmt: skip
    """Give out a copy that an input has and the output has not, if the policy says so; returns the outcome of its insert."""
    nodes = state[0]
    has = n_copies(nodes[node, FIELDS + number])
    outcome = np.int64(NEW)
    for other in range(len(inputs)):
        if other != number and n_copies(nodes[node, FIELDS + other]) >= has:
            outcome = np.int64(KNOWN)
    if gives_out(header, inputs, number, nodes, node, 0):
        show_copy(out, header, inputs, number, state, node, INSERT, 0, end)
    else:
        inputs[number, ENTERED] = min(inputs[number, ENTERED], nodes[node, START])
    return outcome


@called
def change_copy(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, old: Number, end: Number
) -> Number:  # fmt: skip
    """Take an adjust into its node; returns the outcome."""
    nodes = state[0]
    entries = state[7]
    field = FIELDS + number
    start = nodes[node, START]
    if not drop_copy(nodes, node, field, entries, state[8], state[9], old):
        return np.int64(UNKNOWN)
    if end > start:
        add_copy(nodes, node, field, entries, state[8], state[9], end)
    else:
        count_unfrozen(header, inputs, number, start, -1)
    if follows(header, number) and header[POINT_OUT] <= min(old, end) and has_copy(nodes[node, SHOWN], entries, old):
        show_copy(out, header, inputs, number, state, node, ADJUST, old, end)
    if end <= start:
        let_go(state, header, node, 0)
    return np.int64(CHANGED)


@inline
def take_copy(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, kind: Number, old: Number,
    end: Number, made: Number,
) -> Number:  # fmt: skip
    """Take an element into its node; returns the outcome."""
    nodes = state[0]
    start = nodes[node, START]
    field = FIELDS + number
    outcome = np.int64(KNOWN)
    if kind == ADJUST and header[ADJUSTS] == LAZY and end > start and is_only_copy(nodes[node, field], state[7], old):
        # what most adjusts are, without a call
        state[7][first_entry(nodes[node, field]), END] = end
        outcome = np.int64(CHANGED)
    elif kind == ADJUST:
        outcome = change_copy(out, header, inputs, number, state, node, old, end)
    elif end <= start:
        outcome = np.int64(IGNORED)
    else:
        if nodes[node, field] == 0:
            add_first_copy(nodes, node, field, state[7], state[8], state[9], end)
        else:
            add_copy(nodes, node, field, state[7], state[8], state[9], end)
        count_unfrozen(header, inputs, number, start, 1)
        if made and header[INSERTS] == FIRST:
            outcome = np.int64(NEW)
            show_copy(out, header, inputs, number, state, node, INSERT, 0, end)
        elif start >= header[POINT_OUT] and n_copies(nodes[node, field]) > n_copies(nodes[node, SHOWN]):
            outcome = offer_copy(out, header, inputs, number, state, node, end)
    return outcome


@inline
def next_change(nodes: Number, node: Number, number: Number, entries: Number, header: Number) -> Number:
    """Return whether a node has to give out something before the new point, and what: an old end and a new one.

    The old end is the start for an insert, the new one for a removal.
    """
    start = nodes[node, START]
    said = nodes[node, FIELDS + number]
    lacking, extra, first_lacking, first_extra = compare_copies(said, nodes[node, SHOWN], entries, floor_of(nodes, node, header))
    changes = False
    old = first_extra
    end = first_lacking
    if start >= header[POINT_OUT] and lacking != extra:
        changes = True
        if extra > lacking:
            end = start
        else:
            old = start
    elif lacking > 0 and extra > 0:
        changes = min(old, end) < header[TARGET]
    return changes, old, end


@called
def keep_or_forget(state: Number, inputs: Number, header: Number, node: Number) -> None:
    """Put a node whose start is passed back into the calendar, or let go of it if none of its ends that are out is left."""
    nodes = state[0]
    entries = state[7]
    due = first_end(nodes[node, SHOWN], entries, header[TARGET], BEGINNING)
    if due == BEGINNING:
        uncount_node(header, inputs, nodes, node, 0)
        for field in range(SHOWN, nodes.shape[1]):
            free_copies(nodes, node, field, entries, state[8], state[9])
        forget_node(state, header, node)
    else:
        for field in range(FIELDS, nodes.shape[1]):
            due = min(due, first_end(nodes[node, field], entries, header[TARGET], FOREVER))
        link(nodes, DUE, state[2], header[SHIFT], node, due)


@inline
def decide_bag(state: Number, number: Number, inputs: Number, header: Number, node: Number) -> None:
    """Decide about a node that is due: it has something to give out, is kept, or is let go of."""
    nodes = state[0]
    changes = False
    if not is_same_copy(nodes[node, FIELDS + number], nodes[node, SHOWN], state[7]):
        changes, _, _ = next_change(nodes, node, number, state[7], header)
    if changes:
        be_listed(nodes, node, header)
    else:
        keep_or_forget(state, inputs, header, node)


@called
def give_bags(out: Number, header: Number, inputs: Number, number: Number, state: Number) -> Number:
    """Give out what the listed nodes have to, in order; returns whether there was room."""
    nodes = state[0]
    entries = state[7]
    while header[PENDING] >= 0:
        if not is_ready(out, header, state):
            return False
        node = header[PENDING]
        start = nodes[node, START]
        if header[PHASE] == ENTERING:
            said = nodes[node, FIELDS + number]
            _, _, end, _ = compare_copies(said, nodes[node, SHOWN], entries, BEGINNING)
            changes = n_copies(said) > n_copies(nodes[node, SHOWN])
            old = start
        else:
            changes, old, end = next_change(nodes, node, number, entries, header)
        if changes:
            if old == start:
                show_copy(out, header, inputs, number, state, node, INSERT, 0, end)
            else:
                show_copy(out, header, inputs, number, state, node, ADJUST, old, end)
        else:
            header[PENDING] = nodes[node, NEXT]
            if header[PHASE] == ENTERING:
                link(nodes, DUE, state[2], header[SHIFT], node, nodes[node, DUE])
            else:
                keep_or_forget(state, inputs, header, node)
    return True


@kernel(f"int64(int64, int64, UniTuple(int64[::1], 5), int64[:,::1], int8[::1], int64[::1], {_STATE}, int64[:,::1], int64[::1])")
def merge_r4(
    number: int, done: int, batch: tuple[np.ndarray, ...], out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray,
    state: tuple[np.ndarray, ...], inputs: np.ndarray, header: np.ndarray,
) -> int:  # fmt: skip
    """Merge the elements `done ..` of an input; returns how many are done, fewer where the header says what is lacking."""
    n = merge_events(
        number, done, batch, out, outcomes, taken, state, inputs, header, 0, True, skim_nothing, is_ready, give_nothing,
        take_copy, decide_bag, give_bags,
    )  # fmt: skip
    return int(n)


@kernel(f"void(int64, {_STATE})")
def clear_copies(number: int, state: tuple[np.ndarray, ...]) -> None:
    """Take away all copies that an input has."""
    nodes, pool = state[0], state[4]
    for node in range(pool[0]):
        if nodes[node, ORDER] != 0:
            free_copies(nodes, node, FIELDS + number, state[7], state[8], state[9])


class R4Merge(NodeMerge):
    """A merge of the case R4."""

    __slots__ = ("_entries", "_entry_numbers")

    case = "R4"

    def __init__(self, policies: Policies) -> None:
        if policies.keep_any:
            raise EddyError(
                'R4 keeps as many copies as the deciding input has: only missing="leader"',
                code="bad_policy",
                hint="R3 keeps what any input has, where payload and start are a key",
            )
        super().__init__(policies)
        self._entry_numbers = Numbers()
        self._entries = np.zeros((self._entry_numbers.capacity, 3), np.int64)

    @property
    def bytes(self) -> int:
        return super().bytes + self._entries.nbytes + self._entry_numbers.bytes

    @property
    def _bags(self) -> tuple[np.ndarray, ...]:
        return *self._state, self._entries, self._entry_numbers.free, self._entry_numbers.header

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        return merge_r4(number, done, tuple(batch), out, outcomes, taken, self._bags, self._inputs.rows, self._header)

    def _clear(self, number: int) -> None:
        clear_copies(number, self._bags)

    def _make_room(self, lacks: int) -> None:
        if lacks != ENTRIES:
            super()._make_room(lacks)
        elif self._entry_numbers.reserve(2, self._entries[:, COUNT]):
            self._entries = fitted_rows(self._entries, self._entry_numbers.capacity)

    def _give_back(self, freed: np.ndarray) -> None:
        super()._give_back(freed)
        counts = self._entries[:, COUNT]
        n_used = int(self._entry_numbers.header[0]) - int(self._entry_numbers.header[1])
        if self._entry_numbers.shrink(len(freed), counts, n_used):
            self._entries = fitted_rows(self._entries, self._entry_numbers.capacity)

    def _told(self, number: int, nodes: np.ndarray, olds: np.ndarray) -> np.ndarray:
        fields = self._nodes[nodes, FIELDS + number].tolist()
        return np.array([old in self._ends(field) for field, old in zip(fields, olds.tolist(), strict=True)], np.bool_)

    def _counts(self, fields: np.ndarray) -> np.ndarray:
        return fields >> 32

    def _latest_due(self, live: np.ndarray) -> np.ndarray:
        nodes = self._nodes[live]
        dues = np.full(len(live), FOREVER)
        n_entries = 0
        for k, row in enumerate(nodes):
            for place, field in enumerate(row[SHOWN:].tolist()):
                ends, n = self._ends(field), field >> 32
                n_entries += len(ends)
                assert list(ends) == sorted(ends) and sum(ends.values()) == n, "copies are in order and counted"
                open_ends = [end for end in ends if end >= self.stable]
                assert place or row[START] >= self.stable or open_ends, "what is half frozen is out, and not over"
                dues[k] = min(dues[k], *open_ends, FOREVER)
        self._entry_numbers.check(self._entries[:, COUNT])
        assert n_entries == np.count_nonzero(self._entries[:, COUNT]), "every entry belongs to a node"
        return np.where(nodes[:, START] < self.stable, dues, nodes[:, START])

    def _ends(self, field: int) -> dict[int, int]:
        """Return how many copies have each end."""
        ends, entry = {}, (field & 0xFFFFFFFF) - 1
        while entry >= 0:
            ends[int(self._entries[entry, END])] = int(self._entries[entry, COUNT])
            entry = int(self._entries[entry, AFTER])
        return ends
