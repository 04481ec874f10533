"""The per-tuple grouped filter against `Intervals.holds`, which is its definition."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from experiments.papers.grouped_filter import ReferenceEddy, ReferenceFilter
from filters.values.intervals import NOT_NULL, NOTHING, ONLY_NULL, Intervals, compare, successor
from lineage.schema import KEY_MAX, KEY_MIN, Type

_OPS = ("<", "<=", ">", ">=", "=", "<>")


def random_intervals(rng: random.Random) -> Intervals:
    """One of all the kinds a predicate may have over keys 0..19, with or without NULL."""
    found = NOTHING
    for _ in range(rng.randint(1, 3)):
        one = compare(Type.INT, rng.choice(_OPS), rng.randrange(20))
        found = found.union(one) if rng.random() < 0.6 else found.intersect(one) if not found.empty else one
    kind = rng.random()
    if kind < 0.1:
        found = rng.choice([NOTHING, NOT_NULL, ONLY_NULL, NOT_NULL.union(ONLY_NULL)])
    elif kind < 0.3:
        low = rng.randrange(20)
        found = compare(Type.INT, ">=", low).intersect(compare(Type.INT, "<=", low + rng.randrange(8)))
    return found.union(ONLY_NULL) if rng.random() < 0.2 else found


@pytest.mark.parametrize("seed", range(5))
def test_a_slot_matches_iff_it_has_no_predicate_or_its_intervals_hold_the_key(seed: int) -> None:
    rng = random.Random(seed)
    reference = ReferenceFilter(4)
    held: dict[int, Intervals] = {}
    for _ in range(120):
        slot = rng.randrange(24)
        if slot in held:
            reference.remove(slot)
            del held[slot]
        else:
            held[slot] = random_intervals(rng)
            reference.add(slot, held[slot])
        key = rng.choice([None, *range(-1, 22), KEY_MIN, KEY_MAX])
        expected = [slot not in held or held[slot].holds(key) for slot in range(reference.n_slots)]
        assert reference.match(key).tolist() == expected
        reference.check()


def test_an_emptied_filter_keeps_nothing() -> None:
    rng = random.Random(9)
    reference = ReferenceFilter()
    for slot in range(60):
        reference.add(slot, random_intervals(rng))
    for slot in range(60):
        reference.remove(slot)
    reference.remove(3)
    reference.check()
    assert reference.match(5).all() and reference.match(None).all()


def test_strings_order_by_their_text() -> None:
    reference = ReferenceFilter()
    for slot, (op, text) in enumerate([("<", "m"), (">=", "m"), ("=", "m"), ("<>", "m"), (">", "")]):
        reference.add(slot, compare(Type.STRING, op, text))
    assert reference.match("m").to01() == "01101"
    assert reference.match("a").to01() == "10011"
    assert reference.match(successor("m")).to01() == "01011"
    assert reference.match("").to01() == "10010"


def test_any_order_of_the_attributes_gives_the_same_queries() -> None:
    rng = random.Random(4)
    eddy = ReferenceEddy("abc")
    queries = {slot: {name: random_intervals(rng) for name in "abc" if rng.random() < 0.6} for slot in range(40)}
    for slot, conjuncts in queries.items():
        eddy.add(slot, conjuncts)
    for slot in range(0, 40, 7):
        eddy.remove(slot)
        del queries[slot]
    for _ in range(50):
        row = {name: rng.choice([None, *range(20)]) for name in "abc"}
        expected = [
            slot in queries and all(intervals.holds(row[name]) for name, intervals in queries[slot].items()) for slot in range(40)
        ]
        for order in permutations("abc"):
            assert eddy.match(row, order).tolist() == expected


def test_a_row_leaves_when_no_query_is_left() -> None:
    eddy = ReferenceEddy("ab")
    eddy.add(0, {"a": compare(Type.INT, ">", 5), "b": compare(Type.INT, ">", 5)})
    assert not eddy.match({"a": 1, "b": 9}).any()
    assert eddy.visits == 1
    assert not eddy.match({"a": 1, "b": 9}, "ba").any()
    assert eddy.visits == 3
