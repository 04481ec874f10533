"""The numba kernels behind `bare.py`: region codes, prefix bitmaps, conjunctions by query and by row, candidates.

    cuts[k], k = 0 .. D-1     sorted distinct values at which some query's answer changes
    code of a row             number of cuts <= its value, 0 .. D
    below(k)                  bitmap of the rows with value < cuts[k]  =  rows with code <= k

A one-sided comparison is `below(k)` or its complement. Up to `rows / STEP` cuts an attribute keeps every `below(k)`. Beyond,
rows are put in code order by counting, a bitmap is kept every `STEP` rows of that order, and `below(k)` is the nearest one
with at most STEP / 2 bits flipped: the table stays in the second-level cache and costs 1/STEP to build.
"""

from __future__ import annotations

import numpy as np

from experiments.bench.base.bitmaps import emit, kernel
from lineage.bits import FULL, ONE, U64, trailing_zeros

#: Rows between two kept bitmaps.
STEP = 8
_HASH = np.uint64(0x9E3779B97F4A7C15)


@kernel
def codes_by_value(values: np.ndarray, lookup: np.ndarray, base: int, codes: np.ndarray) -> None:
    """Codes of ints in a narrow range: one look-up."""
    last = len(lookup) - 1
    for i in range(len(values)):
        codes[i] = lookup[U64(min(last, max(0, values[i] - base)))]


@kernel
def codes_by_count(values: np.ndarray, cuts: np.ndarray, codes: np.ndarray) -> None:
    """Codes when there are few cuts: compare with all of them, four values at a time."""
    for i in range(len(values)):
        codes[i] = 0
    for k in range(len(cuts)):
        cut = cuts[k]
        for i in range(len(values)):
            codes[i] += np.int32(cut <= values[i])


@kernel
def codes_by_grid(values: np.ndarray, cuts: np.ndarray, starts: np.ndarray, base: float, scale: float, codes: np.ndarray) -> None:
    """Codes of floats: a bucket grid, then two comparisons without a branch, rarely more.

    `starts[b]` counts the cuts in buckets before b; `cuts` ends with two NaN, which nothing reaches. Cuts of later buckets
    are above the value, so they may be compared as well.
    """
    last = len(starts) - 1
    for i in range(len(values)):
        value = values[i]
        k = U64(starts[U64(min(last, max(0, int((value - base) * scale))))])
        steps = U64(cuts[k] <= value) + U64(cuts[k + ONE] <= value)
        k += steps
        if steps > ONE:
            while cuts[k] <= value:
                k += ONE
        codes[i] = k


@kernel
def grid_starts(cuts: np.ndarray, base: float, scale: float, n_buckets: int) -> np.ndarray:
    """For every bucket the number of cuts in the buckets before it."""
    starts = np.zeros(n_buckets + 1, np.int32)
    for cut in cuts:
        starts[min(n_buckets - 1, max(0, int((cut - base) * scale))) + 1] += 1
    for bucket in range(n_buckets):
        starts[bucket + 1] += starts[bucket]
    return starts[:n_buckets]


@kernel
def prefix_bitmaps(codes: np.ndarray, n_cuts: int, bitmaps: np.ndarray) -> None:
    """`bitmaps[k] = below(k)` for every cut."""
    n_words = bitmaps.shape[1]
    for k in range(n_cuts + 1):
        for w in range(n_words):
            bitmaps[k, w] = 0
    for i in range(len(codes)):
        bitmaps[U64(codes[i]), U64(i) >> U64(6)] |= ONE << U64(i & 63)
    for k in range(1, n_cuts):
        for w in range(n_words):
            bitmaps[k, w] |= bitmaps[k - 1, w]


@kernel
def order_by_code(codes: np.ndarray, n_cuts: int, ranks: np.ndarray, order: np.ndarray) -> None:
    """Counting sort, stable. `ranks[k]` = rows with code <= k, so `order[:ranks[k]]` are the rows of `below(k)`."""
    for k in range(n_cuts + 1):
        ranks[k] = 0
    for i in range(len(codes)):
        ranks[codes[i]] += 1
    total = 0
    for k in range(n_cuts + 1):
        count = ranks[k]
        ranks[k] = total
        total += count
    for i in range(len(codes)):
        code = codes[i]
        order[ranks[code]] = i
        ranks[code] += 1


@kernel
def step_bitmaps(order: np.ndarray, bitmaps: np.ndarray) -> None:
    """`bitmaps[j]` = the first STEP * j rows of the order."""
    n_words = bitmaps.shape[1]
    for w in range(n_words):
        bitmaps[0, w] = 0
    for j in range(1, bitmaps.shape[0]):
        for w in range(n_words):
            bitmaps[j, w] = bitmaps[j - 1, w]
        for at in range((j - 1) * STEP, min(j * STEP, len(order))):
            row = order[at]
            bitmaps[j, row >> 6] |= ONE << U64(row & 63)


@kernel
def lists_by_query(
    n_rows: int,
    starts: np.ndarray,
    attributes: np.ndarray,
    cuts: np.ndarray,
    above: np.ndarray,
    kept_all: np.ndarray,
    bitmaps: np.ndarray,
    ranks: np.ndarray,
    orders: np.ndarray,
    table: np.ndarray,
    queries: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
) -> int:
    """Row lists of conjunctions, one query after the other; returns how many queries have rows.

    Comparison c of query q, `starts[q] <= c < starts[q + 1]`, is below(cuts[c]) of an attribute, complemented iff
    `above[c]`. One query's bitmap stays in the first-level cache from its first AND to its last row number.
    """
    n_words = (n_rows + 63) >> 6
    bits = np.empty(n_words, np.uint64)
    patched = np.empty(n_words, np.uint64)
    tail = FULL if n_rows & 63 == 0 else (ONE << U64(n_rows & 63)) - ONE
    n_lists = 0
    at = 0
    for q in range(len(starts) - 1):
        for w in range(n_words):
            bits[w] = FULL
        bits[n_words - 1] = tail
        for c in range(starts[q], starts[q + 1]):
            a = attributes[c]
            if kept_all[a]:
                below = bitmaps[a, cuts[c]]
                if above[c]:
                    for w in range(n_words):
                        bits[w] &= ~below[w]
                else:
                    for w in range(n_words):
                        bits[w] &= below[w]
                continue
            rank = ranks[a, cuts[c]]
            nearest = (rank + STEP // 2) // STEP
            below = bitmaps[a, nearest]
            flip = FULL if above[c] else U64(0)
            for w in range(n_words):
                patched[w] = below[w] ^ flip
            for k in range(min(rank, nearest * STEP), min(n_rows, max(rank, nearest * STEP))):
                row = orders[a, k]
                patched[row >> 6] ^= ONE << U64(row & 63)
            for w in range(n_words):
                bits[w] &= patched[w]
        offsets[n_lists] = at
        queries[n_lists] = q
        end = emit(bits, table, rows, at)
        n_lists += end > at
        at = end
    offsets[n_lists] = at
    return n_lists


@kernel
def lineage_by_row(codes: np.ndarray, regions: np.ndarray, first: np.ndarray, lineage: np.ndarray) -> None:
    """Row-major: AND of the region rows of five codes. `first[a]` = position of attribute a's region 0 in `regions`."""
    for i in range(lineage.shape[0]):
        r0, r1, r2 = first[0] + codes[0, i], first[1] + codes[1, i], first[2] + codes[2, i]
        r3, r4 = first[3] + codes[3, i], first[4] + codes[4, i]
        for w in range(lineage.shape[1]):
            lineage[i, w] = regions[r0, w] & regions[r1, w] & regions[r2, w] & regions[r3, w] & regions[r4, w]


@kernel
def fill_region(regions: np.ndarray, first: int, n_cuts: int, queries: np.ndarray, cuts: np.ndarray, above: np.ndarray) -> None:
    """Clear, in the region rows of one attribute, the bits of queries that refuse the region."""
    for c in range(len(queries)):
        word = queries[c] >> 6
        keep = ~(ONE << U64(queries[c] & 63))
        start, end = (0, cuts[c] + 1) if above[c] else (cuts[c] + 1, n_cuts + 1)
        for r in range(start, end):
            regions[first + r, word] &= keep


@kernel
def lists_of_bitmaps(
    bitmaps: np.ndarray, n_queries: int, table: np.ndarray, queries: np.ndarray, offsets: np.ndarray, rows: np.ndarray
) -> int:
    """Row lists of finished bitmaps; returns how many queries have rows."""
    n_lists = 0
    at = 0
    for q in range(n_queries):
        offsets[n_lists] = at
        queries[n_lists] = q
        end = emit(bitmaps[q], table, rows, at)
        n_lists += end > at
        at = end
    offsets[n_lists] = at
    return n_lists


@kernel
def lists_of_ranges(
    low: np.ndarray,
    high: np.ndarray,
    ranks: np.ndarray,
    order: np.ndarray,
    queries: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
) -> int:
    """Row lists of narrow ranges: a slice of the rows in code order, sorted by insertion; no bitmap at all."""
    n_lists = 0
    at = 0
    for q in range(len(low)):
        offsets[n_lists] = at
        queries[n_lists] = q
        end = at
        for k in range(ranks[low[q]], ranks[high[q]]):
            row = order[k]
            slot = end
            while slot > at and rows[slot - 1] > row:
                rows[slot] = rows[slot - 1]
                slot -= 1
            rows[slot] = row
            end += 1
        n_lists += end > at
        at = end
    offsets[n_lists] = at
    return n_lists


@kernel
def build_hash(keys: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Open addressing, key -> its position in `keys`; -1 is empty."""
    table = np.full(capacity, -1, np.int64)
    positions = np.zeros(capacity, np.int32)
    mask = U64(capacity - 1)
    for i in range(len(keys)):
        at = (U64(keys[i]) * _HASH >> U64(32)) & mask
        while table[at] != -1:
            at = (at + ONE) & mask
        table[at] = keys[i]
        positions[at] = i
    return table, positions


@kernel
def candidate_pairs(
    ids: np.ndarray,
    values: np.ndarray,
    table: np.ndarray,
    positions: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    pair_query: np.ndarray,
    pair_row: np.ndarray,
) -> int:
    """The queries of each row's id, checked against their range; returns the number of pairs."""
    n = 0
    mask = U64(len(table) - 1)
    for i in range(len(ids)):
        key = ids[i]
        at = (U64(key) * _HASH >> U64(32)) & mask
        while table[at] != -1:
            if table[at] == key:
                value = values[i]
                for j in range(starts[positions[at]], starts[positions[at] + 1]):
                    pair_query[n] = members[j]
                    pair_row[n] = i
                    n += (low[j] <= value) & (value < high[j])
                break
            at = (at + ONE) & mask
    return n


@kernel
def lists_of_pairs(
    pair_query: np.ndarray,
    pair_row: np.ndarray,
    n_pairs: int,
    touched: np.ndarray,
    cursor: np.ndarray,
    queries: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
) -> int:
    """Group pairs by query; costs the pairs and a bit per query. `touched` and `cursor` are 0 before and after."""
    for i in range(n_pairs):
        q = pair_query[i]
        touched[q >> 6] |= ONE << U64(q & 63)
        cursor[q] += 1
    n_lists = 0
    total = 0
    for w in range(len(touched)):
        word = touched[w]
        touched[w] = 0
        while word:
            q = (w << 6) + np.int64(trailing_zeros(word))
            word &= word - ONE
            queries[n_lists] = q
            offsets[n_lists] = total
            count = cursor[q]
            cursor[q] = total
            total += count
            n_lists += 1
    offsets[n_lists] = total
    for i in range(n_pairs):
        q = pair_query[i]
        rows[cursor[q]] = pair_row[i]
        cursor[q] += 1
    for k in range(n_lists):
        cursor[queries[k]] = 0
    return n_lists
