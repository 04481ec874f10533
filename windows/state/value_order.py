"""Rows of one event in an order of their own: by value.

Several rows may begin in one event, and in which order an operator finds them is its own affair: it depends on the strategy, on
the plan and on what was there before. Where order is seen, in the rows of a stream and by FIRST and LAST, they are put in order
of their values:

    (time, rank, first column, second column, ..)      NULL last, NaN above all numbers, texts by code point

Equal rows may stand in either order: nobody can tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array, Vector
from lineage.schema import Type
from windows.delta import Plus


def in_order(times: Array, ranks: Array, columns: Sequence[Vector]) -> Array | None:
    """Return the places of rows, given by (time, rank), ordered by value within each event; None if no event has two rows.

    >>> in_order(np.array([1, 2, 2]), np.array([0, 0, 0]), [Vector.of_strings(["c", "b", "a"])]).tolist()
    [0, 2, 1]
    """
    if not ((times[1:] == times[:-1]) & (ranks[1:] == ranks[:-1])).any():
        return None
    keys: list[Array] = []
    for column in reversed(columns):
        nulls = column.null_mask()
        keys += [np.where(nulls, 0, _keys(column)), nulls]
    return np.lexsort((*keys, ranks, times))


def ordered(plus: Plus) -> Plus:
    """Return the same rows, those of one event in order of value."""
    order = in_order(plus.times, plus.ranks, plus.columns)
    return plus if order is None else plus.take(order)


def _keys(column: Vector) -> Array:
    if column.type is not Type.STRING:
        return column.values
    texts, places = column.compact()
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[places]
