"""Ends of an input's rows that do not come from the window's width: displacement, own ends, keys and retractions.

    end of a row in a window     min(t + w,                     the clock: `[RANGE w]`
                                     when it is displaced,      `[ROWS n]`, `stems/row_ends.py`
                                     its own end)               streams with `key` or `end`, `stems/own_ends.py`

Both columns are asked as a stream **stood** after some commit: rows that came later have displaced nobody, and what was replaced
or retracted later was not yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eddy.lives.ranks import Ranks
from eddy.streams.source import Source
from lineage.elements import FOREVER
from stems.key_ranges import KeyRanges
from stems.row_ends import RowEnds
from stems.sorted_index import SortedIndex

#: Rows that one step of a search for ends gives at most.
_PART_ROWS = 1 << 14


def merged(lists: list[np.ndarray]) -> np.ndarray:
    """The union of ascending lists of numbers, ascending, without repetitions; fast where all but one list are empty."""
    lists = [numbers for numbers in lists if len(numbers)]
    if len(lists) < 2:
        return lists[0] if lists else np.zeros(0, np.int64)
    numbers: np.ndarray = np.sort(np.concatenate(lists))
    once: np.ndarray = numbers[np.append(True, numbers[1:] != numbers[:-1])]
    return once


class CommitPoint(NamedTuple):
    """The state of a stream after a commit: the clock, the end of its rows, and the number of the commit."""

    clock: int
    taken: int
    commit: int


class EarlyEnds:
    """Ends of one input's rows other than by the window's width; its columns are held until `release`."""

    __slots__ = ("_source", "_displaced", "_own", "_by_end")

    def __init__(self, source: Source, rows: int, partition: tuple[int, ...]) -> None:
        self._source = source
        #: None unless the window counts rows
        self._displaced: RowEnds | None = source.row_ends.hold(rows, partition) if rows else None
        self._own = source.own_ends
        #: the rows by the end that is scheduled for them; None if the stream has no such column
        self._by_end: SortedIndex | None = None
        if self._own is not None and self._own.end_column is not None:
            self._by_end = source.stems.sorted_on(self._own.end_column)

    @classmethod
    def of(cls, source: Source, rows: int, partition: tuple[int, ...]) -> EarlyEnds | None:
        """The early ends for a window of `rows` rows (0: no row count); None if only the clock ends rows."""
        return cls(source, rows, partition) if rows or source.own_ends is not None else None

    def release(self) -> None:
        """Give back the held columns."""
        if self._displaced is not None:
            self._source.row_ends.release(self._displaced)
        if self._by_end is not None:
            self._source.stems.release(self._by_end)

    def recall(self) -> None:
        """Make the columns cover all stored rows, also rows older than the first query that asked."""
        if self._displaced is not None:
            self._source.row_ends.recall(self._displaced, self._source.stored.first)
        if self._by_end is not None:
            self._source.stems.recall(self._by_end)

    @property
    def in_order(self) -> bool:
        """Whether rows leave in the order in which they came: exactly the rows from `first_alive` on are then in the window."""
        return self._own is None and self._displaced is not None and not self._displaced.partition

    def first_alive(self, at: CommitPoint) -> int:
        """A position below which every row had ended."""
        first = 0 if self._own is None else self._own.first_alive()
        return first if self._displaced is None else max(first, self._displaced.first_alive(at.taken))

    def ends_at(self, positions: np.ndarray, at: CommitPoint) -> np.ndarray:
        """The ends of rows at held positions, in any order."""
        if self._own is None:
            assert self._displaced is not None
            return self._displaced.ends_at(positions, at.taken)
        ends = self._own.ends_at(positions, at.commit)
        return ends if self._displaced is None else np.minimum(ends, self._displaced.ends_at(positions, at.taken))

    def end_ranks(self, positions: np.ndarray, times: np.ndarray, at: CommitPoint, ranks: Ranks) -> np.ndarray:
        """The rank, in the last commit, of the row or retraction that ended each row at these times; FOREVER where none did."""
        found = np.full(len(positions), FOREVER)
        if self._displaced is not None:
            rows = np.flatnonzero((self._displaced.ends_at(positions, at.taken) == times) & (times < FOREVER))
            found[rows] = ranks.at(self._source, self._displaced.displacers(positions[rows]))
        if self._own is not None:
            places = self._own.places_of(positions)
            rows = np.flatnonzero((places >= 0) & (self._own.ends_at(positions, at.commit) == times))
            found[rows] = np.minimum(found[rows], ranks.at_places(self._source, places[rows]))
        return found

    def lowered_in(self, commit: int) -> bool:
        """Whether the last commit, number `commit`, ended rows by key or by retractions."""
        return self._own is not None and len(self._own.lowered_in(commit)) > 0

    def ended_between(self, before: CommitPoint, after: CommitPoint) -> list[np.ndarray]:
        """Candidate rows the last commit may have ended: ascending lists, together a superset."""
        found = []
        if self._displaced is not None:
            found.append(self._displaced.displaced_by(before.taken, after.taken))
        if self._own is not None:
            found.append(self._own.lowered_in(after.commit))
        if self._by_end is not None and after.clock > before.clock:
            found.append(self._scheduled_between(self._by_end, before, after))
        return found

    def _scheduled_between(self, index: SortedIndex, before: CommitPoint, after: CommitPoint) -> np.ndarray:
        """The older rows whose scheduled end lies between two clocks."""
        due = KeyRanges(np.array([before.clock + 1]), np.array([min(after.clock, FOREVER)]))
        probe = index.probe(due, self._source.store.watermark, before.taken)
        found = []
        rows, positions = np.empty(_PART_ROWS, np.int32), np.empty(_PART_ROWS, np.int64)
        while n := probe.fill(rows, positions):
            found.append(positions[:n].copy())
        return np.sort(np.concatenate([np.zeros(0, np.int64), *found]))
