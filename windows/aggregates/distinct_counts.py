"""COUNT(DISTINCT x): the number of live rows of each (group, value), and of values with at least one.

pairs          codes of (group, value), with a reference for each live row that counts
copies[pair]   live rows with it, in the order of events; a group's count is that of its pairs with copies
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array, Vector
from lineage.growth import LEAST, fitted
from lineage.kernels import kernel
from lineage.schema import Type
from windows.aggregates.aggregate import AggregateKind
from windows.aggregates.operands import Operand
from windows.aggregates.part import AggregatePart
from windows.aggregates.steps import AggregateSteps
from windows.state.values import ValueCodes


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1], int64[::1])"
)  # fmt: skip
def walk_distinct(
    slots: np.ndarray, signs: np.ndarray, groups: np.ndarray, readings: np.ndarray, counted: np.ndarray, pairs: np.ndarray,
    copies: np.ndarray, counts: np.ndarray, read: np.ndarray,
) -> None:  # fmt: skip
    """Apply the steps; write the number of distinct values at each reading."""
    for k in range(len(slots)):
        group, slot = groups[k], slots[k]
        if signs[k] != 0 and counted[slot] != 0:
            pair = pairs[slot]
            counts[group] -= copies[pair] > 0
            copies[pair] += signs[k]
            counts[group] += copies[pair] > 0
        if readings[k] >= 0:
            read[readings[k]] = counts[group]


class DistinctCounts(AggregatePart):
    """COUNT(DISTINCT x)."""

    def __init__(self, operand: Operand) -> None:
        assert operand.column is not None, "a value is distinct"
        self._operand = operand
        self._column = operand.column
        self._codes = ValueCodes([Type.INT, operand.column.type])
        self.clear()

    def clear(self) -> None:
        self._pairs = np.zeros(LEAST, np.int64)
        self._copies = np.zeros(LEAST, np.int64)
        self._counts = np.zeros(LEAST, np.int64)

    def hold(self, n_groups: int, n_slots: int) -> None:
        self._counts = fitted(self._counts, n_groups)
        self._pairs = fitted(self._pairs, n_slots)

    def enter(self, slots: Array, groups: Array) -> None:
        counted = self._operand.counted[slots] != 0
        rows = slots[counted]
        value = self._column.vector(self._column.cells[rows], self._column.nulls[rows])
        self._pairs[rows] = self._codes.encode([Vector(Type.INT, groups[counted]), value], len(rows))
        self._copies = fitted(self._copies, self._codes.capacity)

    def walk(self, steps: AggregateSteps) -> None:
        self._read = np.empty(steps.n_readings, np.int64)
        walk_distinct(
            steps.slots, steps.signs, steps.groups, steps.readings, self._operand.counted, self._pairs, self._copies,
            self._counts, self._read,
        )  # fmt: skip

    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        return self._read, np.zeros(len(self._read), np.uint8)

    def leave(self, slots: Array) -> None:
        self._codes.release(self._pairs[slots[self._operand.counted[slots] != 0]])

    @property
    def bytes(self) -> int:
        return self._codes.bytes + self._pairs.nbytes + self._copies.nbytes + self._counts.nbytes
