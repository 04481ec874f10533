"""The filter bank: tables within their budget, room for more slots, and the statistics of row-major visits."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.index.bank import TABLE_BUDGET, FilterBank
from filters.index.matching import SCAN
from filters.values.intervals import NOT_NULL, ONLY_NULL, Intervals, compare
from lineage.batch import TupleBatch
from lineage.bits import set_bit, slots_of, words
from lineage.schema import Schema, Type

ensure()

SCHEMA = Schema.parse({"a": "int", "b": "int", "c": "int"}, "t")


class Bank:
    """A bank and the predicates in it."""

    def __init__(self, budget: int = TABLE_BUDGET) -> None:
        self.bank = FilterBank(SCHEMA.columns, [None] * len(SCHEMA), budget)
        self.held: dict[int, dict[int, Intervals]] = {}

    def add(self, slot: int, position: int, intervals: Intervals) -> None:
        self.bank.add(slot, position, intervals)
        f = self.bank.index(position)
        assert f is not None
        self.held.setdefault(f, {})[slot] = intervals
        self.bank.check(self.held)

    def remove(self, slot: int, position: int) -> None:
        f = self.bank.index(position)
        assert f is not None
        self.bank.remove(slot, position, self.held[f].pop(slot), 0)
        self.bank.check(self.held)

    def scans(self) -> list[bool]:
        return (self.bank._plan[:, 3] == SCAN).tolist()

    def match(self, rows: list[list[int]], slots: list[int], route: list[int]) -> list[list[int]]:
        cells = np.ascontiguousarray(np.array(rows, np.int64).T)
        active = np.zeros(self.bank.n_words, np.uint64)
        for slot in slots:
            set_bit(active, slot)
        lin = np.zeros((len(rows), self.bank.n_words), np.uint64)
        self.bank.row_major(TupleBatch(cells, None, 0, len(rows)), np.array(route, np.int32), active, lin)
        return [slots_of(row).tolist() for row in lin]


def above(constant: int) -> Intervals:
    return compare(Type.INT, ">", constant)


def test_a_filter_is_made_when_its_column_is_first_named_and_kept() -> None:
    one = Bank()
    assert one.bank.index(1) is None
    one.add(0, 1, above(3))
    one.add(0, 0, above(3))
    assert (one.bank.index(1), one.bank.index(0), one.bank.index(2)) == (0, 1, None)
    one.remove(0, 1)
    assert one.bank.index(1) == 0 and one.bank.filters[0].n_predicates == 0


def test_an_empty_bank_admits_everything() -> None:
    assert Bank().match([[1, 2, 3]], [0, 5, 63], []) == [[0, 5, 63]]


def test_tables_are_given_up_largest_first_when_they_pass_the_budget() -> None:
    one = Bank(budget=10 * 8)
    one.add(0, 0, above(1))
    one.add(1, 0, above(2))
    one.add(2, 0, above(3))
    one.add(3, 1, above(1))
    assert one.scans() == [False, False] and one.bank.table_bytes() == (5 + 3) * 8
    one.add(4, 1, above(2))
    one.add(5, 1, above(3))
    assert one.scans() == [False, False] and one.bank.table_bytes() == 10 * 8
    one.add(6, 1, above(4))
    assert one.scans() == [False, True], "the larger table goes"
    one.add(7, 2, above(1))
    assert one.scans() == [False, True, False]


def test_more_slots_may_cost_a_table() -> None:
    one = Bank(budget=10 * 8)
    for slot in range(4):
        one.add(slot, 0, above(slot))
    assert one.scans() == [False]
    one.bank.resize(2)
    one.bank.check(one.held)
    assert one.scans() == [True] and one.bank.table_bytes() == 0


def test_new_slots_admit_everything_until_they_have_a_predicate() -> None:
    one = Bank()
    one.add(0, 0, above(10))
    one.bank.resize(4)
    one.bank.check(one.held)
    assert one.match([[5, 0, 0], [11, 0, 0]], [0, 100, 255], [0]) == [[100, 255], [0, 100, 255]]
    one.add(100, 0, above(4))
    assert one.match([[5, 0, 0], [3, 0, 0]], [0, 100, 255], [0]) == [[100, 255], [255]]
    one.remove(100, 0)
    one.bank.resize(1)
    one.bank.check(one.held)
    assert one.match([[5, 0, 0], [11, 0, 0]], [0, 63], [0]) == [[63], [0, 63]]


def test_a_table_comes_back_only_when_it_fits_twice() -> None:
    one = Bank(budget=0)
    for slot in range(6):
        one.add(slot, 0, above(slot))
    one.add(6, 0, above(2).union(ONLY_NULL))
    one.add(7, 0, compare(Type.INT, "<>", 3))
    need = one.bank.filters[0].n_regions * 8
    one.bank.table_budget = 2 * need - 1
    assert one.bank.restorable() == []
    one.bank.table_budget = 2 * need
    assert one.bank.restorable() == [0]
    one.bank.restore_table(0, one.held[0])
    one.bank.check(one.held)
    assert one.scans() == [False] and one.bank.table_bytes() == need and one.bank.restorable() == []
    assert one.match([[3, 0, 0]], list(range(9)), [0]) == [[0, 1, 2, 6, 8]]


def test_rows_of_a_table_that_was_given_up_are_given_back() -> None:
    rng = random.Random(2)
    one = Bank()
    for slot in range(64):
        one.add(slot, slot % 3, above(rng.randint(0, 10**6)))
    wide = len(one.bank.table)
    assert wide >= 64
    one.bank.table_budget = 0
    one.remove(0, 0)
    one.add(0, 0, above(7))
    assert one.scans() == [True] * 3 and len(one.bank.table) < wide
    assert one.bank.table_bytes() == 0


@pytest.mark.parametrize("budget", [TABLE_BUDGET, 0])
def test_visits_count_rows_in_rows_out_and_bits_cleared(budget: int) -> None:
    rng = random.Random(7)
    one = Bank(budget)
    queries: dict[int, dict[int, Intervals]] = {}
    for slot in range(50):
        queries[slot] = {}
        for position in rng.sample(range(3), rng.randint(1, 2)):
            intervals = rng.choice([above(rng.randint(0, 20)), compare(Type.INT, "<>", rng.randint(0, 20)), NOT_NULL])
            queries[slot][position] = intervals
            one.add(slot, position, intervals)
    rows = [[rng.randint(0, 20) for _ in range(3)] for _ in range(40)]
    order = [2, 0, 1]
    expected = np.zeros((3, 3), np.int64)
    left: list[list[int]] = []
    for row in rows:
        wanted = set(range(45))
        for position in order:
            f = one.bank.index(position)
            assert f is not None
            if not any(position in queries[slot] for slot in wanted):
                continue
            kept = {slot for slot in wanted if position not in queries[slot] or queries[slot][position].holds(row[position])}
            expected[f] += (1, bool(kept), len(wanted) - len(kept))
            wanted = kept
            if not wanted:
                break
        left.append(sorted(wanted))
    route = [f for position in order if (f := one.bank.index(position)) is not None]
    assert one.match(rows, list(range(45)), route) == left
    assert one.bank.visits.tolist() == expected.tolist()


def test_a_row_skips_a_filter_that_none_of_its_queries_needs() -> None:
    one = Bank()
    one.add(0, 0, above(5))
    one.add(0, 1, above(5))
    one.add(1, 0, above(5))
    assert one.match([[9, 0, 0], [1, 0, 0]], [1], [0, 1]) == [[1], []]
    assert one.bank.visits.tolist() == [[2, 1, 1], [0, 0, 0]]


def test_bytes_are_those_of_the_predicates_held() -> None:
    one = Bank()
    one.add(0, 0, above(5))
    before = one.bank.bytes()
    one.add(1, 0, above(6))
    assert one.bank.bytes() == before + 8 + 4 + 4 + 8 + 8, "a cut, its use count, an id, a table row and two bounds"
    one.remove(1, 0)
    one.bank.release_ids(0)
    assert one.bank.bytes() == before
    one.remove(0, 0)
    one.bank.release_ids(0)
    assert one.bank.bytes() == 0


def test_check_sees_a_table_bit_that_no_predicate_put_there() -> None:
    one = Bank()
    one.add(0, 0, above(5))
    one.bank.table[one.bank._rows.view(0)[0], 0] |= np.uint64(1)
    with pytest.raises(AssertionError, match="the region table of a"):
        one.bank.check(one.held)


def test_rows_stored_before_a_filter_was_made_have_rank_0_on_it() -> None:
    one = Bank()
    one.add(0, 0, above(5))
    ids = one.bank.filters[0].ids[np.array([[1, 0, 2]])].astype(np.int32)
    one.add(1, 1, above(5))
    ranks = one.bank.stored_ranks([(ids, 1, 3)], 2)
    assert ranks[0, :2].tolist() == [0, 2] and ranks[1, :2].tolist() == [0, 0]
    assert one.bank.stored_ranks([(None, 0, 3)], 3)[:, :3].tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("n_rows", [64, 300])
def test_a_query_bounded_on_both_sides_of_every_column_is_matched_query_major_as_row_by_row(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    bank = Bank()
    for slot in range(40):
        for position in range(slot % 4):
            low = int(rng.integers(0, 60))
            bank.add(slot, position, above(low).intersect(compare(Type.INT, "<=", low + 30 + slot)))
    rows = rng.integers(0, 100, (n_rows, 3))
    route, slots = [2, 0, 1], list(range(40))
    by_row = bank.match(rows.tolist(), slots, route)
    active = np.zeros(1, np.uint64)
    for slot in slots:
        set_bit(active, slot)
    batch = TupleBatch(np.ascontiguousarray(rows.T), None, 0, n_rows)
    found = np.zeros((64, words(n_rows)), np.uint64)
    bank.bank.prepare_rows(batch, np.array(route, np.int32)).fill(active, found)
    assert [slots_of(found[slot]).tolist() for slot in slots] == [
        [i for i in range(n_rows) if slot in by_row[i]] for slot in slots
    ]
