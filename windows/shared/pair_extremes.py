"""MIN and MAX of single queries: the best of each (query, group), and whether it is still known.

    best[place, group, extreme]     the smallest key of the rows that count; NONE of no values; keys of maxima are inverted
    left[place, group]              1: a row with the best key ended, and the next best is to be found among the group's rows

An arrival can only better the best. When the best itself ends nothing is looked for until the cell is read: `unknown` says which
cells of a list need it. Kept for queries with a reader; the others are looked up when they are asked.
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.bits import ONE, trailing_zeros
from lineage.growth import LEAST
from lineage.kernels import kernel
from lineage.lanes import LANES
from windows.shared.extremes import NONE


@kernel(
    "void(uint64[:,::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[:,::1], uint8[:,::1], int64, int64[::1],"
    "uint8[::1])"
)
def better_pairs(
    bits: np.ndarray, places: np.ndarray, watched: np.ndarray, groups: np.ndarray, signs: np.ndarray, keys: np.ndarray,
    nulls: np.ndarray, n_groups: int, best: np.ndarray, left: np.ndarray,
) -> None:  # fmt: skip
    """Update the bests of watched queries by the bits `[query, word of rows]`; `keys` and `nulls` are `[extreme, row]`."""
    n_extremes = len(keys)
    for q in range(len(bits)):
        if watched[q] == 0:
            continue
        for w in range(bits.shape[1]):
            word = bits[q, w]
            while word != 0:
                i = (np.int64(w) << 6) + np.int64(trailing_zeros(word))
                word &= word - ONE
                cell = places[q] * n_groups + groups[i]
                for e in range(n_extremes):
                    at = cell * n_extremes + e
                    if nulls[e, i] == 0:
                        if signs[i] > 0:
                            best[at] = min(best[at], keys[e, i])
                        elif keys[e, i] <= best[at]:
                            left[cell] = 1


class PairExtremes:
    """The bests of some queries, by their place on the pair path."""

    def __init__(self, n_extremes: int) -> None:
        self.n = n_extremes
        self.best = np.full((LEAST, LANES, n_extremes), NONE, np.int64)
        self._left = np.zeros((LEAST, LANES), np.uint8)

    def fit(self, n_places: int, n_groups: int) -> None:
        have = self._left.shape
        if (n_places, n_groups) != have:
            best = np.full((n_places, n_groups, self.n), NONE, np.int64)
            left = np.zeros((n_places, n_groups), np.uint8)
            best[: have[0], : have[1]] = self.best
            left[: have[0], : have[1]] = self._left
            self.best, self._left = best, left

    def forget(self, places: Array, *, known: bool) -> None:
        """Reset places: to no rows (`known`), or to bests that have to be searched."""
        self.best[places] = NONE
        self._left[places] = not known

    def add(self, bits: Array, places: Array, watched: Array, groups: Array, signs: Array, keys: Array, nulls: Array) -> None:
        if self.n:
            better_pairs(
                bits, places, watched, groups, signs, keys, nulls, self._left.shape[1], self.best.reshape(-1),
                self._left.reshape(-1),
            )  # fmt: skip

    def unknown(self, cells: Array) -> Array:
        """Return the cells (place * n_groups + group) whose best has left."""
        return cells[self._left.reshape(-1)[cells] != 0] if self.n else cells[:0]

    def put(self, cells: Array, best: Array) -> None:
        """Store the bests found for cells, `[extreme, cell]`."""
        self.best.reshape(-1, self.n)[cells] = best.T
        self._left.reshape(-1)[cells] = 0

    @property
    def bytes(self) -> int:
        return self.best.nbytes + self._left.nbytes
