"""Aggregates of many queries over the same stream, window, keys and values, kept together (design 7).

The queries differ in their condition. Rows come with their group, their region on the one attribute on which most conditions are
an interval, and their position in the row store; arrivals with sign 1 and ends with -1, and an end has the group, region and
values that were stored with the row. There are two paths, and a query is on one of them at a time:

    region path   one set of sums for all queries (`windows/shared/region_sums.py`): a query is a range of ranks. It counts every
                  row of the window, so it serves **settled** queries: those whose birth has left the window.
    pair path     sums of its own (`windows/shared/pair_sums.py`): **young** queries, which do not count the rows from before
                  their birth, until `settle`; and for good the queries whose condition is more than an interval, whose rows the
                  caller lists.

Both are exact, so a query that changes path shows no change. Cells are read only for queries with a reader: `changes` lists the
cells (query, group) whose measures are not those last shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from filters.vector import Array
from windows.shared.lanes import LANES
from windows.shared.measures import finish
from windows.shared.pair_sums import PairSums, interval_bits, no_bits
from windows.shared.planes import Planes, ValueColumn
from windows.shared.region_sums import RegionSums
from windows.shared.shown import Changes, Shown

__all__ = ["Changes", "Listed", "Ranges", "Rows", "SharedAggregates", "ValueColumn", "finish"]


@dataclass(slots=True)
class Rows:
    """Rows that come or go, in any order."""

    groups: Array
    #: region ids on the attribute, as stored with the row
    regions: Array
    #: in the row store, for births
    positions: Array
    signs: Array
    #: cells and null bytes (empty iff none is NULL) of each value column; the cell under NULL is 0
    values: Sequence[tuple[Array, Array]]

    def __len__(self) -> int:
        return len(self.groups)


@dataclass(slots=True)
class Ranges:
    """What the grouped filter of the attribute says now."""

    #: rank of each region id, -1 of one not in use; several may share one
    rank_of: Array
    #: by query number: its interval is the ranks low .. high - 1, `high` may be beyond all
    low: Array
    high: Array


@dataclass(slots=True)
class Listed:
    """Which rows count for the queries whose condition is more than an interval."""

    queries: Array
    #: `[query, word of rows]`
    bits: Array


class _Query:
    __slots__ = ("born", "listed", "pair", "shown")

    def __init__(self, born: int, listed: bool) -> None:
        self.born = born
        #: whether the caller lists its rows
        self.listed = listed
        #: its place on the pair path; -1 iff it is settled
        self.pair = -1
        #: its place among those shown; -1 iff it has no reader
        self.shown = -1


class SharedAggregates:
    """The sums of all queries over one (stream, window, keys, values)."""

    def __init__(self, columns: Sequence[ValueColumn]) -> None:
        self.planes = Planes(columns)
        self._regions = RegionSums(self.planes)
        self._pairs = PairSums(self.planes)
        self.shown = Shown(self.planes.n_measures)
        self._queries: dict[int, _Query] = {}
        #: query number at each place of `shown`
        self._reading: dict[int, int] = {}

    # ---- queries

    def add(self, query: int, born: int, watermark: int, *, listed: bool = False) -> None:
        """A query counts rows from position `born` on; rows before `watermark` have left the window."""
        added = self._queries[query] = _Query(born, listed)
        if listed or born > watermark:
            added.pair = self._pairs.take_place()

    def remove(self, query: int) -> None:
        self.unwatch(query)
        removed = self._queries.pop(query)
        if removed.pair >= 0:
            self._pairs.leave_place(removed.pair)

    def settle(self, watermark: int) -> None:
        """Rows before this position have left the window: queries born no later count all that are left."""
        for query in self._queries.values():
            if query.pair >= 0 and not query.listed and query.born <= watermark:
                self._pairs.leave_place(query.pair)
                query.pair = -1

    def watch(self, query: int, ranges: Ranges) -> None:
        """The query has a reader from now on, who has seen its answer."""
        watched = self._queries[query]
        watched.shown = self.shown.take_place()
        self._reading[watched.shown] = query
        if watched.pair >= 0:
            self._pairs.watch(watched.pair, watched.shown)
        self._show(query, self.shown, watched.shown, ranges)

    def unwatch(self, query: int) -> None:
        """It has no reader any more."""
        watched = self._queries[query]
        if watched.shown >= 0:
            if watched.pair >= 0:
                self._pairs.watch(watched.pair, -1)
            self.shown.leave_place(watched.shown)
            del self._reading[watched.shown]
            watched.shown = -1

    # ---- a commit

    def apply(self, rows: Rows, ranges: Ranges, listed: Listed | None = None) -> None:
        """Rows come and go."""
        if len(rows) == 0:
            return
        self._hold(int(rows.groups.max()) + 1, len(ranges.rank_of))
        self._cover(rows, ranges)
        vectors = self.planes.vectors(rows.values, rows.signs, self._pairs.width)
        self._regions.add(rows.groups, rows.regions, vectors)
        young = [number for number, query in self._queries.items() if query.pair >= 0 and not query.listed]
        if young:
            bits = no_bits(len(young), len(rows))
            born = np.array([self._queries[number].born for number in young], np.int64)
            interval_bits(ranges.rank_of[rows.regions], rows.positions, ranges.low[young], ranges.high[young], born, bits)
            self._pairs.add(bits, self._places(young), rows.groups, vectors)
        if listed is not None:
            self._pairs.add(listed.bits, self._places(listed.queries.tolist()), rows.groups, vectors)

    def _places(self, queries: Sequence[int]) -> Array:
        return np.array([self._queries[query].pair for query in queries], np.int64)

    def _hold(self, n_groups: int, n_regions: int) -> None:
        self._regions.hold(n_groups, n_regions)
        self._pairs.hold(self._regions.n_groups)
        self.shown.hold(self._regions.n_groups // LANES)

    def _cover(self, rows: Rows, ranges: Ranges) -> None:
        """Make the planes fit the values; where that changes the measures, show again what is shown."""
        n_measures = self.planes.n_measures
        origins = self.planes.cover(rows.values)
        if origins is not None:
            self._regions.move(origins)
            self._pairs.move(origins)
            if self.planes.n_measures != n_measures:
                self.shown.blank(self.planes.n_measures)
                for place, query in self._reading.items():
                    self._show(query, self.shown, place, ranges)

    def changes(self, ranges: Ranges) -> Changes:
        """The cells that are not as last shown, of queries with a reader; valid until the next call."""
        pages = self._regions.touched()
        settled = [(place, query) for place, query in self._reading.items() if self._queries[query].pair < 0]
        places = np.array([place for place, _ in settled], np.int64)
        queries = np.array([query for _, query in settled], np.int64)
        n = self._regions.changes(pages, ranges.rank_of, ranges.low[queries], ranges.high[queries], places, self.shown)
        return self.shown.changes(self._pairs.changes(self.shown, n))

    def reader_of(self, places: Array) -> Array:
        """The queries at places of `shown`."""
        numbers = np.full(self.shown.n_places, -1, np.int64)
        for place, query in self._reading.items():
            numbers[place] = query
        return numbers[places]

    # ---- answers

    def answer(self, query: int, ranges: Ranges) -> tuple[Array, Array]:
        """The groups that have rows, ascending, and their measures, `[measure, group]`."""
        fresh = Shown(self.planes.n_measures)
        fresh.hold(self._regions.n_groups // LANES)
        found = self._show(query, fresh, fresh.take_place(), ranges)
        groups = np.sort(found.groups)
        return groups, fresh.now(np.zeros(len(groups), np.int64), groups)

    def _show(self, query: int, shown: Shown, place: int, ranges: Ranges) -> Changes:
        """Show all of a query's groups at a place."""
        asked = self._queries[query]
        if asked.pair >= 0:
            return shown.changes(self._pairs.show(asked.pair, shown, place))
        pages = np.arange(self._regions.n_groups // LANES)
        one = np.array([query])
        n = self._regions.changes(pages, ranges.rank_of, ranges.low[one], ranges.high[one], np.array([place]), shown)
        return shown.changes(n)

    @property
    def bytes(self) -> int:
        return self._regions.bytes + self._pairs.bytes + self.shown.bytes

    def check(self) -> None:
        """Assert the invariants; O(queries)."""
        self._regions.check()
        for number, query in self._queries.items():
            assert (query.shown >= 0) == (self._reading.get(query.shown) == number), "a reader is shown its query"
            assert not query.listed or query.pair >= 0, "a query whose rows are listed has sums of its own"
