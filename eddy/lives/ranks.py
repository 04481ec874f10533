"""The merged order of the rows of one commit: the rank of each arrival.

Rows of one commit take effect in merged order: by effective time, then by the order in which the commit names their streams,
then by position (semantics 3). The **rank** of a row is its place in that order: of two rows that begin at the same time, the
one with the smaller rank came first. Rows have odd ranks, for retractions come between them; rows from earlier commits have none.

    first[source] <= position < store.end       the rows that the commit took
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddy.streams.source import Source

#: The rank of a row that an earlier commit took.
EARLIER = -1


class Ranks:
    """The rows of one commit by stream; the merged order is computed on first use."""

    __slots__ = ("changes_table", "_first", "_ranks")

    def __init__(self, taken: Sequence[tuple[Source, int]], changes_table: bool = False) -> None:
        """`taken`: the streams in the commit's order, each with the first position stored by the commit."""
        #: whether the commit is a table change: what it does is one event
        self.changes_table = changes_table
        self._first = dict(taken)
        self._ranks: dict[Source, np.ndarray] | None = None

    def first(self, source: Source) -> int:
        """The first position of a stream that the commit stored; the end of the store if there is none."""
        return self._first.get(source, source.store.end)

    def at(self, source: Source, positions: np.ndarray) -> np.ndarray:
        """The ranks of rows of a stream; `EARLIER` for rows of earlier commits."""
        first = self._first.get(source)
        if first is None:
            return np.full(len(positions), EARLIER)
        new = positions - first
        places = np.maximum(new, 0)
        if len(self._first) > 1:
            places = self._merged()[source][places]
        found: np.ndarray = np.where(new >= 0, 2 * places + 1, EARLIER)
        return found

    def at_places(self, source: Source, places: np.ndarray) -> np.ndarray:
        """The ranks of rows and retractions of a stream by their places (`stems/own_ends.py`): a retraction comes just before the
        row behind it."""
        first, end = self.first(source), source.store.end
        if first == end:
            return np.zeros(len(places), np.int64)
        behind = places // 2
        found: np.ndarray = self.at(source, np.minimum(first + behind, end - 1)) - (places % 2 == 0)
        return np.where(first + behind < end, found, found + 2)

    def _merged(self) -> dict[Source, np.ndarray]:
        if self._ranks is None:
            times = []
            for source, first in self._first.items():
                parts = [page.times[at:stop] for page, at, stop in source.store.slices(first, source.store.end)]
                times.append(np.concatenate([np.zeros(0, np.int64), *parts]))
            lengths = [len(part) for part in times]
            ranks = np.empty(sum(lengths), np.int64)
            # streams come one after the other, each by position: a stable sort by time is the merged order
            ranks[np.argsort(np.concatenate(times), kind="stable")] = np.arange(len(ranks))
            self._ranks = dict(zip(self._first, np.split(ranks, np.cumsum(lengths)[:-1]), strict=True))
        return self._ranks
