"""Random predicates come and go, random rows pass: every way of matching gives what the slow twin and the definition give.

    row-major, ranks by search or given     = the paper's per-tuple filter (`experiments/papers/grouped_filter.py`)
    query-major, by bits or by lists        = `Intervals.holds` on every (slot, row)

for any route, table budget (all tables, all scans, a mix) and batch size, also when rows are matched again by the
region ids stored with them.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddy.base.compile import ensure
from experiments.papers.grouped_filter import ReferenceEddy
from filters.index.bank import TABLE_BUDGET, FilterBank, Prepared
from filters.index.row_sets import MAX_PREFIX
from filters.values.intervals import NOT_NULL, NOTHING, ONLY_NULL, Intervals, compare, float_key
from lineage.batch import TupleBatch
from lineage.bits import SPARE, set_bit, slots_of, words
from lineage.dictionary import Dictionary
from lineage.schema import KEY_MAX, KEY_MIN, Schema, Type
from tests.reference.comparison import compared

ensure()

SCHEMA = Schema.parse({"narrow": "int", "wide": "int", "x": "float", "s": "string", "flag": "bool", "idle": "int"}, "t")
#: all tables, none, and so few bytes that filters lose and regain theirs
BUDGETS = [TABLE_BUDGET, 0, 700]
OPS = ["<", "<=", ">", ">=", "=", "<>"]
SEEDS = st.integers(0, 2**32 - 1)

_WIDE = [KEY_MIN, KEY_MIN + 1, -(2**40), -1, 0, 1, 2**20, 2**53 + 1, 2**62, KEY_MAX - 1, KEY_MAX]
_FLOATS = [-math.inf, -1e300, -2.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, 2.5, 2.0**60, 1e300, math.inf, math.nan]
_TEXTS = ["", "\0", "a", "a\0", "aa", "b", "ba", "é", "\uffff", "\U0001f44d"]


def constant(rng: random.Random, name: str) -> Any:
    """A constant of a column, or a value in it: the same pool, so that values meet bounds."""
    match name:
        case "narrow":
            return rng.randint(-20, 40)
        case "wide":
            return rng.choice(_WIDE) if rng.random() < 0.5 else rng.randint(KEY_MIN, KEY_MAX)
        case "x":
            return rng.choice(_FLOATS) if rng.random() < 0.5 else rng.uniform(-5, 5)
        case "s":
            return rng.choice(_TEXTS) if rng.random() < 0.7 else "".join(rng.choices("abé", k=rng.randint(1, 4)))
        case "flag":
            return rng.random() < 0.5
    raise AssertionError(name)


def random_intervals(rng: random.Random, name: str) -> Intervals:
    """A predicate of any shape on a column; neither nothing nor everything, which conditions never have, but seldom."""
    type_ = SCHEMA[name].type
    shape = rng.choice(["one", "one", "range", "range", "point", "in", "but", "null", "not null", "union", "union", "extreme"])
    if shape == "null":
        return ONLY_NULL
    if shape == "not null":
        return NOT_NULL
    if shape == "extreme" and rng.random() < 0.3:
        return rng.choice([NOTHING, NOT_NULL.union(ONLY_NULL)])
    if shape == "one":
        found = compare(type_, rng.choice(OPS[:4]), constant(rng, name))
    elif shape == "point":
        found = compare(type_, "=", constant(rng, name))
    elif shape == "but":
        found = compare(type_, "<>", constant(rng, name))
    elif shape == "in":
        found = NOTHING
        for _ in range(rng.randint(1, 5)):
            found = found.union(compare(type_, "=", constant(rng, name)))
    else:
        found = NOTHING
        for _ in range(rng.randint(1, 4) if shape == "union" else 1):
            one = compare(type_, rng.choice([">", ">="]), constant(rng, name))
            found = found.union(one.intersect(compare(type_, rng.choice(["<", "<="]), constant(rng, name))))
    return found.union(ONLY_NULL) if rng.random() < 0.15 else found


class Batch:
    """Rows of a page from `first` on: cells as the store keeps them, and the order keys that they stand for."""

    def __init__(self, rng: random.Random, dictionaries: list[Dictionary | None], n_rows: int, null_share: float) -> None:
        self.first, self.n_rows = rng.randint(0, 5), n_rows
        page_rows = self.first + n_rows + 3
        self.cells = np.random.default_rng(rng.randrange(2**32)).integers(-5, 5, (len(SCHEMA), page_rows))
        self.nulls = np.zeros((len(SCHEMA), page_rows), np.uint8)
        self.has_nulls = null_share > 0
        self.keys: list[dict[str, Any]] = []
        for i in range(self.first, self.first + n_rows):
            row: dict[str, Any] = {}
            for position, name in enumerate(SCHEMA.names):
                if name == "idle" or rng.random() < null_share:
                    self.nulls[position, i] = name != "idle"
                    self.cells[position, i] = 0
                    row[name] = None
                    continue
                value = constant(rng, name)
                row[name] = float_key(value) if isinstance(value, float) else int(value) if name != "s" else value
                dictionary = dictionaries[position]
                if dictionary is not None:
                    self.cells[position, i] = dictionary.code(value)
                elif isinstance(value, float):
                    self.cells[position, i] = np.float64(value).view(np.int64)
                else:
                    self.cells[position, i] = value
            self.keys.append(row)

    @property
    def page(self) -> TupleBatch:
        return TupleBatch(self.cells, self.nulls if self.has_nulls else None, self.first, self.n_rows)


class World:
    """A bank beside its slow twin."""

    def __init__(self, seed: int, budget: int) -> None:
        self.rng = random.Random(seed)
        self.dictionaries = [Dictionary() if column.type is Type.STRING else None for column in SCHEMA.columns]
        self.bank = FilterBank(SCHEMA.columns, self.dictionaries, budget)
        self.twin = ReferenceEddy(SCHEMA.names)
        #: slot -> its predicates by column name, and the end of the store when it was put there
        self.queries: dict[int, dict[str, Intervals]] = {}
        self.born: dict[int, int] = {}
        self.end = 0

    def predicates(self) -> dict[int, dict[int, Intervals]]:
        """As the bank's `check` takes them."""
        found: dict[int, dict[int, Intervals]] = {}
        for slot, query in self.queries.items():
            for name, intervals in query.items():
                f = self.bank.index(SCHEMA.position(name))
                assert f is not None
                found.setdefault(f, {})[slot] = intervals
        return found

    def add(self) -> None:
        free = sorted(set(range(self.bank.n_words * 64)) - set(self.queries))
        if not free:
            self.bank.resize(2 * self.bank.n_words)
            free = [self.bank.n_words * 32]
        slot = free[0] if self.rng.random() < 0.5 else self.rng.choice(free)
        names = self.rng.sample(SCHEMA.names[:5], self.rng.choice([0, 1, 1, 2, 3, 5]))
        query = {name: random_intervals(self.rng, name) for name in names}
        self.queries[slot], self.born[slot] = query, self.end
        for name, intervals in query.items():
            self.bank.add(slot, SCHEMA.position(name), intervals)
        self.twin.add(slot, query)

    def remove(self) -> None:
        slot = self.rng.choice(sorted(self.queries))
        for name, intervals in self.queries.pop(slot).items():
            self.bank.remove(slot, SCHEMA.position(name), intervals, self.end)
        self.twin.remove(slot)

    def churn(self, steps: int, share_removed: float = 0.4) -> None:
        for _ in range(steps):
            if self.queries and self.rng.random() < share_removed:
                self.remove()
            else:
                self.add()
            self.bank.check(self.predicates())

    def route(self) -> np.ndarray:
        """The filters that have predicates, in random order."""
        filters = [f for f, filter_ in enumerate(self.bank.filters) if filter_.n_predicates]
        self.rng.shuffle(filters)
        return np.array(filters, np.int32)

    def active(self) -> np.ndarray:
        mask = np.zeros(self.bank.n_words, np.uint64)
        for slot in self.queries:
            set_bit(mask, slot)
        return mask

    def expected(self, batch: Batch) -> list[set[int]]:
        """Per row the slots that want it, by definition."""
        compared(batch.n_rows)
        return [
            {slot for slot, query in self.queries.items() if all(intervals.holds(row[name]) for name, intervals in query.items())}
            for row in batch.keys
        ]

    def by_twin(self, batch: Batch) -> list[set[int]]:
        order = self.rng.sample(SCHEMA.names, len(SCHEMA.names))
        return [set(self.twin.match(row, order).search(1)) for row in batch.keys]

    def row_major(self, batch: Batch, given: bool) -> list[set[int]]:
        lin = np.full((batch.n_rows + 1, self.bank.n_words), ~np.uint64(0))
        ranks = self.bank.ranks(batch.page) if given else None
        route = self.route()
        cut = self.rng.randint(0, len(route))
        results = np.zeros(self.bank.n_words * 64, np.int64)
        self.bank.row_major(batch.page, route[:cut], self.active(), lin, ranks)
        self.bank.row_major(batch.page, route[cut:], self.active(), lin, ranks, fresh=False, results=results)
        assert (lin[-1] == ~np.uint64(0)).all(), "rows behind the batch are left alone"
        found = [slots_of(row).tolist() for row in lin[:-1]]
        assert results.tolist() == np.bincount([slot for row in found for slot in row], minlength=len(results)).tolist()
        return [set(row) for row in found]

    def query_major(self, batch: Batch, ranks: np.ndarray | None = None) -> list[set[int]]:
        """Bits filled in two parts of the route."""
        route = self.route()
        cut = self.rng.randint(0, len(route))
        slots = np.array(sorted(self.queries), np.int32)
        rows_of = np.full((self.bank.n_words * 64, words(batch.n_rows)), ~np.uint64(0))
        if ranks is None:
            ranks = self.bank.ranks(batch.page)
        prepared = self.bank.prepare(ranks, batch.n_rows, batch.has_nulls, route)
        prepared.fill(self.active(), rows_of, route[:cut])
        prepared.fill(self.active(), rows_of, route[cut:], fresh=False)
        idle = np.setdiff1d(np.arange(len(rows_of)), slots)
        assert (rows_of[idle] == ~np.uint64(0)).all(), "slots not asked for are left alone"
        return by_rows({slot: slots_of(rows_of[slot]).tolist() for slot in slots.tolist()}, batch.n_rows)

    def listed(self, batch: Batch) -> list[set[int]]:
        """Rows listed without writing bits out; some slots twice, from a later row on."""
        rng, n_slots = self.rng, self.bank.n_words * 64
        query_of = np.arange(n_slots) + 1
        more_slot = np.array([slot for slot in self.queries if rng.random() < 0.3], np.int32)
        more_query = np.arange(len(more_slot)) + n_slots + 1
        more_first = np.array([rng.randint(0, batch.n_rows) for _ in more_slot], np.int32)
        none_of = np.zeros(0, np.int32)
        outputs = (query_of, np.zeros(n_slots, np.int32), more_slot, more_query, more_first, len(more_slot), none_of, none_of)
        prepared = self.bank.prepare(self.bank.ranks(batch.page), batch.n_rows, batch.has_nulls, self.route())
        n_outputs = len(self.queries) + len(more_slot)
        offsets, listed = np.zeros(n_outputs + 1, np.int64), np.zeros(n_outputs, np.int64)
        rows = np.zeros(n_outputs * batch.n_rows + SPARE, np.int32)
        results = np.zeros(n_slots, np.int64)
        n = prepared.lists(self.active(), outputs, results, listed, offsets, rows)
        lists = {int(listed[j]): rows[offsets[j] : offsets[j + 1]].tolist() for j in range(n)}
        assert len(lists) == n and all(lists.values()), "queries without rows are not listed"
        assert all(rows == sorted(set(rows)) for rows in lists.values()), "rows ascend"
        whole = {slot: lists.get(slot + 1, []) for slot in self.queries}
        for query, slot, first in zip(more_query.tolist(), more_slot.tolist(), more_first.tolist()):
            assert lists.get(query, []) == [row for row in whole[slot] if row >= first]
        assert results.tolist() == [len(whole.get(slot, ())) for slot in range(n_slots)], "each slot is counted once"
        counted, none = np.zeros_like(results), np.zeros(0, np.int64)
        prepared.lists(self.active(), outputs, counted, none, none, rows)
        assert (counted == results).all(), "counting alone gives the same counts"
        self._check_segments(prepared, whole, batch.n_rows)
        return by_rows(whole, batch.n_rows)

    def _check_segments(self, prepared: Prepared, whole: dict[int, list[int]], n_rows: int) -> None:
        """Slots that read a segment of the batch list the rows there, by other numbers, and count nothing."""
        rng, n_slots = self.rng, self.bank.n_words * 64
        first_of, stop_of, shift_of = (
            np.array([rng.randint(low, high) for _ in range(n_slots)], np.int32)
            for low, high in ((0, n_rows), (0, n_rows), (-n_rows, 9))
        )
        none = np.zeros(0, np.int32)
        outputs = (np.arange(n_slots), first_of, none, np.zeros(0, np.int64), none, 0, stop_of, shift_of)
        offsets, listed = np.zeros(n_slots + 1, np.int64), np.zeros(n_slots, np.int64)
        rows = np.zeros(n_slots * n_rows + SPARE, np.int32)
        n = prepared.lists(self.active(), outputs, np.zeros(0, np.int64), listed, offsets, rows)
        found = {int(listed[j]): rows[offsets[j] : offsets[j + 1]].tolist() for j in range(n)}
        for slot, all_rows in whole.items():
            mine = [row + int(shift_of[slot]) for row in all_rows if first_of[slot] <= row < stop_of[slot]]
            assert found.pop(slot, []) == mine
        assert not found


def by_rows(rows_of_slot: dict[int, list[int]], n_rows: int) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(n_rows)]
    for slot, rows in rows_of_slot.items():
        for row in rows:
            found[row].add(slot)
    return found


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(BUDGETS), st.sampled_from([0.0, 0.2]), st.sampled_from([1, 2, 5, 63, 64, 65, 300]))
def test_every_way_of_matching_gives_what_the_definition_gives(seed: int, budget: int, null_share: float, n_rows: int) -> None:
    world = World(seed, budget)
    for steps in (6, 25, 50):
        world.churn(steps)
        batch = Batch(world.rng, world.dictionaries, n_rows, null_share)
        expected = world.expected(batch)
        assert world.by_twin(batch) == expected
        assert world.row_major(batch, given=False) == expected
        assert world.row_major(batch, given=True) == expected
        assert world.query_major(batch) == expected
        assert world.listed(batch) == expected


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from(BUDGETS))
def test_a_bank_emptied_by_removals_admits_everything_again(seed: int, budget: int) -> None:
    world = World(seed, budget)
    world.churn(90, share_removed=0.1)
    while world.queries:
        world.remove()
        if world.bank.n_words > 1 and max(world.queries, default=0) < world.bank.n_words * 32:
            world.bank.resize(world.bank.n_words // 2)
        world.bank.check(world.predicates())
    assert all(filter_.n_cuts == 0 and filter_.n_predicates == 0 for filter_ in world.bank.filters)
    assert world.bank.table_bytes() == 0
    world.churn(20)
    batch = Batch(world.rng, world.dictionaries, 40, 0.2)
    assert world.row_major(batch, given=False) == world.query_major(batch) == world.expected(batch)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_tables_that_come_back_hold_what_the_predicates_say(seed: int) -> None:
    world = World(seed, 0)
    world.churn(40)
    world.bank.table_budget = TABLE_BUDGET
    for f in world.bank.restorable():
        world.bank.restore_table(f, world.predicates().get(f, {}))
    world.bank.check(world.predicates())
    assert (world.bank.table_bytes() > 0) == bool(world.predicates())
    world.churn(20)
    batch = Batch(world.rng, world.dictionaries, 50, 0.2)
    assert world.row_major(batch, given=False) == world.row_major(batch, given=True) == world.expected(batch)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from(BUDGETS))
def test_rows_stored_before_a_churn_match_by_their_ids_for_every_older_query(seed: int, budget: int) -> None:
    world = World(seed, budget)
    bank, rng = world.bank, world.rng
    world.churn(20, share_removed=0.1)
    #: stored batches: (position of the first row, rows, ids by filter)
    stored: list[tuple[int, Batch, np.ndarray]] = []
    for _ in range(8):
        batch = Batch(rng, world.dictionaries, rng.randint(1, 70), rng.choice([0.0, 0.2]))
        ranks = bank.ranks(batch.page)
        ids = np.zeros((len(bank.filters), batch.n_rows + batch.first), np.int32)
        for f, filter_ in enumerate(bank.filters):
            if filter_.n_predicates:
                ids[f, batch.first :] = filter_.ids[ranks[f, : batch.n_rows]]
        stored.append((world.end, batch, ids))
        world.end += batch.n_rows
        world.churn(15, share_removed=0.5)
        if rng.random() < 0.5:
            del stored[: rng.randint(0, len(stored))]
        bank.release_ids(stored[0][0] if stored else world.end)
        bank.check(world.predicates())
        for position, older, held in stored:
            ranks = bank.stored_ranks([(held, older.first, older.first + older.n_rows)], older.n_rows)
            by_ids = world.query_major(older, ranks)
            by_value = world.expected(older)
            elders = {slot for slot in world.queries if world.born[slot] <= position}
            assert [found & elders for found in by_ids] == [found & elders for found in by_value]


def test_ids_are_used_again_so_that_churn_needs_no_more_of_them() -> None:
    world = World(3, TABLE_BUDGET)
    world.churn(30, share_removed=0.1)
    most = 0
    for round_ in range(60):
        world.end += 10
        world.churn(4, share_removed=0.5 if len(world.queries) < 30 else 0.7)
        world.bank.release_ids(world.end)
        ids = sum(filter_.rank_of().size for filter_ in world.bank.filters)
        most = max(most, ids) if round_ < 30 else most
    assert ids <= most + 60, "without reuse every new cut would take a new id"
    live = sum(filter_.n_regions for filter_ in world.bank.filters)
    assert ids < 6 * live + 200


# ---- more regions than prefix sets


def wide_world(seed: int, n_queries: int, budget: int) -> World:
    """Enough cuts on "wide" that query-major matching goes by rank order; unions and points among the ranges."""
    world = World(seed, budget)
    rng = world.rng
    while world.bank.n_words * 64 < n_queries:
        world.bank.resize(2 * world.bank.n_words)
    for slot in range(n_queries):
        low, high = sorted(rng.randint(-(10**9), 10**9) for _ in range(2))
        intervals = compare(Type.INT, ">=", low).intersect(compare(Type.INT, "<", high))
        shape = rng.random()
        if shape < 0.1:
            intervals = intervals.union(compare(Type.INT, ">", 2 * 10**9)).union(ONLY_NULL)
        elif shape < 0.2:
            intervals = compare(Type.INT, "<>", low)
        elif shape < 0.3:
            intervals = compare(Type.INT, rng.choice(OPS[:4]), low)
        elif shape < 0.35:
            intervals = rng.choice([ONLY_NULL, NOT_NULL, NOTHING, compare(Type.INT, "=", low)])
        query = {"wide": intervals}
        if rng.random() < 0.4:
            query["narrow"] = random_intervals(rng, "narrow")
        world.queries[slot], world.born[slot] = query, 0
        for name, predicate in query.items():
            world.bank.add(slot, SCHEMA.position(name), predicate)
        world.twin.add(slot, query)
    return world


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("n_rows", "null_share"), [(1, 0.0), (31, 0.2), (65, 0.0), (300, 0.2), (300, 0.0)])
def test_an_attribute_with_more_regions_than_prefix_sets_is_matched_by_rank_order(
    n_rows: int, null_share: float, budget: int
) -> None:
    world = wide_world(n_rows, 600, budget)
    f = world.bank.index(SCHEMA.position("wide"))
    assert f is not None and world.bank.filters[f].n_regions > MAX_PREFIX
    batch = Batch(world.rng, world.dictionaries, n_rows, null_share)
    wide = SCHEMA.position("wide")
    bounds = world.bank.filters[f].cuts.tolist()
    for i in range(n_rows):
        # values on and beside the cuts, many of them equal
        if batch.keys[i]["wide"] is not None:
            key = world.rng.choice(bounds[:40] + bounds[-40:]) + world.rng.randint(-1, 1)
            batch.keys[i]["wide"] = batch.cells[wide, batch.first + i] = key
    expected = world.expected(batch)
    assert world.query_major(batch) == expected
    assert world.listed(batch) == expected
    assert world.row_major(batch, given=True) == expected
    assert world.row_major(batch, given=False) == expected
    world.bank.check(world.predicates())
