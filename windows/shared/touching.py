"""The time at which a cell of shared aggregates last changed: that of the last row that came or went in a (query, group).

Sums know what a commit did to a cell, not when. The rows of the commit are laid out by group, the newest first; the first one
that counts for the query tells. Rows that do not count are few before it, for the cell of a query that admits hardly any row
hardly ever changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array
from lineage.bits import ONE
from lineage.kernels import kernel

U64 = np.uint64


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1])")
def lay_out_groups(groups: np.ndarray, newest: np.ndarray, firsts: np.ndarray, order: np.ndarray) -> None:
    """Sort rows by group, in the order of `newest`: group g has `order[firsts[g]:firsts[g + 1]]`; `firsts` are 0 before."""
    for i in range(len(groups)):
        firsts[groups[i] + 1] += 1
    for g in range(1, len(firsts)):
        firsts[g] += firsts[g - 1]
    for k in range(len(newest)):
        group = groups[newest[k]]
        order[firsts[group]] = newest[k]
        firsts[group] += 1
    for g in range(len(firsts) - 1, 0, -1):
        firsts[g] = firsts[g - 1]
    firsts[0] = 0


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint64[:,::1], int64[::1], int64[::1],"
    "int64[::1], int64[::1], int64[::1], int64[::1])"
)
def find_touches(
    groups: np.ndarray, queries: np.ndarray, low: np.ndarray, high: np.ndarray, born: np.ndarray, listed: np.ndarray,
    bits: np.ndarray, firsts: np.ndarray, order: np.ndarray, ranks: np.ndarray, positions: np.ndarray, times: np.ndarray,
    found: np.ndarray,
) -> None:  # fmt: skip
    """Write the time of the newest row that counts for each (query, group); `listed[query]` is its row of bits, or -1."""
    for k in range(len(groups)):
        query = queries[k]
        row = listed[query]
        for at in range(firsts[groups[k]], firsts[groups[k] + 1]):
            i = order[at]
            if row >= 0:
                counts = (bits[row, i >> 6] >> U64(i & 63)) & ONE != 0
            else:
                counts = ranks[i] >= low[query] and ranks[i] < high[query] and positions[i] >= born[query]
            if counts:
                found[k] = times[i]
                break


class Touches:
    """The rows that came and went in one commit, which tell when cells were last touched."""

    __slots__ = ("_groups", "_ranks", "_positions", "_times", "_low", "_high", "_born", "_listed", "_bits", "_laid_out")

    def __init__(
        self, groups: Array, ranks: Array, positions: Array, times: Array, low: Array, high: Array, born: Array,
        listed: Sequence[int], bits: Array,
    ) -> None:  # fmt: skip
        """By row, then by query number; `bits` are those of the listed queries, `[query, word of rows]`."""
        self._groups, self._ranks, self._positions, self._times = groups, ranks, positions, times
        self._low, self._high, self._born = low, high, born
        self._listed = np.full(len(low), -1, np.int64)
        self._listed[list(listed)] = np.arange(len(listed))
        self._bits = bits
        self._laid_out: tuple[Array, Array] | None = None

    def times(self, queries: Array, groups: Array) -> Array:
        """Return the time at which each of these cells was last touched."""
        if self._laid_out is None:
            newest = np.argsort(-self._times, kind="stable")
            firsts, order = np.zeros(int(self._groups.max()) + 2, np.int64), np.empty(len(self._groups), np.int64)
            lay_out_groups(self._groups, newest, firsts, order)
            self._laid_out = firsts, order
        firsts, order = self._laid_out
        found = np.empty(len(groups), np.int64)
        find_touches(
            np.ascontiguousarray(groups), np.ascontiguousarray(queries), self._low, self._high, self._born, self._listed,
            self._bits, firsts, order, self._ranks, self._positions, self._times, found,
        )  # fmt: skip
        return found
