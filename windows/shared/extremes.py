"""MIN and MAX of many queries that differ in one interval on one attribute: a heap of rows for each (region, group).

Extremes cannot be subtracted, so rows are kept, by position in the row store: an arrival enters the heap of its cell
(`windows/aggregates/heaps.py`), an end leaves the one of its stored region, and the root is the cell's **best**:

    best[extreme, page, region, lane]     the smallest key of the cell, NONE of no values; keys of maxima are inverted

To read a page, its bests in order of rank are the leaves of a tree of minima; a query takes the nodes that make up its range,
two a level. That serves any interval.

Queries on the pair path do not count all rows of a region, so their extremes are kept apart (`windows/shared/pair_extremes.py`)
and, when one left, found in the rows of the group, which are linked.

    row of position p is at slot p & (capacity - 1)        capacity is a power of two above the span of live positions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from filters.values.vector import Array
from lineage.growth import LEAST, room_for
from lineage.kernels import Number, inline, kernel
from lineage.lanes import LANES, copy_lanes, keep_lanes, least_lanes
from lineage.order_keys import order_key
from lineage.schema import KEY_MAX, Type
from windows.aggregates.heaps import push, remove
from windows.shared.planes import Planes

#: The best of no values; a value may have this key, and then its count is not 0.
NONE = KEY_MAX

_NEXT, _PREV = 0, 1


@kernel("void(int64[::1], boolean, int64, int64[::1])")
def make_keys(cells: np.ndarray, is_float: bool, flip: int, keys: np.ndarray) -> None:
    """Write the order keys of values."""
    for i in range(len(cells)):
        keys[i] = order_key(cells[i], is_float) ^ flip


@kernel("void(int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int32[:,::1], int32[::1], int64[::1])")
def move_rows(
    slots: np.ndarray, cells: np.ndarray, signs: np.ndarray, nulls: np.ndarray, keys: np.ndarray, links: np.ndarray,
    roots: np.ndarray, best: np.ndarray,
) -> None:  # fmt: skip
    """Put arrivals into the heaps of their cells and take ended rows out; `nulls` is empty iff no value is NULL."""
    for i in range(len(slots)):
        if len(nulls) > 0 and nulls[i] != 0:
            continue
        cell = cells[i]
        if signs[i] > 0:
            roots[cell] = push(links, keys, 0, roots[cell], slots[i])
        else:
            roots[cell] = remove(links, keys, 0, roots[cell], slots[i])
        best[cell] = NONE if roots[cell] < 0 else keys[roots[cell]]


@kernel("void(int64[::1], int64[::1], int64[::1], int32[:,::1], int32[::1])")
def link_rows(slots: np.ndarray, groups: np.ndarray, signs: np.ndarray, links: np.ndarray, heads: np.ndarray) -> None:
    """Put arrivals into the lists of their groups and take ended rows out."""
    for i in range(len(slots)):
        slot, group = slots[i], groups[i]
        if signs[i] > 0:
            first = heads[group]
            links[_NEXT, slot] = first
            links[_PREV, slot] = -1
            if first >= 0:
                links[_PREV, first] = slot
            heads[group] = slot
        else:
            after, before = links[_NEXT, slot], links[_PREV, slot]
            if before >= 0:
                links[_NEXT, before] = after
            else:
                heads[group] = after
            if after >= 0:
                links[_PREV, after] = before


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[::1], int32[:,::1], int64[::1], int64[::1],"
    "int64[::1], uint8[:,::1], int64[:,::1], int64[:,::1])"
)
def search_rows(
    groups: np.ndarray, low: np.ndarray, high: np.ndarray, born: np.ndarray, rank_of: np.ndarray, heads: np.ndarray,
    links: np.ndarray, positions: np.ndarray, regions: np.ndarray, null_at: np.ndarray, nulls: np.ndarray, keys: np.ndarray,
    found: np.ndarray,
) -> None:  # fmt: skip
    """Write the bests of cells (query, group), given by the query's range of ranks and birth, to `found[extreme, cell]`."""
    for c in range(len(groups)):
        for e in range(len(keys)):
            found[e, c] = NONE
        slot = np.int64(heads[groups[c]])
        while slot >= 0:
            rank = rank_of[regions[slot]]
            if rank >= low[c] and rank < high[c] and positions[slot] >= born[c]:
                for e in range(len(keys)):
                    if nulls[null_at[e], slot] == 0:
                        found[e, c] = min(found[e, c], keys[e, slot])
            slot = np.int64(links[_NEXT, slot])


@kernel("int64(int64[::1], int32[::1], int32[:,::1], int64[::1], int64[::1])")
def list_rows(groups: np.ndarray, heads: np.ndarray, links: np.ndarray, slots: np.ndarray, place_of: np.ndarray) -> int:
    """List the slots of the rows of groups, with the place of each in that list; returns how many."""
    n = np.int64(0)
    for g in range(len(groups)):
        slot = np.int64(heads[groups[g]])
        while slot >= 0:
            slots[n] = slot
            place_of[slot] = n
            n += 1
            slot = np.int64(links[_NEXT, slot])
    return int(n)


@kernel(
    "void(int64[::1], int64[::1], uint64[:,::1], int64[::1], int32[::1], int32[:,::1], int64[::1], uint8[:,::1], int64[:,::1],"
    "int64[:,::1])"
)
def search_listed(
    groups: np.ndarray, queries: np.ndarray, bits: np.ndarray, place_of: np.ndarray, heads: np.ndarray, links: np.ndarray,
    null_at: np.ndarray, nulls: np.ndarray, keys: np.ndarray, found: np.ndarray,
) -> None:  # fmt: skip
    """Write the bests of cells (query, group) to `found[extreme, cell]`, by the bits `[query, place of the row]`."""
    for c in range(len(groups)):
        for e in range(len(keys)):
            found[e, c] = NONE
        slot = np.int64(heads[groups[c]])
        while slot >= 0:
            at = place_of[slot]
            if (bits[queries[c], at >> 6] >> np.uint64(at & 63)) & np.uint64(1):
                for e in range(len(keys)):
                    if nulls[null_at[e], slot] == 0:
                        found[e, c] = min(found[e, c], keys[e, slot])
            slot = np.int64(links[_NEXT, slot])


@inline
def grow_trees(
    best: Number, n_extremes: Number, size: Number, page: Number, n_regions: Number, order: Number, trees: Number
) -> None:  # fmt: skip
    """Build a tree of minima over the bests of a page in order of rank, for each extreme; `size` is the cells of one extreme."""
    n = len(order)
    for e in range(n_extremes):
        root = e * 2 * n * LANES
        base = e * size + page * n_regions * LANES
        for k in range(n):
            copy_lanes(trees, root + (n + k) * LANES, best, base + order[k] * LANES)
        for k in range(n - 1, 0, -1):
            copy_lanes(trees, root + k * LANES, trees, root + 2 * k * LANES)
            least_lanes(trees, root + k * LANES, trees, root + (2 * k + 1) * LANES)


@inline
def read_trees(
    trees: Number, counts: Number, n: Number, first: Number, last: Number, fresh: Number, to: Number
) -> None:  # fmt: skip
    """Write the least of the leaves first .. last - 1 for each extreme, behind the first `to` measures of `fresh`."""
    for e in range(len(counts)):
        root = e * 2 * n * LANES
        at = (to + e) * LANES
        for lane in range(LANES):
            fresh[at + lane] = NONE
        low, high = n + first, n + last
        while low < high:
            if low & 1:
                least_lanes(fresh, at, trees, root + low * LANES)
                low += 1
            if high & 1:
                high -= 1
                least_lanes(fresh, at, trees, root + high * LANES)
            low >>= 1
            high >>= 1
        keep_lanes(fresh, at, fresh, counts[e] * LANES)


class GroupRows(NamedTuple):
    """The rows of some groups."""

    positions: Array
    #: by slot, the place of the row in them
    places: Array


class RegionExtremes:
    """The heaps of every (region, group), and the rows in them; empty if no query asks for an extreme."""

    def __init__(self, planes: Planes) -> None:
        self._planes = planes
        #: (column, flip) of each extreme
        self._extremes = [(k, flip) for k, column in enumerate(planes.columns) for flip in column.flips]
        self.n = len(self._extremes)
        self._column_of = np.array([k for k, _ in self._extremes], np.int64)
        #: rows before this position have left
        self._low = 0
        self._capacity = LEAST
        self._positions = np.full(LEAST, -1, np.int64)
        self._regions = np.zeros(LEAST, np.int64)
        self._nulls = np.zeros((len(planes.columns), LEAST), np.uint8)
        self._keys = np.zeros((self.n, LEAST), np.int64)
        self._heap_links = np.full((self.n, 3, LEAST), -1, np.int32)
        self._group_links = np.full((2, LEAST), -1, np.int32)
        self._heads = np.full(LANES, -1, np.int32)
        #: `[extreme, page, region, lane]`
        self.best = np.full((self.n, 1, LEAST, LANES), NONE, np.int64)
        self._roots = np.full((self.n, 1, LEAST, LANES), -1, np.int32)

    def hold(self, n_pages: int, n_regions: int) -> None:
        """Make room for so many pages of groups and region ids."""
        have = self.best.shape
        if not self.n or (n_pages, n_regions) == have[1:3]:
            return
        best = np.full((self.n, n_pages, n_regions, LANES), NONE, np.int64)
        roots = np.full(best.shape, -1, np.int32)
        best[:, : have[1], : have[2]] = self.best
        roots[:, : have[1], : have[2]] = self._roots
        heads = np.full(n_pages * LANES, -1, np.int32)
        heads[: len(self._heads)] = self._heads
        self.best, self._roots, self._heads = best, roots, heads

    def drop_below(self, position: int) -> None:
        """Note that the rows before this position have left."""
        self._low = max(self._low, position)

    def _reserve(self, last: int) -> None:
        """Make slots for the live positions up to this one."""
        capacity = room_for(last + 1 - self._low, self._capacity)
        if capacity == self._capacity:
            return
        live = np.flatnonzero(self._positions >= 0)
        slots = self._positions[live] & (capacity - 1)
        # where each slot went; the last entry is for -1
        moved = np.full(self._capacity + 1, -1, np.int32)
        moved[live] = slots

        def fit(array: Array, fill: int) -> Array:
            copy = np.full((*array.shape[:-1], capacity), fill, array.dtype)
            copy[..., slots] = array[..., live]
            return copy

        self._heap_links = fit(moved[self._heap_links], -1)
        self._group_links = fit(moved[self._group_links], -1)
        self._roots, self._heads = moved[self._roots], moved[self._heads]
        self._regions, self._keys = fit(self._regions, 0), fit(self._keys, 0)
        self._nulls, self._positions = fit(self._nulls, 0), fit(self._positions, -1)
        self._capacity = capacity

    def apply(
        self, positions: Array, groups: Array, regions: Array, signs: Array, values: Sequence[tuple[Array, Array]]
    ) -> Array:  # fmt: skip
        """Insert arriving rows and remove leaving rows; return their keys `[extreme, row]`. Groups and regions have room."""
        keys = np.empty((self.n, len(groups)), np.int64)
        if not self.n:
            return keys
        self._reserve(int(positions.max()))
        slots = positions & (self._capacity - 1)
        came = np.flatnonzero(signs > 0)
        new = slots[came]
        self._positions[new], self._regions[new] = positions[came], regions[came]
        for k, (_, nulls) in enumerate(values):
            self._nulls[k, new] = nulls[came] if len(nulls) else 0
        n_regions = self.best.shape[2]
        cells = (groups // LANES * n_regions + regions) * LANES + groups % LANES
        for e, (k, flip) in enumerate(self._extremes):
            column, nulls = values[k]
            make_keys(column, self._planes.columns[k].type is Type.FLOAT, flip, keys[e])
            self._keys[e, new] = keys[e, came]
            roots, best = self._roots[e].reshape(-1), self.best[e].reshape(-1)
            move_rows(slots, cells, signs, nulls, self._keys[e], self._heap_links[e], roots, best)
        link_rows(slots, groups, signs, self._group_links, self._heads)
        self._positions[slots[signs < 0]] = -1
        return keys

    def search(self, groups: Array, low: Array, high: Array, born: Array, rank_of: Array) -> Array:
        """Return the bests of cells of young queries, from the rows of their groups: `[extreme, cell]`."""
        found = np.empty((self.n, len(groups)), np.int64)
        search_rows(
            groups, low, high, born, rank_of, self._heads, self._group_links, self._positions, self._regions, self._column_of,
            self._nulls, self._keys, found,
        )  # fmt: skip
        return found

    def rows(self, groups: Array) -> GroupRows:
        """Return the rows of different groups."""
        slots, places = np.empty(self._capacity, np.int64), np.empty(self._capacity, np.int64)
        n = list_rows(groups, self._heads, self._group_links, slots, places)
        return GroupRows(self._positions[slots[:n]], places)

    def search_listed(self, groups: Array, queries: Array, bits: Array, rows: GroupRows) -> Array:
        """Return the bests of cells from the rows of their groups that count: `[extreme, cell]`; bits are `[query, row]`."""
        found = np.empty((self.n, len(groups)), np.int64)
        search_listed(
            groups, queries, bits, rows.places, self._heads, self._group_links, self._column_of, self._nulls, self._keys, found
        )  # fmt: skip
        return found

    @property
    def bytes(self) -> int:
        arrays = (
            self._positions, self._regions, self._nulls, self._keys, self._heap_links, self._group_links, self._heads, self.best,
            self._roots,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays)
