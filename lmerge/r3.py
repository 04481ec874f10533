"""R3: inserts, adjusts and stables in any order, where payload and start are a key (the paper's §IV-D, with L5, L8 and L9).

    nodes[n]    OUT: the end of the event in the output, LEFT: the end that inputs which left had told, then the end in each input

`NONE` stands for an event that is not out, or that an input does not have. When the point moves from V to t, the input that moved it
decides for every node whose start t passes, and for every node with an end that t passes:

    the input has the event                        its end
    it does not, and the start was not yet passed  no event: it goes, or with missing="any" stays if another joined input has it
    it does not, and the start had been passed     nothing: the input has no say in it (L5), nor where its end is below V

The output changes if either end would be frozen while they differ. A node whose decided end is passed is let go of.

Invariant: a node whose start is below V is out, with an end at or after V; one that is not is not below V.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import FOREVER
from lineage.hashing import entry_of, number_of, table_shift
from lineage.kernels import Number, called, inline, kernel
from lineage.numbers import hand_out
from lmerge.due import DUE, NEXT, NO_NODE, ORDER, PAYLOAD, START, link, unlink
from lmerge.elements import ADJUST, INSERT, STABLE, ElementBatch
from lmerge.inputs import COUNTED, JOINED, N_UNFROZEN, OUT, POINT, REMOVED, STATE, TOP, count_element, join_waiting, leading
from lmerge.merged import (
    CHANGED,
    IGNORED,
    KNOWN,
    MOVED,
    NEW,
    OUT_END,
    OUT_KIND,
    OUT_NODE,
    OUT_OLD,
    OUT_PAYLOAD,
    OUT_START,
    REPEATED,
    SETTLED,
    UNKNOWN,
)
from lmerge.nodes import (
    ADJUSTS,
    ALSO,
    DECIDED,
    DENOMINATOR,
    ENTERING,
    FIELDS,
    FREEZING,
    FRONT,
    IDLE,
    INSERTS,
    KEEP_ANY,
    LACKS,
    LAG,
    LAST_ORDER,
    LEAD,
    LOOKED,
    MOVED_BY,
    N_LIVE,
    N_MOVES,
    N_OUT,
    NEEDED,
    NODES,
    NONE,
    NUMERATOR,
    OWN,
    PASSED,
    PENDING,
    PHASE,
    POINT_OUT,
    PROBED,
    ROOM,
    SHIFT,
    TARGET,
    TOPMOST,
    NodeMerge,
    find_event,
    forget_node,
    hash_event,
)
from lmerge.pending import sort_pending
from lmerge.policies import EVERY, FIRST, FOLLOW, FRACTION, HALF_FROZEN, HIGHEST, LAZY, LEADER, UNFROZEN

#: The end in the output, and the end that inputs which left had told.
OUT_NOW, LEFT = OWN, ALSO


@inline
def emit(
    out: Number, header: Number, inputs: Number, number: Number, nodes: Number, node: Number, kind: Number, old: Number, end: Number
) -> None:  # fmt: skip
    """Give out an insert or adjust of a node's event, and keep its new end."""
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
        nodes[node, OUT_NOW] = NONE
    else:
        nodes[node, OUT_NOW] = end


@called
def goes_out(nodes: Number, node: Number, number: Number, inputs: Number, header: Number) -> Number:
    """Whether an event that an input has given, and that is not out, goes out now."""
    policy = header[INSERTS]
    found = False
    if policy == FIRST:
        found = True
    elif inputs[number, STATE] != JOINED:
        found = False
    elif policy == LEADER:
        found = number == header[FRONT]
    elif policy == HIGHEST:
        found = number == header[TOPMOST]
    elif policy == UNFROZEN:
        found = number == leading(inputs, N_UNFROZEN)
    elif policy == HALF_FROZEN:
        found = nodes[node, START] < inputs[number, COUNTED]
    elif policy == FRACTION:
        n_having = np.int64(0)
        n_joined = np.int64(0)
        for other in range(len(inputs)):
            if inputs[other, STATE] == JOINED:
                n_joined += 1
                n_having += np.int64(nodes[node, FIELDS + other] != NONE)
        found = n_having * header[DENOMINATOR] >= n_joined * header[NUMERATOR]
    return found


@called
def respond(
    out: Number, header: Number, inputs: Number, number: Number, nodes: Number, node: Number, had: Number
) -> None:  # fmt: skip
    """Give out, under the policies that do, what an input has just told about an event; `had` is what it told before."""
    start = nodes[node, START]
    now = nodes[node, FIELDS + number]
    if (had == NONE) != (now == NONE) and start >= inputs[number, POINT]:
        inputs[number, N_UNFROZEN] += 1 if had == NONE else -1
    if start > inputs[number, TOP]:
        inputs[number, TOP] = start
        header[TOPMOST] = leading(inputs, TOP)
    shown = nodes[node, OUT_NOW]
    if shown == NONE:
        if now != NONE and start >= header[POINT_OUT] and goes_out(nodes, node, number, inputs, header):
            emit(out, header, inputs, number, nodes, node, INSERT, 0, now)
    elif header[ADJUSTS] == EVERY or (header[ADJUSTS] == FOLLOW and number == header[FRONT]):
        if now == NONE:
            if start >= header[POINT_OUT]:
                emit(out, header, inputs, number, nodes, node, ADJUST, shown, start)
        elif now != shown and now >= header[POINT_OUT]:
            emit(out, header, inputs, number, nodes, node, ADJUST, shown, now)


@called
def end_of_another(nodes: Number, node: Number, inputs: Number) -> Number:
    """Return the end that the joined input with the largest point that has the event tells, or what inputs that left told."""
    end = nodes[node, LEFT]
    best = np.int64(-1)
    for other in range(len(inputs)):
        if inputs[other, STATE] == JOINED and nodes[node, FIELDS + other] != NONE:
            if best < 0 or inputs[other, COUNTED] > inputs[best, COUNTED]:
                best = np.int64(other)
                end = nodes[node, FIELDS + other]
    return end


@inline
def decided_end(nodes: Number, node: Number, number: Number, inputs: Number, header: Number) -> Number:
    """Return the end that an input decides for an event, its start if there is no such event."""
    end = nodes[node, FIELDS + number]
    if end == NONE and header[KEEP_ANY] != 0:
        end = end_of_another(nodes, node, inputs)
    if nodes[node, START] < header[POINT_OUT]:
        if end < header[POINT_OUT]:
            end = nodes[node, OUT_NOW]
    elif end == NONE:
        end = nodes[node, START]
    return end


@inline
def keep_node(nodes: Number, node: Number, buckets: Number, header: Number, point: Number) -> None:
    """Put a node whose start is passed back into the calendar."""
    due = nodes[node, OUT_NOW]
    for field in range(LEFT, nodes.shape[1]):
        if point <= nodes[node, field] < due:
            due = nodes[node, field]
    link(nodes, buckets, header[SHIFT], node, due)


@inline
def look_at(
    nodes: Number, node: Number, table: Number, buckets: Number, number: Number, inputs: Number, header: Number, point: Number
) -> None:  # fmt: skip
    """Decide about a node that is due and in no bucket: it waits to give out something, is kept, or is let go of."""
    header[DECIDED] += 1
    end = decided_end(nodes, node, number, inputs, header)
    shown = nodes[node, OUT_NOW]
    if shown == NONE:
        changes = end > nodes[node, START]
    else:
        changes = end != shown and (end < point or shown < point)
    if changes:
        nodes[node, NEXT] = header[PENDING]
        header[PENDING] = node
    elif end < point:
        forget_node(nodes, table, header, node)
    else:
        keep_node(nodes, node, buckets, header, point)


@called
def take_due(
    nodes: Number, table: Number, buckets: Number, high: Number, number: Number, inputs: Number, header: Number
) -> None:  # fmt: skip
    """Decide about the nodes that are due before the new point, found by the calendar or, if that is less, one by one."""
    point = header[TARGET]
    shift = header[SHIFT]
    first = header[POINT_OUT] >> shift
    n_buckets = min((point - 1 >> shift) - first, len(buckets) - 1) + 1
    if n_buckets > high:
        header[LOOKED] += high
        for node in range(high):
            if nodes[node, ORDER] != 0 and nodes[node, DUE] < point:
                unlink(nodes, buckets, shift, node)
                look_at(nodes, node, table, buckets, number, inputs, header, point)
    else:
        header[PASSED] += n_buckets
        for step in range(n_buckets):
            bucket = (first + step) & (len(buckets) - 1)
            node = buckets[bucket]
            buckets[bucket] = NO_NODE
            while node >= 0:
                after = nodes[node, NEXT]
                header[LOOKED] += 1
                due = nodes[node, DUE]
                if due >= point:
                    link(nodes, buckets, shift, node, due)
                else:
                    look_at(nodes, node, table, buckets, number, inputs, header, point)
                node = after
    header[PENDING] = sort_pending(nodes, header[PENDING])


@called
def take_half_frozen(nodes: Number, buckets: Number, high: Number, number: Number, inputs: Number, header: Number) -> None:
    """List the events that are below an input's point and not out, though they are not below the merge's."""
    header[LOOKED] += high
    for node in range(high):
        if (
            nodes[node, ORDER] != 0
            and nodes[node, OUT_NOW] == NONE
            and nodes[node, FIELDS + number] != NONE
            and nodes[node, START] < inputs[number, COUNTED]
        ):
            unlink(nodes, buckets, header[SHIFT], node)
            nodes[node, NEXT] = header[PENDING]
            header[PENDING] = node
    header[PENDING] = sort_pending(nodes, header[PENDING])


@called
def recount_unfrozen(nodes: Number, high: Number, inputs: Number) -> None:
    """Count for each input the events it has that are not below its own point."""
    for number in range(len(inputs)):
        inputs[number, N_UNFROZEN] = 0
    for node in range(high):
        if nodes[node, ORDER] != 0:
            for number in range(len(inputs)):
                if nodes[node, FIELDS + number] != NONE and nodes[node, START] >= inputs[number, POINT]:
                    inputs[number, N_UNFROZEN] += 1


@called
def begin_stable(
    nodes: Number, buckets: Number, high: Number, number: Number, inputs: Number, header: Number, time: Number
) -> None:
    """Let an input's point move, and say in the header to which point the merge's moves and in which phase that is."""
    time = min(time, FOREVER)
    inputs[number, POINT] = max(inputs[number, POINT], time)
    if inputs[number, STATE] == JOINED:
        if time > inputs[number, COUNTED]:
            inputs[number, COUNTED] = time
            header[FRONT] = leading(inputs, COUNTED)
        header[TARGET] = time - header[LAG] if time < FOREVER else time
        if header[TARGET] > header[POINT_OUT]:
            header[PHASE] = FREEZING
        if header[INSERTS] == HALF_FROZEN and header[LAG] > 0:
            take_half_frozen(nodes, buckets, high, number, inputs, header)
            header[PHASE] = ENTERING


@called
def give_pending(
    out: Number, header: Number, inputs: Number, number: Number, nodes: Number, table: Number, buckets: Number
) -> Number:  # fmt: skip
    """Give out what the nodes of the list have to, in order; returns whether there was room."""
    while header[PENDING] >= 0:
        if header[N_OUT] == out.shape[1]:
            header[LACKS] = ROOM
            return False
        node = header[PENDING]
        header[PENDING] = nodes[node, NEXT]
        if header[PHASE] == ENTERING:
            emit(out, header, inputs, number, nodes, node, INSERT, 0, nodes[node, FIELDS + number])
            link(nodes, buckets, header[SHIFT], node, nodes[node, DUE])
        else:
            end = decided_end(nodes, node, number, inputs, header)
            shown = nodes[node, OUT_NOW]
            if shown == NONE:
                emit(out, header, inputs, number, nodes, node, INSERT, 0, end)
            else:
                emit(out, header, inputs, number, nodes, node, ADJUST, shown, end)
            if end < header[TARGET]:
                forget_node(nodes, table, header, node)
            else:
                keep_node(nodes, node, buckets, header, header[TARGET])
    return True


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
    if header[LEAD] >= 0:
        header[MOVED_BY] += header[TARGET] - header[POINT_OUT]
        header[N_MOVES] += 1
    header[POINT_OUT] = header[TARGET]
    header[LEAD] = number
    join_waiting(inputs, header[POINT_OUT])
    header[FRONT] = leading(inputs, COUNTED)
    header[TOPMOST] = leading(inputs, TOP)


@called
def take_stable(
    out: Number, header: Number, inputs: Number, number: Number, state: Number, time: Number
) -> Number:  # fmt: skip
    """Take a stable point, or go on with it where room was lacking; returns the outcome, or -1 if room is lacking."""
    nodes, table, buckets, _, pool = state
    high = pool[0]
    if header[PHASE] == IDLE:
        begin_stable(nodes, buckets, high, number, inputs, header, time)
        if header[PHASE] == IDLE:
            if header[INSERTS] == UNFROZEN:
                recount_unfrozen(nodes, high, inputs)
            return IGNORED
        if header[PHASE] == FREEZING:
            take_due(nodes, table, buckets, high, number, inputs, header)
    if not give_pending(out, header, inputs, number, nodes, table, buckets):
        return -1
    if header[PHASE] == ENTERING:
        header[PHASE] = IDLE
        if header[TARGET] <= header[POINT_OUT]:
            return IGNORED
        header[PHASE] = FREEZING
        take_due(nodes, table, buckets, high, number, inputs, header)
        if not give_pending(out, header, inputs, number, nodes, table, buckets):
            return -1
    if header[N_OUT] == out.shape[1]:
        header[LACKS] = ROOM
        return -1
    end_stable(out, header, inputs, number)
    header[PHASE] = IDLE
    if header[INSERTS] == UNFROZEN:
        recount_unfrozen(nodes, high, inputs)
    return MOVED


@kernel(
    "int64(int64, int64, UniTuple(int64[::1], 5), int64[:,::1], int8[::1], int64[::1], "
    "Tuple((int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1])), int64[:,::1], int64[::1])"
)
def merge_r3(
    number: int, done: int, batch: tuple[np.ndarray, ...], out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray,
    state: tuple[np.ndarray, ...], inputs: np.ndarray, header: np.ndarray,
) -> int:  # fmt: skip
    """Merge the elements `done ..` of an input; returns how many are done, fewer than all where the header says what is lacking."""
    kinds, starts, payloads, _, ends = batch
    nodes, table, buckets, free, pool = state
    table_bits = table_shift(table)
    mask = np.int64(len(table) - 1)
    plain = header[INSERTS] == FIRST and header[ADJUSTS] == LAZY
    field = FIELDS + number
    for i in range(done, len(kinds)):
        kind = kinds[i]
        if kind == STABLE:
            outcome = take_stable(out, header, inputs, number, state, ends[i])
            if outcome < 0:
                return i
            taken[i] = NO_NODE
            outcomes[i] = outcome
            count_element(inputs, number, kind, outcome)
            continue
        if header[N_OUT] == out.shape[1]:
            header[LACKS] = ROOM
            return i
        start = starts[i]
        end = ends[i]
        h = hash_event(start, payloads[i])
        at = find_event(nodes, table, table_bits, h, start, payloads[i])
        header[PROBED] += ((at - (h >> table_bits)) & mask) + 1
        node = number_of(table[at])
        if kind == INSERT and end <= start:
            outcome = IGNORED
        elif node >= 0:
            had = nodes[node, field]
            nodes[node, field] = end if end > start else NONE
            if kind == ADJUST:
                outcome = CHANGED
            else:
                outcome = KNOWN if had == NONE else REPEATED
            if start < header[POINT_OUT] and header[POINT_OUT] <= end < nodes[node, DUE]:
                unlink(nodes, buckets, header[SHIFT], node)
                link(nodes, buckets, header[SHIFT], node, end)
            if not plain:
                respond(out, header, inputs, number, nodes, node, had)
        elif start < header[POINT_OUT]:
            outcome = SETTLED
        elif kind == ADJUST:
            outcome = UNKNOWN
        else:
            if pool[1] == 0 and pool[0] == pool[2]:
                header[LACKS] = NODES
                return i
            node = hand_out(free, pool)
            table[at] = entry_of(h, node)
            nodes[node, START] = start
            nodes[node, PAYLOAD] = payloads[i]
            header[LAST_ORDER] += 1
            nodes[node, ORDER] = header[LAST_ORDER]
            for other in range(OUT_NOW, nodes.shape[1]):
                nodes[node, other] = NONE
            nodes[node, field] = end
            link(nodes, buckets, header[SHIFT], node, start)
            header[N_LIVE] += 1
            if plain:
                emit(out, header, inputs, number, nodes, node, INSERT, 0, end)
            else:
                respond(out, header, inputs, number, nodes, node, NONE)
            outcome = NEW
        taken[i] = node
        outcomes[i] = outcome
        count_element(inputs, number, kind, outcome)
    return len(kinds)


class R3Merge(NodeMerge):
    """A merge of the case R3."""

    __slots__ = ()

    case = "R3"
    _absent = NONE

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        return merge_r3(number, done, tuple(batch), out, outcomes, taken, self._state, self._inputs.rows, self._header)

    def _leave(self, number: int, joined: bool) -> None:
        ends = self._nodes[:, FIELDS + number]
        if joined and self._header[KEEP_ANY]:
            told = (ends != NONE) & (self._nodes[:, ORDER] != 0)
            self._nodes[told, LEFT] = ends[told]
        ends[:] = NONE

    def _told(self, number: int, nodes: np.ndarray, olds: np.ndarray) -> np.ndarray:
        told: np.ndarray = self._nodes[nodes, FIELDS + number] != NONE
        return told

    def _latest_due(self, live: np.ndarray) -> np.ndarray:
        nodes = self._nodes[live]
        passed = nodes[:, START] < self.stable
        assert (nodes[passed, OUT_NOW] >= self.stable).all(), "what is half frozen is out, and not over"
        ends = nodes[:, OUT_NOW:]
        first = np.where(ends >= self.stable, ends, FOREVER).min(1)
        return np.where(passed, first, nodes[:, START])
