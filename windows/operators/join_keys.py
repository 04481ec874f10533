"""The keys of two sides of a join as codes: rows can only meet if their codes are equal.

A key is columns, or expressions over the columns of one side that are computed once for each row as it comes; one that cannot
be computed is NULL, and counted then. A pair of one type is compared as values are; an int with a float as real numbers,
exactly. A row with a NULL in its key, or with an int that no float equals against a float, meets nobody. Without pairs every row
has the same key: a cross product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from filters.expressions.evaluate import evaluate
from filters.expressions.expression import ColumnRef, Expression
from filters.values.vector import Array, ListFrame, Vector
from lineage.schema import Type
from windows.operators.seats import SeatFrame, Seats

#: Floats from here on are beyond int64.
_INT_LIMIT = 2.0**63


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two expressions that have to be equal, each over the columns of its side."""

    left: Expression
    right: Expression

    @classmethod
    def of_columns(cls, types: Sequence[Sequence[Type]], left: int, right: int) -> KeyPair:
        """Two columns of sides with these types, by position."""
        return cls(*(ColumnRef(side[at], f"column_{at}", at) for side, at in zip(types, (left, right), strict=True)))


def key_types(pairs: Sequence[KeyPair]) -> list[Type]:
    """Return the type in which each pair is compared."""
    types = []
    for pair in pairs:
        a, b = pair.left.type, pair.right.type
        assert a is b or (a.numeric and b.numeric), f"{a} never equals {b}"
        types.append(a if a is b else Type.FLOAT)
    return types


def key_columns(
    keyed: Sequence[Expression], types: Sequence[Type], columns: Sequence[Vector], n_rows: int, seats: Seats | None
) -> tuple[list[Vector], Array, int]:
    """Return the key columns of a side, a mask of the rows whose key can match, and the number of values not computed; these are
    counted at the seats of their rows too."""
    usable = np.ones(n_rows, np.bool_)
    frame = ListFrame(columns, n_rows) if seats is None else SeatFrame(columns, n_rows, seats)
    keys = []
    for expression, type in zip(keyed, types, strict=True):
        column = evaluate(expression, frame).widened(expression.type)
        if column.nulls is not None:
            usable &= ~column.nulls
        if column.type is Type.INT and type is Type.FLOAT:
            values = column.values.astype(np.float64)
            inside = values < _INT_LIMIT
            usable &= inside & (np.where(inside, values, 0.0).astype(np.int64) == column.values)
            column = Vector(type, values, column.nulls)
        keys.append(column)
    return keys, usable, frame.count() if isinstance(frame, SeatFrame) else frame.errors
