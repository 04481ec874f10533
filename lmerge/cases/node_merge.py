"""The part of a merge with nodes that is not a kernel: inputs that come and go, arrays that follow what is alive.

A kernel that lacks nodes, entries or room for outputs says so in the header and returns how many elements it has done. Python
makes room and calls it again.

Invariant: every due time is at or after the merge's point, and at or before the first time at which the point changes something
about the node.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import BEGINNING, FOREVER
from lineage.growth import fitted, fitted_rows
from lineage.hash_table import move_entries
from lineage.numbers import Numbers
from lmerge.cases.due import DUE, NO_NODE, ORDER, PAYLOAD, START, fitting, lay_out, linked
from lmerge.cases.inputs import FREE, STATE, Counters, Inputs
from lmerge.cases.lookup import find_nodes
from lmerge.cases.merged import N_OUT_ROWS, Merged, as_merged
from lmerge.cases.nodes import (
    DECIDED,
    DENOMINATOR,
    FIELDS,
    INSERTS,
    LACKS,
    LEAD,
    LOOKED,
    MOVED_BY,
    N_FREED,
    N_HEADER,
    N_LIVE,
    N_MOVES,
    N_OUT,
    NODES,
    PASSED,
    PENDING,
    PHASE,
    POINT_OUT,
    PROBED,
    ROOM,
    SHIFT,
    let_go_of_all,
)
from lmerge.cases.points import IDLE
from lmerge.cases.policies import Policies
from lmerge.streams.elements import ElementBatch

#: Room for outputs beside one for each element.
_SPARE = 16

_WORK = {"probed": PROBED, "looked": LOOKED, "decided": DECIDED, "passed": PASSED}


class NodeMerge:
    """What R3 and R4 share: nodes, inputs and the calendar."""

    __slots__ = ("_inputs", "_numbers", "_nodes", "_table", "_buckets", "_header", "_planned")

    #: what stands for an input that does not have the event, and for an event that is not out
    absent = 0

    def __init__(self, policies: Policies) -> None:
        self._inputs = Inputs()
        self._numbers = Numbers()
        self._nodes = np.zeros((self._numbers.capacity, FIELDS), np.int64)
        self._table = np.zeros(2 * self._numbers.capacity, np.int64)
        self._header = np.zeros(N_HEADER, np.int64)
        self._header[[POINT_OUT, LEAD, PENDING]] = BEGINNING, -1, NO_NODE
        self._header[INSERTS : DENOMINATOR + 1] = policies
        self._buckets = np.zeros(0, np.int64)
        #: what the counters of work said when the calendar last was as good as it can be
        self._planned = (0, 0, 0)
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
        return {word: int(self._header[at]) for word, at in _WORK.items()}

    def attach(self, since: int | None = None) -> int:
        number = self._inputs.attach(since, self.stable)
        self._fit_inputs()
        return number

    def detach(self, number: int) -> None:
        self._clear(self._inputs.known(number))
        self._inputs.detach(number)
        if self.leader == number:
            self._header[LEAD] = -1
        self._fit_inputs()
        let_go_of_all(self._state, self._header, self.absent)

    def _clear(self, number: int) -> None:
        """Forget what an input has."""
        self._nodes[:, FIELDS + number] = self.absent

    def _fit_inputs(self) -> None:
        self._nodes = fitted(self._nodes, FIELDS + len(self._inputs.rows), self.absent)

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
        header[N_OUT] = 0
        #: nodes let go of before a kernel stopped for lack of room
        before: list[np.ndarray] = []
        done = 0
        while (done := self._merge(number, done, batch, out, outcomes, taken)) < n:
            if header[LACKS] == ROOM:
                out = fitted(out, 2 * out.shape[1])
            else:
                before.append(self._take_freed())
                self._make_room(int(header[LACKS]), before)
        freed = self._take_freed()
        if before:
            freed = np.concatenate([*before, freed])
        if len(freed):
            self._give_back(freed)
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
        """Whether an input has told of the event of each node; overridden where `absent` is not all there is to know."""
        told: np.ndarray = self._nodes[nodes, FIELDS + number] != self.absent
        return told

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        """Merge elements `done ..`; returns how many are done."""
        raise NotImplementedError

    @property
    def _state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self._nodes, self._table, self._buckets, self._numbers.free, self._numbers.header

    def _make_room(self, lacks: int, freed: list[np.ndarray]) -> None:
        """Make room for nodes; those that this push has let go of are not free yet."""
        assert lacks == NODES, "a kernel lacks room, nodes or entries"
        taken = self._nodes[:, ORDER].copy()
        taken[np.concatenate(freed)] = 1
        if self._numbers.reserve(1, taken):
            self._fit_nodes()

    def _take_freed(self) -> np.ndarray:
        """Return the nodes that were let go of and are not free yet."""
        n_freed = int(self._header[N_FREED])
        self._header[N_FREED] = 0
        return self._numbers.free[self.capacity - n_freed :].copy()

    def _give_back(self, freed: np.ndarray) -> None:
        """Free the numbers of nodes that were let go of."""
        self._numbers.give(freed)
        if self._numbers.shrink(len(freed), self._nodes[:, ORDER], self.n_live):
            self._fit_nodes()
            self._arrange()

    def _fit_nodes(self) -> None:
        """Let the arrays follow the capacity."""
        self._nodes = fitted_rows(self._nodes, self._numbers.capacity)
        table = np.zeros(2 * self._numbers.capacity, np.int64)
        move_entries(self._table, table)
        self._table = table

    def _adapt(self) -> None:
        """Lay the calendar out anew if it has looked at much that was not due."""
        looked, decided, passed = self._worked()
        vain = looked - self._planned[0] - 2 * (decided - self._planned[1]) + (passed - self._planned[2]) // 4
        if vain > self.n_live + len(self._buckets):
            self._arrange()
        elif vain < 0:
            self._planned = looked, decided, passed

    def _worked(self) -> tuple[int, int, int]:
        return int(self._header[LOOKED]), int(self._header[DECIDED]), int(self._header[PASSED])

    def _arrange(self) -> None:
        """Lay the calendar out for the nodes there are and the steps that the point takes."""
        header = self._header
        step = int(header[MOVED_BY]) // max(1, int(header[N_MOVES]))
        shift, n_buckets = fitting(self._nodes[self._nodes[:, ORDER] != 0, DUE], step)
        header[[SHIFT, N_MOVES, MOVED_BY]] = shift, int(header[N_MOVES] > 0), step
        self._planned = self._worked()
        self._buckets = np.full(n_buckets, NO_NODE, np.int64)
        lay_out(self._nodes, int(self._numbers.header[0]), self._buckets, shift)

    def check(self) -> None:
        """Assert the invariants of this module, of the nodes, the numbers and the inputs."""
        nodes, header = self._nodes, self._header
        live = np.flatnonzero(nodes[:, ORDER])
        assert len(live) == self.n_live, "every node is counted"
        assert len(np.unique(nodes[live][:, [START, PAYLOAD]], axis=0)) == len(live), "an event has one node"
        used = nodes[:, ORDER].copy()
        used[self._numbers.free[self.capacity - int(header[N_FREED]) :]] = 1
        self._numbers.check(used)
        self._inputs.check(self.stable)
        assert nodes.shape[1] == FIELDS + len(self._inputs.rows), "every input has a field"
        assert (np.sort((self._table[self._table != 0] & 0xFFFFFFFF) - 1) == live).all(), "the table has every node once"
        due = nodes[live, DUE]
        assert (due >= self.stable).all(), "nothing that is due is behind the point"
        assert sorted(linked(nodes, self._buckets, int(header[SHIFT]))) == live[due < FOREVER].tolist(), (
            "what is due is in a bucket"
        )
        assert (due <= self._latest_due(live)).all(), "no node is due too late"
        assert header[PENDING] == NO_NODE and header[PHASE] == IDLE, "nothing waits between pushes"
        gone = np.flatnonzero(self._inputs.rows[:, STATE] == FREE)
        assert (nodes[live][:, FIELDS + gone] == self.absent).all(), "nothing of an input that left is left"

    def _latest_due(self, live: np.ndarray) -> np.ndarray:
        """Return the time at which each node has to be looked at, at the latest."""
        raise NotImplementedError
