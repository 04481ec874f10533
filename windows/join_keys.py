"""The keys of two sides of a join as codes: rows can only meet if their codes are equal.

A pair of columns of one type is compared as values are; an int with a float as real numbers, exactly. A row with a NULL in its
key, or with an int that no float equals against a float column, meets nobody. Without pairs every row has the same key: a cross
product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from filters.vector import Array, Vector
from lineage.schema import Type

#: Floats from here on are beyond int64.
_INT_LIMIT = 2.0**63


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two columns that have to be equal, by position on their sides."""

    left: int
    right: int


def key_types(left: Sequence[Type], right: Sequence[Type], pairs: Sequence[KeyPair]) -> list[Type]:
    """The type in which each pair is compared."""
    types = []
    for pair in pairs:
        a, b = left[pair.left], right[pair.right]
        assert a is b or (a.numeric and b.numeric), f"{a} never equals {b}"
        types.append(a if a is b else Type.FLOAT)
    return types


def key_columns(columns: Sequence[Vector], types: Sequence[Type], n_rows: int) -> tuple[list[Vector], Array]:
    """The key columns of a side in the types they are compared in, and which rows can meet any."""
    usable = np.ones(n_rows, np.bool_)
    keys = []
    for column, type in zip(columns, types, strict=True):
        if column.nulls is not None:
            usable &= ~column.nulls
        if column.type is Type.INT and type is Type.FLOAT:
            values = column.values.astype(np.float64)
            inside = values < _INT_LIMIT
            usable &= inside & (np.where(inside, values, 0.0).astype(np.int64) == column.values)
            column = Vector(type, values, column.nulls)
        keys.append(column)
    return keys, usable
