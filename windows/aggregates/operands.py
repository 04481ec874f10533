"""The columns that aggregates read, for every live row, by slot.

    column    cells and null bytes of one input column (in the form of `lineage/schema.py`), texts under codes of their own
    operand   a column with the rows that count for an aggregate over it: those whose FILTER is true and, unless NULLs count,
              whose value is not NULL

Aggregates with the same argument and FILTER share both. What a slot holds does not change while its row is alive.
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import DTYPES, Array, Vector
from lineage.growth import LEAST, fitted
from lineage.kernels import kernel
from lineage.order_keys import order_key
from lineage.schema import Type
from windows.aggregates.text_order import TextOrder
from windows.state.texts import Texts

#: Texts that nobody uses are thrown out when they are more than the live rows and this many.
_SLACK_TEXTS = 1024
#: Types whose cells do not order as the values do.
_KEYED = (Type.FLOAT, Type.STRING)


@kernel("void(int64[::1], int64[::1], int64[::1])")
def order_floats(slots: np.ndarray, cells: np.ndarray, keys: np.ndarray) -> None:
    """Write the order keys of the floats in some slots."""
    for k in range(len(slots)):
        keys[slots[k]] = order_key(cells[slots[k]], True)


class OperandColumn:
    """One input column by slot, in its own type or as floats."""

    __slots__ = ("type", "place", "ordered", "cells", "nulls", "texts", "_keys", "_order")

    def __init__(self, place: int, type: Type) -> None:
        self.place = place
        self.type = type
        #: whether somebody asks for `keys`; set before any row comes
        self.ordered = False
        self.clear()

    def clear(self) -> None:
        self.cells = np.zeros(LEAST, np.int64)
        self.nulls = np.zeros(LEAST, np.uint8)
        self._keys = np.zeros(LEAST, np.int64)
        self.texts = Texts() if self.type is Type.STRING else None
        self._order = TextOrder()

    def hold(self, n_slots: int) -> None:
        self.cells = fitted(self.cells, n_slots)
        self.nulls = fitted(self.nulls, n_slots)
        if self.ordered and self.type in _KEYED:
            self._keys = fitted(self._keys, n_slots)

    @property
    def keys(self) -> Array:
        """Integers that order as the values do, by slot."""
        return self._keys if self.type in _KEYED else self.cells

    def enter(self, slots: Array, columns: list[Vector]) -> None:
        """Store the values of rows that begin."""
        column = columns[self.place].widened(self.type)
        if self.texts is not None:
            self.cells[slots] = self.texts.encode(column)
        elif self.type is Type.FLOAT:
            # a constant has stride 0, which cannot be looked at as other words
            self.cells[slots] = np.ascontiguousarray(column.values).view(np.int64)
        else:
            self.cells[slots] = column.values
        self.nulls[slots] = 0 if column.nulls is None else column.nulls
        if column.nulls is not None:
            self.cells[slots[column.nulls]] = 0
        if self.ordered and self.type in _KEYED:
            self._enter_keys(slots)

    def _enter_keys(self, slots: Array) -> None:
        if self.texts is None:
            order_floats(slots, self.cells, self._keys)
            return
        known = len(self._order)
        if self._order.add(known, self.texts.since(known)):
            # labels of rows that are alive; a free slot may hold a code that is gone
            self._keys = self._order.labels[np.minimum(self.cells, len(self.texts) - 1)]
        self._keys[slots] = self._order.labels[self.cells[slots]]

    def many_texts(self, n_live: int) -> bool:
        """Whether most of the texts belong to rows that ended."""
        return self.texts is not None and len(self.texts) > 2 * n_live + _SLACK_TEXTS

    def forget_texts(self, live: Array) -> Array:
        """Drop the texts that no live slot has; returns the new code of each old one, -1 for dropped texts."""
        assert self.texts is not None, "only a text column has texts"
        used = live[self.nulls[live] == 0]
        remap = self.texts.compact(self.cells[used])
        self.cells[used] = remap[self.cells[used]]
        if self.ordered:
            self._order = TextOrder()
            self._order.add(0, self.texts.since(0))
            self._keys[used] = self._order.labels[self.cells[used]]
        return remap

    def vector(self, cells: Array, nulls: Array) -> Vector:
        """Return cells as a vector of values."""
        mask = nulls.astype(np.bool_) if nulls.any() else None
        if self.texts is not None:
            return self.texts.vector(cells, mask)
        if self.type is Type.FLOAT:
            return Vector(Type.FLOAT, cells.view(np.float64), mask)
        return Vector(self.type, cells.astype(DTYPES[self.type], copy=False), mask)

    @property
    def bytes(self) -> int:
        texts = 0 if self.texts is None else self.texts.bytes + self._order.bytes
        return self.cells.nbytes + self.nulls.nbytes + self._keys.nbytes + texts


class Operand:
    """A column with a mask of the rows that count."""

    __slots__ = ("column", "filter", "with_nulls", "counted")

    def __init__(self, column: OperandColumn | None, filter: int | None, with_nulls: bool) -> None:
        #: None: only the rows matter
        self.column = column
        self.filter = filter
        self.with_nulls = with_nulls
        self.clear()

    def clear(self) -> None:
        self.counted = np.zeros(LEAST, np.uint8)

    def hold(self, n_slots: int) -> None:
        self.counted = fitted(self.counted, n_slots)

    def enter(self, slots: Array, columns: list[Vector]) -> None:
        """Decide which of the rows that begin count; the column has their values already."""
        counted = np.ones(len(slots), np.bool_)
        if self.filter is not None:
            passed = columns[self.filter]
            counted &= passed.values.astype(np.bool_)
            if passed.nulls is not None:
                counted &= ~passed.nulls
        if self.column is not None and not self.with_nulls:
            counted &= self.column.nulls[slots] == 0
        self.counted[slots] = counted

    @property
    def cells(self) -> Array:
        assert self.column is not None, "an aggregate of values has a column"
        return self.column.cells

    @property
    def bytes(self) -> int:
        return self.counted.nbytes
