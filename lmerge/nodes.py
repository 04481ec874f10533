"""Nodes: the records of events that are not over, found by start and payload, and what R3 and R4 share of keeping them.

    nodes[n]     start, payload, due, order, two links, two fields of the case, then a field for each input
    table        from a hash of (start, payload) to the node (`lineage/hashing.py`)
    buckets      the due calendar (`lmerge/due.py`)
    header       the merge's point, its leader, its policies, counters of work, and how far an interrupted push has come

Invariant: a node is in the table, and in the calendar if it can ever be due, exactly while its order is not 0. Every due time is at or
after the merge's point, and at or before the first time at which the point changes something about the node.

A kernel that lacks nodes, entries or room for outputs says so in the header and returns how many elements it has done; nodes that wait
to give out something stay in a list. Python makes room and calls it again.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import BEGINNING
from lineage.growth import fitted, fitted_rows
from lineage.hashing import delete_entry, entry_of, hash_of, move_entries, number_of, table_shift
from lineage.kernels import Number, inline, kernel
from lineage.numbers import Numbers
from lmerge.due import DUE, NEXT, NO_NODE, ORDER, PAYLOAD, START, fitting, lay_out, linked
from lmerge.elements import ElementBatch
from lmerge.inputs import COUNTED, FREE, JOINED, STATE, TOP, Counters, Inputs
from lmerge.merged import N_OUT_ROWS, Merged, as_merged
from lmerge.policies import Policies

#: Fields of a node: two of the case, and where those of the inputs begin.
OWN, ALSO, FIELDS = 6, 7, 8

#: No end: the event is not out, or an input does not have it.
NONE = -(2**63)

#: Places of `header`. POINT_OUT is the merge's point; FRONT and TOPMOST are the joined inputs with the largest point and start.
(
    POINT_OUT, LEAD, FRONT, TOPMOST, N_LIVE, LAST_ORDER, SHIFT, PENDING, TARGET, PHASE, FREED, N_FREED, N_OUT, LACKS, NEEDED,
    INSERTS, ADJUSTS, KEEP_ANY, LAG, NUMERATOR, DENOMINATOR, PROBED, LOOKED, DECIDED, PASSED, N_MOVES, MOVED_BY,
) = range(27)  # fmt: skip
N_HEADER = 27

#: What a kernel lacks.
NOTHING, NODES, ROOM, ENTRIES = range(4)

#: Phases of a stable point: not begun, giving out what is half frozen somewhere, and what the point freezes.
IDLE, ENTERING, FREEZING = range(3)

#: Room for outputs beside one for each element.
_SPARE = 16

State = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@inline
def hash_event(start: Number, payload: Number) -> Number:
    """Return 32 bits that depend on every bit of a start and a payload."""
    mixed = np.uint64(start) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(payload) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(mixed >> np.uint64(32))


@inline
def find_event(nodes: Number, table: Number, shift: Number, h: Number, start: Number, payload: Number) -> Number:
    """Return the place of an event's node in the table, or the free place where it would be."""
    mask = np.int64(len(table) - 1)
    at = h >> shift
    while table[at] != 0:
        entry = table[at]
        if hash_of(entry) == h:
            node = number_of(entry)
            if nodes[node, START] == start and nodes[node, PAYLOAD] == payload:
                break
        at = (at + 1) & mask
    return at


@inline
def forget_node(nodes: Number, table: Number, header: Number, node: Number) -> None:
    """Take a node out of the table and list it as let go of; it is in no bucket any more."""
    shift = table_shift(table)
    h = hash_event(nodes[node, START], nodes[node, PAYLOAD])
    mask = np.int64(len(table) - 1)
    at = h >> shift
    while number_of(table[at]) != node:
        at = (at + 1) & mask
    delete_entry(table, at, shift)
    nodes[node, ORDER] = 0
    nodes[node, NEXT] = header[FREED]
    header[FREED] = node
    header[N_FREED] += 1
    header[N_LIVE] -= 1


@kernel("void(int64[:,::1], int64, int64[::1])")
def list_nodes(nodes: np.ndarray, head: int, found: np.ndarray) -> None:
    """List as many nodes as fit, along their links."""
    for k in range(len(found)):
        found[k] = head
        head = nodes[head, NEXT]


@kernel("void(int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def find_nodes(nodes: np.ndarray, table: np.ndarray, starts: np.ndarray, payloads: np.ndarray, found: np.ndarray) -> None:
    """Write the node of each event, -1 where there is none."""
    shift = table_shift(table)
    for i in range(len(starts)):
        found[i] = number_of(table[find_event(nodes, table, shift, hash_event(starts[i], payloads[i]), starts[i], payloads[i])])


class NodeMerge:
    """What R3 and R4 share: nodes, inputs and the calendar."""

    __slots__ = ("_inputs", "_numbers", "_nodes", "_table", "_buckets", "_header", "_planned")

    def __init__(self, policies: Policies) -> None:
        self._inputs = Inputs()
        self._numbers = Numbers()
        self._nodes = np.zeros((self._numbers.capacity, FIELDS), np.int64)
        self._table = np.zeros(2 * self._numbers.capacity, np.int64)
        self._header = np.zeros(N_HEADER, np.int64)
        self._header[[POINT_OUT, LEAD, FRONT, TOPMOST, PENDING, FREED]] = BEGINNING, -1, -1, -1, NO_NODE, NO_NODE
        self._header[INSERTS : DENOMINATOR + 1] = (
            policies.insert, policies.adjust, policies.keep_any, policies.lag, policies.numerator, policies.denominator
        )  # fmt: skip
        self._buckets = np.zeros(0, np.int64)
        #: what the counters of work said when the calendar was laid out: how many nodes and buckets were passed in vain
        self._planned = [0, 0, 0]
        self._arrange()

    @property
    def stable(self) -> int:
        return int(self._header[POINT_OUT])

    @property
    def leader(self) -> int:
        return int(self._header[LEAD])

    @property
    def n_live(self) -> int:
        return int(self._header[N_LIVE])

    @property
    def capacity(self) -> int:
        return self._numbers.capacity

    @property
    def bytes(self) -> int:
        arrays = (self._nodes, self._table, self._buckets, self._header)
        return sum(array.nbytes for array in arrays) + self._numbers.bytes + self._inputs.bytes

    @property
    def counters(self) -> Counters:
        return self._inputs.counters(None)

    def counters_of(self, number: int) -> Counters:
        return self._inputs.counters(number)

    @property
    def work(self) -> dict[str, int]:
        """How much was looked at: places of the table, nodes at stable points, those that were due, buckets passed."""
        return {word: int(self._header[at]) for word, at in _WORK.items()}

    def attach(self, since: int | None = None) -> int:
        number = self._inputs.attach(since, self.stable)
        self._fit_inputs()
        self._rank()
        return number

    def detach(self, number: int) -> None:
        self._leave(self._inputs.known(number), self._inputs.joined(number))
        self._inputs.detach(number)
        if self.leader == number:
            self._header[LEAD] = -1
        self._fit_inputs()
        self._rank()

    def _leave(self, number: int, joined: bool) -> None:
        """Clear what an input gave; overridden by each case."""
        raise NotImplementedError

    def _fit_inputs(self) -> None:
        self._nodes = np.ascontiguousarray(fitted(self._nodes, FIELDS + len(self._inputs.rows), self._absent))

    #: what stands for an input that does not have the event
    _absent = 0

    def _rank(self) -> None:
        """Find the joined inputs with the largest point and start."""
        for place, field in ((FRONT, COUNTED), (TOPMOST, TOP)):
            ranks = np.where(self._inputs.rows[:, STATE] == JOINED, self._inputs.rows[:, field], NONE)
            self._header[place] = int(ranks.argmax()) if self._inputs.n_joined else -1

    def joined(self, number: int) -> bool:
        return self._inputs.joined(number)

    def point(self, number: int) -> int:
        return self._inputs.point(number)

    def push(self, number: int, batch: ElementBatch) -> Merged:
        self._inputs.known(number)
        n = len(batch.kinds)
        out = np.empty((N_OUT_ROWS, n + _SPARE), np.int64)
        outcomes, taken = np.empty(n, np.int8), np.empty(n, np.int64)
        header = self._header
        header[[FREED, N_FREED, N_OUT]] = NO_NODE, 0, 0
        done = 0
        while (done := self._merge(number, done, batch, out, outcomes, taken)) < n:
            if header[LACKS] == ROOM:
                out = fitted(out, 2 * out.shape[1] + int(header[NEEDED]))
            else:
                self._make_room(int(header[LACKS]))
        freed = np.empty(int(header[N_FREED]), np.int64)
        if len(freed):
            list_nodes(self._nodes, int(header[FREED]), freed)
            self._numbers.give(freed)
            self._shrink(len(freed))
        self._adapt()
        return as_merged(out, int(header[N_OUT]), outcomes, taken, freed)

    def holds(
        self, number: int, starts: np.ndarray, payloads: np.ndarray, olds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Whether an input has told of each event, in a bag with that old end; and whether there is a record of the event."""
        found = np.empty(len(starts), np.int64)
        find_nodes(self._nodes, self._table, starts, payloads, found)
        known = found >= 0
        return known & self._told(number, np.maximum(found, 0), olds), known

    def _told(self, number: int, nodes: np.ndarray, olds: np.ndarray) -> np.ndarray:
        """Whether an input has told of the event of each node; overridden by each case."""
        raise NotImplementedError

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        """Merge elements `done ..`; returns how many are done."""
        raise NotImplementedError

    @property
    def _state(self) -> State:
        return self._nodes, self._table, self._buckets, self._numbers.free, self._numbers.header

    def _make_room(self, lacks: int) -> None:
        assert lacks == NODES, "a kernel lacks room, nodes or entries"
        if self._numbers.reserve(1, self._nodes[:, ORDER]):
            self._fit_nodes()

    def _shrink(self, n_freed: int) -> None:
        if self._numbers.shrink(n_freed, self._nodes[:, ORDER], self.n_live):
            self._fit_nodes()
            self._arrange()

    def _fit_nodes(self) -> None:
        """Let the arrays follow the capacity."""
        self._nodes = fitted_rows(self._nodes, self._numbers.capacity)
        table = np.zeros(2 * self._numbers.capacity, np.int64)
        move_entries(self._table, table)
        self._table = table

    def _adapt(self) -> None:
        """Lay the calendar out anew if it looks at much that is not due."""
        looked, decided, passed = (int(self._header[at]) for at in (LOOKED, DECIDED, PASSED))
        vain = looked - self._planned[0] - 2 * (decided - self._planned[1]) + (passed - self._planned[2]) // 4
        if vain > self.n_live + len(self._buckets):
            self._arrange()
        elif vain < 0:
            self._planned = [looked, decided, passed]

    def _arrange(self) -> None:
        """Lay the calendar out for the nodes there are and the steps that the point takes."""
        header = self._header
        alive = self._nodes[:, ORDER] != 0
        step = int(header[MOVED_BY]) // max(1, int(header[N_MOVES]))
        shift, n_buckets = fitting(self._nodes[alive, DUE], step)
        header[[SHIFT, N_MOVES, MOVED_BY]] = shift, int(header[N_MOVES] > 0), step
        self._planned = [int(header[at]) for at in (LOOKED, DECIDED, PASSED)]
        self._buckets = np.full(n_buckets, NO_NODE, np.int64)
        lay_out(self._nodes, int(self._numbers.header[0]), self._buckets, shift)

    def check(self) -> None:
        """Assert the invariant of this module, of the numbers and of the inputs."""
        nodes, header = self._nodes, self._header
        live = np.flatnonzero(nodes[:, ORDER])
        assert len(live) == self.n_live, "every node is counted"
        assert len(np.unique(nodes[live][:, [START, PAYLOAD]], axis=0)) == len(live), "an event has one node"
        self._numbers.check(nodes[:, ORDER])
        self._inputs.check(self.stable)
        assert nodes.shape[1] == FIELDS + len(self._inputs.rows), "every input has a field"
        places = np.sort((self._table[self._table != 0] & 0xFFFFFFFF) - 1)
        assert (places == live).all(), "the table has every node once"
        due = nodes[live, DUE]
        assert (due >= self.stable).all(), "nothing that is due is behind the point"
        assert sorted(linked(nodes, self._buckets, int(header[SHIFT]))) == live[due < 2**62].tolist(), (
            "every due node is in a bucket"
        )
        assert (due <= self._latest_due(live)).all(), "no node is due too late"
        assert header[PENDING] == NO_NODE and header[PHASE] == IDLE, "nothing waits between pushes"
        free = self._inputs.rows[:, STATE] == FREE
        assert (nodes[live][:, FIELDS:][:, free] == self._absent).all(), "nothing of an input that left is left"

    def _latest_due(self, live: np.ndarray) -> np.ndarray:
        """Return the time at which each node has to be looked at, at the latest."""
        raise NotImplementedError


_WORK = {"probed": PROBED, "looked": LOOKED, "decided": DECIDED, "passed": PASSED}
