"""All grouped filters of one stream, with the arrays their kernels share.

One row of `low` and `high` per filter and one column per slot: the rank bounds of the slot's predicate on that attribute
(`filters/index/grouped.py`). The bank chooses, per filter, how small batches find a region's query bits:

    table   one row of query bits per region; a submit keeps it up to date. Chosen while the tables of the bank together
            stay within `table_budget` bytes.
    scan    no table: the rank is compared with every slot's bounds. Chosen beyond.

Large batches use neither (see `filters/index/matching.py`). Invariant of a table: bits of free slots and of slots without a
predicate on the attribute are 1 in every row, so a submit touches only the tables it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from filters.index.cuts import NO_LIMIT, Cuts
from filters.index.grouped import GroupedFilter
from filters.index.matching import (
    BY_SEARCH,
    GIVEN,
    SCAN,
    TABLE,
    BoundArrays,
    list_queries,
    match_any,
    match_queries,
    match_rows,
    work_words,
)
from filters.index.regions import CELL_STRING, RankTable
from filters.index.row_sets import (
    BELOW_AT,
    MAX_PREFIX,
    N_REGIONS,
    SETS_AT,
    lay_out,
    prefix_sets,
    prefix_sets_by_table,
    rank_order,
    ranks_of_ids,
)
from filters.values.intervals import Intervals
from lineage.batch import TupleBatch
from lineage.bits import BYTE_BITS, FULL, U64, OutputArrays, clear_bit_of, set_bit, set_bit_of, words
from lineage.dictionary import Dictionary
from lineage.kernels import kernel
from lineage.ragged import Ragged
from lineage.schema import Column

#: Bytes that the region tables of one stream may take: 256 for each of 8192 queries. Five attributes of 100 values take a
#: quarter of it at 8192 queries; it stays in the nearer cache levels.
TABLE_BUDGET = 2 << 20

_NO_RESULTS = np.zeros(0, np.int64)
#: Sizes of batches for which it is remembered where sets lie: pages and windows cut commits into pieces of all sizes.
_MAX_PLACES = 64


@kernel("void(uint64[:,::1], int32[::1], int64, int64, int64, int64)")
def clear_outside(table: np.ndarray, rows: np.ndarray, n_regions: int, low: int, high: int, slot: int) -> None:
    """Take a slot's bit out of the table rows of the regions outside [low, high)."""
    keep = ~(U64(1) << U64(slot & 63))
    word = slot >> 6
    for rank in range(n_regions):
        if rank < low or rank >= high:
            table[rows[rank], word] &= keep


@kernel("void(uint64[:,::1], int32[::1], int64, int64, boolean)")
def fill_slot(table: np.ndarray, rows: np.ndarray, n_regions: int, slot: int, on: bool) -> None:
    """Set or clear a slot's bit in the table rows of all regions."""
    bit = U64(1) << U64(slot & 63)
    word = slot >> 6
    for rank in range(n_regions):
        if on:
            table[rows[rank], word] |= bit
        else:
            table[rows[rank], word] &= ~bit


class FilterBank:
    """The grouped filters of a stream over one page of slots."""

    def __init__(
        self, columns: Sequence[Column], dictionaries: list[Dictionary | None], table_budget: int = TABLE_BUDGET
    ) -> None:  # fmt: skip
        """`columns` and `dictionaries` are by position, and grow with derived columns."""
        self.columns = columns
        self.dictionaries = dictionaries
        self.table_budget = table_budget
        self.filters: list[GroupedFilter] = []
        self._by_position: dict[int, int] = {}
        #: filters whose column has gone, to be used for others
        self._vacant: list[int] = []
        self.n_words = 1
        #: above it no slot has a predicate: after it has doubled, half the page is empty
        self._top = 0
        self.low = np.zeros((0, 64), np.int32)
        self.high = np.full((0, 64), NO_LIMIT, np.int32)
        #: bits of the slots that have a predicate on the filter
        self.interested = np.zeros((0, 1), np.uint64)
        #: region tables of all filters with a table; rows are handed out from `_free_rows`
        self.table = np.full((16, 1), FULL)
        self._free_rows = list(range(15, -1, -1))
        self._cuts = Cuts()
        #: per filter the table row of each rank, none when it scans
        self._rows = Ragged(np.int32)
        #: per filter (column, cell kind, how ranks come, table or scan), as `match_rows` takes it
        self._plan = np.zeros((0, 4), np.int32)
        self._n_scanning = 0
        self._strings: list[int] = []
        self._multi: tuple[np.ndarray, np.ndarray] | None = None
        #: where the sets of batches of so many words lie
        self._places: dict[int, Places] = {}
        #: what `match_rows` takes that only changes with the predicates; None when they did
        self._few: tuple[np.ndarray, ...] | None = None
        #: rows in, rows out, bits cleared per filter, by the row-major kernel
        self.visits = np.zeros((0, 3), np.int64)
        #: counts changes of predicates and of the ranks that stand for them
        self.version = 0
        self._pool = Pool()

    # ---- life of filters and predicates

    def index(self, position: int) -> int | None:
        """The number of the filter on a column, None if there is none."""
        return self._by_position.get(position)

    def add(self, slot: int, position: int, intervals: Intervals) -> int:
        """Put a predicate on a slot; makes the filter when the column has none. Returns its number."""
        f = self._by_position.get(position)
        if f is None:
            f = self._new_filter(position)
        filter_ = self.filters[f]
        if slot >= self._top:
            self._top = slot + 1
        splits = filter_.add(slot, intervals, self.low, self.high, self._top)
        set_bit_of(self.interested, f, slot)
        if self._plan[f, 3] == TABLE:
            for at in splits:
                row = self._new_row()
                self.table[row] = self.table[self._rows.view(f)[at]]
                self._rows.insert(f, at + 1, row)
            rows = self._rows.view(f)
            several = filter_.multi.get(slot)
            if several is None:
                clear_outside(self.table, rows, len(rows), self.low[f, slot], self.high[f, slot], slot)
            else:
                self._write_bits(rows, slot, several)
            self._fit_budget()
        self._changed(multi=bool(filter_.multi))
        return f

    def remove(self, slot: int, position: int, intervals: Intervals, end: int) -> int:
        """Take a predicate off a slot; `end` is the end of the store. Returns the number of the filter."""
        f = self._by_position[position]
        filter_ = self.filters[f]
        several = bool(filter_.multi)
        merged = filter_.remove(slot, intervals, self.low, self.high, self._top, end)
        clear_bit_of(self.interested, f, slot)
        if self._plan[f, 3] == TABLE:
            rows = self._rows.view(f)
            fill_slot(self.table, rows, len(rows), slot, True)
            for rank in merged:
                self._free_rows.append(int(self._rows.view(f)[rank]))
                self._rows.delete(f, rank)
        self._changed(multi=several)
        return f

    def _changed(self, multi: bool) -> None:
        self.version += 1
        self._few = None
        self._places.clear()
        if multi:
            self._multi = None

    def vacate(self, f: int) -> None:
        """The column of a filter goes, after its last predicate."""
        filter_ = self.filters[f]
        assert not filter_.n_predicates and not filter_.n_cuts, "no predicate is left"
        del self._by_position[filter_.position]
        if f in self._strings:
            self._strings.remove(f)
        self._vacant.append(f)

    def _new_filter(self, position: int) -> int:
        column, dictionary = self.columns[position], self.dictionaries[position]
        f = self._vacant.pop() if self._vacant else len(self.filters)
        self._by_position[position] = f
        if f < len(self.filters):
            filter_ = self.filters[f]
            filter_.turn_to(column, position, dictionary)
            self._plan[f, :3] = _found_by(filter_)
        else:
            filter_ = self._add_filter(column, position, dictionary)
        if filter_.cell_kind == CELL_STRING:
            self._strings.append(f)
        self._changed(multi=True)
        return f

    def _add_filter(self, column: Column, position: int, dictionary: Dictionary | None) -> GroupedFilter:
        f = len(self.filters)
        self._cuts.append()
        filter_ = GroupedFilter(column, position, dictionary, f, self._cuts)
        self.filters.append(filter_)
        n_slots = self.n_words * 64
        self.low = np.vstack([self.low, np.zeros((1, n_slots), np.int32)])
        self.high = np.vstack([self.high, np.full((1, n_slots), NO_LIMIT, np.int32)])
        self.interested = np.vstack([self.interested, np.zeros((1, self.n_words), np.uint64)])
        self.visits = np.vstack([self.visits, np.zeros((1, 3), np.int64)])
        self._rows.append(np.array([self._new_row(), self._new_row()], np.int32))
        self._plan = np.vstack([self._plan, np.array([(*_found_by(filter_), TABLE)], np.int32)])
        return filter_

    def resize(self, n_words: int) -> None:
        """Make room for more slots, which admit everything, or give up those beyond the width."""
        extra = max(0, n_words - self.n_words)
        n_filters = len(self.filters)
        slots = n_words * 64
        self.low = np.hstack([self.low[:, :slots], np.zeros((n_filters, extra * 64), np.int32)])
        self.high = np.hstack([self.high[:, :slots], np.full((n_filters, extra * 64), NO_LIMIT, np.int32)])
        self.interested = np.hstack([self.interested[:, :n_words], np.zeros((n_filters, extra), np.uint64)])
        self.table = np.hstack([self.table[:, :n_words], np.full((len(self.table), extra), FULL)])
        self.n_words = n_words
        self._top = min(self._top, slots)
        self._changed(multi=True)
        self._fit_budget()

    # ---- region tables

    def _new_row(self) -> int:
        if not self._free_rows:
            have = len(self.table)
            more = max(16, have // 4)
            self.table = np.vstack([self.table, np.full((more, self.n_words), FULL)])
            self._free_rows = list(range(have + more - 1, have - 1, -1))
        row = self._free_rows.pop()
        self.table[row] = FULL
        return row

    def _write_bits(self, rows: np.ndarray, slot: int, pairs: Sequence[Sequence[int]]) -> None:
        fill_slot(self.table, rows, len(rows), slot, False)
        inside = np.zeros(len(rows), bool)
        for low, high in pairs:
            inside[low:high] = True
        self.table[rows[inside], slot >> 6] |= U64(1 << (slot & 63))

    def table_bytes(self) -> int:
        """Bytes of the region tables of filters that have predicates."""
        lengths = self._rows.n.tolist()
        return sum(n for n, filter_ in zip(lengths, self.filters, strict=True) if filter_.n_predicates) * self.n_words * 8

    def _used_bytes(self) -> int:
        """Bytes of all region tables, those of filters that wait for predicates included."""
        return (len(self.table) - len(self._free_rows)) * self.n_words * 8

    def _fit_budget(self) -> None:
        """Give up the largest tables until the sum fits; a table comes back when it would fit twice."""
        while self._used_bytes() > self.table_budget:
            f = int(np.argmax(self._rows.n))
            self._free_rows.extend(self._rows.view(f).tolist())
            self._rows.set(f, np.zeros(0, np.int32))
            self._plan[f, 3] = SCAN
            self._n_scanning += 1
        if len(self.table) > 64 and len(self._free_rows) > len(self.table) // 2:
            self._compact_table()

    def _compact_table(self) -> None:
        """Shrink the table to the rows in use."""
        keep = np.concatenate([self._rows.view(f) for f in range(len(self.filters))])
        capacity = max(16, len(keep) + len(keep) // 4)
        table = np.full((capacity, self.n_words), FULL)
        table[: len(keep)] = self.table[keep]
        at = 0
        for f in range(len(self.filters)):
            rows = self._rows.view(f)
            rows[:] = np.arange(at, at + len(rows))
            at += len(rows)
        self.table = table
        self._free_rows = list(range(capacity - 1, at - 1, -1))
        self._few = None

    def restorable(self) -> list[int]:
        """Scanning filters whose tables would leave half the budget free."""
        if not self._n_scanning:
            return []
        scanning = np.flatnonzero(self._plan[:, 3] == SCAN).tolist()
        room = self.table_budget // 2 - self._used_bytes()
        return [f for f in scanning if self.filters[f].n_regions * self.n_words * 8 <= room]

    def restore_table(self, f: int, predicates: dict[int, Intervals]) -> None:
        """Build the table of a scanning filter again from the predicates it holds, by slot."""
        filter_ = self.filters[f]
        self._rows.set(f, np.array([self._new_row() for _ in range(filter_.n_regions)], np.int32))
        self._plan[f, 3] = TABLE
        self._n_scanning -= 1
        rows = self._rows.view(f)
        for slot, intervals in predicates.items():
            self._write_bits(rows, slot, filter_.ranks(intervals))
        self._few = None

    # ---- matching

    def ranks(self, batch: TupleBatch) -> np.ndarray:
        """Ranks `[filters, rows]` of a batch on every filter that has predicates; valid until the next call."""
        out = self._pool.ranks(len(self.filters), batch.n_rows)
        for f, filter_ in enumerate(self.filters):
            if filter_.n_predicates:
                filter_.find(batch, out[f])
        return out

    def stored_ranks(self, pieces: Iterable[tuple[np.ndarray | None, int, int]], n_rows: int) -> np.ndarray:
        """Ranks of stored rows, given as stretches first..last of region ids, behind each other.

        Rows from before a filter was made hold 0, which no living leg reads.
        """
        out = self._pool.ranks(len(self.filters), n_rows)
        at = 0
        for ids, first, last in pieces:
            stop = at + last - first
            for f, filter_ in enumerate(self.filters):
                if ids is None or ids.shape[0] <= f:
                    out[f, at:stop] = 0
                else:
                    ranks_of_ids(filter_.rank_of(), ids[f, first:last], out[f, at:stop])
            at = stop
        return out

    def prepare_rows(self, batch: TupleBatch, route: np.ndarray) -> Prepared:
        """`prepare` of rows whose ranks nobody else needs."""
        layout = self._layout_of(batch.n_rows)
        places = layout.places
        ranks = self._pool.ranks(1, batch.n_rows)[0]
        for f in route.tolist():
            filter_ = self.filters[f]
            finder = None if filter_.dictionary is not None or places.regions[f] > MAX_PREFIX else filter_.finder()
            if isinstance(finder, RankTable):
                prefix_sets_by_table(
                    batch.cells, batch.nulls, batch.has_nulls, filter_.position, batch.first, batch.n_rows, finder.table,
                    finder.base, filter_.null_rank, places.regions[f], places.n_words, layout.sets, places.sets_from[f],
                )  # fmt: skip
            else:
                filter_.find(batch, ranks)
                layout.build_sets(f, ranks)
        return Prepared(self, layout, route, batch.has_nulls)

    def prepare(self, ranks: np.ndarray, n_rows: int, has_nulls: bool, route: np.ndarray) -> Prepared:
        """Build the sets of rows by which a batch is matched query-major, from its ranks; valid until the next call."""
        layout = self._layout_of(n_rows)
        for f in route.tolist():
            layout.build_sets(f, ranks[f])
        return Prepared(self, layout, route, has_nulls)

    def _layout_of(self, n_rows: int) -> Layout:
        n_words = words(n_rows)
        places = self._places.get(n_words)
        if places is None:
            if len(self._places) >= _MAX_PLACES:
                self._places.clear()
            places = self._places[n_words] = Places([filter_.n_regions for filter_ in self.filters], n_words)
        return Layout(places, n_rows, self._pool)

    def row_major(
        self, batch: TupleBatch, route: np.ndarray, active: np.ndarray, lin: np.ndarray, ranks: np.ndarray | None = None,
        fresh: bool = True, results: np.ndarray = _NO_RESULTS,
    ) -> None:  # fmt: skip
        """Match by `match_rows`; finds ranks by search unless they are given."""
        given = ranks is not None
        if ranks is None:
            ranks = self._pool.no_ranks
            if self._strings:
                ranks = self._pool.ranks(len(self.filters), batch.n_rows)
                for f in self._strings:
                    self.filters[f].find(batch, ranks[f])
        few = self._few
        if few is None:
            cuts, rows = self._cuts, self._rows
            few = self._few = (
                self._plan, cuts.keys, cuts.at, cuts.n, rows.data, rows.at, self.table, self.interested, *self.bounds(),
            )  # fmt: skip
        match_rows(
            batch.cells, batch.nulls, batch.has_nulls, batch.first, batch.n_rows, route, fresh, given, active, ranks, few, lin,
            self.visits, results,
        )  # fmt: skip

    def bounds(self) -> BoundArrays:
        """The predicates as the kernels take them."""
        return self.low, self.high, *(self._multi or self._build_multi())

    def _build_multi(self) -> tuple[np.ndarray, np.ndarray]:
        """Number the predicates of several intervals, and put the numbers into `high`."""
        multi: list[tuple[int, int, int, int]] = []
        ranks: list[list[int]] = []
        for f, filter_ in enumerate(self.filters):
            for slot, pairs in filter_.multi.items():
                self.high[f, slot] = NO_LIMIT + 1 + len(multi)
                multi.append((f, slot, len(ranks), len(ranks) + len(pairs)))
                ranks.extend(pairs)
        self._multi = np.array(multi, np.int64).reshape(-1, 4), np.array(ranks, np.int32).reshape(-1, 2)
        return self._multi

    # ---- upkeep

    def release_ids(self, watermark: int) -> None:
        for filter_ in self.filters:
            filter_.release_ids(watermark)

    def forget_codes(self) -> None:
        for filter_ in self.filters:
            filter_.forget_codes()

    def bytes(self) -> int:
        """Bytes that predicates take: cuts, ids, two bounds each, and tables. Room kept for later ones is not counted."""
        return sum(filter_.bytes() + 8 * filter_.n_predicates for filter_ in self.filters) + self.table_bytes()

    def stats(self) -> dict[str, int]:
        """Filters, predicates, regions, and filters without a table."""
        return {
            "filters": sum(filter_.n_predicates > 0 for filter_ in self.filters),
            "predicates": sum(filter_.n_predicates for filter_ in self.filters),
            "regions": sum(filter_.n_regions for filter_ in self.filters if filter_.n_predicates),
            "scanning": self._n_scanning,
        }

    def check(self, placed: dict[int, dict[int, Intervals]]) -> None:
        """All invariants; `placed[f][slot]` is what should be here."""
        self._build_multi()
        self._cuts.check()
        self._rows.check()
        assert self._n_scanning == np.count_nonzero(self._plan[:, 3] == SCAN), "filters without a table are counted"
        for f, filter_ in enumerate(self.filters):
            held = placed.get(f, {})
            filter_.check(self.low[f], self.high[f], held)
            assert all(slot < self._top for slot in held), "no predicate stands above the top"
            interested = np.zeros_like(self.interested[f])
            for slot in held:
                set_bit(interested, slot)
            assert (interested == self.interested[f]).all(), f"interest in {filter_.column.name} is that of its predicates"
            rows = self._rows.view(f)
            if self._plan[f, 3] == TABLE:
                assert len(rows) == filter_.n_regions, "a table row for each region"
                expected = np.full((len(rows), self.n_words), FULL)
                for slot, intervals in held.items():
                    inside = np.zeros(len(rows), bool)
                    for low, high in filter_.ranks(intervals):
                        inside[low:high] = True
                    expected[~inside, slot >> 6] &= ~U64(1 << (slot & 63))
                assert (self.table[rows] == expected).all(), (
                    f"the region table of {filter_.column.name} admits what its predicates say"
                )
        used = [row for f in range(len(self.filters)) for row in self._rows.view(f).tolist()]
        assert sorted(used + self._free_rows) == list(range(len(self.table))), "every table row is used once or free"


def _found_by(filter_: GroupedFilter) -> tuple[int, int, int]:
    """The column of a filter, the kind of its cells, and how its ranks come."""
    return filter_.position, filter_.cell_kind, GIVEN if filter_.cell_kind == CELL_STRING else BY_SEARCH


class RankBounds(Protocol):
    """The predicates of slots as bounds of ranks (`grouped.py`): of a stream's bank, or of the matches of a join."""

    def bounds(self) -> BoundArrays: ...


class Prepared:
    """A batch ready to be matched query-major, in bits or straight into lists."""

    __slots__ = ("_bank", "_layout", "_route", "_has_nulls")

    def __init__(self, bank: RankBounds, layout: Layout, route: np.ndarray, has_nulls: bool) -> None:
        self._bank = bank
        self._layout = layout
        self._route = route
        self._has_nulls = has_nulls

    def fill(self, active: np.ndarray, rows_of: np.ndarray, route: np.ndarray | None = None, fresh: bool = True) -> None:
        """`match_queries` over the route, or over the part of it that is given."""
        layout = self._layout
        match_queries(
            active, self._route if route is None else route, fresh, self._bank.bounds(), layout.n_rows, self._has_nulls,
            layout.places.arrays, layout.sets, layout.below, layout.order, rows_of, layout.work,
        )  # fmt: skip

    def lists(
        self, legs: np.ndarray, outputs: OutputArrays, results: np.ndarray, listed: np.ndarray, offsets: np.ndarray,
        rows: np.ndarray,
    ) -> int:  # fmt: skip
        """`list_queries` over the whole route."""
        layout = self._layout
        return list_queries(
            legs, outputs, self._route, self._bank.bounds(), layout.n_rows, self._has_nulls, layout.places.arrays, layout.sets,
            layout.below, layout.order, results, listed, offsets, rows, BYTE_BITS, layout.work,
        )  # fmt: skip

    def wanted(self, active: np.ndarray, union: np.ndarray) -> bool:
        """Leave in `union` the rows that some slot of the mask wants; returns whether that is all of them."""
        layout = self._layout
        return match_any(
            active, self._route, self._bank.bounds(), layout.n_rows, self._has_nulls, layout.places.arrays, layout.sets,
            layout.below, layout.order, union, layout.work,
        )  # fmt: skip


class Places:
    """Where the sets of each attribute lie, for batches of so many words of rows; `regions` is how many each attribute has."""

    __slots__ = ("n_words", "regions", "arrays", "sets_from", "below_from")

    def __init__(self, regions: list[int], n_words: int) -> None:
        self.n_words = n_words
        self.regions = regions
        #: as `filters/index/row_sets.py` has them
        self.arrays = np.zeros((4, len(regions) + 1), np.int64)
        self.arrays[N_REGIONS, :-1] = regions
        lay_out(MAX_PREFIX, n_words, self.arrays)
        self.sets_from = self.arrays[SETS_AT].tolist()
        self.below_from = self.arrays[BELOW_AT].tolist()


class Layout:
    """The sets of rows of one batch: memory of a pool, valid until the next layout in it."""

    __slots__ = ("places", "n_rows", "sets", "below", "order", "work")

    def __init__(self, places: Places, n_rows: int, pool: Pool) -> None:
        self.places = places
        self.n_rows = n_rows
        n = len(places.regions)
        self.sets = pool.array("sets", places.sets_from[-1], np.uint64)
        self.below = pool.array("below", places.below_from[-1], np.int32)
        self.work = pool.array("work", work_words(places.n_words, n), np.uint64)
        self.order = pool.array("order", n * n_rows, np.int32)

    def build_sets(self, f: int, ranks: np.ndarray) -> None:
        """Build the sets of rows by which an attribute is matched, from the ranks of the rows on it."""
        places, n_rows = self.places, self.n_rows
        n_regions, at = places.regions[f], places.sets_from[f]
        if n_regions > MAX_PREFIX:
            rank_order(
                ranks, n_rows, n_regions, places.n_words, self.sets, at, self.below, places.below_from[f], self.order,
                f * n_rows,
            )  # fmt: skip
        else:
            prefix_sets(ranks, n_rows, n_regions, places.n_words, self.sets, at)


class Pool:
    """Scratch arrays that are reused: fresh memory costs up to half the speed."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._ranks = np.zeros((0, 0), np.int32)
        self.no_ranks = np.zeros((1, 1), np.int32)

    def __reduce__(self) -> tuple[type[Pool], tuple[()]]:
        """Whoever loads it makes new ones: nothing here outlives a call."""
        return Pool, ()

    def array(self, name: str, size: int, dtype: type) -> np.ndarray:
        held = self._arrays.get(name)
        if held is None or len(held) < size:
            held = self._arrays[name] = np.empty(max(64, 1 << max(0, size - 1).bit_length()), dtype)
        return held

    def ranks(self, n_filters: int, n_rows: int) -> np.ndarray:
        if self._ranks.shape[0] < n_filters or self._ranks.shape[1] < n_rows:
            shape = (max(n_filters, self._ranks.shape[0]), 1 << max(0, max(n_rows, self._ranks.shape[1]) - 1).bit_length())
            self._ranks = np.zeros(shape, np.int32)
        return self._ranks
