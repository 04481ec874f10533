"""The sets of rows by which a large batch is matched, query by query (`filters/index/matching.py`).

Per attribute one set of rows, a bit each, for every region:

    prefix[k]   the rows with rank < k,  k in 0 .. n_regions

Where an attribute has more regions than `MAX_PREFIX` that would be too many. Then the rows are counted into rank order instead

    order[below[k] : below[k + 1]]   the rows with rank k
    sets[j]                          the first j * STRIDE rows of that order

so a prefix is the nearest set with at most half a stride of rows changed.
"""

from __future__ import annotations

import numpy as np

from lineage.bits import ONE, U64
from lineage.kernels import kernel

#: Attributes with more regions than this use rank order and strides instead of one prefix set a region.
MAX_PREFIX = 768
#: Rows between two stored prefix sets of an attribute in rank order.
STRIDE = 16


#: Rows of places `[4, attributes + 1]`: how many regions an attribute has, whether it is in rank order, where its sets begin, and
#: where its `below` begins. The last column is the totals of the last two.
N_REGIONS, BY_ORDER, SETS_AT, BELOW_AT = range(4)


@kernel("void(int64, int64, int64[:,::1])")
def lay_out(max_prefix: int, n_words: int, places: np.ndarray) -> None:
    """Fill places in from the regions."""
    places[SETS_AT, 0] = places[BELOW_AT, 0] = 0
    for f in range(places.shape[1] - 1):
        n_regions = places[N_REGIONS, f]
        by_order = n_regions > max_prefix
        places[BY_ORDER, f] = by_order
        places[SETS_AT, f + 1] = places[SETS_AT, f] + (n_words * 64 // STRIDE + 1 if by_order else n_regions + 1) * n_words
        places[BELOW_AT, f + 1] = places[BELOW_AT, f] + (n_regions + 1 if by_order else 0)


@kernel("void(int32[::1], int32[::1], int32[::1])")
def ranks_of_ids(rank_of: np.ndarray, ids: np.ndarray, ranks: np.ndarray) -> None:
    """`ranks[i] = rank_of[ids[i]]`; numpy would first turn the ids into 64 bits."""
    for i in range(len(ids)):
        ranks[i] = rank_of[ids[i]]


@kernel("void(int32[::1], int64, int64, int64, uint64[::1], int64)")
def prefix_sets(ranks: np.ndarray, n_rows: int, n_regions: int, n_words: int, out: np.ndarray, at: int) -> None:
    """`out[at + k * n_words:]` = the rows with rank < k, for k in 0..n_regions."""
    sets = out[at : at + (n_regions + 1) * n_words]
    sets[:] = 0
    width = U64(n_words)
    for i in range(n_rows):
        row = U64(i)
        sets[(U64(ranks[i]) + ONE) * width + (row >> U64(6))] |= ONE << (row & U64(63))
    for k in range(1, n_regions + 1):
        before = sets[(k - 1) * n_words : k * n_words]
        here = sets[k * n_words : (k + 1) * n_words]
        for w in range(n_words):
            here[w] |= before[w]


@kernel(
    "void(int64[:,::1], uint8[:,::1], boolean, int64, int64, int64, int32[::1], int64, int64, int64, int64, uint64[::1], int64)"
)
def prefix_sets_by_table(
    cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, column: int, first: int, n_rows: int, table: np.ndarray, base: int,
    null_rank: int, n_regions: int, n_words: int, out: np.ndarray, at: int,
) -> None:  # fmt: skip
    """`rank_by_table` and `prefix_sets` in one go, for the commonest attributes: ints with few constants."""
    sets = out[at : at + (n_regions + 1) * n_words]
    sets[:] = 0
    width = U64(n_words)
    top = base + len(table) - 1
    last = len(table) - 1
    column_cells = cells[column, first : first + n_rows]
    for i in range(n_rows):
        key = column_cells[i]
        rank = U64(table[U64(0 if key < base else last if key > top else key - base)])
        if has_nulls and nulls[column, first + i]:
            rank = U64(null_rank)
        row = U64(i)
        sets[(rank + ONE) * width + (row >> U64(6))] |= ONE << (row & U64(63))
    for k in range(1, n_regions + 1):
        before = sets[(k - 1) * n_words : k * n_words]
        here = sets[k * n_words : (k + 1) * n_words]
        for w in range(n_words):
            here[w] |= before[w]


@kernel("void(int32[::1], int64, int64, int64, uint64[::1], int64, int32[::1], int64, int32[::1], int64)")
def rank_order(
    ranks: np.ndarray, n_rows: int, n_regions: int, n_words: int, out: np.ndarray, at: int, below: np.ndarray, below_at: int,
    order: np.ndarray, order_at: int,
) -> None:  # fmt: skip
    """Rows in rank order, `below[k]` = how many have rank < k, and the set of the first j * STRIDE rows for each j."""
    for k in range(n_regions + 1):
        below[below_at + k] = 0
    for i in range(n_rows):
        below[below_at + ranks[i] + 1] += 1
    for k in range(1, n_regions + 1):
        below[below_at + k] += below[below_at + k - 1]
    # the count of a rank serves as its cursor; afterwards below[k] holds what below[k + 1] was, so move it back
    for i in range(n_rows):
        rank = below_at + ranks[i]
        order[order_at + below[rank]] = i
        below[rank] += 1
    for k in range(n_regions, 0, -1):
        below[below_at + k] = below[below_at + k - 1]
    below[below_at] = 0
    for w in range(n_words):
        out[at + w] = 0
    for j in range(n_rows // STRIDE):
        here = at + (j + 1) * n_words
        for w in range(n_words):
            out[here + w] = out[here - n_words + w]
        for i in range(j * STRIDE, (j + 1) * STRIDE):
            row = order[order_at + i]
            out[here + (row >> 6)] |= ONE << U64(row & 63)
