"""The times at which cells of shared aggregates changed in a commit: sums know what it did to a (query, group), not when.

    touch    the last row that came or went: what an aggregate was since
    flip     the last row that came to a cell without rows: since when a value stands (DISTINCT)

The rows of the commit are laid out by group in the order of events, the newest first. Of one instant those that went come before
those that came; at a boundary of a window in steps both are one event, and a value that had rows before it stands on. The first
one that counts for the query is its touch; counted back from the rows that the cell has now, the one before which it had none is
its flip. Rows that do not count are few before it, for the cell of a query that admits hardly any row hardly ever changes.
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.bits import ONE
from lineage.kernels import Number, inline, kernel

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


@inline
def _counts(
    query: Number,
    i: Number,
    low: Number,
    high: Number,
    born: Number,
    listed: Number,
    bits: Number,
    ranks: Number,
    positions: Number,
) -> Number:
    """Whether row i counts for a query; `listed[query]` is its row of bits, or -1."""
    if listed[query] >= 0:
        counts = (bits[listed[query], i >> 6] >> U64(i & 63)) & ONE != 0
    else:
        counts = ranks[i] >= low[query] and ranks[i] < high[query] and positions[i] >= born[query]
    return counts


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint64[:,::1], int64[::1], int64[::1],"
    "int64[::1], int64[::1], int64[::1], int64[::1])"
)
def find_touches(
    groups: np.ndarray, queries: np.ndarray, low: np.ndarray, high: np.ndarray, born: np.ndarray, listed: np.ndarray,
    bits: np.ndarray, firsts: np.ndarray, order: np.ndarray, ranks: np.ndarray, positions: np.ndarray, times: np.ndarray,
    found: np.ndarray,
) -> None:  # fmt: skip
    """Write the time of the newest row that counts for each (query, group)."""
    for k in range(len(groups)):
        for at in range(firsts[groups[k]], firsts[groups[k] + 1]):
            if _counts(queries[k], order[at], low, high, born, listed, bits, ranks, positions):
                found[k] = times[order[at]]
                break


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint64[:,::1], int64[::1],"
    "int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])"
)
def find_flips(
    groups: np.ndarray, queries: np.ndarray, rows: np.ndarray, low: np.ndarray, high: np.ndarray, born: np.ndarray,
    listed: np.ndarray, bits: np.ndarray, firsts: np.ndarray, order: np.ndarray, ranks: np.ndarray, positions: np.ndarray,
    times: np.ndarray, signs: np.ndarray, found: np.ndarray,
) -> None:  # fmt: skip
    """Write the time since when each (query, group) that has `rows` now has had any without a break."""
    for k in range(len(groups)):
        left = rows[k]
        for at in range(firsts[groups[k]], firsts[groups[k] + 1]):
            i = order[at]
            if _counts(queries[k], i, low, high, born, listed, bits, ranks, positions):
                left -= signs[i]
                if left == 0:
                    found[k] = times[i]
                    break


class Touches:
    """The rows that came and went in one commit, which tell when cells changed."""

    __slots__ = (
        "_groups",
        "_ranks",
        "_positions",
        "_times",
        "_signs",
        "_low",
        "_high",
        "_born",
        "_listed",
        "_bits",
        "_at_once",
        "_laid_out",
    )

    def __init__(
        self, groups: Array, ranks: Array, positions: Array, times: Array, signs: Array, low: Array, high: Array, born: Array,
        listed: Array, bits: Array, at_once: bool,
    ) -> None:  # fmt: skip
        """By row, those that came first; then by query number; `bits` are the listed queries' `[query, word of rows]`.

        `at_once`: what comes and goes at one instant is one event.
        """
        self._groups, self._ranks, self._positions, self._times, self._signs = groups, ranks, positions, times, signs
        self._low, self._high, self._born = low, high, born
        self._listed = np.full(len(low), -1, np.int64)
        self._listed[listed] = np.arange(len(listed))
        self._bits = bits
        self._at_once = at_once
        self._laid_out: tuple[Array, Array] | None = None

    def touched(self, queries: Array, groups: Array) -> Array:
        """Return the time at which each of these cells was last touched."""
        found = np.empty(len(groups), np.int64)
        find_touches(
            np.ascontiguousarray(groups), np.ascontiguousarray(queries), self._low, self._high, self._born, self._listed,
            self._bits, *self._rows(), self._ranks, self._positions, self._times, found,
        )  # fmt: skip
        return found

    def flipped(self, queries: Array, groups: Array, rows: Array) -> Array:
        """Return the time since when each of these cells has had rows; it had none before the commit, and has so many now."""
        found = np.empty(len(groups), np.int64)
        find_flips(
            np.ascontiguousarray(groups), np.ascontiguousarray(queries), np.ascontiguousarray(rows), self._low, self._high,
            self._born, self._listed, self._bits, *self._rows(), self._ranks, self._positions, self._times, self._signs, found,
        )  # fmt: skip
        return found

    def _rows(self) -> tuple[Array, Array]:
        """Where the rows of each group begin, and the rows by group."""
        if self._laid_out is None:
            # of one instant what came last comes first, or what went, so that nothing is gone in between
            newest = np.lexsort((self._signs if self._at_once else -self._signs, -self._times))
            firsts, order = np.zeros(int(self._groups.max()) + 2, np.int64), np.empty(len(self._groups), np.int64)
            lay_out_groups(self._groups, newest, firsts, order)
            self._laid_out = firsts, order
        return self._laid_out
