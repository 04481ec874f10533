"""The rows of the events of a bag: one copy of the columns for equal rows of one time, and what each of the rows became.

    copies[c]    node, receipt, end, position, the next copy; one for each row that some input was the first to give so often
    lists[n]     the copies of a node that wait, and those in the stream: first and last of each list, in order of receipt

The k-th copy that a merge gives out is the k-th that came; of copies with equal ends the one that came first ends first. A copy
that has ended earlier than it said is in no list any more, so it cannot end twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddy.merges.event_rows import GONE, WAITS, EventRows
from lineage.growth import LEAST, fitted_rows
from lineage.kernels import Number, inline, kernel
from lineage.numbers import Numbers
from lineage.schema import Schema

#: Fields of a copy; the node is one more than its number, 0 where there is no copy.
_NODE, _RECEIPT, _END, _POSITION, _NEXT = range(5)
#: Places of a node's lists: the first and the last copy that waits, and of those in the stream.
_WAITING, _ENTERED = 0, 2
_NONE = -1


@inline
def _link(copies: Number, lists: Number, node: Number, which: Number, copy: Number) -> None:
    """Put a copy into a list of a node, in order of receipt."""
    before = lists[node, which + 1]
    if before >= 0 and copies[before, _RECEIPT] > copies[copy, _RECEIPT]:
        before = np.int64(_NONE)
        after = lists[node, which]
        while copies[after, _RECEIPT] < copies[copy, _RECEIPT]:
            before = after
            after = copies[after, _NEXT]
    after = lists[node, which] if before < 0 else copies[before, _NEXT]
    copies[copy, _NEXT] = after
    if before < 0:
        lists[node, which] = copy
    else:
        copies[before, _NEXT] = copy
    if after < 0:
        lists[node, which + 1] = copy


@inline
def _unlink(copies: Number, lists: Number, node: Number, which: Number, before: Number, copy: Number) -> None:
    """Take a copy, which stands after another one or first, out of a list of a node."""
    after = copies[copy, _NEXT]
    if before < 0:
        lists[node, which] = after
    else:
        copies[before, _NEXT] = after
    if after < 0:
        lists[node, which + 1] = before


@kernel("void(int64[::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1])")
def add_copies(
    nodes: np.ndarray, receipts: np.ndarray, numbers: np.ndarray, copies: np.ndarray, lists: np.ndarray
) -> None:  # fmt: skip
    """Let copies of nodes wait."""
    for k in range(len(nodes)):
        copy = numbers[k]
        copies[copy, _NODE] = nodes[k] + 1
        copies[copy, _RECEIPT] = receipts[k]
        copies[copy, _END] = 0
        copies[copy, _POSITION] = WAITS
        _link(copies, lists, nodes[k], _WAITING, copy)


@kernel("void(int64[::1], int64[::1], int64[:,::1], int64[:,::1])")
def take_waiting(nodes: np.ndarray, found: np.ndarray, copies: np.ndarray, lists: np.ndarray) -> None:
    """Take out, for each entry, the first copy of its node that waits; -1 where there is none."""
    for k in range(len(nodes)):
        found[k] = lists[nodes[k], _WAITING]
        if found[k] >= 0:
            _unlink(copies, lists, nodes[k], _WAITING, np.int64(_NONE), found[k])


@kernel("void(int64[::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1])")
def take_entered(nodes: np.ndarray, ends: np.ndarray, found: np.ndarray, copies: np.ndarray, lists: np.ndarray) -> None:
    """Take out, for each entry, the first copy of its node in the stream that has its end; -1 where there is none."""
    for k in range(len(nodes)):
        before = np.int64(_NONE)
        copy = lists[nodes[k], _ENTERED]
        while copy >= 0 and copies[copy, _END] != ends[k]:
            before = copy
            copy = copies[copy, _NEXT]
        found[k] = copy
        if copy >= 0:
            _unlink(copies, lists, nodes[k], _ENTERED, before, copy)


@kernel("int64(int64[::1], int64[::1], int64, int64[:,::1], int64[:,::1])")
def enter_copies(numbers: np.ndarray, ends: np.ndarray, first: int, copies: np.ndarray, lists: np.ndarray) -> int:
    """Put copies into the stream with some ends, from a position on; returns how many of them waited."""
    n_waited = 0
    for k in range(len(numbers)):
        copy = numbers[k]
        n_waited += copies[copy, _POSITION] == WAITS
        copies[copy, _END] = ends[k]
        copies[copy, _POSITION] = first + k
        _link(copies, lists, copies[copy, _NODE] - 1, _ENTERED, copy)
    return n_waited


@kernel("int64(int64[::1], int64[::1], int64[:,::1], int64[:,::1])")
def drop_copies(nodes: np.ndarray, found: np.ndarray, copies: np.ndarray, lists: np.ndarray) -> int:
    """Write the copies of nodes, which have none then; returns how many there were."""
    n = 0
    for k in range(len(nodes)):
        for which in (_WAITING, _ENTERED):
            copy = lists[nodes[k], which]
            while copy >= 0:
                found[n] = copy
                n += 1
                copy = copies[copy, _NEXT]
            lists[nodes[k], which] = _NONE
            lists[nodes[k], which + 1] = _NONE
    return n


class BagRows(EventRows):
    """The rows of the events of one merged stream without `unique`."""

    __slots__ = ("_numbers", "_copies", "_lists", "_n_copies")

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self._numbers = Numbers()
        self._copies = np.zeros((self._numbers.capacity, 5), np.int64)
        self._lists = np.full((LEAST, 4), _NONE)
        self._n_copies = 0

    def fit(self, capacity: int) -> None:
        super().fit(capacity)
        self._lists = fitted_rows(self._lists, capacity, _NONE)

    def put(
        self, nodes: np.ndarray, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], payloads: np.ndarray,
        receipts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        # the columns are kept with the first of equal rows
        is_first = np.zeros(len(nodes), np.bool_)
        is_first[np.unique(nodes, return_index=True)[1]] = True
        is_first &= super().positions(nodes) == GONE
        rows = np.flatnonzero(is_first)
        columns, null_columns = [column[rows] for column in cells], [None if null is None else null[rows] for null in nulls]
        super().put(nodes[rows], columns, null_columns, payloads[rows], receipts[rows])
        self.n_waiting += len(nodes) - len(rows)
        if self._numbers.reserve(len(nodes), self._copies[:, _NODE]):
            self._copies = fitted_rows(self._copies, self._numbers.capacity)
        self._n_copies += len(nodes)
        add_copies(nodes, receipts, self._numbers.take(len(nodes)), self._copies, self._lists)
        return is_first

    def enter(self, rows: np.ndarray, ends: np.ndarray, first: int) -> None:
        self.n_waiting -= enter_copies(rows, ends, first, self._copies, self._lists)

    def end(self, rows: np.ndarray) -> None:
        self._free(rows)

    def leave(self, nodes: np.ndarray) -> None:
        if not len(nodes):
            return
        found = np.empty(self._n_copies, np.int64)
        gone = found[: drop_copies(nodes, found, self._copies, self._lists)]
        n_waiting = self.n_waiting - int(np.count_nonzero(self._copies[gone, _POSITION] == WAITS))
        super().leave(nodes)
        self.n_waiting = n_waiting
        self._free(gone)

    def _free(self, copies: np.ndarray) -> None:
        """Let go of copies that are in no list."""
        self._copies[copies, _NODE] = 0
        self._n_copies -= len(copies)
        self._numbers.give(copies)
        if self._numbers.shrink(len(copies), self._copies[:, _NODE], self._n_copies):
            self._copies = fitted_rows(self._copies, self._numbers.capacity)

    def waiting(self, nodes: np.ndarray) -> np.ndarray:
        found = np.empty(len(nodes), np.int64)
        take_waiting(nodes, found, self._copies, self._lists)
        assert (found >= 0).all(), "there is a copy for what is given out"
        return found

    def entered(self, nodes: np.ndarray, ends: np.ndarray) -> np.ndarray:
        found = np.empty(len(nodes), np.int64)
        take_entered(nodes, ends, found, self._copies, self._lists)
        assert (found >= 0).all(), "there is a copy for what is changed"
        return found

    def receipts(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._copies[rows, _RECEIPT]
        return found

    def positions(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._copies[rows, _POSITION]
        return found

    def row_bytes(self) -> int:
        return super().row_bytes() + 160

    @property
    def bytes(self) -> int:
        return super().bytes + self._copies.nbytes + self._lists.nbytes + self._numbers.bytes

    def check(self, n_live: int, next_row: int) -> None:
        live = self.live()
        assert len(live) >= n_live, "every record has its row"
        used = self._copies[self._copies[:, _NODE] > 0]
        self._numbers.check(self._copies[:, _NODE])
        assert len(used) == self._n_copies, "copies are counted"
        assert set((used[:, _NODE] - 1).tolist()) <= set(live.tolist()), "every copy has a record"
        assert int(np.count_nonzero(used[:, _POSITION] == WAITS)) == self.n_waiting, "rows that wait are counted"
        assert (used[:, _POSITION] < next_row).all(), "a row that entered has a number"
        listed = [copy for node in live.tolist() for which in (_WAITING, _ENTERED) for copy in self._listed(node, which)]
        assert sorted(listed) == np.flatnonzero(self._copies[:, _NODE]).tolist(), "every copy is in one list"

    def _listed(self, node: int, which: int) -> list[int]:
        """The copies of a list, in order."""
        found: list[int] = []
        copy = int(self._lists[node, which])
        while copy >= 0:
            assert not found or self._copies[found[-1], _RECEIPT] < self._copies[copy, _RECEIPT], "lists go by receipt"
            found.append(copy)
            copy = int(self._copies[copy, _NEXT])
        assert self._lists[node, which + 1] == (found[-1] if found else _NONE), "the last copy ends its list"
        return found
