"""Tables of element streams: reconstitution, freeze states, and streams that break their own promises."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from experiments.papers.lmerge import PhysicalElement, adjust, batch_of, insert, stable
from lineage.elements import BEGINNING, FOREVER
from lmerge.streams.table import (
    FROZEN,
    HALF_FROZEN,
    UNFROZEN,
    Fault,
    empty_table,
    find_fault,
    freeze_state,
    joined_batches,
    reconstitute,
)
from tests.reference.comparison import same
from tests.reference.element_table import SlowTable
from tests.reference.presentations import COMPLETE, SLOPPY, present, random_table
from tests.reference.seeds import seeds

A, B = 1, 2


def test_an_adjust_moves_an_end_and_removes_at_the_start() -> None:
    table = reconstitute(
        [batch_of([insert(A, 6, 20), adjust(A, 6, 20, 30), adjust(A, 6, 30, 25), insert(B, 2, 9), adjust(B, 2, 9, 2)])]
    )
    assert table.events() == {(A, 6, 25): 1}


def test_equal_events_are_counted() -> None:
    table = reconstitute([batch_of([insert(A, 1, 5), insert(A, 1, 5), insert(A, 1, 7), stable(3)])])
    assert table.by_key() == {(1, A): [5, 5, 7]}
    assert table.stable == 3
    assert table.counts.tolist() == [2, 1]


def test_an_event_is_frozen_only_after_the_stable_point_has_passed_its_end() -> None:
    assert [freeze_state(4, 8, point) for point in (4, 5, 8, 9)] == [UNFROZEN, HALF_FROZEN, HALF_FROZEN, FROZEN]
    assert freeze_state(4, FOREVER, FOREVER) == HALF_FROZEN


def test_states_of_columns_are_those_of_single_events() -> None:
    for point in range(12):
        table = reconstitute(
            [batch_of([*(insert(A, start, end) for start in range(8) for end in range(start + 1, 10)), stable(point)])]
        )
        assert table.states().tolist() == [freeze_state(s, e, point) for s, e in zip(table.starts.tolist(), table.ends.tolist())]


def test_nothing_makes_an_empty_table() -> None:
    assert reconstitute([]).events() == {}
    assert reconstitute([]).stable == BEGINNING
    assert find_fault([], key=True) is None


@pytest.mark.parametrize(
    ("elements", "position", "why"),
    [
        ([stable(5), insert(A, 4, 9)], 1, "an insert that starts below the stable point"),
        ([insert(A, 5, 9), stable(7), insert(B, 8, 9), adjust(A, 5, 9, 6)], 3, "an adjust to an end below the stable point"),
        ([insert(A, 5, 6), stable(7), adjust(A, 5, 6, 9)], 2, "an adjust of an end below the stable point"),
        ([insert(A, 5, 6), adjust(A, 5, 7, 9)], 1, "an adjust of an event that is not there"),
        ([insert(A, 5, 6), adjust(A, 5, 6, 5), adjust(A, 5, 6, 9)], 2, "an adjust of an event that is not there"),
        ([adjust(A, 5, 6, 9), insert(A, 5, 6)], 0, "an adjust of an event that is not there"),
        ([adjust(A, 5, 6, 6)], 0, "an adjust of an event that is not there"),
        ([insert(A, 5, 5)], 0, "an insert whose life is empty"),
        ([insert(A, 5, 8), adjust(A, 5, 8, 4)], 1, "an adjust whose end lies before its start"),
        ([insert(A, 5, 8), insert(B, 5, 8), insert(A, 5, 9)], 2, "an insert of a payload and start that are there already"),
    ],
)
def test_the_first_element_that_breaks_a_promise_is_found(elements: list[PhysicalElement], position: int, why: str) -> None:
    assert find_fault([batch_of(elements)], key=True) == Fault(position, why)
    assert find_fault([batch_of(elements[:position])], key=True) is None


def test_a_removed_key_may_come_again_and_a_bag_has_none() -> None:
    again = [insert(A, 5, 8), adjust(A, 5, 8, 5), insert(A, 5, 9), adjust(A, 5, 9, 9)]
    assert find_fault([batch_of(again)], key=True) is None
    assert find_fault([batch_of([insert(A, 5, 8), insert(A, 5, 8)])]) is None


def test_a_stable_point_that_goes_back_says_nothing() -> None:
    assert find_fault([batch_of([stable(5), stable(3), insert(A, 4, 9)])]) == Fault(
        2, "an insert that starts below the stable point"
    )
    assert find_fault([batch_of([stable(5), stable(3), insert(A, 5, 9)])]) is None


@pytest.mark.parametrize("seed", seeds(range(200), 10))
@pytest.mark.parametrize("key", [True, False])
def test_columns_make_the_table_that_one_element_after_another_makes(seed: int, key: bool) -> None:
    rng = Random(seed)
    elements = present(rng, random_table(rng, rng.randrange(30), key=key), key=key)
    slow = SlowTable(key=key)
    table = empty_table()
    while elements:
        piece, elements = elements[: rng.randrange(1, 9)], elements[9:]
        batches = [batch_of(piece[:3]), batch_of(piece[3:])]
        fault = find_fault(batches, table, key=key)
        for k, element in enumerate(piece):
            slow.take(element)
            if slow.fault:
                # what came with the dropped elements is not there
                same("fault", fault.position if fault else None, k)
                return
        same("no fault", fault, None)
        table = reconstitute(batches, table)
        same("events", sorted(table.events().elements()), slow.events())
        same("stable point", table.stable, slow.stable)
        same("by key", table.by_key(), slow.ends)


@pytest.mark.parametrize("seed", seeds(range(300), 20))
def test_the_first_fault_is_the_one_that_reading_element_by_element_finds(seed: int) -> None:
    rng = Random(seed)
    elements = present(rng, random_table(rng, 8), rng.choice((COMPLETE, SLOPPY)))
    for _ in range(rng.randrange(4)):
        k = rng.randrange(len(elements))
        elements[k] = elements[k]._replace(end=elements[k].end + rng.choice((-3, 2)))
    slow = SlowTable(key=True)
    first = None
    for k, element in enumerate(elements):
        slow.take(element)
        if slow.fault:
            first = k
            break
    fault = find_fault([batch_of(elements)], key=True)
    same("position of the fault", fault and fault.position, first)


def test_eight_hundred_thousand_elements_are_columns_all_along() -> None:
    rng = np.random.default_rng(1)
    n = 400_000
    starts = np.sort(rng.integers(0, n, n))
    inserts = batch_of([])._replace(
        kinds=np.zeros(n, np.int64), starts=starts, payloads=np.arange(n), olds=np.zeros(n, np.int64), ends=starts + 9
    )
    adjusts = inserts._replace(kinds=np.ones(n, np.int64), olds=starts + 9, ends=starts + np.arange(n) % 5)
    both = joined_batches([inserts, adjusts])
    assert find_fault([both], key=True) is None
    table = reconstitute([both])
    assert len(table.starts) == n * 4 // 5
    assert int((table.ends - table.starts).max()) == 4
