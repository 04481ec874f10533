"""Grouped filters: cuts, ranks and region ids, step by step."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.index.cuts import NO_LIMIT, NO_ROOM, Cuts, find_cut, insert_cut, unuse_cut, use_cut
from filters.index.grouped import GroupedFilter
from filters.index.regions import BLOCK_BITS, MAX_SPAN, KeyGrid, RankTable
from filters.values.intervals import NOT_NULL, NOTHING, ONLY_NULL, Intervals, compare, float_key
from lineage.batch import TupleBatch
from lineage.dictionary import Dictionary
from lineage.schema import KEY_MAX, KEY_MIN, Column, Type

ensure()


class Filter:
    """A grouped filter with the arrays that a bank would give it."""

    def __init__(self, type_: Type = Type.INT, position: int = 0) -> None:
        self.dictionary = Dictionary() if type_ is Type.STRING else None
        self._cuts = Cuts()
        self._cuts.append()
        self.filter = GroupedFilter(Column("a", type_), position, self.dictionary, 0, self._cuts)
        self.lows = np.zeros((1, 64), np.int32)
        self.highs = np.full((1, 64), NO_LIMIT, np.int32)
        self.low, self.high = self.lows[0], self.highs[0]
        self.held: dict[int, Intervals] = {}

    def add(self, slot: int, intervals: Intervals) -> list[int]:
        self.held[slot] = intervals
        splits = self.filter.add(slot, intervals, self.lows, self.highs, 64)
        self.check()
        return splits

    def remove(self, slot: int, end: int = 0) -> list[int]:
        merged = self.filter.remove(slot, self.held.pop(slot), self.lows, self.highs, 64, end)
        self.check()
        return merged

    def check(self) -> None:
        self._cuts.check()
        self.filter.check(self.low, self.high, self.held)

    def cuts(self) -> list[object]:
        return list(self.filter.cuts)

    def ranks(self, cells: list[int], nulls: list[int] | None = None) -> list[int]:
        found = np.full(len(cells), -1, np.int32)
        bytes_ = None if nulls is None else np.array([nulls], np.uint8)
        self.filter.find(TupleBatch(np.array([cells], np.int64), bytes_, 0, len(cells)), found)
        return found.tolist()


def between(low: int, high: int) -> Intervals:
    return compare(Type.INT, ">=", low).intersect(compare(Type.INT, "<", high))


def test_bounds_are_cuts_once_however_many_predicates_name_them() -> None:
    one = Filter()
    assert one.add(0, between(10, 20)) == [0, 1], "each new cut splits a region"
    assert one.add(1, between(20, 30)) == [2]
    assert one.add(2, between(10, 30)) == []
    assert one.cuts() == [10, 20, 30] and list(one.filter.uses) == [2, 2, 2] and one.filter.n_regions == 5
    assert one.remove(0) == []
    assert one.remove(2) == [1], "the region from 10 on falls to the one below"
    assert one.cuts() == [20, 30]


def test_ranks_of_a_slot_move_with_cuts_of_others() -> None:
    one = Filter()
    one.add(5, between(10, 20))
    assert (one.low[5], one.high[5]) == (1, 2)
    one.add(6, compare(Type.INT, ">=", 15))
    assert (one.low[5], one.high[5]) == (1, 3), "a cut inside widens"
    one.add(7, compare(Type.INT, "<", 0))
    assert (one.low[5], one.high[5]) == (2, 4), "a cut below moves both"
    one.add(8, compare(Type.INT, ">=", 50))
    assert (one.low[5], one.high[5]) == (2, 4), "a cut above moves none"
    for slot in (6, 7, 8):
        one.remove(slot)
    assert (one.low[5], one.high[5]) == (1, 2)


def test_a_slot_without_a_predicate_admits_everything_after_a_removal_too() -> None:
    one = Filter()
    one.add(3, between(1, 2).union(between(5, 6)))
    one.remove(3)
    assert (one.low[3], one.high[3]) == (0, NO_LIMIT) and not one.filter.multi and one.filter.n_cuts == 0


@pytest.mark.parametrize(
    ("intervals", "pairs"),
    [
        (ONLY_NULL, [(3, 4)]),
        (NOT_NULL, [(0, 3)]),
        (NOT_NULL.union(ONLY_NULL), [(0, 4)]),
        (NOTHING, []),
        (compare(Type.INT, ">=", 20), [(2, 3)]),
        (compare(Type.INT, ">=", 20).union(ONLY_NULL), [(2, 4)]),
        (compare(Type.INT, "<", 10).union(ONLY_NULL), [(0, 1), (3, 4)]),
        (compare(Type.INT, "<", 10).union(compare(Type.INT, ">=", 20)), [(0, 1), (2, 3)]),
    ],
)
def test_null_is_the_region_behind_the_last(intervals: Intervals, pairs: list[tuple[int, int]]) -> None:
    one = Filter()
    one.add(0, between(10, 20))
    assert one.filter.ranks(intervals) == pairs
    one.add(1, intervals)
    one.add(2, compare(Type.INT, "<", 15))
    one.remove(2)
    assert one.filter.ranks(intervals) == pairs


def test_a_value_on_a_cut_belongs_to_the_region_above() -> None:
    one = Filter()
    one.add(0, between(10, 20))
    assert one.ranks([KEY_MIN, 9, 10, 19, 20, KEY_MAX, 0], [0, 0, 0, 0, 0, 0, 1]) == [0, 0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("cuts", "finder"),
    [
        ([], KeyGrid),
        ([5], RankTable),
        ([0, MAX_SPAN], RankTable),
        ([0, MAX_SPAN + 1], KeyGrid),
        ([KEY_MIN + 1], RankTable),
        ([KEY_MIN + 1, KEY_MIN + 2, KEY_MAX], KeyGrid),
        ([KEY_MAX], KeyGrid),
        ([KEY_MAX - 1], RankTable),
        ([-(2**62), 2**62], KeyGrid),
        ([*range(0, 3 * MAX_SPAN, 997)], KeyGrid),
        ([*range(100), 2**60, *range(2**61, 2**61 + 300)], KeyGrid),
        ([1 << k for k in range(63)], KeyGrid),
        ([KEY_MIN + 1, *range(2**40, 2**40 + 10**6, 10**4), 2**62, 2**62 + 1, KEY_MAX], KeyGrid),
    ],
)
def test_a_rank_is_the_number_of_cuts_not_above_the_value(cuts: list[int], finder: type) -> None:
    one = Filter()
    for slot, cut in enumerate(cuts[:60]):
        one.add(slot, compare(Type.INT, ">=", cut))
    for cut in cuts[60:]:
        one.filter._add_cut(cut, one.lows, one.highs, 64, [])
    values = {KEY_MIN, KEY_MIN + 1, -1, 0, 1, KEY_MAX - 1, KEY_MAX}
    values |= {min(KEY_MAX, max(KEY_MIN, cut + step)) for cut in cuts for step in (-1, 0, 1)}
    values |= set(np.random.default_rng(1).integers(KEY_MIN, KEY_MAX, 200).tolist())
    ordered = sorted(values)
    expected = np.searchsorted(np.array(cuts, np.int64), np.array(ordered, np.int64), "right").tolist()
    assert one.ranks(ordered) == expected
    assert isinstance(one.filter.finder(), finder)


def test_float_cells_fall_in_the_region_of_their_key() -> None:
    one = Filter(Type.FLOAT)
    values = [-math.inf, -2.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.inf, math.nan]
    for slot, value in enumerate(values):
        one.add(slot, compare(Type.FLOAT, ">=", value))
    cuts = sorted({float_key(value) for value in values})
    cells = np.array([*values, -math.nan, 0.5, -1e300]).view(np.int64).tolist()
    expected = [sum(cut <= float_key(value) for cut in cuts) for value in [*values, math.nan, 0.5, -1e300]]
    assert one.ranks(cells) == expected
    assert isinstance(one.filter.finder(), KeyGrid)


def test_cuts_far_from_all_others_do_not_stretch_a_grid() -> None:
    near = np.arange(2**40, 2**40 + 10**6, 10**4)
    grid, far = KeyGrid(near), KeyGrid(np.array([KEY_MIN, *near.tolist(), 2**62]))
    assert far.shift <= grid.shift + 1, "buckets are about as wide as without them"
    for key in (KEY_MIN + 1, 2**62 - 1, KEY_MAX):
        assert far.insert(key)
    far.check(np.array([KEY_MIN, KEY_MIN + 1, *near.tolist(), 2**62 - 1, 2**62, KEY_MAX]))
    assert far.delete(KEY_MIN) and far.delete(KEY_MAX)
    far.check(np.array([KEY_MIN + 1, *near.tolist(), 2**62 - 1, 2**62]))


def test_strings_fall_in_the_region_of_their_text_also_when_they_came_later() -> None:
    one = Filter(Type.STRING)
    assert one.dictionary is not None
    one.add(0, compare(Type.STRING, "=", "b"))
    codes = [one.dictionary.code(text) for text in ["c", "a", "b"]]
    assert one.ranks(codes) == [2, 0, 1]
    later = [one.dictionary.code(text) for text in ["b\0", "", "b\0\0"]]
    assert one.ranks(codes + later) == [2, 0, 1, 2, 0, 2]
    one.add(1, compare(Type.STRING, ">", "b\0"))
    assert one.ranks(codes + later) == [3, 0, 1, 2, 0, 3]
    assert one.ranks([0, 0], [1, 0]) == [one.filter.null_rank, 3]


def test_codes_of_a_compacted_dictionary_are_looked_up_anew() -> None:
    one = Filter(Type.STRING)
    assert one.dictionary is not None
    one.add(0, compare(Type.STRING, ">=", "b"))
    codes = [one.dictionary.code(text) for text in ["a", "b", "c"]]
    assert one.ranks(codes) == [0, 1, 1]
    one.dictionary.compact([2])
    one.filter.forget_codes()
    assert one.ranks([0]) == [1]


# ---- region ids


def test_a_split_region_keeps_its_id_below_and_gets_a_new_one_above() -> None:
    one = Filter()
    one.add(0, compare(Type.INT, ">=", 10))
    below, above, null = one.filter.ids
    one.add(1, compare(Type.INT, ">=", 20))
    assert list(one.filter.ids[:2]) == [below, above] and one.filter.ids[3] == null
    assert one.filter.ids[2] not in (below, above, null)


def test_the_id_of_a_region_taken_in_stands_for_the_one_that_took_it() -> None:
    one = Filter()
    one.add(0, compare(Type.INT, ">=", 10))
    one.add(1, compare(Type.INT, ">=", 20))
    one.add(2, compare(Type.INT, ">=", 30))
    _, ten, twenty, thirty, null = one.filter.ids
    one.remove(2, end=5)
    one.remove(1, end=7)
    ranks = one.filter.rank_of()
    assert ranks[[ten, twenty, thirty, null]].tolist() == [1, 1, 1, 2]
    one.add(3, compare(Type.INT, ">=", 5))
    assert one.filter.rank_of()[[ten, twenty, thirty]].tolist() == [2, 2, 2], "aliases move with the region they stand for"


def test_an_id_is_used_again_only_after_the_last_row_that_may_carry_it() -> None:
    one = Filter()
    one.add(0, compare(Type.INT, ">=", 10))
    retired = one.filter.ids[1]
    one.remove(0, end=100)
    one.filter.release_ids(99)
    one.add(1, compare(Type.INT, ">=", 11))
    assert retired not in one.filter.ids
    one.filter.release_ids(100)
    one.add(2, compare(Type.INT, ">=", 12))
    assert retired in one.filter.ids
    assert one.filter.rank_of()[retired] == 2


def test_churn_with_a_moving_watermark_needs_few_ids() -> None:
    one = Filter()
    for step in range(500):
        one.add(0, between(step, step + 10))
        one.remove(0, end=step)
        one.filter.release_ids(step)
    assert len(one.filter.rank_of()) <= 4


def test_check_sees_a_rank_that_stands_for_another_interval() -> None:
    one = Filter()
    one.add(0, between(1, 5))
    one.high[0] += 1
    with pytest.raises(AssertionError, match="slot 0 of a"):
        one.filter.check(one.low, one.high, one.held)


def test_a_grid_follows_cuts_that_come_and_go_in_every_place_of_its_blocks() -> None:
    rng = np.random.default_rng(6)
    cuts = sorted(int(key) for key in rng.choice(1 << 20, 300, replace=False))
    grid = KeyGrid(np.array(cuts))
    size = 1 << BLOCK_BITS
    assert len(grid.grid) > 4 * size, "several blocks"
    edges = [cuts[0] + ((bucket + by) << grid.shift) for bucket in range(size, 4 * size, size) for by in (-1, 0, 1)]
    for key in edges:
        if key not in cuts:
            assert grid.insert(key)
            cuts = sorted([*cuts, key])
            grid.check(np.array(cuts))
    for key in [*edges, *cuts[5:100:3]]:
        if key in cuts:
            assert grid.delete(key)
            cuts.remove(key)
            grid.check(np.array(cuts))


# -- The cuts of several filters end to end, against lists -------------------------------------------------------------


ensure()

SLOTS = 8


@pytest.mark.parametrize("seed", range(5))
def test_cuts_that_come_and_go_give_what_lists_give(seed: int) -> None:
    rng = random.Random(seed)
    cuts = Cuts()
    keys: list[list[int]] = []
    ids: list[list[int]] = []
    low, high = np.zeros((4, SLOTS), np.int32), np.full((4, SLOTS), NO_LIMIT, np.int32)
    for step in range(400):
        if step in (0, 5, 50, 100):
            cuts.append()
            keys.append([])
            ids.append([0, 1])
        f = rng.randrange(len(keys))
        key = rng.randrange(200)
        at = find_cut(cuts.keys, cuts.at, cuts.n, f, key)
        if at >= 0:
            retired = unuse_cut(cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, f, SLOTS, at)
            assert keys[f].pop(at) == key and ids[f].pop(at + 1) == retired
        else:
            while use_cut(cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, f, SLOTS, key, step + 2) == NO_ROOM:
                cuts.make_room(f)
            keys[f].insert(~at, key)
            ids[f].insert(~at + 1, step + 2)
        cuts.check()
        assert [cuts.keys_of(k).tolist() for k in range(len(keys))] == keys == [sorted(held) for held in keys]
        assert [cuts.ids_of(k).tolist() for k in range(len(keys))] == ids
        assert all((cuts.uses_of(k) == 1).all() for k in range(len(keys)))
    assert not low.any() and (high == NO_LIMIT).all(), "slots without a predicate admit everything"


def test_ranks_move_in_one_filter_and_below_the_top_only() -> None:
    cuts = Cuts()
    cuts.append()
    cuts.append()
    low, high = np.full((2, SLOTS), 3, np.int32), np.full((2, SLOTS), 5, np.int32)
    cuts.make_room(1)
    insert_cut(cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, 1, 4, 0, 10, 2)
    assert low.tolist() == [[3] * 8, [4] * 4 + [3] * 4] and high.tolist() == [[5] * 8, [6] * 4 + [5] * 4]
    unuse_cut(cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, 1, 4, 0)
    assert (low == 3).all() and (high == 5).all()


def test_a_filter_that_grows_is_laid_out_seldom() -> None:
    cuts = Cuts()
    cuts.append()
    cuts.append()
    low, high = np.zeros((2, 1), np.int32), np.zeros((2, 1), np.int32)
    layouts = set()
    for i in range(10_000):
        cuts.make_room(0)
        insert_cut(cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, 0, 1, i, i, i + 2)
        layouts.add(len(cuts.keys))
    assert cuts.keys_of(0).tolist() == list(range(10_000)) and cuts.ids_of(1).tolist() == [0, 1]
    assert len(cuts.keys) < 1.3 * 10_000 and len(layouts) < 40


def test_a_cut_goes_with_its_last_use() -> None:
    cuts = Cuts()
    cuts.append()
    low, high = np.zeros((1, 1), np.int32), np.full((1, 1), NO_LIMIT, np.int32)
    arrays = cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, 0, 1
    assert [use_cut(*arrays, key, 7) for key in (10, 10, 5)] == [~0, 0, ~0]
    assert cuts.uses_of(0).tolist() == [1, 2] and cuts.keys_of(0).tolist() == [5, 10]
    assert [unuse_cut(*arrays, 1) for _ in range(2)] == [-1, 7] and cuts.keys_of(0).tolist() == [5]
