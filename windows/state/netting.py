"""Changes of equal values cancel out: what remains of a group of events, value by value.

With p beginnings and m ends of a value in a group, min(p, m) of each cancel; the + with the latest starts and the - with the
latest ends remain (semantics 12). Groups are events (ISTREAM, DSTREAM), instants (`emit="event"`) or commits (`emit="commit"`).

    Netting         for operators, which have codes of their values already (`windows/state/values.py`)
    uncancelled     for rows that have none: changes that a cursor reads, an answer against the one before
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array, Vector, merged_texts
from lineage.growth import LEAST
from lineage.kernels import kernel
from lineage.schema import Type
from windows.state.values import ValueCodes


@kernel("int64(int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1])")
def net_groups(codes: np.ndarray, signs: np.ndarray, stops: np.ndarray, counts: np.ndarray, remaining: np.ndarray) -> int:
    """The events of each group that remain, ends before beginnings; group g stops before `stops[g]`. Returns how many.

    `counts[value]` is (ends, beginnings) of the group, 0 between groups.
    """
    n = np.int64(0)
    start = np.int64(0)
    for g in range(len(stops)):
        for k in range(start, stops[g]):
            counts[codes[k], np.int64(signs[k] > 0)] += 1
        for k in range(start, stops[g]):
            code = codes[k]
            cancelled = min(counts[code, 0], counts[code, 1])
            counts[code, 0] = cancelled
            counts[code, 1] = cancelled
        # the first of either sign have a counterpart
        for side in range(2):
            for k in range(start, stops[g]):
                if np.int64(signs[k] > 0) == side:
                    if counts[codes[k], side] > 0:
                        counts[codes[k], side] -= 1
                    else:
                        remaining[n] = k
                        n += 1
        start = stops[g]
    return int(n)


class Netting:
    """Scratch by code for `net_groups`."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        #: by code, 0 between calls: ends, beginnings
        self._counts = np.zeros((LEAST, 2), np.int64)

    def remaining(self, codes: Array, signs: Array, stops: Array, capacity: int) -> Array:
        """Places of the events that remain, ends first within a group; codes are below `capacity`."""
        if len(self._counts) != capacity:
            self._counts = np.zeros((capacity, 2), np.int64)
        found = np.empty(len(codes), np.int64)
        return found[: net_groups(codes, signs, stops, self._counts, found)]

    @property
    def bytes(self) -> int:
        return self._counts.nbytes

    def shrink(self) -> None:
        """Shrink the scratch counts to their smallest size; no row is alive."""
        self._counts = np.zeros((LEAST, 2), np.int64)


def group_stops(*keys: Array) -> Array:
    """Return the end of each run of equal neighbours."""
    n = len(keys[0])
    if n == 0:
        return np.zeros(0, np.int64)
    differs = np.zeros(n - 1, np.bool_)
    for key in keys:
        differs |= key[1:] != key[:-1]
    return np.append(np.flatnonzero(differs) + 1, n)


def uncancelled(minus: Sequence[Vector], plus: Sequence[Vector]) -> tuple[Array, Array]:
    """Return the rows of `minus` and those of `plus` that remain when rows of equal values cancel: the last of each value."""
    columns = [_joined(pair) for pair in zip(minus, plus, strict=True)]
    values = ValueCodes([column.type for column in columns])
    codes = values.encode(columns, len(columns[0]))
    n_minus = len(minus[0])
    signs = np.ones(len(codes), np.int64)
    signs[:n_minus] = -1
    places = Netting().remaining(codes, signs, np.array([len(codes)]), values.capacity)
    # as many of either side cancel
    n = n_minus - (len(codes) - len(places)) // 2
    return places[:n], places[n:] - n_minus


def _joined(pair: tuple[Vector, Vector]) -> Vector:
    """Concatenate two vectors for comparison, texts as codes."""
    nulls = None
    if pair[0].nulls is not None or pair[1].nulls is not None:
        nulls = np.concatenate([column.null_mask() for column in pair])
    if pair[0].type is Type.STRING:
        return Vector(Type.INT, np.concatenate(merged_texts(pair)[1]), nulls)
    return Vector(pair[0].type, np.concatenate([column.values for column in pair]), nulls)
