"""The seats that have a match of a join: those whose legs have all of its rows.

    seats(match) = AND over inputs k of seats(row of input k)        each as bits by seat, one word for 64 of them

The rows of a commit's matches are few against its matches, so their seats are found once for each row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddy.joins.walk import Combinations
from eddy.matching.seated_rows import Seated, SeatedRows
from filters.values.vector import Array
from lineage.bits import ONE, U64, count_ones, trailing_zeros, words
from lineage.kernels import Number, inline, kernel


@kernel("void(int64[::1], int64[::1], int64[::1], uint64[:,::1])")
def set_seats(rows: np.ndarray, places: np.ndarray, seats: np.ndarray, bits: np.ndarray) -> None:
    """Set the bit of each (place among `rows`, seat)."""
    for k in range(len(places)):
        bits[rows[places[k]], seats[k] >> 6] |= ONE << U64(seats[k] & 63)


@inline
def _word(bits: Number, rows: Number, match: Number, w: Number) -> Number:
    """A word of the seats of a match."""
    word = bits[rows[0, match], w]
    for k in range(1, len(rows)):
        word &= bits[rows[k, match], w]
    return word


@kernel("void(uint64[:,::1], int64[:,::1], int64[::1])")
def count_met(bits: np.ndarray, rows: np.ndarray, counts: np.ndarray) -> None:
    """Count the seats of each match; `rows[k, match]` is the row of input k among those of `bits`."""
    for match in range(len(counts)):
        n = np.int64(0)
        for w in range(bits.shape[1]):
            n += np.int64(count_ones(_word(bits, rows, match, w)))
        counts[match] = n


@kernel("void(uint64[:,::1], int64[:,::1], int64[::1])")
def list_met(bits: np.ndarray, rows: np.ndarray, found: np.ndarray) -> None:
    """List the seats that `count_met` counts, match by match."""
    n = np.int64(0)
    for match in range(rows.shape[1]):
        for w in range(bits.shape[1]):
            left = _word(bits, rows, match, w)
            while left:
                found[n] = (w << 6) + np.int64(trailing_zeros(left))
                n += 1
                left &= left - ONE


class SeatedMatches:
    """The seats of one group of joins, by the slots of their legs on each input."""

    __slots__ = ("inputs",)

    def __init__(self, inputs: Sequence[SeatedRows]) -> None:
        """The same seats on each input."""
        self.inputs = tuple(inputs)

    def of(self, matches: Combinations) -> Seated:
        """The matches that some seat has, as places among them, with their seats."""
        if not len(matches):
            none = np.zeros(0, np.int64)
            return none, None, none
        if len(self.inputs) == 1:
            order = np.argsort(matches.at(0), kind="stable")
            rows, places, seats = self.inputs[0].at(matches.at(0)[order])
            return order[rows], places, seats
        bits, rows = self._bits(matches)
        counts = np.empty(len(matches), np.int64)
        count_met(bits, rows, counts)
        seats = np.empty(int(counts.sum()), np.int64)
        list_met(bits, rows, seats)
        some = np.flatnonzero(counts)
        return some, np.repeat(np.arange(len(some)), counts[some]), seats

    def _bits(self, matches: Combinations) -> tuple[Array, Array]:
        """The seats of each row of any input, as bits, and which row of these each match has on each input."""
        n_words = words(int(self.inputs[0].seats.max(initial=0)) + 1)
        found, rows, first = [], np.empty((len(self.inputs), len(matches)), np.int64), 0
        for k, seated in enumerate(self.inputs):
            positions, rows[k] = np.unique(matches.at(k), return_inverse=True)
            bits = np.zeros((len(positions), n_words), np.uint64)
            some, places, seats = seated.at(positions)
            set_seats(some, np.arange(len(some)) if places is None else places, seats, bits)
            found.append(bits)
            rows[k] += first
            first += len(positions)
        return np.concatenate(found), rows
