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
from lineage.hash_table import number_of, table_shift
from lineage.kernels import Number, called, inline, kernel
from lineage.numbers import Numbers
from lmerge.cases.copies import (
    AFTER,
    COUNT,
    END,
    add_copy,
    compare_copies,
    drop_copy,
    first_end,
    free_copies,
    has_copy,
    has_entries,
    n_copies,
)
from lmerge.cases.due import DUE, NEXT, NO_NODE, ORDER, START, link, unlink
from lmerge.cases.inputs import JOINED, N_UNFROZEN, POINT, STATE, TALLY_MASK, TOP, count_stable, count_tally, tallied
from lmerge.cases.node_merge import NodeMerge
from lmerge.cases.nodes import (
    DECIDED,
    DENOMINATOR,
    ENTRIES,
    FIELDS,
    INSERTS,
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
from lmerge.cases.outcomes import CHANGED, IGNORED, KNOWN, NEW, SETTLED, UNKNOWN
from lmerge.cases.pending import sort_pending
from lmerge.cases.points import ENTERING, take_stable
from lmerge.cases.policies import FRACTION, Policies
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch, hash_event

_STATE = (
    "Tuple((int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[::1]))"
)  # fmt: skip


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
    write_output(out, header, inputs, number, nodes, node, kind, old, end)
    if kind == ADJUST:
        drop_copy(nodes, node, SHOWN, state[5], state[6], state[7], old)
    if end > nodes[node, START]:
        add_copy(nodes, node, SHOWN, state[5], state[6], state[7], end)


@called
def wants_copy(nodes: Number, node: Number, number: Number, inputs: Number, header: Number) -> Number:
    """Whether a copy that an input gives, and of which fewer are out, goes out now."""
    wanted = gives_out(header, inputs, number)
    if header[INSERTS] == FRACTION and inputs[number, STATE] == JOINED:
        n_having = np.int64(0)
        n_joined = np.int64(0)
        for other in range(len(inputs)):
            if inputs[other, STATE] == JOINED:
                n_joined += 1
                n_having += np.int64(n_copies(nodes[node, FIELDS + other]) > n_copies(nodes[node, SHOWN]))
        wanted = n_having * header[DENOMINATOR] >= n_joined * header[NUMERATOR]
    return wanted


@called
def take_copy(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, end: Number
) -> Number:  # fmt: skip
    """Take an insert into its node; returns the outcome."""
    nodes = state[0]
    start = nodes[node, START]
    add_copy(nodes, node, FIELDS + number, state[5], state[6], state[7], end)
    if start >= inputs[number, POINT]:
        inputs[number, N_UNFROZEN] += 1
    outcome = np.int64(KNOWN)
    if start >= header[POINT_OUT]:
        has = n_copies(nodes[node, FIELDS + number])
        most = n_copies(nodes[node, SHOWN])
        if has > most and wants_copy(nodes, node, number, inputs, header):
            show_copy(out, header, inputs, number, state, node, INSERT, 0, end)
        for other in range(len(inputs)):
            if other != number:
                most = max(most, n_copies(nodes[node, FIELDS + other]))
        if has > most:
            outcome = np.int64(NEW)
    return outcome


@called
def change_copy(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, node: Number, old: Number, end: Number
) -> Number:  # fmt: skip
    """Take an adjust into its node; returns the outcome."""
    nodes, table, buckets, free, _, entries, entry_free, entry_pool = state
    start = nodes[node, START]
    if not drop_copy(nodes, node, FIELDS + number, entries, entry_free, entry_pool, old):
        return np.int64(UNKNOWN)
    if end > start:
        add_copy(nodes, node, FIELDS + number, entries, entry_free, entry_pool, end)
    elif start >= inputs[number, POINT]:
        inputs[number, N_UNFROZEN] -= 1
    if follows(header, number) and header[POINT_OUT] <= min(old, end) and has_copy(nodes[node, SHOWN], entries, old):
        show_copy(out, header, inputs, number, state, node, ADJUST, old, end)
    if end <= start:
        let_go(nodes, table, buckets, free, header, node, 0)
    return np.int64(CHANGED)


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
def keep_or_forget(state: Number, node: Number, header: Number) -> None:
    """Put a node whose start is passed back into the calendar, or let go of it if none of its ends that are out is left."""
    nodes, table, buckets, free, _, entries, entry_free, entry_pool = state
    due = first_end(nodes[node, SHOWN], entries, header[TARGET], BEGINNING)
    if due == BEGINNING:
        for field in range(SHOWN, nodes.shape[1]):
            free_copies(nodes, node, field, entries, entry_free, entry_pool)
        forget_node(nodes, table, free, header, node)
    else:
        for field in range(FIELDS, nodes.shape[1]):
            due = min(due, first_end(nodes[node, field], entries, header[TARGET], FOREVER))
        link(nodes, buckets, header[SHIFT], node, due)


@called
def decide_bags(state: Number, number: Number, inputs: Number, header: Number, node: Number) -> None:
    """Decide about a list of nodes that are due: each has something to give out, is kept, or is let go of."""
    nodes = state[0]
    while node >= 0:
        after = nodes[node, NEXT]
        header[DECIDED] += 1
        changes, _, _ = next_change(nodes, node, number, state[5], header)
        if changes:
            be_listed(nodes, node, header)
        else:
            keep_or_forget(state, node, header)
        node = after
    header[PENDING] = sort_pending(nodes, header[PENDING])


@called
def list_half_frozen_bags(state: Number, number: Number, header: Number, time: Number) -> None:
    """List the nodes that an input's point has passed and the merge's has not, and of which it has more copies than are out."""
    nodes = state[0]
    high = state[4][0]
    header[LOOKED] += high
    point = max(header[TARGET], header[POINT_OUT])
    for node in range(high):
        if nodes[node, ORDER] != 0 and n_copies(nodes[node, FIELDS + number]) > n_copies(nodes[node, SHOWN]):
            if point <= nodes[node, START] < time:
                unlink(nodes, state[2], header[SHIFT], node)
                be_listed(nodes, node, header)
    header[PENDING] = sort_pending(nodes, header[PENDING])


@called
def give_bags(out: Number, header: Number, inputs: Number, number: Number, state: Number) -> Number:
    """Give out what the listed nodes have to, in order; returns whether there was room."""
    nodes = state[0]
    entries = state[5]
    while header[PENDING] >= 0:
        if not has_room(out, header) or not has_entries(state[7], header):
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
                link(nodes, state[2], header[SHIFT], node, nodes[node, DUE])
            else:
                keep_or_forget(state, node, header)
    return True


@called
def recount_unfrozen_bags(state: Number, inputs: Number) -> None:
    """Count for each input the copies it has that are not below its own point."""
    nodes = state[0]
    for number in range(len(inputs)):
        inputs[number, N_UNFROZEN] = 0
    for node in range(state[4][0]):
        if nodes[node, ORDER] != 0:
            for number in range(len(inputs)):
                if nodes[node, START] >= inputs[number, POINT]:
                    inputs[number, N_UNFROZEN] += n_copies(nodes[node, FIELDS + number])


@kernel(f"int64(int64, int64, UniTuple(int64[::1], 5), int64[:,::1], int8[::1], int64[::1], {_STATE}, int64[:,::1], int64[::1])")
def merge_r4(
    number: int, done: int, batch: tuple[np.ndarray, ...], out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray,
    state: tuple[np.ndarray, ...], inputs: np.ndarray, header: np.ndarray,
) -> int:  # fmt: skip
    """Merge the elements `done ..` of an input; returns how many are done, fewer where the header says what is lacking."""
    kinds, starts, payloads, olds, ends = batch
    nodes, table, buckets, free, pool, _, _, entry_pool = state
    bits = table_shift(table)
    tally = np.int64(0)
    i = done
    while i < len(kinds):
        kind = kinds[i]
        if kind == STABLE:
            outcome = np.int64(
                take_stable(
                    out, header, inputs, number, state, ends[i], decide_bags, list_half_frozen_bags, give_bags,
                    recount_unfrozen_bags,
                )
            )  # fmt: skip
            if outcome < 0:
                break
            taken[i] = NO_NODE
            count_stable(inputs, number, outcome)
        else:
            if not has_room(out, header) or not has_entries(entry_pool, header):
                break
            start = starts[i]
            end = ends[i]
            if kind == INSERT:
                inputs[number, TOP] = max(inputs[number, TOP], start)
            h = hash_event(start, payloads[i])
            at = find_event(nodes, table, bits, h, start, payloads[i])
            node = number_of(table[at])
            if kind == INSERT and end <= start:
                outcome = np.int64(IGNORED)
            elif node < 0 and start < header[POINT_OUT]:
                outcome = np.int64(SETTLED)
            elif kind == ADJUST:
                outcome = np.int64(UNKNOWN)
                if node >= 0:
                    outcome = change_copy(out, header, inputs, number, state, node, olds[i], end)
            else:
                if node < 0:
                    if not has_node(pool, header):
                        break
                    node = make_node(nodes, table, buckets, free, pool, header, at, h, start, payloads[i], 0)
                outcome = take_copy(out, header, inputs, number, state, node, end)
            if node >= 0 and nodes[node, ORDER] != 0 and start < header[POINT_OUT] <= end < nodes[node, DUE]:
                if outcome == KNOWN or outcome == CHANGED:
                    unlink(nodes, buckets, header[SHIFT], node)
                    link(nodes, buckets, header[SHIFT], node, end)
            header[PROBED] += n_probes(table, bits, h, at)
            taken[i] = node
            tally += tallied(kind, outcome)
        outcomes[i] = outcome
        i += 1
        if i & TALLY_MASK == 0:
            tally = count_tally(inputs, number, tally)
    count_tally(inputs, number, tally)
    return int(i)


@kernel(f"void(int64, {_STATE})")
def clear_copies(number: int, state: tuple[np.ndarray, ...]) -> None:
    """Take away all copies that an input has."""
    nodes, _, _, _, pool, entries, entry_free, entry_pool = state
    for node in range(pool[0]):
        if nodes[node, ORDER] != 0:
            free_copies(nodes, node, FIELDS + number, entries, entry_free, entry_pool)


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

    def _make_room(self, lacks: int, freed: list[np.ndarray]) -> None:
        if lacks != ENTRIES:
            super()._make_room(lacks, freed)
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
