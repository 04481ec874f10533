"""Stored rows with the queries that have them: (row, seat) pairs, in order of rows.

    row counts for a seat   iff   it satisfies the leg of the seat's query    region ids and outcomes kept with the row
                            and   it came since the query's birth

The rows of a stretch are matched for all legs at once, from what was kept with them when they came (`Eddy.match_again` does the
same for rows that leave windows).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from eddy.matching.eddy import stored_outcome
from eddy.streams.source import Source
from filters.values.vector import Array
from lineage.bits import set_bit, trailing_zeros, words
from lineage.kernels import kernel

#: Rows that are matched together at most, and bits of their matrix.
_MAX_ROWS = 1 << 16
_MAX_BITS = 1 << 25
_ONE = np.uint64(1)


@kernel("int64(uint64[:,::1], int64, int64[::1], int64[::1], int64[::1])")
def count_seats(rows_of: np.ndarray, n_rows: int, slots: np.ndarray, firsts: np.ndarray, at: np.ndarray) -> int:
    """Count the seats of each row: `at[row + 1]`; returns their sum. Seat k counts the rows of `slots[k]` from `firsts[k]` on."""
    total = np.int64(0)
    n_words = (n_rows + 63) >> 6
    for k in range(len(slots)):
        slot, first = slots[k], firsts[k]
        for w in range(first >> 6, n_words):
            left = rows_of[slot, w]
            if w == first >> 6:
                left &= ~((_ONE << np.uint64(first & 63)) - _ONE)
            if w == n_words - 1 and n_rows & 63:
                left &= (_ONE << np.uint64(n_rows & 63)) - _ONE
            while left:
                at[(w << 6) + np.int64(trailing_zeros(left)) + 1] += 1
                left &= left - _ONE
                total += 1
    return int(total)


@kernel("void(uint64[:,::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def list_seats(
    rows_of: np.ndarray, n_rows: int, slots: np.ndarray, firsts: np.ndarray, seats: np.ndarray, at: np.ndarray, rows: np.ndarray,
    found: np.ndarray,
) -> None:  # fmt: skip
    """List the pairs that `count_seats` counts; `at[row]` is the place of the row's first pair, and moves behind its last."""
    n_words = (n_rows + 63) >> 6
    for k in range(len(slots)):
        slot, first, seat = slots[k], firsts[k], seats[k]
        for w in range(first >> 6, n_words):
            left = rows_of[slot, w]
            if w == first >> 6:
                left &= ~((_ONE << np.uint64(first & 63)) - _ONE)
            if w == n_words - 1 and n_rows & 63:
                left &= (_ONE << np.uint64(n_rows & 63)) - _ONE
            while left:
                row = (w << 6) + np.int64(trailing_zeros(left))
                rows[at[row]] = row
                found[at[row]] = seat
                at[row] += 1
                left &= left - _ONE


class SeatedRows:
    """The seats that read one stream, by the slots of their legs."""

    __slots__ = ("_source", "seats", "_slots", "_births", "_mask")

    def __init__(self, source: Source, seats: Sequence[int], slots: Sequence[int], births: Sequence[int]) -> None:
        """`seats` ascend; each has a slot and a birth."""
        self._source = source
        self.seats = np.array(seats, np.int64)
        self._slots = np.array(slots, np.int64)
        self._births = np.array(births, np.int64)
        self._mask = np.zeros(0, np.uint64)

    def taken(self, chosen: Array) -> SeatedRows:
        """Those of some seats alone."""
        mine = np.isin(self.seats, chosen)
        return SeatedRows(self._source, *(held[mine].tolist() for held in (self.seats, self._slots, self._births)))

    def pairs(self, first: int, last: int) -> Iterator[tuple[Array, Array]]:
        """Positions and seats of the pairs of rows first..last, stretch by stretch."""
        if not len(self.seats):
            return
        first = max(first, int(self._births.min()))
        step = max(64, min(_MAX_ROWS, _MAX_BITS // (64 * self._source.placement.slots.n_words)))
        for start in range(first, last, step):
            yield self._stretch(start, min(start + step, last))

    def _stretch(self, first: int, last: int) -> tuple[Array, Array]:
        source, n_rows = self._source, last - first
        modules, n_words = source.modules, source.placement.slots.n_words
        if len(self._mask) != n_words:
            self._mask = np.zeros(n_words, np.uint64)
            for slot in self._slots.tolist():
                set_bit(self._mask, slot)
        pieces = list(source.store.slices(first, last))
        ranks = modules.bank.stored_ranks(((page.ids, at, stop) for page, at, stop in pieces), n_rows)
        has_nulls = any(page.nulls is not None for page, _, _ in pieces)
        prepared = modules.bank.prepare(ranks, n_rows, has_nulls, modules.ready_filters())
        rows_of = np.empty((n_words * 64, words(n_rows)), np.uint64)
        prepared.fill(self._mask, rows_of)
        for module in modules.by_text.values() if modules.any_asked else ():
            if (module.interested & self._mask).any():
                outcomes = [stored_outcome(page, module, at, stop) for page, at, stop in pieces]
                module.restrict(rows_of, n_rows, np.concatenate(outcomes))
        firsts = np.maximum(self._births - first, 0)
        at = np.zeros(n_rows + 1, np.int64)
        total = count_seats(rows_of, n_rows, self._slots, firsts, at)
        np.cumsum(at, out=at)
        rows, seats = np.empty(total, np.int64), np.empty(total, np.int64)
        list_seats(rows_of, n_rows, self._slots, firsts, self.seats, at, rows, seats)
        return rows + first, seats
