"""Stored rows with the queries that have them, in order of rows.

    row counts for a seat   iff   it satisfies the leg of the seat's query    region ids and outcomes kept with the row
                            and   it came since the query's birth

The rows of a stretch are matched for all legs at once, from what was kept with them when they came (`Eddy.match_again` does the
same for rows that leave windows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eddy.matching.eddy import stored_outcome
from eddy.streams.source import Source
from filters.expressions.residual import TRUE, union_rows
from filters.values.vector import Array
from lineage.bits import ONE, U64, count_ones, set_bit, trailing_zeros, words
from lineage.kernels import Number, inline, kernel

#: Rows that are matched together at most, and bits of their matrix.
_MAX_ROWS = 1 << 16
_MAX_BITS = 1 << 25


@inline
def _word(rows_of: Number, slot: Number, w: Number, first: Number, n_rows: Number) -> Number:
    """A word of a slot's rows, without those before `first` or behind the last."""
    word = rows_of[slot, w]
    if w == first >> 6:
        word &= ~((ONE << U64(first & 63)) - ONE)
    if w == n_rows >> 6:
        word &= (ONE << U64(n_rows & 63)) - ONE
    return word


@kernel("int64(uint64[:,::1], int64, int64, int64, int64[::1])")
def list_rows_of(rows_of: np.ndarray, n_rows: int, slot: int, first: int, rows: np.ndarray) -> int:
    """List the rows of a slot from `first` on; returns how many."""
    n = np.int64(0)
    for w in range(first >> 6, (n_rows + 63) >> 6):
        left = _word(rows_of, slot, w, first, n_rows)
        while left:
            rows[n] = (w << 6) + np.int64(trailing_zeros(left))
            n += 1
            left &= left - ONE
    return int(n)


@kernel("int64(uint64[:,::1], int64, int64[::1], int64[::1])")
def count_rows_of(rows_of: np.ndarray, n_words: int, slots: np.ndarray, counts: np.ndarray) -> int:
    """Count the rows of each slot, whenever they came; returns the sum."""
    total = np.int64(0)
    for k in range(len(slots)):
        n = np.int64(0)
        for w in range(n_words):
            n += np.int64(count_ones(rows_of[slots[k], w]))
        counts[k] = n
        total += n
    return int(total)


@kernel("int64(uint64[:,::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1])")
def list_seats(
    rows_of: np.ndarray, n_rows: int, slots: np.ndarray, firsts: np.ndarray, seats: np.ndarray, counts: np.ndarray,
    pairs: np.ndarray, at: np.ndarray,
) -> int:  # fmt: skip
    """List the (row, seat) pairs seat by seat, and count those of each row into `at`; returns how many.

    Seat k counts the rows of `slots[k]` from `firsts[k]` on; none if `counts[k]` is 0.
    """
    n = np.int64(0)
    for k in range(len(slots)):
        if counts[k] == 0:
            continue
        for w in range(firsts[k] >> 6, (n_rows + 63) >> 6):
            left = _word(rows_of, slots[k], w, firsts[k], n_rows)
            while left:
                row = (w << 6) + np.int64(trailing_zeros(left))
                pairs[0, n] = row
                pairs[1, n] = seats[k]
                n += 1
                at[row] += 1
                left &= left - ONE
    return int(n)


@kernel("void(int64[:,::1], int64, int64[::1], int64[::1])")
def scatter_seats(pairs: np.ndarray, n: int, at: np.ndarray, found: np.ndarray) -> None:
    """Write the seats of pairs in order of rows; `at[row]` is the place of the row's first, and moves behind its last."""
    for k in range(n):
        row = pairs[0, k]
        found[at[row]] = pairs[1, k]
        at[row] += 1


#: Positions of rows that some query has, and of each (row, seat) the place of the row among them; None: each row has one.
Seated = tuple[Array, Array | None, Array]


class SeatedRows:
    """The seats that read one stream, by the slots of their legs."""

    __slots__ = ("_source", "seats", "_slots", "_births", "_oldest", "_mask")

    def __init__(self, source: Source, seats: Sequence[int], slots: Sequence[int], births: Sequence[int]) -> None:
        """`seats` ascend; each has a slot and a birth."""
        self._source = source
        self.seats = np.array(seats, np.int64)
        self._slots = np.array(slots, np.int64)
        self._births = np.array(births, np.int64)
        self._oldest = min(births, default=0)
        self._mask = np.zeros(0, np.uint64)

    def taken(self, chosen: Array) -> SeatedRows:
        """Those of some seats alone."""
        mine = np.isin(self.seats, chosen)
        return SeatedRows(self._source, *(held[mine].tolist() for held in (self.seats, self._slots, self._births)))

    def rows(self, first: int, last: int) -> Iterator[Seated]:
        """The rows first..last that some query has, with their seats, stretch by stretch."""
        if not len(self.seats):
            return
        first = max(first, self._oldest)
        for start in range(first, last, self._step):
            stop = min(start + self._step, last)
            firsts = np.maximum(self._births - start, 0)
            rows, places, seats = self._listed(self._stretch_bits(start, stop), stop - start, firsts)
            yield rows + start, places, seats

    @property
    def _step(self) -> int:
        """Rows that are matched together."""
        return max(64, min(_MAX_ROWS, _MAX_BITS // (64 * self._source.placement.slots.n_words)))

    def _stretch_bits(self, first: int, last: int) -> Array:
        """The rows of each slot among first..last, as bits."""
        source, n_rows = self._source, last - first
        pieces = list(source.store.slices(first, last))
        ranks = source.modules.bank.stored_ranks(((page.ids, at, stop) for page, at, stop in pieces), n_rows)
        has_nulls = any(page.nulls is not None for page, _, _ in pieces)

        def outcomes(module: int) -> Array:
            return np.concatenate([stored_outcome(page, module, at, stop) for page, at, stop in pieces])

        return self._matched(ranks, n_rows, has_nulls, outcomes)

    def wanted(self, first: int, last: int) -> Array:
        """For each of the rows first..last, whether some seat may have it; of versions of tables nothing is known."""
        found = np.ones(last - first, np.bool_)
        if not self._source.stores_ids:
            return found
        found[:] = False
        step = self._step
        for start in range(first, last, step):
            stop = min(start + step, last)
            union = np.zeros(words(stop - start), np.uint64)
            union_rows(self._stretch_bits(start, stop), len(union), self._slots.astype(np.int32), union)
            found[start - first : stop - first] = np.unpackbits(union.view(np.uint8), bitorder="little")[: stop - start]
        return found

    def at(self, positions: Array) -> Seated:
        """The rows at ascending positions that some query has, as places among these positions, with their seats."""
        source, n_rows = self._source, len(positions)
        if not n_rows or not len(self.seats):
            none = np.zeros(0, np.int64)
            return none, None, none
        bank = source.modules.bank
        ranks = np.zeros((len(bank.filters), n_rows), np.int32)
        for f in source.modules.ready_filters().tolist():
            source.ranks_at(f, positions, ranks[f])
        rows_of = self._matched(ranks, n_rows, True, lambda module: source.gatherer.outcomes(module, positions) == TRUE)
        return self._listed(rows_of, n_rows, np.searchsorted(positions, self._births))

    def _matched(self, ranks: Array, n_rows: int, has_nulls: bool, outcomes: Callable[[int], Array]) -> Array:
        """The rows of each slot, as bits; of slots that no seat has nothing is told."""
        modules, n_words = self._source.modules, self._source.placement.slots.n_words
        if len(self._mask) != n_words:
            self._mask = np.zeros(n_words, np.uint64)
            for slot in self._slots.tolist():
                set_bit(self._mask, slot)
        prepared = modules.bank.prepare(ranks, n_rows, has_nulls, modules.ready_filters())
        rows_of = np.empty((n_words * 64, words(n_rows)), np.uint64)
        prepared.fill(self._mask, rows_of)
        for module in modules.by_text.values() if modules.any_asked else ():
            if (module.interested & self._mask).any():
                module.restrict(rows_of, n_rows, outcomes(module.number))
        return rows_of

    def _listed(self, rows_of: Array, n_rows: int, firsts: Array) -> Seated:
        """The rows that some seat has, from the first of each seat on."""
        if len(self.seats) == 1:
            rows = np.empty(n_rows, np.int64)
            n = list_rows_of(rows_of, n_rows, int(self._slots[0]), int(firsts[0]), rows)
            return rows[:n], None, np.full(n, self.seats[0])
        of_seats, counts = np.empty(len(self.seats), np.int64), np.zeros(n_rows, np.int64)
        total = count_rows_of(rows_of, words(n_rows), self._slots, of_seats)
        pairs = np.empty((2, total), np.int64)
        n = list_seats(rows_of, n_rows, self._slots, firsts, self.seats, of_seats, pairs, counts)
        seats = np.empty(n, np.int64)
        scatter_seats(pairs, n, np.cumsum(counts) - counts, seats)
        some = np.flatnonzero(counts)
        places = None if len(some) == len(seats) else np.repeat(np.arange(len(some)), counts[some])
        return some, places, seats
