"""Aggregates of many queries over the same stream, window, keys and values, kept together (decision 13).

The queries differ in their condition. Rows come with their group, their region on the one attribute on which most conditions are
an interval, and their position in the row store; arrivals with sign 1 and ends with -1, and an end has the group, region and
values that were stored with the row. There are two paths, and a query is on one of them at a time:

    region path   one set of sums for all queries (`windows/shared/region_sums.py`): a query is a range of ranks. It counts every
                  row of the window, so it serves **settled** queries: those whose birth has left the window.
    pair path     sums of its own (`windows/shared/pair_sums.py`): **young** queries, which do not count the rows from before
                  their birth, until `settle`; and for good the queries whose condition is more than an interval, whose rows the
                  caller lists.

MIN and MAX go the same ways, by heaps (`windows/shared/extremes.py`) and by bests (`windows/shared/pair_extremes.py`).
Both are exact, so a query that changes path shows no change. Cells are read only for queries with a reader: `changes` lists the
cells (query, group) whose measures are not those last shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from filters.values.vector import Array
from lineage.lanes import LANES
from windows.shared.extremes import NONE
from windows.shared.measures import finish
from windows.shared.pair_sums import PairSums, interval_bits, no_bits
from windows.shared.planes import Planes, ValueColumn
from windows.shared.region_sums import RegionSums
from windows.shared.shown import MeasureChanges, ShownMeasures

__all__ = ["AttributeRanges", "Listed", "MeasureChanges", "MovedRows", "SharedAggregates", "ValueColumn", "finish"]


@dataclass(slots=True)
class MovedRows:
    """Rows that come (sign 1) or go (sign -1) in one commit; a row comes before it goes."""

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
class AttributeRanges:
    """The ranks of regions, and the interval of each query, as the attribute's grouped filter has them now."""

    #: rank of each region id, -1 of one not in use; several may share one
    rank_of: Array
    #: by query number: its interval is the ranks low .. high - 1, `high` may be beyond all
    low: Array
    high: Array


@dataclass(slots=True)
class Listed:
    """The rows that count for queries whose condition is more than an interval."""

    queries: Array
    #: `[query, word of rows]`
    bits: Array


#: From a query and positions of stored rows to a mask of those that satisfy its condition.
Matches = Callable[[int, Array], Array]


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

    def __init__(self, columns: Sequence[ValueColumn], matches: Matches | None = None) -> None:
        #: which rows count for a query whose rows the caller lists; asked where an extreme of such a query left
        self._matches = matches
        self.planes = Planes(columns)
        self._regions = RegionSums(self.planes)
        self._pairs = PairSums(self.planes)
        self.shown = ShownMeasures(self.planes.n_measures)
        self._queries: dict[int, _Query] = {}
        #: those of them that are young
        self._young: dict[int, _Query] = {}
        #: query number at each place of `shown`
        self._reading: dict[int, int] = {}
        #: numbers and places in `shown` of the settled queries that have readers; None if they have changed
        self._settled: tuple[Array, Array] | None = None

    # ---- queries

    def add(self, query: int, born: int, watermark: int, *, listed: bool = False) -> None:
        """Add a query that counts rows from position `born` on; rows before `watermark` have left the window."""
        added = self._queries[query] = _Query(born, listed)
        if listed or born > watermark:
            added.pair = self._pairs.take_place()
            if not listed:
                self._young[query] = added

    def remove(self, query: int) -> None:
        self.unwatch(query)
        removed = self._queries.pop(query)
        self._young.pop(query, None)
        if removed.pair >= 0:
            self._pairs.leave_place(removed.pair)

    def settle(self, watermark: int) -> None:
        """Move queries born by `watermark` to the region path: rows before that position have left the window."""
        self._regions.extremes.drop_below(watermark)
        for number in [number for number, query in self._young.items() if query.born <= watermark]:
            query = self._young.pop(number)
            self._pairs.leave_place(query.pair)
            query.pair = -1
            self._settled = None

    @property
    def n_groups(self) -> int:
        """The number of groups for which there is room."""
        return self._regions.n_groups

    def restart(self, watermark: int, n_groups: int) -> None:
        """Forget every row and keep the shown results; the caller applies the rows from `watermark` on again.

        The planes cover all of them, for what is shown can be told anew only while the sums are whole.
        There is room for `n_groups` groups from then on; of those above nothing is shown.
        """
        n_regions = self._regions.n_regions
        self._regions, self._pairs = RegionSums(self.planes), PairSums(self.planes)
        self._regions.hold(n_groups, n_regions)
        self._pairs.hold(self._regions.n_groups)
        self.shown.cut(self._regions.n_groups // LANES)
        self._regions.extremes.drop_below(watermark)
        self._young.clear()
        self._settled = None
        for number, query in self._queries.items():
            query.pair = self._pairs.take_place() if query.listed or query.born > watermark else -1
            if query.pair >= 0 and not query.listed:
                self._young[number] = query
            if query.pair >= 0 and query.shown >= 0:
                self._pairs.watch(query.pair, query.shown)

    def path(self, query: int) -> str:
        """Return the path of a query: "region path", "pair path" or "young"."""
        asked = self._queries[query]
        return "region path" if asked.pair < 0 else "pair path" if asked.listed else "young"

    def words_a_group(self, n_regions: int) -> int:
        """Return the 64-bit words that one more group takes."""
        return (n_regions + self._pairs.n_taken) * self.planes.n + len(self._reading) * self.planes.n_measures

    def own_bytes(self, query: int) -> int:
        """Return the bytes kept for one query alone."""
        asked = self._queries[query]
        return (self.shown.cells[:, 0].nbytes if asked.shown >= 0 else 0) + (self._pairs.place_bytes if asked.pair >= 0 else 0)

    def watch(self, query: int, ranges: AttributeRanges) -> None:
        """Give a query a reader, which has its present answer; later changes are listed for it."""
        watched = self._queries[query]
        watched.shown = self.shown.take_place()
        self._settled = None
        self._reading[watched.shown] = query
        if watched.pair >= 0:
            self._pairs.watch(watched.pair, watched.shown)
        self._show(query, self.shown, watched.shown, ranges)

    def unwatch(self, query: int) -> None:
        """Take the reader from a query, if it has one."""
        watched = self._queries[query]
        if watched.shown >= 0:
            if watched.pair >= 0:
                self._pairs.watch(watched.pair, -1)
            self.shown.leave_place(watched.shown)
            self._settled = None
            del self._reading[watched.shown]
            watched.shown = -1

    # ---- a commit

    def apply(self, rows: MovedRows, ranges: AttributeRanges, listed: Listed | None = None) -> None:
        """Add arriving rows to the sums, and subtract leaving rows."""
        if len(rows) == 0:
            return
        self._hold(int(rows.groups.max()) + 1, len(ranges.rank_of))
        self.cover(rows.values, ranges)
        vectors = self.planes.vectors(rows.values, rows.signs, self._pairs.width)
        self._regions.add(rows.groups, rows.regions, vectors)
        keys = self._regions.extremes.apply(rows.positions, rows.groups, rows.regions, rows.signs, rows.values)
        nulls = self._extreme_nulls(rows)
        young = list(self._young)
        if young:
            bits = no_bits(len(young), len(rows))
            born = np.array([self._queries[number].born for number in young], np.int64)
            interval_bits(ranges.rank_of[rows.regions], rows.positions, ranges.low[young], ranges.high[young], born, bits)
            self._pairs.add(bits, self._places(young), rows.groups, vectors, rows.signs, keys, nulls)
        if listed is not None:
            places = self._places(listed.queries.tolist())
            self._pairs.add(listed.bits, places, rows.groups, vectors, rows.signs, keys, nulls)

    def _extreme_nulls(self, rows: MovedRows) -> Array:
        """Return the null bytes of each extreme's values, `[extreme, row]`."""
        columns = [k for k, column in enumerate(self.planes.columns) for _ in column.flips]
        found = np.zeros((len(columns), len(rows)), np.uint8)
        for e, k in enumerate(columns):
            if len(rows.values[k][1]):
                found[e] = rows.values[k][1]
        return found

    def _places(self, queries: Sequence[int]) -> Array:
        return np.array([self._queries[query].pair for query in queries], np.int64)

    def _hold(self, n_groups: int, n_regions: int) -> None:
        self._regions.hold(n_groups, n_regions)
        self._pairs.hold(self._regions.n_groups)
        self.shown.hold(self._regions.n_groups // LANES)

    def cover(self, values: Sequence[tuple[Array, Array]], ranges: AttributeRanges) -> None:
        """Extend the planes for cells and null bytes of rows; if the measures change, recompute the shown results."""
        n_measures = self.planes.n_measures
        origins = self.planes.cover(values)
        if origins is not None:
            self._regions.move(origins)
            self._pairs.move(origins)
            if self.planes.n_measures != n_measures:
                self.shown.blank(self.planes.n_measures)
                for place, query in self._reading.items():
                    self._show(query, self.shown, place, ranges)

    def changes(self, ranges: AttributeRanges) -> MeasureChanges:
        """Return the cells whose measures differ from those last shown, of queries with a reader; valid until the next call."""
        pages = self._regions.touched()
        if self._settled is None:
            settled = [(query, place) for place, query in self._reading.items() if self._queries[query].pair < 0]
            self._settled = tuple(np.array(settled, np.int64).reshape(-1, 2).T.copy())  # type: ignore[assignment]
        assert self._settled is not None
        queries, places = self._settled
        n = self._regions.changes(pages, ranges.rank_of, ranges.low[queries], ranges.high[queries], places, self.shown)
        self._find_extremes(self._pairs.touched(), ranges)
        return self.shown.changes(self._pairs.changes(self.shown, n))

    def _find_extremes(self, cells: Array, ranges: AttributeRanges) -> None:
        """Search the rows for the extremes of records whose best row has left."""
        cells = self._pairs.extremes.unknown(cells)
        if len(cells) == 0:
            return
        query_at = {query.pair: number for number, query in self._queries.items() if query.pair >= 0}
        numbers = np.array([query_at[place] for place in (cells // self._pairs.n_groups).tolist()], np.int64)
        listed = np.array([self._queries[number].listed for number in numbers.tolist()], np.bool_)
        born = np.array([self._queries[number].born for number in numbers.tolist()], np.int64)
        groups = cells % self._pairs.n_groups
        rows = self._regions.extremes
        own = ~listed
        low, high = ranges.low[numbers[own]], ranges.high[numbers[own]]
        self._pairs.extremes.put(cells[own], rows.search(groups[own], low, high, born[own], ranges.rank_of))
        for cell, number, group in zip(cells[listed].tolist(), numbers[listed].tolist(), groups[listed].tolist()):
            assert self._matches is not None, "somebody knows which rows a listed query counts"
            positions, keys, nulls = rows.rows(group)
            counted = self._matches(number, positions) & (positions >= self._queries[number].born)
            keys = np.where(counted & (nulls == 0), keys, NONE)
            self._pairs.extremes.put(np.array([cell]), keys.min(axis=1, initial=NONE)[:, None])

    def reader_of(self, places: Array) -> Array:
        """Return the query numbers at places of `shown`."""
        numbers = np.full(self.shown.n_places, -1, np.int64)
        for place, query in self._reading.items():
            numbers[place] = query
        return numbers[places]

    # ---- answers

    def answer(self, query: int, ranges: AttributeRanges) -> tuple[Array, Array]:
        """Return a query's groups with rows, ascending, and their measures, `[measure, group]`."""
        fresh = ShownMeasures(self.planes.n_measures)
        fresh.hold(self._regions.n_groups // LANES)
        found = self._show(query, fresh, fresh.take_place(), ranges)
        groups = np.sort(found.groups)
        return groups, fresh.now(np.zeros(len(groups), np.int64), groups)

    def _show(self, query: int, shown: ShownMeasures, place: int, ranges: AttributeRanges) -> MeasureChanges:
        """Write the measures of all groups of a query at a place of `shown`; return the cells."""
        asked = self._queries[query]
        if asked.pair >= 0:
            self._pairs.extremes.forget(asked.pair, known=False)
            self._find_extremes(self._pairs.cells(asked.pair), ranges)
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
            assert (number in self._young) == (query.pair >= 0 and not query.listed), "young queries are known"
