"""Which region of an attribute a value falls in.

The cuts of an attribute, ascending, divide its values into regions, numbered by **rank** in value order:

    rank      0        1        2     ...     d          d + 1
          ------|--------|--------|-- ... --|--------|   NULL
              cut 0    cut 1                cut d-1

A value's rank is the number of cuts not above its order key. Three ways to find it:

    look-up table   int keys whose cuts span at most `MAX_SPAN`: one load (`RankTable`)
    grid            a bucket by the key's high bits, then binary search among the cuts of that bucket: a few steps
                    for spread-out values, never worse than binary search for skewed ones (`KeyGrid`)
    dictionary      strings: the rank of each dictionary code, extended as the dictionary grows

A table and a grid follow a cut that comes or goes by one pass over the entries behind it, and say when they cannot.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel
from lineage.order_keys import order_key

U64 = np.uint64

#: Widest span of int cuts served by a look-up table: 256 KB of int32.
MAX_SPAN = 1 << 16

#: Cuts that are compared one by one, several values at a time, instead of by a bucket.
FEW_CUTS = 4

#: Buckets of a grid that are counted from one place: 2 ** BLOCK_BITS.
BLOCK_BITS = 8

#: How a column's cells become order keys.
CELL_INT = 0
CELL_FLOAT = 1
CELL_STRING = 2


@kernel("void(int64[:,::1], uint8[:,::1], boolean, int64, int64, int64, int32[::1], int64, int64, int32[::1])")
def rank_by_table(
    cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, column: int, first: int, n_rows: int, table: np.ndarray, base: int,
    null_rank: int, ranks: np.ndarray,
) -> None:  # fmt: skip
    """`ranks[i]` of rows first.. by a table over the keys base, base + 1, ..; keys outside take the nearest entry."""
    top = base + len(table) - 1
    last = len(table) - 1
    column_cells = cells[column, first : first + n_rows]
    for i in range(n_rows):
        key = column_cells[i]
        ranks[i] = table[U64(0 if key < base else last if key > top else key - base)]
    if has_nulls:
        for i in range(n_rows):
            if nulls[column, first + i]:
                ranks[i] = null_rank


@inline
def find_rank(key: Number, cuts: np.ndarray, offset: Number, n_cuts: Number) -> Number:
    """Number of the cuts `cuts[offset:offset + n_cuts]` that are <= key, by binary search."""
    low = 0
    size = n_cuts
    while size > 0:
        half = size >> 1
        if cuts[offset + low + half] <= key:
            low += half + 1
            size -= half + 1
        else:
            size = half
    return low


@kernel(
    "void(int64[:,::1], uint8[:,::1], boolean, int64, int64, int64, boolean, int64[::1], int64, int32[::1], int32[::1], int64, "
    "int64, int64, int32[::1])"
)
def rank_by_grid(
    cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, column: int, first: int, n_rows: int, is_float: bool,
    cuts: np.ndarray, n_cuts: int, grid: np.ndarray, below: np.ndarray, lowest: int, shift: int, null_rank: int,
    ranks: np.ndarray,
) -> None:  # fmt: skip
    """`ranks[i]` by a bucket `(key - lowest) >> shift`, or the first or last one, then a search among that bucket's cuts.

    `cuts` has two entries of `KEY_MAX` behind the last cut.
    """
    last = U64(len(grid) - 2)
    n = U64(n_cuts)
    column_cells = cells[column, first : first + n_rows]
    if n_cuts <= FEW_CUTS:
        for i in range(n_rows):
            ranks[i] = 0
        for k in range(n_cuts):
            cut = cuts[k]
            for i in range(n_rows):
                ranks[i] += np.int32(cut <= order_key(column_cells[i], is_float))
    for i in range(n_rows if n_cuts > FEW_CUTS else 0):
        key = order_key(column_cells[i], is_float)
        distance = U64(0) if key < lowest else U64(key) - U64(lowest)
        bucket = min(distance >> U64(shift), last)
        at = U64(below[bucket >> U64(BLOCK_BITS)] + grid[bucket])
        # nearly always at most two cuts of the bucket are not above the key; cuts of later buckets are above it
        steps = U64(cuts[at] <= key) + U64(cuts[at + U64(1)] <= key)
        at += steps
        if steps > U64(1) and at < n:
            bucket += U64(1)
            size = U64(below[bucket >> U64(BLOCK_BITS)] + grid[bucket]) - at
            while size > U64(0):
                half = size >> U64(1)
                above = cuts[at + half] <= key
                at = at + half + U64(1) if above else at
                size = size - half - U64(1) if above else half
        ranks[i] = min(at, n)
    if has_nulls:
        for i in range(n_rows):
            if nulls[column, first + i]:
                ranks[i] = null_rank


@kernel("void(int64[:,::1], uint8[:,::1], boolean, int64, int64, int64, int32[::1], int64, int32[::1])")
def rank_by_code(
    cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, column: int, first: int, n_rows: int, rank_of_code: np.ndarray,
    null_rank: int, ranks: np.ndarray,
) -> None:  # fmt: skip
    """`ranks[i]` of dictionary codes."""
    for i in range(n_rows):
        if has_nulls and nulls[column, first + i]:
            ranks[i] = null_rank
        else:
            ranks[i] = rank_of_code[cells[column, first + i]]


@kernel("void(int64[::1], int64, int64, int32[::1], int32[::1])")
def fill_grid(cuts: np.ndarray, lowest: int, shift: int, grid: np.ndarray, below: np.ndarray) -> None:
    """The number of cuts whose bucket is below b: those below its block in `below`, the others in `grid[b]`."""
    last = U64(len(grid) - 2)
    for b in range(len(grid)):
        grid[b] = 0
    for i in range(len(cuts)):
        distance = U64(0) if cuts[i] < lowest else U64(cuts[i]) - U64(lowest)
        grid[np.int64(min(distance >> U64(shift), last)) + 1] += 1
    for b in range(1, len(grid)):
        grid[b] += grid[b - 1]
    for block in range(len(below)):
        below[block] = grid[block << BLOCK_BITS]
    for b in range(len(grid)):
        grid[b] -= below[b >> BLOCK_BITS]


@kernel("void(int64[::1], int64, int32[::1])")
def fill_table(cuts: np.ndarray, base: int, table: np.ndarray) -> None:
    """`table[k]` = number of cuts not above base + k."""
    at = 0
    for k in range(len(table)):
        while at < len(cuts) and cuts[at] <= base + k:
            at += 1
        table[k] = at


class RankTable:
    """Ranks of the keys from one below the lowest cut up to the highest cut, as they were when it was made."""

    __slots__ = ("table", "base")

    def __init__(self, cuts: np.ndarray) -> None:
        self.base = int(cuts[0]) - 1
        self.table = np.empty(int(cuts[-1]) - self.base + 1, np.int32)
        fill_table(cuts, self.base, self.table)

    def insert(self, key: int) -> bool:
        """Follow a new cut; False when the key is outside: keys beyond both ends share the entries there."""
        if not self.base < key < self.base + len(self.table):
            return False
        self.table[key - self.base :] += 1
        return True

    def delete(self, key: int) -> bool:
        """Follow a cut that went."""
        self.table[key - self.base :] -= 1
        return True

    def check(self, cuts: np.ndarray) -> None:
        keys = np.arange(self.base, self.base + len(self.table))
        assert (self.table == np.searchsorted(cuts, keys, "right")).all(), "the table holds the rank of each key"
        assert not len(cuts) or self.base < cuts[0] and cuts[-1] <= keys[-1], "the table spans the cuts"


class KeyGrid:
    """About sixteen buckets a cut over the span of the cuts, as they were when it was made.

    A few cuts far away from all others, as 0.0 is from the floats of a price, do not stretch it: the first and the last bucket
    reach as far as there are keys.

    The cuts below bucket b are counted as `below[b >> BLOCK_BITS] + grid[b]`, so that a cut which comes or goes changes the
    buckets of one block, and one number for each later block.
    """

    __slots__ = ("grid", "below", "lowest", "shift", "_n_made", "_n_now")

    def __init__(self, cuts: np.ndarray) -> None:
        self._n_made = self._n_now = n_cuts = len(cuts)
        self.lowest, self.shift = 0, 0
        self.grid = np.zeros(2, np.int32)
        self.below = np.zeros(1, np.int32)
        if n_cuts:
            self.lowest, highest = self._bounds(cuts)
            span = highest - self.lowest
            self.shift = max(0, span.bit_length() - (16 * n_cuts).bit_length() + 1)
            self.grid = np.empty((span >> self.shift) + 2, np.int32)
            self.below = np.empty((len(self.grid) - 1 >> BLOCK_BITS) + 1, np.int32)
            fill_grid(cuts, self.lowest, self.shift, self.grid, self.below)

    @staticmethod
    def _bounds(cuts: np.ndarray) -> tuple[int, int]:
        """The lowest and the highest cut, or those further in where the outermost few make up most of the span."""
        few = 1 + len(cuts) // 32 if len(cuts) > 4 else 0
        lowest, highest, low, high = (int(cuts[at]) for at in (0, -1, few, -1 - few))
        return (low, high) if 4 * (high - low) < highest - lowest else (lowest, highest)

    def _bucket(self, key: int) -> int:
        return min(max(0, key - self.lowest) >> self.shift, len(self.grid) - 2)

    def insert(self, key: int) -> bool:
        """Follow a new cut; False when there are too many by now."""
        self._n_now += 1
        if not self._n_made or self._n_now > 2 * self._n_made:
            return False
        self._count(self._bucket(key), 1)
        return True

    def delete(self, key: int) -> bool:
        """Follow a cut that went; False when so many did that fewer buckets would do."""
        self._n_now -= 1
        if self._n_now < self._n_made // 4:
            return False
        self._count(self._bucket(key), -1)
        return True

    def _count(self, bucket: int, by: int) -> None:
        """So many cuts more in a bucket: the later ones have them below."""
        block = bucket + 1 >> BLOCK_BITS
        # a block that begins behind the bucket counts the cut among those below it, so none of its buckets does
        if (bucket + 1) & ((1 << BLOCK_BITS) - 1):
            self.grid[bucket + 1 : (block + 1) << BLOCK_BITS] += by
            block += 1
        self.below[block:] += by

    def check(self, cuts: np.ndarray) -> None:
        buckets = [self._bucket(key) for key in cuts.tolist()]
        expected = np.searchsorted(buckets, np.arange(len(self.grid)), "left")
        found = self.below[np.arange(len(self.grid)) >> BLOCK_BITS] + self.grid
        assert not self._n_made or (found == expected).all(), "the grid counts the cuts below each bucket"
        assert self._n_now == len(cuts), "cuts are counted"
