"""Sums of many queries that differ in one interval on one attribute: one set of planes for each (region, group).

A region is the values of the attribute between two neighbouring constants of any query (`filters/index/grouped.py`), so a query's
interval is a range of ranks of regions, and

    planes of (query, group) = prefix(group, high) - prefix(group, low)        prefix = sum over regions of lower rank

An arrival adds its row vector at its region, an end subtracts it at the region **stored** with the row, whatever became of that
region since: a new constant splits a region, rows from before keep the id of the lower part, and only queries that are older than
the split count them, for which both parts are alike. An id that is handed out again has lost all its rows, and so is 0 in all
planes.

    acc[page, region, plane, lane]      group = page * LANES + lane

Extremes are kept beside (`windows/shared/extremes.py`) and read in the same walk.

A commit of rows costs its rows, whatever the queries. Cells are read, and compared with what was last shown, only for queries
with a reader, in one of two ways:

    wide      one walk over the regions in order of rank for each page of groups that the commit touched, with running sums
    narrow    ranges of a few regions, as of queries that fix the attribute to a value: each region that was touched on a page
              leads to the queries that it is in, and their regions are summed; queries whose regions had no row cost nothing
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from filters.values.vector import Array
from lineage.growth import LEAST, fitted, room_for
from lineage.kernels import Number, inline, kernel
from lineage.lanes import (
    LANES,
    add_lanes,
    copy_lanes,
    count_lanes,
    differing_lanes,
    keep_lanes,
    least_lanes,
    subtract_lanes,
)
from lineage.memory import address_of, prefetch
from windows.shared.extremes import NONE, RegionExtremes, grow_trees, read_trees
from windows.shared.planes import Planes
from windows.shared.run_measures import read_measures
from windows.shared.shown import ShownMeasures

#: Rows between asking for a cell and adding to it.
_AHEAD = 8
#: Regions that a narrow range has at most.
_FEW = 3


@kernel("int64(int64[::1], int64[::1], int64[:,::1], int64[:,:,:,::1], uint8[:,::1], int64[::1], int64)")
def scatter(
    groups: np.ndarray, regions: np.ndarray, vectors: np.ndarray, acc_cells: np.ndarray, marks: np.ndarray, touched: np.ndarray,
    n: int,
) -> int:  # fmt: skip
    """Add row vectors to the planes of their cells.

    Each (page, region) that was not marked is, and is appended to a list of n; returns its new length.
    """
    _, n_regions, n_planes, _ = acc_cells.shape
    acc = acc_cells.reshape(-1)
    address = address_of(acc)
    n_rows = len(groups)
    for i in range(n_rows):
        if i + _AHEAD < n_rows:
            group = groups[i + _AHEAD]
            at = (group // LANES * n_regions + regions[i + _AHEAD]) * n_planes * LANES + group % LANES
            for plane in range(n_planes):
                prefetch(address + 8 * (at + plane * LANES))
        page = groups[i] // LANES
        at = (page * n_regions + regions[i]) * n_planes * LANES + groups[i] % LANES
        # no branch, which would be guessed wrong for half of the rows
        touched[n] = page * n_regions + regions[i]
        n += marks[page, regions[i]] == 0
        marks[page, regions[i]] = 1
        for plane in range(n_planes):
            acc[at + plane * LANES] += vectors[i, plane]
    return n


@inline
def _advance(
    acc: Number, address: Number, base: Number, n_planes: Number, order: Number, start: Number, stop: Number, work: Number
) -> None:  # fmt: skip
    """Add regions to the running sums at the front of `work`; `address` is that of `acc`."""
    for k in range(start, stop):
        if k + _AHEAD < len(order):
            for plane in range(n_planes):
                prefetch(address + 8 * (base + (order[k + _AHEAD] * n_planes + plane) * LANES))
        at = base + order[k] * n_planes * LANES
        for plane in range(n_planes):
            add_lanes(work, plane * LANES, acc, at + plane * LANES)


@inline
def _capture(
    fresh: Number, n_measures: Number, shown: Number, at: Number, cell: Number, list: Number, capacity: Number, n: Number,
) -> Number:  # fmt: skip
    """List the cells of a run that differ from those shown, with old and new measures, and store the new; returns how many."""
    mask = differing_lanes(fresh, 0, shown, at)
    for m in range(1, n_measures):
        mask |= differing_lanes(fresh, m * LANES, shown, at + m * LANES)
    if mask == (1 << LANES) - 1:
        count_lanes(list, n, cell)
        for m in range(n_measures):
            copy_lanes(list, n + (m + 1) * capacity, shown, at + m * LANES)
            copy_lanes(list, n + (n_measures + m + 1) * capacity, fresh, m * LANES)
        n += LANES
    elif mask != 0:
        for lane in range(LANES):
            if (mask >> lane) & 1:
                list[n] = cell + lane
                for m in range(n_measures):
                    list[n + (m + 1) * capacity] = shown[at + m * LANES + lane]
                    list[n + (n_measures + m + 1) * capacity] = fresh[m * LANES + lane]
                n += 1
    if mask != 0:
        for m in range(n_measures):
            copy_lanes(shown, at + m * LANES, fresh, m * LANES)
    return n


@kernel(
    "int64(int64[:,:,:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1],"
    "int64[::1], int64[:,:,:,::1], int64[:,::1], int64, int64[:,:,:,::1], int64[::1], int64[::1])"
)
def walk_regions(
    acc_cells: np.ndarray, pages: np.ndarray, order: np.ndarray, saves: np.ndarray, lows: np.ndarray, highs: np.ndarray,
    places: np.ndarray, columns: np.ndarray, work: np.ndarray, scratch: np.ndarray, shown_cells: np.ndarray, lists: np.ndarray,
    n: int, bests: np.ndarray, trees: np.ndarray, extreme_counts: np.ndarray,
) -> int:  # fmt: skip
    """Append the changed cells of queries, in order of `highs`, to a list of n cells; returns its new length.

    Bounds are places in `order`. `saves` are the different lower bounds above 0, ascending; `lows[j]` is the number of query j's,
    or -1. `work` is a run of zeros, then the running sums, a difference, and the running sums at each save. `scratch` begins with
    the measures of a run.
    """
    _, n_regions, n_planes, _ = acc_cells.shape
    _, n_places, n_measures, _ = shown_cells.shape
    n_cells = bests.shape[1] * n_regions * LANES
    capacity = lists.shape[1]
    acc, shown, list, best = acc_cells.reshape(-1), shown_cells.reshape(-1), lists.reshape(-1), bests.reshape(-1)
    acc_address, shown_address = address_of(acc), address_of(shown)
    fresh = scratch[: n_measures * LANES]
    scratch = scratch[n_measures * LANES :]
    size = n_planes * LANES
    difference, saved = LANES + size, LANES + 2 * size
    sums = work[LANES:]
    for p in range(len(pages)):
        base = pages[p] * n_regions * size
        for i in range(LANES + size):
            work[i] = 0
        grow_trees(best, len(extreme_counts), n_cells, pages[p], n_regions, order, trees)
        place, save = np.int64(0), np.int64(0)
        row = n_measures * LANES
        showing = pages[p] * n_places * row
        for j in range(len(highs)):
            if j + _AHEAD < len(highs):
                for m in range(n_measures):
                    prefetch(shown_address + 8 * (showing + places[j + _AHEAD] * row + m * LANES))
            while save < len(saves) and saves[save] <= highs[j]:
                _advance(acc, acc_address, base, n_planes, order, place, saves[save], sums)
                place = saves[save]
                for plane in range(n_planes):
                    copy_lanes(work, saved + save * size + plane * LANES, sums, plane * LANES)
                save += 1
            _advance(acc, acc_address, base, n_planes, order, place, highs[j], sums)
            place = highs[j]
            at = np.int64(LANES)
            first = np.int64(0)
            if lows[j] >= 0:
                at = np.int64(difference)
                first = saves[lows[j]]
                low = saved + lows[j] * size
                for plane in range(n_planes):
                    subtract_lanes(work, at + plane * LANES, sums, plane * LANES, work, low + plane * LANES)
            read_measures(work, at, 0, columns, fresh, scratch)
            read_trees(trees, extreme_counts, len(order), first, highs[j], fresh, n_measures - len(extreme_counts))
            cell = (places[j] << np.int64(32)) + pages[p] * LANES
            n = _capture(fresh, n_measures, shown, showing + places[j] * row, cell, list, capacity, n)
    return int(n)


@kernel(
    "int64(int64[:,:,:,::1], int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[::1],"
    "int64[::1], int64[:,:,:,::1], int64[:,::1], int64, int64[:,:,:,::1], int64[::1])"
)
def look_up_regions(
    acc_cells: np.ndarray, touched: np.ndarray, firsts: np.ndarray, queries: np.ndarray, bounds: np.ndarray, order: np.ndarray,
    places: np.ndarray, columns: np.ndarray, work: np.ndarray, scratch: np.ndarray, shown_cells: np.ndarray, lists: np.ndarray,
    n: int, bests: np.ndarray, extreme_counts: np.ndarray,
) -> int:  # fmt: skip
    """Append the changed cells of queries with narrow ranges to a list of n cells; returns its new length.

    `touched` are numbers of (page, region); the queries of region r are `queries[firsts[r]:firsts[r + 1]]`, and query q has the
    regions `order[bounds[0, q]:bounds[1, q]]`. `work` is a run of zeros, then a sum; `scratch` begins with the measures of a run.
    """
    _, n_regions, n_planes, _ = acc_cells.shape
    _, n_places, n_measures, _ = shown_cells.shape
    n_cells = bests.shape[1] * n_regions * LANES
    capacity = lists.shape[1]
    acc, shown, list, best = acc_cells.reshape(-1), shown_cells.reshape(-1), lists.reshape(-1), bests.reshape(-1)
    fresh = scratch[: n_measures * LANES]
    scratch = scratch[n_measures * LANES :]
    n_extremes = len(extreme_counts)
    for plane in range(LANES):
        work[plane] = 0
    row = n_measures * LANES
    for t in range(len(touched)):
        page, region = touched[t] // n_regions, touched[t] % n_regions
        base = page * n_regions * n_planes * LANES
        for k in range(firsts[region], firsts[region + 1]):
            q = queries[k]
            for i in range(n_planes * LANES):
                work[LANES + i] = 0
            for at in range(bounds[0, q], bounds[1, q]):
                for plane in range(n_planes):
                    add_lanes(work, LANES + plane * LANES, acc, base + (order[at] * n_planes + plane) * LANES)
            read_measures(work, LANES, 0, columns, fresh, scratch)
            for e in range(n_extremes):
                to = (n_measures - n_extremes + e) * LANES
                for lane in range(LANES):
                    fresh[to + lane] = NONE
                for at in range(bounds[0, q], bounds[1, q]):
                    least_lanes(fresh, to, best, e * n_cells + (page * n_regions + order[at]) * LANES)
                keep_lanes(fresh, to, fresh, extreme_counts[e] * LANES)
            cell = (places[q] << np.int64(32)) + page * LANES
            n = _capture(fresh, n_measures, shown, page * n_places * row + places[q] * row, cell, list, capacity, n)
    return int(n)


class RegionRanges(NamedTuple):
    """The ranges of some queries as places in the order of regions: those that are wide, and those that are narrow by region."""

    order: Array
    #: by query, `[first and last + 1, query]`
    bounds: Array
    places: Array
    wide: Array
    #: the narrow queries of region r are `queries[firsts[r]:firsts[r + 1]]`
    firsts: Array
    queries: Array


class RegionSums:
    """The planes of every (region, group)."""

    def __init__(self, planes: Planes) -> None:
        self._planes = planes
        self.n_groups = LANES
        self.n_regions = LEAST
        self._acc = np.zeros((1, LEAST, planes.n, LANES), np.int64)
        #: whether a (page, region) was touched since the last `changes`, and the list of those
        self._marks = np.zeros((1, LEAST), np.uint8)
        self._touched = np.zeros(LEAST, np.int64)
        self._n_touched = 0
        self.extremes = RegionExtremes(planes)

    def hold(self, n_groups: int, n_regions: int) -> None:
        """Make room for so many groups and region ids."""
        have = len(self._acc)
        pages, rows = room_for(-(-n_groups // LANES), have), room_for(n_regions, self.n_regions)
        if have == 1 and n_groups <= LANES:
            pages = 1
        if (pages, rows) == (have, self.n_regions):
            return
        acc = np.zeros((pages, rows, self._planes.n, LANES), np.int64)
        acc[:have, : self.n_regions] = self._acc
        marks = np.zeros((pages, rows), np.uint8)
        marks[:have, : self.n_regions] = self._marks
        touched = self._touched[: self._n_touched]
        touched[:] = touched // self.n_regions * rows + touched % self.n_regions
        self._acc, self._marks = acc, marks
        self.n_groups, self.n_regions = pages * LANES, rows
        self.extremes.hold(pages, rows)

    def move(self, origins: Array) -> None:
        """Move the sums to a new layout of planes; see `Planes.cover`."""
        acc = self._acc[:, :, np.maximum(origins, 0)]
        acc[:, :, origins < 0] = 0
        self._acc = np.ascontiguousarray(acc)

    def add(self, groups: Array, regions: Array, vectors: Array) -> None:
        """Add row vectors to the sums of their (region, group); there is room for both."""
        most = min(self._n_touched + len(groups), self._marks.size) + 1
        if most > len(self._touched):
            self._touched = fitted(self._touched, room_for(most, LEAST))
        self._n_touched = scatter(groups, regions, vectors, self._acc, self._marks, self._touched, self._n_touched)

    def touched(self) -> Array:
        """Return the numbers page * n_regions + region that were touched since the last call."""
        found = self._touched[: self._n_touched].copy()
        self._n_touched = 0
        self._marks.reshape(-1)[found] = 0
        return found

    def ranges(self, rank_of: Array, low: Array, high: Array, places: Array) -> RegionRanges:
        """Return the ranges of some queries from their ranges of ranks; valid while those, the ranks and `n_regions` are."""
        # an id there is no room for has had no row yet
        ids = np.flatnonzero(rank_of[: self.n_regions] >= 0)
        order = ids[np.argsort(rank_of[ids], kind="stable")]
        ranks = rank_of[order]
        first = np.searchsorted(ranks, low)
        last = np.maximum(first, np.searchsorted(ranks, high))
        wide = last - first > _FEW
        narrow = np.flatnonzero(~wide)
        n = (last - first)[narrow]
        at = np.repeat(first[narrow], n) + np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        by_region = np.argsort(order[at], kind="stable")
        firsts = np.searchsorted(order[at][by_region], np.arange(self.n_regions + 1))
        return RegionRanges(order, np.array([first, last]), places, np.flatnonzero(wide), firsts, np.repeat(narrow, n)[by_region])

    def changes(self, touched: Array, ranges: RegionRanges, shown: ShownMeasures) -> int:
        """List the cells on touched (page, region) that differ from those shown, for some queries; store the new ones."""
        return self._changes(np.unique(touched // self.n_regions), touched, ranges, shown)

    def show(self, ranges: RegionRanges, shown: ShownMeasures) -> int:
        """List all cells that differ from those shown, for some queries; store the new ones."""
        pages, regions = np.arange(len(self._acc)), np.flatnonzero(np.diff(ranges.firsts))
        return self._changes(pages, (pages[:, None] * self.n_regions + regions).reshape(-1), ranges, shown)

    def _changes(self, pages: Array, touched: Array, ranges: RegionRanges, shown: ShownMeasures) -> int:
        regions = touched % self.n_regions
        counts = ranges.firsts[regions + 1] - ranges.firsts[regions]
        shown.room((len(ranges.wide) * len(pages) + int(counts.sum()) + 1) * LANES)
        planes, order = self._planes, ranges.order
        work, scratch = np.empty(LANES * (planes.n + 1), np.int64), self._scratch()
        n = look_up_regions(
            self._acc, touched[counts > 0], ranges.firsts, ranges.queries, ranges.bounds, order, ranges.places, planes.fields,
            work, scratch, shown.cells, shown.list, 0, self.extremes.best, planes.extreme_counts,
        )  # fmt: skip
        first, last = ranges.bounds[:, ranges.wide]
        places = ranges.places[ranges.wide]
        # a range up to the last region begins the order when that is turned round
        turned = (first > 0) & (last == len(order))
        n = self._walk(pages, order, first[~turned], last[~turned], places[~turned], shown, n)
        upper = len(order) - first[turned]
        return self._walk(pages, order[::-1].copy(), np.zeros(len(upper), np.int64), upper, places[turned], shown, n)

    def _scratch(self) -> Array:
        return np.empty(self._planes.n_measures * LANES + self._planes.scratch, np.int64)

    def _walk(self, pages: Array, order: Array, first: Array, last: Array, places: Array, shown: ShownMeasures, n: int) -> int:
        """Append the changed cells to a list of n cells; returns its new length."""
        if len(first) == 0:
            return n
        planes = self._planes
        by_last = np.argsort(last, kind="stable")
        first, last = first[by_last], last[by_last]
        saves = np.unique(first[first > 0])
        lows = np.where(first > 0, np.searchsorted(saves, first), -1)
        trees = np.empty(self.extremes.n * 2 * len(order) * LANES, np.int64)
        work = np.empty(LANES + (2 + len(saves)) * planes.n * LANES, np.int64)
        return walk_regions(
            self._acc, pages, order, saves, lows, last, places[by_last], planes.fields, work, self._scratch(), shown.cells,
            shown.list, n, self.extremes.best, trees, planes.extreme_counts,
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        return self._acc.nbytes + self._marks.nbytes + self._touched.nbytes + self.extremes.bytes

    def check(self) -> None:
        assert self._acc.shape == (*self._marks.shape, self._planes.n, LANES), "a page has every plane"
        assert np.count_nonzero(self._marks) == self._n_touched, "what was touched is listed once"
