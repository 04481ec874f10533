"""The cuts of several filters end to end, against lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.index.cuts import NO_LIMIT, NO_ROOM, Cuts, find_cut, insert_cut, unuse_cut, use_cut

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
