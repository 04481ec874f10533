"""The changes of a template's queries in a commit: computed once, then cut up by seat for logs and for listeners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from eddy.base.results import Results
from eddy.matching.result_rows import ResultRows
from filters.values.vector import Array
from lineage.kernels import kernel
from windows.operators.recipient import SignedRows


@kernel("void(int64[::1], int64[::1], int64[::1])")
def order_by_seat(seats: np.ndarray, counts: np.ndarray, order: np.ndarray) -> None:
    """Order rows by seat, those of one seat as they come; `counts` are 0 before, one more than there are seats."""
    for k in range(len(seats)):
        counts[seats[k] + 1] += 1
    for seat in range(1, len(counts)):
        counts[seat] += counts[seat - 1]
    for k in range(len(seats)):
        order[counts[seats[k]]] = k
        counts[seats[k]] += 1


class SeatChanges:
    """Net changes of the queries of a template; those of one query are in the order in which it shows them."""

    def __init__(self, ids: Array, face_of: Array, names: Sequence[tuple[str, ...]], found: SignedRows, only: int | None) -> None:
        """`ids` and `face_of` by seat: the number of the query, and the number of its columns' names; `only`: the only seat."""
        self._ids = ids
        self._only = only
        self._face_of = face_of
        self._names = names
        self._results = Results(found.columns[1:], found.times, found.signs)
        self._seats: Array = found.columns[0].values

    @cached_property
    def _order(self) -> Array:
        """The rows by seat, in their order."""
        order, counts = np.empty(len(self._seats), np.int64), np.zeros(len(self._ids) + 1, np.int64)
        order_by_seat(self._seats, counts, order)
        return order

    @cached_property
    def _sorted(self) -> Array:
        return self._seats[self._order]

    def by_seat(self) -> tuple[Results, Array]:
        """All changes in order of seats, and the seat of each."""
        if self._only is not None:
            return self._results, self._seats
        return self._results.take(self._order), self._sorted

    def parts(self) -> Iterator[tuple[tuple[str, ...], ResultRows, int]]:
        """The names of columns, the rows and the sign of each part for listeners, - before +."""
        if self._only is not None:
            names, query = self._names[self._face_of[self._only]], self._ids[self._only]
            for sign, results in self._results.by_sign():
                yield names, ResultRows(results, int(query)), sign
            return
        signs, faces = self._results.signs[self._order], self._face_of[self._sorted]
        for face in np.unique(faces).tolist():
            for sign in (-1, 1):
                rows = self._order[(faces == face) & (signs == sign)]
                if len(rows):
                    yield self._names[face], ResultRows(self._results.take(rows), self._ids[self._seats[rows]]), sign
