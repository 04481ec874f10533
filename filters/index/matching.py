"""The matching kernels: all grouped filters of a stream against a batch, for all queries at once.

Two layouts (see `lineage/bits.py`):

**Row-major** (`match_rows`), for small batches and few queries. Per row and module in route order: skip the module when no
query that still wants the row is interested in it (CACQ's completion, per row), else AND the bits of the queries that the
row's region admits. The bits of a region come from its row of the region table, or, where tables would pass their
budget, from a scan that compares the region's rank with every slot's bounds.

**Query-major** (`match_queries`, `list_queries`), for large batches. Per attribute `prefix[k]` is the set of rows with rank below
`k` (`filters/index/row_sets.py`), so one interval of one query is `prefix[high] & ~prefix[low]`: two streams of words, whatever
the number of regions or rows that match. It needs no table, and the sets of all intervals of a query are ANDed in one pass. Of an
attribute in rank order the nearest set is taken and the rows between changed bit by bit; a narrow range there is a short stretch
of that order, and is listed by sorting it.

A predicate of several intervals has number m: its `high` is `NO_LIMIT + 1 + m`, `multi[m]` is (filter, slot, first, last), and
its intervals are `multi_ranks[first:last]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from filters.index.cuts import NO_LIMIT
from filters.index.regions import CELL_FLOAT, find_rank
from filters.index.row_sets import BELOW_AT, BY_ORDER, N_REGIONS, SETS_AT, STRIDE
from lineage.bits import FULL, ONE, OUTPUTS, U64, OutputArrays, count_ones, cut_rows, emit_rows, next_output, trailing_zeros
from lineage.kernels import Number, inline, kernel
from lineage.order_keys import order_key

#: Entries that `intersect_parts` reads, whether there are so many or not.
MIN_PARTS = 4
#: Rows of a narrow range, which `list_queries` sorts instead of going through bits.
NARROW = 48

#: How a filter's ranks reach `match_rows`.
BY_SEARCH = 0
GIVEN = 1

#: How a filter's region becomes query bits in `match_rows`.
TABLE = 0
SCAN = 1

#: The predicates of slots as bounds of ranks: see `Bounds`.
BoundArrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
BOUNDS = "Tuple((int32[:,::1], int32[:,::1], int64[:,::1], int32[:,::1]))"


class Bounds(NamedTuple):
    """The predicates of slots as bounds of ranks, inside kernels."""

    #: `[filter, slot]`
    low: np.ndarray
    high: np.ndarray
    multi: np.ndarray
    multi_ranks: np.ndarray


class RowSets(NamedTuple):
    """The sets of rows of a batch (`filters/index/row_sets.py`), inside kernels."""

    n_rows: int
    has_nulls: bool
    places: np.ndarray
    sets: np.ndarray
    below: np.ndarray
    order: np.ndarray


def work_words(n_words: int, n_filters: int) -> int:
    """Words of scratch that matching query-major needs: two sets of rows, and the parts of a query with their flips."""
    return 2 * n_words + 2 * (MIN_PARTS + 2 * n_filters)


@inline
def words_of(n_rows: Number) -> Number:
    return (n_rows + 63) >> 6


@inline
def gather_parts(slot: Number, route: Number, bounds: Number, batch: Number, parts: Number, flips: Number) -> Number:
    """The prefix sets whose AND, each after XOR with its flip, is what the slot's single intervals admit; returns how many.

    Without a branch: which filters a query has, and on which side it is bounded, no predictor can know.
    """
    n = 0
    n_words = words_of(batch.n_rows)
    for r in range(len(route)):
        f = U64(route[r])
        lo = np.int64(bounds.low[f, slot])
        hi = np.int64(bounds.high[f, slot])
        stored = (hi <= NO_LIMIT) & (batch.places[BY_ORDER, f] == 0)
        parts[U64(n)] = U64(batch.places[SETS_AT, f] + lo * n_words)
        flips[U64(n)] = FULL
        n += stored & (lo > 0)
        parts[U64(n)] = U64(batch.places[SETS_AT, f] + hi * n_words)
        flips[U64(n)] = U64(0)
        n += stored & (hi < batch.places[N_REGIONS, f] - 1 + batch.has_nulls)
    return n


@inline
def intersect_parts(
    parts: np.ndarray, flips: np.ndarray, n_parts: Number, n_words: int, fresh: Number, sets: np.ndarray, bits: np.ndarray
) -> None:
    """`bits` = AND of the parts, up to four in one pass; without `fresh` and of the bits there."""
    done = 0
    if fresh:
        done = min(n_parts, 4)
        a, b, c, d = parts[0], parts[1], parts[2], parts[3]
        flip_a, flip_b, flip_c, flip_d = flips[0], flips[1], flips[2], flips[3]
        if n_parts == 0:
            for w in range(n_words):
                bits[w] = FULL
        elif n_parts == 1:
            for w in range(n_words):
                bits[w] = sets[a + U64(w)] ^ flip_a
        elif n_parts == 2:
            for w in range(n_words):
                bits[w] = (sets[a + U64(w)] ^ flip_a) & (sets[b + U64(w)] ^ flip_b)
        elif n_parts == 3:
            for w in range(n_words):
                bits[w] = (sets[a + U64(w)] ^ flip_a) & (sets[b + U64(w)] ^ flip_b) & (sets[c + U64(w)] ^ flip_c)
        else:
            for w in range(n_words):
                left = (sets[a + U64(w)] ^ flip_a) & (sets[b + U64(w)] ^ flip_b)
                bits[w] = left & (sets[c + U64(w)] ^ flip_c) & (sets[d + U64(w)] ^ flip_d)
    for k in range(done, n_parts):
        part, flip = parts[k], flips[k]
        for w in range(n_words):
            bits[w] &= sets[part + U64(w)] ^ flip


@inline
def toggle_rows(order: np.ndarray, at: Number, start: Number, stop: Number, bits: np.ndarray) -> None:
    """Change the bits of the rows between two places of the rank order that begins at `at`, whichever comes first."""
    for i in range(at + min(start, stop), at + max(start, stop)):
        row = U64(order[i])
        bits[row >> U64(6)] ^= ONE << (row & U64(63))


@inline
def interval_bits(f: Number, lo: Number, hi: Number, batch: Number, bits: Number) -> None:
    """Change the bits of the rows with lo <= rank < hi: of those below `hi`, and of those below `lo` back.

    In rank order a prefix set is the nearest one stored, with the rows between changed one by one.
    """
    under: Number = np.int64(lo)
    upto: Number = np.int64(hi)
    n_rows, n_words, sets, below, order = batch.n_rows, words_of(batch.n_rows), batch.sets, batch.below, batch.order
    if batch.places[BY_ORDER, f]:
        start, stop = np.int64(below[batch.places[BELOW_AT, f] + lo]), np.int64(below[batch.places[BELOW_AT, f] + hi])
        under = min((start + STRIDE // 2) // STRIDE, n_rows // STRIDE)
        upto = min((stop + STRIDE // 2) // STRIDE, n_rows // STRIDE)
        toggle_rows(order, f * n_rows, start, under * STRIDE, bits)
        toggle_rows(order, f * n_rows, stop, upto * STRIDE, bits)
    a, b = U64(batch.places[SETS_AT, f] + under * n_words), U64(batch.places[SETS_AT, f] + upto * n_words)
    for w in range(n_words):
        bits[w] ^= sets[a + U64(w)] ^ sets[b + U64(w)]


@inline
def order_bits(f: Number, lo: Number, hi: Number, batch: Number, bits: Number) -> None:
    """Leave in `bits` the rows with lo <= rank < hi of an attribute in rank order; those behind the last row are anything."""
    n_rows, n_words, sets, below, order = batch.n_rows, words_of(batch.n_rows), batch.sets, batch.below, batch.order
    start, stop = np.int64(below[batch.places[BELOW_AT, f] + lo]), np.int64(below[batch.places[BELOW_AT, f] + hi])
    under: Number = min((start + STRIDE // 2) // STRIDE, n_rows // STRIDE)
    a = U64(batch.places[SETS_AT, f] + under * n_words)
    if stop == n_rows:
        # no row is above: so it is for all comparisons with > and >=
        for w in range(n_words):
            bits[w] = ~sets[a + U64(w)]
    else:
        upto: Number = min((stop + STRIDE // 2) // STRIDE, n_rows // STRIDE)
        b = U64(batch.places[SETS_AT, f] + upto * n_words)
        for w in range(n_words):
            bits[w] = sets[a + U64(w)] ^ sets[b + U64(w)]
        toggle_rows(order, f * n_rows, stop, upto * STRIDE, bits)
    toggle_rows(order, f * n_rows, start, under * STRIDE, bits)


@inline
def has_order(route: Number, places: Number) -> Number:
    """Whether some filter of the route is in rank order."""
    found = False
    for r in range(len(route)):
        found |= places[BY_ORDER, route[r]] != 0
    return found


@inline
def query_bits(
    slot: Number, word_first: Number, n_used: Number, route: Number, fresh: Number, bounds: Number, batch: Number,
    uneven: Number, bits: Number, work: Number,
) -> None:  # fmt: skip
    """Leave in `bits` the rows that satisfy the slot's predicates of the route; `fresh`: of all rows, else of those there.

    Only `n_used` words of rows from word `word_first` on are looked at. `uneven`: some filter is in rank order, or some predicate
    has several intervals; then all words have to be.
    """
    n_words = words_of(batch.n_rows)
    scratch = work[n_words : 2 * n_words]
    parts = work[2 * n_words : 2 * n_words + MIN_PARTS + 2 * len(route)]
    flips = work[2 * n_words + MIN_PARTS + 2 * len(route) :]
    n_parts = gather_parts(slot, route, bounds, batch, parts, flips)
    intersect_parts(parts, flips, n_parts, n_used, fresh, batch.sets[word_first:], bits)
    # the first of them may leave its rows where those of all predicates go
    alone = (fresh != 0) & (n_parts == 0)
    for r in range(len(route) if uneven else 0):
        f = np.int64(route[r])
        lo = np.int64(bounds.low[f, slot])
        hi = np.int64(bounds.high[f, slot])
        if (hi <= NO_LIMIT and batch.places[BY_ORDER, f] == 0) or (lo == 0 and hi == NO_LIMIT):
            continue
        found = bits if alone else scratch
        several = hi - NO_LIMIT - 1
        if several < 0:
            order_bits(f, lo, hi, batch, found)
        else:
            for w in range(n_words):
                found[w] = 0
            for k in range(bounds.multi[several, 2], bounds.multi[several, 3]):
                interval_bits(f, np.int64(bounds.multi_ranks[k, 0]), np.int64(bounds.multi_ranks[k, 1]), batch, found)
        if not alone:
            for w in range(n_words):
                bits[w] &= scratch[w]
        alone = False
    if batch.n_rows & 63 and word_first + n_used == n_words:
        bits[n_used - 1] &= (ONE << U64(batch.n_rows & 63)) - ONE


@kernel(
    f"void(uint64[::1], int32[::1], int64, {BOUNDS}, int64, boolean, int64[:,::1], uint64[::1], int32[::1], int32[::1], "
    "uint64[:,::1], uint64[::1])"
)
def match_queries(
    active: np.ndarray, route: np.ndarray, fresh: int, bounds: BoundArrays, n_rows: int, has_nulls: bool, places: np.ndarray,
    sets: np.ndarray, below: np.ndarray, order: np.ndarray, rows_of: np.ndarray, work: np.ndarray,
) -> None:  # fmt: skip
    """Run the filters of `route` on every slot of the mask `active`; query-major bits in `rows_of`.

    `fresh`: start from all rows; otherwise from the bits that are there. `work` is scratch of `work_words`.
    """
    limits = Bounds(*bounds)
    batch = RowSets(n_rows, has_nulls, places, sets, below, order)
    n_words = words_of(n_rows)
    uneven = has_order(route, places) or len(limits.multi) > 0
    for word in range(len(active)):
        left = active[word]
        while left:
            slot = word * 64 + np.int64(trailing_zeros(left))
            left &= left - ONE
            query_bits(slot, 0, n_words, route, fresh, limits, batch, uneven, rows_of[slot], work)


@kernel(
    f"boolean(uint64[::1], int32[::1], {BOUNDS}, int64, boolean, int64[:,::1], uint64[::1], int32[::1], int32[::1], "
    "uint64[::1], uint64[::1])"
)
def match_any(
    active: np.ndarray, route: np.ndarray, bounds: BoundArrays, n_rows: int, has_nulls: bool, places: np.ndarray,
    sets: np.ndarray, below: np.ndarray, order: np.ndarray, union: np.ndarray, work: np.ndarray,
) -> bool:  # fmt: skip
    """The rows that any slot of the mask `active` has; stops as soon as that is every row, and says so."""
    limits = Bounds(*bounds)
    batch = RowSets(n_rows, has_nulls, places, sets, below, order)
    n_words = words_of(n_rows)
    bits = work[:n_words]
    uneven = has_order(route, places) or len(limits.multi) > 0
    for w in range(n_words):
        union[w] = 0
    last = FULL if n_rows & 63 == 0 else (ONE << U64(n_rows & 63)) - ONE
    for word in range(len(active)):
        left = active[word]
        while left:
            slot = word * 64 + np.int64(trailing_zeros(left))
            left &= left - ONE
            query_bits(slot, 0, n_words, route, 1, limits, batch, uneven, bits, work)
            missing = U64(0)
            for w in range(n_words):
                union[w] |= bits[w]
                missing |= ~union[w] if w < n_words - 1 else ~union[w] & last
            if missing == 0:
                return True
    return False


@inline
def narrow_filter(slot: Number, route: Number, bounds: Number, batch: Number) -> Number:
    """The filter in rank order that holds the slot's only predicate, one interval with few rows; -1 when it is not so."""
    found = np.int64(-1)
    for r in range(len(route)):
        f = route[r]
        lo = bounds.low[f, slot]
        hi = bounds.high[f, slot]
        if lo == 0 and hi == NO_LIMIT:
            continue
        if found >= 0 or batch.places[BY_ORDER, f] == 0 or hi >= NO_LIMIT:
            return np.int64(-1)
        at = batch.places[BELOW_AT, f]
        if batch.below[at + hi] - batch.below[at + lo] > NARROW:
            return np.int64(-1)
        found = np.int64(f)
    return found


@inline
def sort_rows(
    order: np.ndarray, start: Number, stop: Number, first: Number, last: Number, shift: Number, rows: np.ndarray, at: Number
) -> Number:
    """Append the rows of `order[start:stop]` within first..last to `rows[at:]`, ascending, with `shift` added.

    Returns the new `at`.
    """
    end = at
    for i in range(start, stop):
        row = order[i] + shift
        if first <= order[i] < last:
            k = end
            while k > at and rows[k - 1] > row:
                rows[k] = rows[k - 1]
                k -= 1
            rows[k] = row
            end += 1
    return end


@kernel(
    f"int64(uint64[::1], {OUTPUTS}, int32[::1], {BOUNDS}, int64, boolean, int64[:,::1], uint64[::1], int32[::1], int32[::1], "
    "int64[::1], int64[::1], int64[::1], int32[::1], uint8[::1], uint64[::1])"
)
def list_queries(
    legs: np.ndarray, outputs: OutputArrays, route: np.ndarray, bounds: BoundArrays, n_rows: int, has_nulls: bool,
    places: np.ndarray, sets: np.ndarray, below: np.ndarray, order: np.ndarray, results: np.ndarray, listed: np.ndarray,
    offsets: np.ndarray, rows: np.ndarray, table: np.ndarray, work: np.ndarray,
) -> int:  # fmt: skip
    """Match and list in one go, while a query's bits are in the nearest cache: as `match_queries`, then `list_rows`.

    The rows of each slot of the mask `legs` are added to its `results`, unless slots read segments. With empty `offsets` that is
    all. `work` is scratch of `work_words`.
    """
    limits = Bounds(*bounds)
    batch = RowSets(n_rows, has_nulls, places, sets, below, order)
    n_words = words_of(n_rows)
    at: Number = np.int64(0)
    n = 0
    bits = work[:n_words]
    word, left, more = 0, legs[0], 0
    in_order = has_order(route, places)
    uneven = in_order or len(limits.multi) > 0
    _, _, _, _, _, n_more, stop_of, shift_of = outputs
    n_more = n_more if len(offsets) else 0
    segmented = len(stop_of) > 0
    while True:
        slot, query, first, word, left, more = next_output(legs, outputs, n_more, word, left, more)
        if slot < 0:
            break
        word_first = np.int64(0)
        n_used: Number = np.int64(n_words)
        stop = np.int64(n_rows)
        shift = np.int64(0)
        if segmented:
            stop, shift = np.int64(stop_of[slot]), np.int64(shift_of[slot])
            if first >= stop:
                continue
            if not uneven:
                word_first = first >> 6
                n_used = ((stop + 63) >> 6) - word_first
        f = narrow_filter(slot, route, limits, batch) if in_order else np.int64(-1)
        if f >= 0:
            lowest = np.int64(below[places[BELOW_AT, f] + limits.low[f, slot]])
            highest = np.int64(below[places[BELOW_AT, f] + limits.high[f, slot]])
            if more == 0 and not segmented:
                results[slot] += highest - lowest
            if len(offsets):
                end = sort_rows(order, f * n_rows + lowest, f * n_rows + highest, first, stop, shift, rows, at)
                if end > at:
                    listed[n] = query
                    offsets[n] = at
                    n += 1
                    at = end
            continue
        query_bits(slot, word_first, n_used, route, 1, limits, batch, uneven, bits, work)
        found = np.int64(0)
        for w in range(n_used):
            found += np.int64(count_ones(bits[w]))
        if more == 0 and not segmented:
            results[slot] += found
        if len(offsets) == 0:
            continue
        base = word_first << 6
        if first or segmented:
            found = cut_rows(bits, n_used, first - base, stop - base, found)
        if found:
            listed[n] = query
            offsets[n] = at
            n += 1
            at = emit_rows(bits, n_used, found, base + shift, rows, at, table)
    if len(offsets):
        offsets[n] = at
    return n


#: What changes with the predicates only, as `match_rows` takes it: `plan`, cuts, where those of each filter begin and how many
#: there are, table rows, where those of each filter begin, `table`, `interested`, and the bounds.
PREDICATES = (
    "Tuple((int32[:,::1], int64[::1], int64[::1], int64[::1], int32[::1], int64[::1], uint64[:,::1], uint64[:,::1], "
    "int32[:,::1], int32[:,::1], int64[:,::1], int32[:,::1]))"
)


@kernel(
    f"void(int64[:,::1], uint8[:,::1], boolean, int64, int64, int32[::1], int64, int64, uint64[::1], int32[:,::1], {PREDICATES}, "
    "uint64[:,::1], int64[:,::1], int64[::1])"
)
def match_rows(
    cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, first: int, n_rows: int, route: np.ndarray, fresh: int,
    all_given: int, active: np.ndarray, given: np.ndarray, predicates: tuple[np.ndarray, ...], lin: np.ndarray,
    visits: np.ndarray, results: np.ndarray,
) -> None:  # fmt: skip
    """Run the filters of `route` on each row; row-major bits in `lin`; `visits[f]` gains rows in, rows out, bits cleared.

    `plan[f]` = (column, cell kind, how ranks come, table or scan); `all_given`: all ranks are. `fresh`: start from `active`, else
    from `lin`. Bits left are added to `results` unless it is empty.
    """
    plan, cuts, cuts_at, n_cuts_of, table_rows, rows_at, table, interested, low, high, multi, multi_ranks = predicates
    n_words = len(active)
    for i in range(n_rows):
        if fresh:
            for w in range(n_words):
                lin[i, w] = active[w]
        for r in range(len(route)):
            f = route[r]
            wanted = U64(0)
            for w in range(n_words):
                wanted |= lin[i, w] & interested[f, w]
            if wanted == 0:
                continue
            column = plan[f, 0]
            n_cuts = n_cuts_of[f]
            if all_given or plan[f, 2] == GIVEN:
                rank: Number = np.int64(given[f, i])
            elif has_nulls and nulls[column, first + i]:
                rank = n_cuts + 1
            else:
                rank = find_rank(order_key(cells[column, first + i], plan[f, 1] == CELL_FLOAT), cuts, cuts_at[f], n_cuts)
            cleared = np.int64(0)
            left = U64(0)
            if plan[f, 3] == TABLE:
                row = table_rows[rows_at[f] + rank]
                for w in range(n_words):
                    before = lin[i, w]
                    after = before & table[row, w]
                    lin[i, w] = after
                    left |= after
                    cleared += np.int64(count_ones(before ^ after))
            else:
                for w in range(n_words):
                    before = lin[i, w]
                    after = before
                    if before & interested[f, w]:
                        admitted = U64(0)
                        for b in range(64):
                            bit = w * 64 + b
                            admitted |= U64((low[f, bit] <= rank) & (rank < high[f, bit])) << U64(b)
                        after = before & admitted
                    cleared += np.int64(count_ones(before))
                    lin[i, w] = after
                for m in range(len(multi)):
                    if multi[m, 0] == f:
                        slot = multi[m, 1]
                        inside = False
                        for k in range(multi[m, 2], multi[m, 3]):
                            inside |= (multi_ranks[k, 0] <= rank) & (rank < multi_ranks[k, 1])
                        if not inside:
                            lin[i, slot >> 6] &= ~(ONE << U64(slot & 63))
                for w in range(n_words):
                    left |= lin[i, w]
                    cleared -= np.int64(count_ones(lin[i, w]))
            visits[f, 0] += 1
            visits[f, 1] += left != 0
            visits[f, 2] += cleared
            if left == 0:
                break
        if len(results):
            for w in range(n_words):
                x = lin[i, w]
                while x:
                    results[w * 64 + np.int64(trailing_zeros(x))] += 1
                    x &= x - ONE
