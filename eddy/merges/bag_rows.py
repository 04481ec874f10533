"""The rows of the events of a bag: one copy of the columns for equal rows of one time, and what each of the rows became.

    copies    node, receipt, end, position: one for each row that some input was the first to give so often, in order of receipt

The k-th copy that a merge gives out is the k-th that came; of copies with equal ends the one that came first ends first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddy.merges.event_rows import GONE, WAITS, EventRows
from lineage.schema import Schema

_NODE, _RECEIPT, _END, _POSITION = range(4)


class BagRows(EventRows):
    """The rows of the events of one merged stream without `unique`."""

    __slots__ = ("_copies",)

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self._copies = np.zeros((4, 0), np.int64)

    def put(
        self, nodes: np.ndarray, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], payloads: np.ndarray,
        receipts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        copies = np.stack([nodes, receipts, np.zeros(len(nodes), np.int64), np.full(len(nodes), WAITS)])
        self._copies = np.concatenate([self._copies, copies], axis=1)
        # the columns are kept with the first of equal rows
        is_first = np.zeros(len(nodes), np.bool_)
        is_first[np.unique(nodes, return_index=True)[1]] = True
        is_first &= super().positions(nodes) == GONE
        rows = np.flatnonzero(is_first)
        columns, null_columns = [column[rows] for column in cells], [None if null is None else null[rows] for null in nulls]
        super().put(nodes[rows], columns, null_columns, payloads[rows], receipts[rows])
        self.n_waiting += len(nodes) - len(rows)
        return is_first

    def enter(self, rows: np.ndarray, ends: np.ndarray, first: int) -> None:
        self.n_waiting -= int(np.count_nonzero(self._copies[_POSITION, rows] == WAITS))
        self._copies[_END, rows] = ends
        self._copies[_POSITION, rows] = np.arange(first, first + len(rows))

    def leave(self, nodes: np.ndarray) -> None:
        if not len(nodes):
            return
        is_gone = np.zeros(self.capacity, np.bool_)
        is_gone[nodes] = True
        gone = is_gone[self._copies[_NODE]]
        waiting = int(np.count_nonzero(self._copies[_POSITION, gone] == WAITS))
        before = self.n_waiting
        super().leave(nodes)
        self.n_waiting = before - waiting
        self._copies = self._copies[:, ~gone]

    def waiting(self, nodes: np.ndarray) -> np.ndarray:
        held = np.flatnonzero(self._copies[_POSITION] == WAITS)
        return _paired(np.stack([nodes, np.zeros_like(nodes)]), self._copies[_NODE, held], np.zeros(len(held), np.int64), held)

    def entered(self, nodes: np.ndarray, ends: np.ndarray) -> np.ndarray:
        held = np.flatnonzero(self._copies[_POSITION] >= 0)
        return _paired(np.stack([nodes, ends]), self._copies[_NODE, held], self._copies[_END, held], held)

    def receipts(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._copies[_RECEIPT, rows]
        return found

    def positions(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._copies[_POSITION, rows]
        return found

    def row_bytes(self) -> int:
        return super().row_bytes() + 32

    @property
    def bytes(self) -> int:
        return super().bytes + self._copies.nbytes

    def check(self, n_live: int, next_row: int) -> None:
        live = self.live()
        assert len(live) >= n_live, "every record has its row"
        assert set(self._copies[_NODE].tolist()) == set(live.tolist()), "every record has a copy"
        assert int(np.count_nonzero(self._copies[_POSITION] == WAITS)) == self.n_waiting, "rows that wait are counted"
        assert (self._copies[_POSITION] < next_row).all(), "a row that entered has a number"


def _paired(wanted: np.ndarray, nodes: np.ndarray, ends: np.ndarray, held: np.ndarray) -> np.ndarray:
    """For each wanted node and end one of the held copies that have them: for the k-th equal one the k-th."""
    n = wanted.shape[1]
    if not n:
        return held[:0]
    is_wanted = np.zeros(int(max(wanted[0].max(), nodes.max(initial=0))) + 1, np.bool_)
    is_wanted[wanted[0]] = True
    near = np.flatnonzero(is_wanted[nodes])
    different, ends = np.unique(np.concatenate([wanted[1], ends[near]]), return_inverse=True)
    codes = np.concatenate([wanted[0], nodes[near]]) * len(different) + ends
    keys, found = (_ranked(codes[:n]), _ranked(codes[n:]))
    order = np.argsort(found)
    at = np.searchsorted(found[order], keys)
    assert len(order) and (found[order][np.minimum(at, len(order) - 1)] == keys).all(), "there is a copy for what is given out"
    return held[near[order[at]]]


def _ranked(codes: np.ndarray) -> np.ndarray:
    """Codes with the rank of each entry among equal ones."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    first = np.searchsorted(ordered, ordered, "left")
    ranked = np.empty(len(codes), np.int64)
    ranked[order] = (ordered << 32) | (np.arange(len(codes)) - first)
    return ranked
