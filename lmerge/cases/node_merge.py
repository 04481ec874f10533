"""The part of a merge with nodes that is not a kernel: arrays that follow what is alive.

Invariant: every due time is at or after the merge's point, and at or before the first time at which the point changes something
about the node.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import FOREVER
from lineage.growth import fitted, fitted_rows
from lineage.hash_table import move_entries
from lineage.numbers import Numbers
from lmerge.cases.case_merge import NOTHING, CaseMerge
from lmerge.cases.due import DUE, NO_NODE, ORDER, PAYLOAD, START, fitting, lay_out, linked
from lmerge.cases.header import (
    INSERTS,
    LOOKED,
    MOVED_BY,
    N_FREED,
    N_LIVE,
    N_MOVES,
    NODES,
    PASSED,
    PENDING,
    PHASE,
    SHIFT,
    START_SHIFT,
)
from lmerge.cases.inputs import ENTERED, FREE, N_UNFROZEN, POINT, STATE
from lmerge.cases.lookup import find_nodes
from lmerge.cases.nodes import FIELDS, SHOWN, let_go_of_all
from lmerge.cases.points import IDLE
from lmerge.cases.policies import HALF_FROZEN, UNFROZEN, Policies

#: Fields of the calendar of starts: a start and two links.
_N_LINKS = 3


class NodeMerge(CaseMerge):
    """What R3 and R4 share: nodes and their calendars."""

    __slots__ = ("_numbers", "_nodes", "_table", "_buckets", "_by_start", "_start_buckets", "_planned", "_freed")

    #: what stands for an input that does not have the event, and for an event that is not out
    absent = 0

    def __init__(self, policies: Policies) -> None:
        super().__init__(policies)
        self._numbers = Numbers()
        self._nodes = np.zeros((self.capacity, FIELDS), np.int64)
        self._table = np.zeros(4 * self.capacity, np.int64)
        self._by_start = np.zeros((self.capacity if policies.insert == UNFROZEN else 0, _N_LINKS), np.int64)
        self._buckets = self._start_buckets = np.zeros(0, np.int64)
        self._header[PENDING] = NO_NODE
        #: what the counters of work said when the calendar last was as good as it can be
        self._planned = (0, 0, 0)
        #: nodes let go of in this push before its kernel stopped for lack of nodes
        self._freed: list[np.ndarray] = []
        self._arrange()

    @property
    def n_live(self) -> int:
        return int(self._header[N_LIVE])

    @property
    def capacity(self) -> int:
        return self._numbers.capacity

    @property
    def bytes(self) -> int:
        arrays = (self._nodes, self._table, self._buckets, self._by_start, self._start_buckets)
        return super().bytes + sum(array.nbytes for array in arrays) + self._numbers.bytes

    def detach(self, number: int) -> None:
        super().detach(number)
        let_go_of_all(self._state, self._header, self.absent)

    def _clear(self, number: int) -> None:
        self._nodes[:, FIELDS + number] = self.absent

    def _fit_inputs(self) -> None:
        self._nodes = fitted(self._nodes, FIELDS + len(self._inputs.rows), self.absent)

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

    @property
    def _state(self) -> tuple[np.ndarray, ...]:
        numbers = self._numbers
        return self._nodes, self._table, self._buckets, numbers.free, numbers.header, self._by_start, self._start_buckets

    def _room_for_nodes(self, n: int) -> np.ndarray:
        return np.empty(n, np.int64)

    def _make_room(self, lacks: int) -> None:
        assert lacks == NODES, "a kernel lacks room, nodes or entries"
        self._freed.append(self._take_freed())
        # what this push has let go of is not free yet
        taken = self._nodes[:, ORDER].copy()
        taken[np.concatenate(self._freed)] = 1
        if self._numbers.reserve(1, taken):
            self._fit_nodes()

    def _end_push(self) -> np.ndarray:
        freed = self._take_freed()
        if self._freed:
            freed = np.concatenate([*self._freed, freed])
            self._freed = []
        if len(freed):
            self._give_back(freed)
        self._adapt()
        return freed

    def _take_freed(self) -> np.ndarray:
        """Return the nodes that were let go of and are not free yet."""
        n_freed = int(self._header[N_FREED])
        if not n_freed:
            return NOTHING
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
        self._nodes = fitted_rows(self._nodes, self.capacity)
        if len(self._by_start):
            self._by_start = fitted_rows(self._by_start, self.capacity)
        table = np.zeros(4 * self.capacity, np.int64)
        move_entries(self._table, table)
        self._table = table

    def _adapt(self) -> None:
        """Lay the calendars out anew if they have looked at much that was not due."""
        looked, decided, passed = self._worked()
        vain = looked - self._planned[0] - 2 * (decided - self._planned[1]) + (passed - self._planned[2]) // 4
        if vain > self.n_live + len(self._buckets):
            self._arrange()
        elif vain < 0:
            self._planned = looked, decided, passed

    def _worked(self) -> tuple[int, int, int]:
        looked, decided, passed = self._header[LOOKED : PASSED + 1].tolist()
        return looked, decided, passed

    def _arrange(self) -> None:
        """Lay the calendars out for the nodes there are and the steps that the point takes."""
        header = self._header
        step = int(header[MOVED_BY]) // max(1, int(header[N_MOVES]))
        header[[N_MOVES, MOVED_BY]] = int(header[N_MOVES] > 0), step
        self._planned = self._worked()
        self._buckets, header[SHIFT] = self._laid_out(self._nodes, DUE, step)
        if len(self._by_start):
            self._start_buckets, header[START_SHIFT] = self._laid_out(self._by_start, 0, step)

    def _laid_out(self, links: np.ndarray, at: int, step: int) -> tuple[np.ndarray, int]:
        """Return new buckets for all nodes by the times in a column, and their shift."""
        shift, n_buckets = fitting(links[self._nodes[:, ORDER] != 0, at], step)
        buckets = np.full(n_buckets, NO_NODE, np.int64)
        lay_out(links, at, buckets, shift, self._nodes, int(self._numbers.header[0]))
        return buckets, shift

    def check(self) -> None:
        """Assert the invariants of this module, of the nodes, the numbers and the inputs."""
        super().check()
        nodes, header = self._nodes, self._header
        live = np.flatnonzero(nodes[:, ORDER])
        assert len(live) == self.n_live, "every node is counted"
        assert len(np.unique(nodes[live][:, [START, PAYLOAD]], axis=0)) == len(live), "an event has one node"
        used = nodes[:, ORDER].copy()
        used[self._numbers.free[self.capacity - int(header[N_FREED]) :]] = 1
        self._numbers.check(used)
        assert nodes.shape[1] == FIELDS + len(self._inputs.rows), "every input has a field"
        assert (np.sort((self._table[self._table != 0] & 0xFFFFFFFF) - 1) == live).all(), "the table has every node once"
        due = nodes[live, DUE]
        assert (due >= self.stable).all(), "nothing that is due is behind the point"
        in_buckets = linked(nodes, DUE, self._buckets, int(header[SHIFT]))
        assert sorted(in_buckets) == live[due < FOREVER].tolist(), "what is due is in a bucket"
        assert (due <= self._latest_due(live)).all(), "no node is due too late"
        assert header[PENDING] == NO_NODE and header[PHASE] == IDLE, "nothing waits between pushes"
        gone = np.flatnonzero(self._inputs.rows[:, STATE] == FREE)
        assert (nodes[live][:, FIELDS + gone] == self.absent).all(), "nothing of an input that left is left"
        self._check_policy(live)

    def _check_policy(self, live: np.ndarray) -> None:
        """Assert what the policies count on."""
        starts, counts = self._nodes[live, START], self._counts(self._nodes[live, SHOWN:])
        for number in np.flatnonzero(self._inputs.rows[:, STATE] != FREE).tolist():
            row, has = self._inputs.rows[number], counts[:, 1 + number]
            if self._header[INSERTS] == UNFROZEN:
                assert has[starts >= row[POINT]].sum() == row[N_UNFROZEN], "what is unfrozen is counted"
            if self._header[INSERTS] == HALF_FROZEN:
                entered = (starts >= self.stable) & (starts < row[ENTERED])
                assert (has <= counts[:, 0])[entered].all(), "what has entered is out"
        if len(self._by_start):
            assert (self._by_start[live, 0] == starts).all(), "a node is in the calendar of starts by its start"
            found = linked(self._by_start, 0, self._start_buckets, int(self._header[START_SHIFT]))
            assert sorted(found) == live[starts < FOREVER].tolist(), "every node is in the calendar of starts"

    def _counts(self, fields: np.ndarray) -> np.ndarray:
        """Return how many events each field stands for."""
        raise NotImplementedError

    def _latest_due(self, live: np.ndarray) -> np.ndarray:
        """Return the time at which each node has to be looked at, at the latest."""
        raise NotImplementedError
