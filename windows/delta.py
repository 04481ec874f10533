"""Deltas: the changes on an edge between two operators in one commit, rows that begin and rows that end.

    event order      (time, rank, - before +, place)         over everything that happens in a commit
    rank             which event of the instant: SCHEDULED for all scheduled ends, else the arrival's number in the commit's order
    alive at T       every + with time <= T whose row has not ended by T: at its scheduled end, or by an explicit -

Both parts of a delta are in order of (time, rank), and times never go back from one commit to the next. An id names a row from
its + to its end and may come again after that; within one event an id ends before it begins (a hand-over), never the other way.
A row's scheduled end travels with its + only, in `ends`: the operator that keeps the row finds it due. An edge that *sends ends*
has a - for those too, of rank SCHEDULED, and its reader waits for it. Any other - is premature: before the scheduled end.

Consequences of an event carry its time and rank, so several deltas of one commit are merged by them: `merged_order`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from filters.values.vector import Array, Vector, end_to_end
from lineage.kernels import kernel
from lineage.schema import Type

#: The rank of all scheduled ends of an instant: before every arrival.
SCHEDULED = -1
#: The rank of what is decided once all rows of a commit have come: behind every arrival.
LAST = 2**61


@dataclass(slots=True)
class Plus:
    """Rows that begin."""

    ids: Array
    #: when each begins
    times: Array
    ranks: Array
    #: when each ends unless something ends it before; FOREVER if that is not known or never
    ends: Array
    columns: list[Vector]
    #: of rows of a stream, the times by which windows hold them; None: those at which they begin, for no row lags
    effective: Array | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Array) -> Plus:
        """Return some of the rows; `rows` ascend, or are a mask."""
        columns = [column.take(rows) for column in self.columns]
        effective = None if self.effective is None else self.effective[rows]
        return Plus(self.ids[rows], self.times[rows], self.ranks[rows], self.ends[rows], columns, effective)

    @property
    def effective_times(self) -> Array:
        return self.times if self.effective is None else self.effective

    @property
    def bytes(self) -> int:
        return 32 * len(self.ids) + sum(column.values.nbytes for column in self.columns)


@dataclass(slots=True)
class Minus:
    """Rows that end, by id."""

    ids: Array
    times: Array
    ranks: Array

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Array) -> Minus:
        """Return some of the ends; `rows` ascend, or are a mask."""
        return Minus(self.ids[rows], self.times[rows], self.ranks[rows])


@dataclass(slots=True)
class Delta:
    """One commit on one edge."""

    plus: Plus
    minus: Minus

    def __len__(self) -> int:
        return len(self.plus) + len(self.minus)


def no_minus() -> Minus:
    none = np.zeros(0, np.int64)
    return Minus(none, none, none)


def no_plus(types: Sequence[Type]) -> Plus:
    none = np.zeros(0, np.int64)
    return Plus(none, none, none, none, [Vector.constant(type, None, 0) for type in types])


def empty(types: Sequence[Type]) -> Delta:
    """Return a delta without changes, for an edge with these column types."""
    return Delta(no_plus(types), no_minus())


def concatenated(types: Sequence[Type], deltas: Sequence[Delta]) -> Delta:
    """Return one delta of several of one edge, which follow each other in time."""
    filled = [delta for delta in deltas if len(delta)]
    if len(filled) <= 1:
        return filled[0] if filled else empty(types)
    pluses = [delta.plus for delta in filled if len(delta.plus)]
    plus = no_plus(types) if not pluses else pluses[0] if len(pluses) == 1 else _joined(types, pluses)
    minuses = [delta.minus for delta in filled]
    minus = Minus(
        np.concatenate([minus.ids for minus in minuses]),
        np.concatenate([minus.times for minus in minuses]),
        np.concatenate([minus.ranks for minus in minuses]),
    )
    return Delta(plus, minus)


def _joined(types: Sequence[Type], pluses: Sequence[Plus]) -> Plus:
    return Plus(
        np.concatenate([plus.ids for plus in pluses]),
        np.concatenate([plus.times for plus in pluses]),
        np.concatenate([plus.ranks for plus in pluses]),
        np.concatenate([plus.ends for plus in pluses]),
        [end_to_end(type, [plus.columns[k] for plus in pluses]) for k, type in enumerate(types)],
        np.concatenate([plus.effective_times for plus in pluses]) if any(p.effective is not None for p in pluses) else None,
    )


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def merge_runs(times: np.ndarray, ranks: np.ndarray, heads: np.ndarray, stops: np.ndarray, order: np.ndarray) -> None:
    """Write the places of sorted runs in order of (time, rank), on ties the earlier run first. Run r is `heads[r]:stops[r]`."""
    n_runs = len(heads)
    for k in range(len(order)):
        best = -1
        for r in range(n_runs):
            at = heads[r]
            if at < stops[r]:
                if best < 0:
                    best = r
                else:
                    first = heads[best]
                    if times[at] < times[first] or (times[at] == times[first] and ranks[at] < ranks[first]):
                        best = r
        order[k] = heads[best]
        heads[best] += 1


def merged_order(runs: Sequence[tuple[Array, Array]]) -> Array:
    """Return the event order of several sorted (times, ranks), as places in their concatenation: give ends before beginnings.

    >>> a, b = np.array([1, 5]), np.array([1, 3])
    >>> merged_order([(a, np.zeros(2, np.int64)), (b, np.zeros(2, np.int64))]).tolist()
    [0, 2, 3, 1]
    """
    lengths = [len(times) for times, _ in runs]
    total = sum(lengths)
    if max(lengths, default=0) == total:
        return np.arange(total)
    stops = np.cumsum(lengths, dtype=np.int64)
    order = np.empty(total, np.int64)
    times = np.concatenate([times for times, _ in runs])
    ranks = np.concatenate([ranks for _, ranks in runs])
    merge_runs(times, ranks, stops - np.array(lengths, np.int64), stops, order)
    return order
