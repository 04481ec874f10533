"""MIN, MAX and MEDIAN from heaps of the rows that count (see `windows/aggregates/heaps.py`).

    MIN, MAX    the root of one heap a group
    MEDIAN      the lower half of the rows in a heap whose root is its largest, the upper half in one whose root is its smallest;
                the lower one has as many rows or one more. Numbers and times are interpolated; of texts and bools it is the
                lower of the two in the middle

Values compare by the order keys of their column: NaN is above all numbers. All are NULL of no rows.
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.growth import LEAST, fitted
from lineage.kernels import kernel
from lineage.schema import Type
from windows.aggregates.aggregate import AggregateKind
from windows.aggregates.heaps import push, remove
from windows.aggregates.operands import Operand
from windows.aggregates.part import AggregatePart
from windows.aggregates.steps import AggregateSteps

_LOWER, _UPPER = 0, 1


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64, int32[:,::1], int32[::1], int64[::1])"
)
def walk_extremes(
    slots: np.ndarray, signs: np.ndarray, groups: np.ndarray, readings: np.ndarray, counted: np.ndarray, keys: np.ndarray,
    flip: int, links: np.ndarray, roots: np.ndarray, read: np.ndarray,
) -> None:  # fmt: skip
    """Apply the steps; write the slot of the extreme at each reading, -1 where a group has no rows."""
    for k in range(len(slots)):
        group, slot = groups[k], slots[k]
        if signs[k] != 0 and counted[slot] != 0:
            if signs[k] > 0:
                roots[group] = push(links, keys, flip, roots[group], slot)
            else:
                roots[group] = remove(links, keys, flip, roots[group], slot)
        if readings[k] >= 0:
            read[readings[k]] = roots[group]


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int32[:,::1], uint8[::1], int32[:,::1],"
    "int64[:,::1], int64[:,::1])"
)
def walk_medians(
    slots: np.ndarray, signs: np.ndarray, groups: np.ndarray, readings: np.ndarray, counted: np.ndarray, keys: np.ndarray,
    links: np.ndarray, upper: np.ndarray, roots: np.ndarray, sizes: np.ndarray, read: np.ndarray,
) -> None:  # fmt: skip
    """Apply the steps; write the slots of the two middle rows at each reading: equal for an odd number, -1 for none."""
    for k in range(len(slots)):
        group, slot = groups[k], slots[k]
        if signs[k] != 0 and counted[slot] != 0:
            low = roots[_LOWER, group]
            if signs[k] > 0:
                side = np.int64(_LOWER if low < 0 or keys[slot] <= keys[low] else _UPPER)
                upper[slot] = side
                roots[side, group] = push(links, keys, side - 1, roots[side, group], slot)
                sizes[side, group] += 1
            else:
                side = np.int64(upper[slot])
                roots[side, group] = remove(links, keys, side - 1, roots[side, group], slot)
                sizes[side, group] -= 1
            excess = sizes[_LOWER, group] - sizes[_UPPER, group]
            if excess < 0 or excess > 1:
                fuller = _LOWER if excess > 1 else _UPPER
                moved = np.int64(roots[fuller, group])
                roots[fuller, group] = remove(links, keys, np.int64(fuller) - 1, roots[fuller, group], moved)
                upper[moved] = 1 - fuller
                roots[1 - fuller, group] = push(links, keys, -np.int64(fuller), roots[1 - fuller, group], moved)
                sizes[fuller, group] -= 1
                sizes[1 - fuller, group] += 1
        at = readings[k]
        if at >= 0:
            even = sizes[_LOWER, group] == sizes[_UPPER, group]
            read[0, at] = roots[_LOWER, group]
            read[1, at] = roots[_UPPER if even else _LOWER, group]


class Extremes(AggregatePart):
    """MIN or MAX."""

    def __init__(self, operand: Operand, kind: AggregateKind) -> None:
        assert operand.column is not None, "an extreme is a value"
        self._operand = operand
        self._column = operand.column
        self._column.ordered = True
        self._flip = -1 if kind is AggregateKind.MAX else 0
        self.clear()

    def clear(self) -> None:
        self._links = np.full((3, LEAST), -1, np.int32)
        #: -1 of an empty group
        self._roots = np.full(LEAST, -1, np.int32)

    def hold(self, n_groups: int, n_slots: int) -> None:
        self._links = fitted(self._links, n_slots, -1)
        self._roots = fitted(self._roots, n_groups, -1)

    def walk(self, steps: AggregateSteps) -> None:
        self._read = np.empty(steps.n_readings, np.int64)
        walk_extremes(
            steps.slots, steps.signs, steps.groups, steps.readings, self._operand.counted, self._column.keys, self._flip,
            self._links, self._roots, self._read,
        )  # fmt: skip

    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        return self._column.cells[self._read], (self._read < 0).view(np.uint8)

    @property
    def bytes(self) -> int:
        return self._links.nbytes + self._roots.nbytes


class Medians(AggregatePart):
    """MEDIAN."""

    def __init__(self, operand: Operand) -> None:
        assert operand.column is not None, "a median is a value"
        self._operand = operand
        self._column = operand.column
        self._column.ordered = True
        self.clear()

    def clear(self) -> None:
        self._links = np.full((3, LEAST), -1, np.int32)
        #: which half a row is in, by slot
        self._upper = np.zeros(LEAST, np.uint8)
        self._roots = np.full((2, LEAST), -1, np.int32)
        self._sizes = np.zeros((2, LEAST), np.int64)

    def hold(self, n_groups: int, n_slots: int) -> None:
        self._links = fitted(self._links, n_slots, -1)
        self._upper = fitted(self._upper, n_slots)
        self._roots = fitted(self._roots, n_groups, -1)
        self._sizes = fitted(self._sizes, n_groups)

    def walk(self, steps: AggregateSteps) -> None:
        self._read = np.empty((2, steps.n_readings), np.int64)
        walk_medians(
            steps.slots, steps.signs, steps.groups, steps.readings, self._operand.counted, self._column.keys, self._links,
            self._upper, self._roots, self._sizes, self._read,
        )  # fmt: skip

    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        low, high = self._column.cells[self._read]
        return _middle(self._column.type, low, high), (self._read[0] < 0).view(np.uint8)

    @property
    def bytes(self) -> int:
        return self._links.nbytes + self._upper.nbytes + self._roots.nbytes + self._sizes.nbytes


def _middle(type: Type, low: Array, high: Array) -> Array:
    """Return the cells halfway between two: floats for ints and floats, else of the same type."""
    if type is Type.TIMESTAMP:
        # the sum may not fit; a half goes away from 1970, as in DuckDB
        down: Array = (low >> 1) + (high >> 1) + (low & high & 1)
        down += (low ^ high) & 1 & (down >= 0)
        return down
    if type in (Type.STRING, Type.BOOL):
        return low
    if type is Type.FLOAT:
        low, high = low.view(np.float64), high.view(np.float64)
    with np.errstate(invalid="ignore"):
        middle: Array = np.where(low == high, low, low * 0.5 + high * 0.5)
    return middle.astype(np.float64, copy=False).view(np.int64)
