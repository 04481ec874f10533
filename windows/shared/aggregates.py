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
from lineage.growth import LEAST, fitted, room_for
from lineage.lanes import LANES
from windows.shared.measures import finish
from windows.shared.pair_sums import PairSums, interval_bits, no_bits
from windows.shared.planes import Planes, ValueColumn
from windows.shared.region_sums import RegionRanges, RegionSums
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


#: From queries and positions of stored rows to the bits of those that count for each, `[query, word of rows]`.
Matches = Callable[[Array, Array], Array]

#: The ways in which a query gets its sums.
_ABSENT, _SETTLED, _YOUNG, _LISTED = range(4)
_PATHS = {_SETTLED: "region path", _YOUNG: "young", _LISTED: "pair path"}


class SharedAggregates:
    """The sums of all queries over one (stream, window, keys, values)."""

    def __init__(self, columns: Sequence[ValueColumn], matches: Matches | None = None) -> None:
        #: which rows count for queries whose rows the caller lists; asked where an extreme of such a query left
        self._matches = matches
        self.planes = Planes(columns)
        self._regions = RegionSums(self.planes)
        self._pairs = PairSums(self.planes)
        self.shown = ShownMeasures(self.planes.n_measures)
        #: by query number: its way, its birth, its place on the pair path (-1: none) and among those shown (-1: no reader)
        self._way = np.zeros(LEAST, np.int64)
        self._born = np.zeros(LEAST, np.int64)
        self._pair = np.full(LEAST, -1, np.int64)
        self._shown = np.full(LEAST, -1, np.int64)
        #: the young queries
        self._young = np.zeros(0, np.int64)
        #: the ranges of settled queries with a reader, with the ranks and the number of regions that they are for; None if
        #: these queries have changed
        self._settled: tuple[AttributeRanges, int, RegionRanges] | None = None

    # ---- queries

    def add(self, query: int, born: int, watermark: int, *, listed: bool = False) -> None:
        """Add a query that counts rows from position `born` on; rows before `watermark` have left the window."""
        capacity = room_for(query + 1, len(self._way))
        self._way, self._born = fitted(self._way, capacity), fitted(self._born, capacity)
        self._pair, self._shown = fitted(self._pair, capacity, -1), fitted(self._shown, capacity, -1)
        self._born[query] = born
        self._way[query] = _LISTED if listed else _YOUNG if born > watermark else _SETTLED
        if self._way[query] != _SETTLED:
            self._pair[query] = self._pairs.take_place()
        self._find_young()

    def remove(self, query: int) -> None:
        self.unwatch(np.array([query]))
        if self._pair[query] >= 0:
            self._pairs.leave_places(self._pair[[query]])
        self._pair[query] = -1
        self._way[query] = _ABSENT
        self._find_young()

    def _find_young(self) -> None:
        self._young = np.flatnonzero(self._way == _YOUNG)

    def settle(self, watermark: int) -> None:
        """Move queries born by `watermark` to the region path: rows before that position have left the window."""
        self._regions.extremes.drop_below(watermark)
        if len(self._young):
            self._settle(self._young[self._born[self._young] <= watermark])

    def _settle(self, queries: Array) -> None:
        if len(queries):
            self._pairs.leave_places(self._pair[queries])
            self._pair[queries] = -1
            self._way[queries] = _SETTLED
            self._settled = None
            self._find_young()

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
        self._settled = None
        self._pair[:] = -1
        unlisted = np.flatnonzero((self._way == _YOUNG) | (self._way == _SETTLED))
        self._way[unlisted] = np.where(self._born[unlisted] > watermark, _YOUNG, _SETTLED)
        for query in np.flatnonzero(self._way > _SETTLED).tolist():
            self._pair[query] = self._pairs.take_place()
        watched = np.flatnonzero((self._pair >= 0) & (self._shown >= 0))
        self._pairs.watch(self._pair[watched], self._shown[watched])
        self._find_young()

    def path(self, query: int) -> str:
        """Return the path of a query: "region path", "pair path" or "young"."""
        return _PATHS[int(self._way[query])]

    def words_a_group(self, n_regions: int) -> int:
        """Return the 64-bit words that one more group takes."""
        n_shown = int(np.count_nonzero(self._shown >= 0))
        return (n_regions + self._pairs.n_taken) * self.planes.n + n_shown * self.planes.n_measures

    def own_bytes(self, query: int) -> int:
        """Return the bytes kept for one query alone."""
        shown, pair = self._shown[query] >= 0, self._pair[query] >= 0
        return (self.shown.cells[:, 0].nbytes if shown else 0) + (self._pairs.place_bytes if pair else 0)

    def watch(self, queries: Array, ranges: AttributeRanges) -> None:
        """Give queries readers, which have their present answers; later changes are listed for them."""
        if len(queries):
            self._shown[queries] = self.shown.take_places(len(queries))
            paired = queries[self._pair[queries] >= 0]
            self._pairs.watch(self._pair[paired], self._shown[paired])
            self._settled = None
            self._show(queries, self.shown, self._shown[queries], ranges)

    def unwatch(self, queries: Array) -> None:
        """Take the readers from those of these queries that have one."""
        watched = queries[self._shown[queries] >= 0]
        if len(watched):
            paired = self._pair[watched]
            self._pairs.unwatch(paired[paired >= 0])
            self.shown.leave_places(self._shown[watched])
            self._shown[watched] = -1
            self._settled = None

    # ---- a commit

    def apply(self, rows: MovedRows, ranges: AttributeRanges, listed: Listed | None = None) -> None:
        """Add arriving rows to the sums, and subtract leaving rows."""
        if len(rows) == 0:
            return
        self._hold(int(rows.groups.max()) + 1, len(ranges.rank_of))
        self.cover(rows.values, ranges)
        pairs = len(self._young) or listed is not None
        vectors = self.planes.vectors(rows.values, rows.signs, self._pairs.width if pairs else self.planes.n)
        self._regions.add(rows.groups, rows.regions, vectors)
        keys = self._regions.extremes.apply(rows.positions, rows.groups, rows.regions, rows.signs, rows.values)
        nulls = self._extreme_nulls(rows)
        young = self._young
        if len(young):
            bits = no_bits(len(young), len(rows))
            interval_bits(
                ranges.rank_of[rows.regions], rows.positions, ranges.low[young], ranges.high[young], self._born[young], bits
            )  # fmt: skip
            self._pairs.add(bits, self._pair[young], rows.groups, vectors, rows.signs, keys, nulls)
        if listed is not None:
            self._pairs.add(listed.bits, self._pair[listed.queries], rows.groups, vectors, rows.signs, keys, nulls)

    def _extreme_nulls(self, rows: MovedRows) -> Array:
        """Return the null bytes of each extreme's values, `[extreme, row]`."""
        columns = [k for k, column in enumerate(self.planes.columns) for _ in column.flips]
        found = np.zeros((len(columns), len(rows)), np.uint8)
        for e, k in enumerate(columns):
            if len(rows.values[k][1]):
                found[e] = rows.values[k][1]
        return found

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
                readers = np.flatnonzero(self._shown >= 0)
                self._show(readers, self.shown, self._shown[readers], ranges)

    def changes(self, ranges: AttributeRanges) -> MeasureChanges:
        """Return the cells whose measures differ from those last shown, of queries with a reader; valid until the next call."""
        n = self._regions.changes(self._regions.touched(), self._settled_ranges(ranges), self.shown)
        self._find_extremes(self._pairs.touched(), ranges)
        return self.shown.changes(self._pairs.changes(self.shown, n))

    def show_again(self, ranges: AttributeRanges) -> tuple[MeasureChanges, MeasureChanges]:
        """Return all cells with rows as last shown, and all as they are now, of queries with a reader; valid as `changes`."""
        former = self.shown.take_all()
        self._regions.touched()
        n = self._regions.show(self._settled_ranges(ranges), self.shown)
        self._pairs.touch_all()
        self._find_extremes(self._pairs.touched(), ranges)
        return former, self.shown.changes(self._pairs.changes(self.shown, n))

    def _settled_ranges(self, ranges: AttributeRanges) -> RegionRanges:
        """The ranges of the settled queries with a reader."""
        known, n_regions = self._settled, self._regions.n_regions
        if known is not None and known[0] is ranges and known[1] == n_regions:
            return known[2]
        queries = np.flatnonzero((self._way == _SETTLED) & (self._shown >= 0))
        found = self._regions.ranges(ranges.rank_of, ranges.low[queries], ranges.high[queries], self._shown[queries])
        self._settled = ranges, n_regions, found
        return found

    def _find_extremes(self, cells: Array, ranges: AttributeRanges) -> None:
        """Search the rows for the extremes of records whose best row has left."""
        cells = self._pairs.extremes.unknown(cells)
        if len(cells) == 0:
            return
        query_at = np.full(self._pairs.n_places, -1, np.int64)
        paired = np.flatnonzero(self._pair >= 0)
        query_at[self._pair[paired]] = paired
        queries, groups = query_at[cells // self._pairs.n_groups], cells % self._pairs.n_groups
        listed = self._way[queries] == _LISTED
        rows, own = self._regions.extremes, ~listed
        low, high = ranges.low[queries[own]], ranges.high[queries[own]]
        self._pairs.extremes.put(cells[own], rows.search(groups[own], low, high, self._born[queries[own]], ranges.rank_of))
        if listed.any():
            assert self._matches is not None, "somebody knows which rows a listed query counts"
            asked, at = np.unique(queries[listed], return_inverse=True)
            found = rows.rows(np.unique(groups[listed]))
            bits = self._matches(asked, found.positions)
            self._pairs.extremes.put(cells[listed], rows.search_listed(groups[listed], at, bits, found))

    def readers_at(self) -> Array:
        """Return the query number at each place of `shown`, -1 where there is none."""
        numbers = np.full(self.shown.n_places, -1, np.int64)
        readers = np.flatnonzero(self._shown >= 0)
        numbers[self._shown[readers]] = readers
        return numbers

    # ---- answers

    def answer(self, query: int, ranges: AttributeRanges) -> tuple[Array, Array]:
        """Return a query's groups with rows, ascending, and their measures, `[measure, group]`."""
        fresh = ShownMeasures(self.planes.n_measures)
        fresh.hold(self._regions.n_groups // LANES)
        found = self._show(np.array([query]), fresh, fresh.take_places(1), ranges)
        groups = np.sort(found.groups)
        return groups, fresh.now(np.zeros(len(groups), np.int64), groups)

    def _show(self, queries: Array, shown: ShownMeasures, places: Array, ranges: AttributeRanges) -> MeasureChanges:
        """Write the measures of all groups of queries at places of `shown`; return the cells if they are of one path."""
        n = 0
        paired = self._pair[queries] >= 0
        if not paired.all():
            settled = queries[~paired]
            at = self._regions.ranges(ranges.rank_of, ranges.low[settled], ranges.high[settled], places[~paired])
            n = self._regions.show(at, shown)
        if paired.any():
            pairs = self._pair[queries[paired]]
            self._pairs.extremes.forget(pairs, known=False)
            self._find_extremes(self._pairs.cells(pairs), ranges)
            n = self._pairs.show(pairs, shown, places[paired])
        return shown.changes(n)

    @property
    def bytes(self) -> int:
        return self._regions.bytes + self._pairs.bytes + self.shown.bytes

    def check(self) -> None:
        """Assert the invariants; O(queries)."""
        self._regions.check()
        shown = self._shown[self._shown >= 0]
        assert len(np.unique(shown)) == len(shown), "each reader has a place of its own"
        assert ((self._pair >= 0) == (self._way > _SETTLED)).all(), "young and listed queries have sums of their own"
        assert (self._young == np.flatnonzero(self._way == _YOUNG)).all(), "young queries are known"
