"""FIRST and LAST: the rows of each group that count, linked in the order in which they came.

    heads[group] -> next[row] -> .. -> tails[group]        and back by prev; -1 at either end

A row may leave from anywhere in O(1). NULLs count; both are NULL of no rows.
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.growth import LEAST, fitted
from lineage.kernels import kernel
from windows.aggregates.aggregate import AggregateKind
from windows.aggregates.operands import Operand
from windows.aggregates.part import AggregatePart
from windows.aggregates.steps import AggregateSteps

_NEXT, _PREV = 0, 1
_HEAD, _TAIL = 0, 1


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int32[:,::1], int32[:,::1], int64[:,::1])"
)  # fmt: skip
def walk_chains(
    slots: np.ndarray, signs: np.ndarray, groups: np.ndarray, readings: np.ndarray, counted: np.ndarray, links: np.ndarray,
    ends: np.ndarray, read: np.ndarray,
) -> None:  # fmt: skip
    """Apply the steps; write the slots of the first and last row at each reading, -1 where a group has none."""
    for k in range(len(slots)):
        group, slot = groups[k], slots[k]
        if signs[k] != 0 and counted[slot] != 0:
            if signs[k] > 0:
                last = ends[_TAIL, group]
                links[_NEXT, slot] = -1
                links[_PREV, slot] = last
                if last >= 0:
                    links[_NEXT, last] = slot
                else:
                    ends[_HEAD, group] = slot
                ends[_TAIL, group] = slot
            else:
                after, before = links[_NEXT, slot], links[_PREV, slot]
                if before >= 0:
                    links[_NEXT, before] = after
                else:
                    ends[_HEAD, group] = after
                if after >= 0:
                    links[_PREV, after] = before
                else:
                    ends[_TAIL, group] = before
        if readings[k] >= 0:
            read[_HEAD, readings[k]] = ends[_HEAD, group]
            read[_TAIL, readings[k]] = ends[_TAIL, group]


class Chains(AggregatePart):
    """FIRST and LAST over one operand, whose NULLs count."""

    def __init__(self, operand: Operand) -> None:
        assert operand.column is not None and operand.with_nulls, "FIRST and LAST give a value, which may be NULL"
        self._operand = operand
        self._column = operand.column
        self.clear()

    def clear(self) -> None:
        self._links = np.full((2, LEAST), -1, np.int32)
        self._ends = np.full((2, LEAST), -1, np.int32)

    def hold(self, n_groups: int, n_slots: int) -> None:
        self._links = fitted(self._links, n_slots, -1)
        self._ends = fitted(self._ends, n_groups, -1)

    def walk(self, steps: AggregateSteps) -> None:
        self._read = np.empty((2, steps.n_readings), np.int64)
        walk_chains(
            steps.slots, steps.signs, steps.groups, steps.readings, self._operand.counted, self._links, self._ends, self._read
        )

    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        rows = self._read[_HEAD if kind is AggregateKind.FIRST else _TAIL]
        return self._column.cells[rows], self._column.nulls[rows] | (rows < 0)

    @property
    def bytes(self) -> int:
        return self._links.nbytes + self._ends.nbytes
