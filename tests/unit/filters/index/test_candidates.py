"""The candidate index against brute force over all its queries."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddy.base.compile import ensure
from filters.expressions.predicate import NO_ROW, Condition, IndexAtom, ResidualAtom
from filters.index.candidates import (
    MAX_CHECKS,
    MAX_POINTS,
    WORK,
    CandidateIndex,
    count_pairs,
    float_columns,
    group_pairs,
    key_columns,
)
from filters.values.intervals import NOT_NULL, NOTHING, ONLY_NULL, Intervals, compare, float_key
from lineage.batch import TupleBatch
from lineage.dictionary import Dictionary
from lineage.schema import KEY_MAX, KEY_MIN, Schema, Type

ensure()

SCHEMA = Schema.parse({"id": "int", "x": "float", "s": "string", "n": "int", "flag": "bool"}, "t")
VALUES: dict[str, list[Any]] = {
    "id": [KEY_MIN + 1, -7, 0, 1, 2, 3, 4, 5, 2**40, KEY_MAX],
    "x": [-math.inf, -1.5, 0.0, 0.5, 2.0, 1e300, math.inf],
    "s": ["a", "b", "c", "dd", "é", "\uffff"],
    "n": [*range(-5, 6)],
    "flag": [False, True],
}


def atom(name: str, intervals: Intervals) -> IndexAtom:
    return IndexAtom(SCHEMA.position(name), name, intervals)


def condition(**intervals: Intervals) -> Condition:
    atoms = [atom(name, intervals[name]) for name in SCHEMA.names if name in intervals]
    return Condition(tuple(atoms), (), ())


def points(name: str, *values: Any) -> Intervals:
    found = NOTHING
    for value in values:
        found = found.union(compare(SCHEMA[name].type, "=", value))
    return found


def between(name: str, low: Any, high: Any) -> Intervals:
    return compare(SCHEMA[name].type, ">=", low).intersect(compare(SCHEMA[name].type, "<=", high))


class Index:
    """A candidate index with the conditions in it."""

    def __init__(self, column: str = "id") -> None:
        self.dictionaries = [Dictionary() if c.type is Type.STRING else None for c in SCHEMA.columns]
        self.index = CandidateIndex(SCHEMA.position(column), SCHEMA, self.dictionaries)
        self.held: dict[int, Condition] = {}

    def add(self, slot: int, where: Condition) -> None:
        assert self.index.column in key_columns(where, SCHEMA)
        self.index.add(slot, where)
        self.held[slot] = where
        self.index.check(set(self.held))

    @property
    def texts(self) -> Dictionary:
        found = self.dictionaries[SCHEMA.position("s")]
        assert found is not None
        return found

    def compact(self, used: list[int]) -> None:
        """Leave the dictionary only these codes, as a stream does whose rows have gone."""
        self.texts.compact(used)
        self.index.recode()
        self.index.check(set(self.held))

    def learn_strings(self) -> None:
        self.index.learn_strings()
        entries = [entry for held in self.index._of_slot.values() for _, entry in held]
        assert [entry for entry in entries if self.index._next(entry) == entry] == [], "a chain without end"
        self.index.check(set(self.held))

    def remove(self, slot: int) -> None:
        self.index.remove(slot)
        del self.held[slot]
        self.index.check(set(self.held))

    def cells(self, rows: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
        cells, nulls = np.zeros((len(SCHEMA), len(rows)), np.int64), np.zeros((len(SCHEMA), len(rows)), np.uint8)
        for i, row in enumerate(rows):
            for position, name in enumerate(SCHEMA.names):
                value, dictionary = row[name], self.dictionaries[position]
                if value is None:
                    nulls[position, i] = 1
                elif dictionary is not None:
                    cells[position, i] = dictionary.code(value)
                else:
                    cells[position, i] = np.float64(value).view(np.int64) if isinstance(value, float) else value
        return cells, nulls

    def expected(self, rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
        found = []
        for i, row in enumerate(rows):
            keys = {name: float_key(value) if isinstance(value, float) else value for name, value in row.items()}
            for slot, where in self.held.items():
                if all(part.intervals.holds(keys[part.name]) for part in where.conjuncts):
                    found.append((slot, i))
        return sorted(found)

    def match(self, rows: list[dict[str, Any]], first: int = 0) -> list[tuple[int, int]]:
        cells, nulls = self.cells(rows)
        self.learn_strings()
        has_nulls = bool(nulls.any())
        room = len(rows) * (self.index.n_entries + 1) + 1
        slots, at = np.zeros(room, np.int32), np.zeros(room, np.int32)
        found = self.index.match(
            TupleBatch(cells, nulls if has_nulls else None, first, len(rows) - first), float_columns(SCHEMA), slots, at,
        )  # fmt: skip
        assert found >= 0
        return [(int(slots[j]), int(at[j])) for j in range(found)]


def random_row(rng: random.Random, null_share: float) -> dict[str, Any]:
    return {name: None if rng.random() < null_share else rng.choice(VALUES[name]) for name in SCHEMA.names}


def random_condition(rng: random.Random, column: str) -> Condition:
    """A condition whose key is `column`: one value or an IN list, and up to three checks on columns of numbers."""
    n_points = rng.choice([1, 1, 1, 2, 3, min(MAX_POINTS, len(VALUES[column]))])
    parts = {column: points(column, *rng.sample(VALUES[column], n_points))}
    for name in rng.sample([name for name in SCHEMA.names if name not in (column, "s")], rng.randint(0, MAX_CHECKS)):
        type_ = SCHEMA[name].type
        if rng.random() < 0.2:
            parts[name] = points(name, rng.choice(VALUES[name]))
        elif rng.random() < 0.2:
            parts[name] = NOT_NULL
        elif rng.random() < 0.5:
            parts[name] = compare(type_, rng.choice(["<", "<=", ">", ">="]), rng.choice(VALUES[name][1:-1] or [True]))
        else:
            parts[name] = between(name, *sorted(rng.choices(VALUES[name], k=2)))
        if parts[name].empty:
            del parts[name]
    return condition(**parts)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["id", "x", "s", "n"]), st.sampled_from([0.0, 0.2]))
def test_matching_gives_what_brute_force_gives_while_queries_come_and_go(seed: int, column: str, null_share: float) -> None:
    rng = random.Random(seed)
    one = Index(column)
    n_slots = 200
    for _ in range(4):
        for _ in range(30):
            if one.held and rng.random() < 0.35:
                one.remove(rng.choice(sorted(one.held)))
            else:
                slot = rng.choice([slot for slot in range(n_slots) if slot not in one.held])
                where = random_condition(rng, column)
                if SCHEMA.position(column) in key_columns(where, SCHEMA):
                    one.add(slot, where)
        rows = [random_row(rng, null_share) for _ in range(rng.randint(1, 60))]
        if column == "s" and rng.random() < 0.5:
            one.compact([code for code in range(len(one.texts)) if rng.random() < 0.5])
        found = one.match(rows)
        assert [row for _, row in found] == sorted(row for _, row in found), "pairs come row by row"
        assert sorted(found) == one.expected(rows)


def test_rows_before_the_first_are_not_looked_at_and_rows_count_from_it() -> None:
    one = Index()
    one.add(3, condition(id=points("id", 5)))
    rows = [{"id": 5, "x": 0.0, "s": "a", "n": 1, "flag": True} for _ in range(4)]
    assert one.match(rows, first=1) == [(3, 0), (3, 1), (3, 2)]


def test_a_null_key_matches_nothing_though_its_cell_is_0() -> None:
    one = Index()
    one.add(0, condition(id=points("id", 0)))
    row = {"id": None, "x": 0.0, "s": "a", "n": 1, "flag": True}
    assert one.match([row, {**row, "id": 0}]) == [(0, 1)]


def test_a_null_in_a_checked_column_fails_the_check() -> None:
    one = Index()
    one.add(0, condition(id=points("id", 1), n=NOT_NULL))
    one.add(1, condition(id=points("id", 1), n=between("n", -1, 1), x=points("x", 0.0)))
    row = {"id": 1, "x": 0.0, "s": "a", "n": 0, "flag": True}
    assert sorted(one.match([row, {**row, "n": None}, {**row, "x": None}])) == [(0, 0), (0, 2), (1, 0)]


def test_too_little_room_is_told() -> None:
    one = Index()
    for slot in range(5):
        one.add(slot, condition(id=points("id", 1)))
    cells, _ = one.cells([{"id": 1, "x": 0.0, "s": "a", "n": 1, "flag": True}] * 2)
    slots, at = np.zeros(9, np.int32), np.zeros(9, np.int32)
    assert one.index.match(TupleBatch(cells, None, 0, 2), float_columns(SCHEMA), slots, at) == -1
    slots, at = np.zeros(10, np.int32), np.zeros(10, np.int32)
    assert one.index.match(TupleBatch(cells, None, 0, 2), float_columns(SCHEMA), slots, at) == 10


def plain(key: int) -> dict[str, Any]:
    return {"id": key, "x": 0.0, "s": "a", "n": 1, "flag": True}


def test_thousands_of_values_grow_the_table_and_removing_them_lets_it_be_filled_anew() -> None:
    rng = random.Random(4)
    one = Index()
    keys = rng.sample(range(-(10**12), 10**12), 3000)
    for slot, key in enumerate(keys):
        one.index.add(slot, condition(id=points("id", key)))
        one.held[slot] = condition(id=points("id", key))
    one.index.check(set(one.held))
    assert one.index.n_values == 3000
    some = rng.sample(range(3000), 50)
    assert one.match([plain(keys[slot]) for slot in some]) == [(slot, i) for i, slot in enumerate(some)]
    for slot in range(2990):
        one.index.remove(slot)
        del one.held[slot]
    one.index.check(set(one.held))
    for slot in range(500):
        one.index.add(slot, condition(id=points("id", 10**13 + slot)))
        one.held[slot] = condition(id=points("id", 10**13 + slot))
    one.index.check(set(one.held))
    assert one.match([plain(10**13 + 77), plain(keys[2995]), plain(keys[5])]) == [(77, 0), (2995, 1)]


@pytest.mark.parametrize("n_single", [20, 28, 31, 32])
def test_an_in_list_is_whole_also_when_the_table_grows_in_the_middle_of_it(n_single: int) -> None:
    one = Index()
    for slot in range(n_single):
        one.add(slot, condition(id=points("id", slot)))
    wanted = [1000 + k for k in range(0, 2 * MAX_POINTS, 2)]
    one.index.add(n_single, condition(id=points("id", *wanted)))
    one.held[n_single] = condition(id=points("id", *wanted))
    rows = [plain(key) for key in [*wanted, *range(n_single)]]
    assert sorted(one.match(rows)) == one.expected(rows)
    one.index.check(set(one.held))


def test_many_queries_on_one_value_leave_one_by_one_from_any_place_of_its_chain() -> None:
    rng = random.Random(8)
    one = Index()
    for slot in range(40):
        one.add(slot, condition(id=points("id", 9)))
    assert one.index.n_values == 1 and one.index.n_entries == 40
    order = list(range(40))
    rng.shuffle(order)
    for slot in order:
        one.remove(slot)
        assert sorted(slot for slot, _ in one.match([plain(9)])) == sorted(one.held)
    assert one.index.n_values == one.index.n_entries == one.index.bytes() == 0


def test_chains_and_batches_longer_than_one_step_are_walked_to_their_end() -> None:
    one = Index()
    n_slots = WORK + 5
    for slot in range(n_slots):
        where = condition(id=points("id", 3 if slot % 7 else 4), n=compare(Type.INT, ">", slot % 5))
        one.index.add(slot, where)
        one.held[slot] = where
    rows = [{**plain(i % 5), "n": i % 6} for i in range(2 * WORK + 1)]
    found = one.match(rows)
    assert [row for _, row in found] == sorted(row for _, row in found), "pairs come row by row"
    assert sorted(found) == one.expected(rows)


# ---- dictionaries


def text(value: str) -> dict[str, Any]:
    return {**plain(0), "s": value}


def test_a_compacted_dictionary_gives_keys_their_new_codes_or_none() -> None:
    rng = random.Random(5)
    one = Index("s")
    for filler in range(100):
        one.texts.code(f"gone {filler}")
    for value in VALUES["s"][::2]:
        one.texts.code(value)
    for slot in range(60):
        one.add(slot, condition(n=between("n", -3, rng.randint(-3, 5)), s=points("s", *rng.sample(VALUES["s"], 2))))
    for slot in range(0, 60, 7):
        one.remove(slot)
    one.compact([5, 17, one.texts.find(VALUES["s"][2])])
    rows = [{**plain(0), "n": rng.randint(-5, 5), "s": rng.choice([*VALUES["s"], "other", None])} for _ in range(80)]
    assert sorted(one.match(rows)) == one.expected(rows) != []
    for slot in list(one.held):
        one.remove(slot)
    assert one.index.n_values == one.index.n_entries == one.index.bytes() == 0


def test_a_query_adds_no_string_to_the_dictionary() -> None:
    one = Index("s")
    one.add(0, condition(s=points("s", "a", "b")))
    one.add(1, condition(s=points("s", "a")))
    assert len(one.texts) == 0 and one.index.n_values == 2
    assert one.match([text("c"), text("b"), text("a")]) == [(0, 1), (0, 2), (1, 2)]
    assert one.texts.strings == ["c", "b", "a"]
    one.add(2, condition(s=points("s", "a", "d")))
    one.remove(0)
    assert sorted(one.match([text("a"), text("d")])) == [(1, 0), (2, 0), (2, 1)]


def test_a_text_that_goes_before_any_row_brings_it_is_forgotten() -> None:
    one = Index("s")
    for slot in range(500):
        one.add(slot, condition(s=points("s", f"unheard of {slot}")))
        one.remove(slot)
    assert one.index.n_values == one.index.n_entries == one.index.bytes() == 0
    assert not one.index._unseen and not one.index._text_of
    one.add(3, condition(s=points("s", "unheard of 7")))
    assert one.match([text("unheard of 3"), text("unheard of 7")]) == [(3, 1)]


@pytest.mark.parametrize("n_texts", range(28, 36))
def test_a_text_that_comes_while_the_table_is_full_keeps_a_chain_that_ends(n_texts: int) -> None:
    """The place of its code may be the one for which the table is laid out anew."""
    one = Index("s")
    for slot in range(n_texts):
        one.add(slot, condition(s=points("s", f"t{slot}")))
    one.cells([text("t5")])
    one.learn_strings()
    assert one.match([text("t5"), text("t6")]) == [(5, 0), (6, 1)]


# ---- which conditions fit


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        (condition(id=points("id", 5)), ["id"]),
        (condition(id=points("id", 5), n=between("n", 1, 3)), ["id"]),
        (condition(id=points("id", 5), n=points("n", 1)), ["id", "n"]),
        (condition(id=points("id", 5, 9), n=points("n", 1)), ["id"]),
        (condition(id=points("id", 5, 9), n=points("n", 1, 4)), []),
        (condition(id=points("id", *range(0, 2 * MAX_POINTS, 2))), ["id"]),
        (condition(id=points("id", *range(0, 2 * MAX_POINTS + 2, 2))), []),
        (condition(n=between("n", 1, 3)), []),
        (condition(id=points("id", 5).union(ONLY_NULL)), []),
        (condition(id=points("id", 5), n=between("n", 1, 3).union(ONLY_NULL)), []),
        (condition(id=points("id", 5), n=ONLY_NULL), []),
        (condition(id=points("id", 5), n=compare(Type.INT, "<>", 3)), []),
        (condition(id=points("id", 5), s=compare(Type.STRING, ">", "b")), []),
        (condition(id=points("id", 5), s=points("s", "b")), ["s"]),
        (condition(s=points("s", "b", "c"), n=between("n", 1, 3)), ["s"]),
        (condition(id=points("id", 5, 9), s=points("s", "b")), []),
        (condition(id=points("id", 1), x=NOT_NULL, n=NOT_NULL, flag=NOT_NULL), ["id"]),
        (condition(id=points("id", 1), x=NOT_NULL, s=points("s", "a"), n=NOT_NULL, flag=NOT_NULL), []),
        (condition(), []),
        (NO_ROW, []),
    ],
)
def test_a_condition_can_be_indexed_by_these_columns(where: Condition, columns: list[str]) -> None:
    assert [SCHEMA.names[position] for position in key_columns(where, SCHEMA)] == columns


def test_a_condition_with_a_residual_or_a_clause_cannot_be_indexed() -> None:
    from filters.expressions.expression import TRUE

    fits = condition(id=points("id", 5))
    assert key_columns(Condition(fits.conjuncts, (ResidualAtom(TRUE),), ()), SCHEMA) == []
    clause = (atom("n", NOT_NULL), atom("x", NOT_NULL))
    assert key_columns(Condition(fits.conjuncts, (), (clause,)), SCHEMA) == []


# ---- pairs


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=80))
def test_pairs_are_grouped_by_slot_in_the_order_of_first_occurrence(slots: list[int]) -> None:
    n = len(slots)
    pair_slot, pair_row = np.array([*slots, 0], np.int32), np.arange(n + 1, dtype=np.int32)
    count, found_slots, listed = np.zeros(21, np.int32), np.zeros(21, np.int32), np.zeros(21, np.int64)
    offsets, rows = np.zeros(22, np.int64), np.zeros(n + 1, np.int32)
    found = group_pairs(pair_slot, pair_row, n, count, np.arange(100, 121), found_slots, listed, offsets, rows)
    assert found_slots[:found].tolist() == list(dict.fromkeys(slots)) == (listed[:found] - 100).tolist()
    for k in range(found):
        assert rows[offsets[k] : offsets[k + 1]].tolist() == [i for i, slot in enumerate(slots) if slot == found_slots[k]]
    assert offsets[found] == n and not count.any()
    results = np.ones(21, np.int64)
    count_pairs(pair_slot, n, results)
    assert results.tolist() == [1 + slots.count(slot) for slot in range(21)]
