"""Merges as their owners see them: counters, nodes, state that follows what is alive, and words that are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from experiments.papers.lmerge import adjust, batch_of, insert, stable
from lineage.errors import EddyError
from lmerge.merge import make_merge
from lmerge.streams.elements import INSERT, STABLE, ElementBatch

A, B = 1, 2


def test_counters_say_what_came_and_what_came_of_it_for_each_input_and_in_all() -> None:
    merge = make_merge("R3")
    one, two = merge.attach(), merge.attach()
    merge.push(one, batch_of([insert(A, 5, 9), insert(B, 6, 8), insert(B, 6, 8)]))
    merge.push(two, batch_of([insert(A, 5, 7), adjust(B, 6, 8, 9), stable(20), insert(A, 5, 7)]))
    first, second, both = merge.counters_of(one), merge.counters_of(two), merge.counters
    assert (first.inserts, first.repeated, first.inserts_out, first.adjusts_out) == (3, 1, 2, 0)
    assert (second.known, second.unknown, second.settled, second.adjusts, second.stables) == (1, 1, 1, 1, 1)
    assert (second.adjusts_out, second.removed, second.stables_out) == (2, 1, 1), "A ends earlier, B is taken back"
    merge.detach(one)
    assert merge.counters == both and both.inserts == 5


def test_nodes_of_an_input_that_left_are_let_go_of_with_the_next_push() -> None:
    merge = make_merge("R3", insert="stable")
    one, two = merge.attach(), merge.attach()
    node = int(merge.push(one, batch_of([insert(A, 5, 9)])).taken[0])
    merge.detach(one)
    merge.check()
    merged = merge.push(two, batch_of([insert(B, 5, 9)]))
    assert merged.freed.tolist() == [node] and merged.taken.tolist() != [node], "not used again before it is told"
    assert merge.n_live == 1


@pytest.mark.parametrize("case", ["R3", "R4"])
def test_state_is_back_to_a_constant_after_a_million_events(case: str) -> None:
    merge = make_merge(case)
    numbers = [merge.attach(), merge.attach()]
    most = empty = merge.bytes
    for k in range(50):
        starts = np.arange(20_000, dtype=np.int64) + k * 20_000
        zeros = np.zeros(20_001, np.int64)
        kinds, ends = np.full(20_001, INSERT), np.append(starts + 500, starts[-1] - (1 if k < 49 else -1_000))
        kinds[-1] = STABLE
        for number in numbers:
            merge.push(number, ElementBatch(kinds, np.append(starts, 0), zeros, zeros, ends))
        most = max(most, merge.bytes)
    merge.check()
    assert merge.n_live == 0 and most > 10 * empty
    for _ in range(40):
        merge.push(numbers[0], batch_of([insert(A, 2_000_000, 2_000_001)]))
        merge.push(numbers[0], batch_of([adjust(A, 2_000_000, 2_000_001, 2_000_000)]))
    assert merge.bytes < max(20 * empty, most // 8)


@pytest.mark.parametrize("case", ["R3", "R4"])
def test_nodes_that_a_push_lets_go_of_are_not_used_again_in_it(case: str) -> None:
    """Not even where few nodes were left to hand out and the push asks for all of them."""
    merge = make_merge(case)
    number = merge.attach()
    # the last of many events stays: the nodes have room for many, but only the lowest numbers are handed out
    merge.push(number, batch_of([*(insert(A, t, t + 1) for t in range(5000)), insert(B, 4999, 10**6)]))
    for t in range(5001, 5040):
        merge.push(number, batch_of([stable(t), insert(A, t, t + 1)]))
    kept = [insert(A, 6000 + t, 6000 + t + 1) for t in range(300)]
    merge.push(number, batch_of(kept))
    merged = merge.push(number, batch_of([stable(6302), *(insert(A, 7000 + t, 20_000) for t in range(6000))]))
    merge.check()
    assert len(merged.freed) >= len(kept) and merge.n_live == 6001
    assert not set(merged.freed.tolist()) & set(merged.taken.tolist())


def test_a_stable_looks_at_what_is_due_not_at_what_is_half_frozen() -> None:
    merge = make_merge("R3")
    one = merge.attach()
    merge.push(one, batch_of([*(insert(k, 0, 1_000_000 + k) for k in range(5_000)), stable(10)]))
    before = merge.work
    for point in range(20, 2_020, 10):
        merge.push(one, batch_of([insert(A, point, point + 3), stable(point + 5)]))
    after = merge.work
    assert merge.n_live == 5_000
    assert after["decided"] - before["decided"] <= 2 * 200, "each event once at its start and once at its end"
    assert after["looked"] - before["looked"] < 5 * 5_000, (
        "the calendar is laid out anew a few times, not scanned at every stable"
    )


@pytest.mark.parametrize("case", ["R0", "R1", "R2", "R3", "R4"])
def test_a_merge_goes_on_after_it_was_stored(case: str) -> None:
    merge = make_merge(case)
    one = merge.attach()
    merge.push(one, batch_of([insert(A, 5, 9), insert(B, 6, 20), stable(6)]))
    again = pickle.loads(pickle.dumps(merge))
    rest = batch_of([insert(A, 8, 12), stable(30)])
    ours, theirs = merge.push(one, rest), again.push(one, rest)
    assert [column.tolist() for column in ours.elements] == [column.tolist() for column in theirs.elements]
    again.check()


def test_words_and_numbers_that_there_are_not() -> None:
    with pytest.raises(EddyError, match='"R9" is no case'):
        make_merge("R9")
    with pytest.raises(EddyError, match='"eager" is no word for insert'):
        make_merge("R3", insert="eager")
    with pytest.raises(EddyError, match="no fraction"):
        make_merge("R3", insert="fraction:2")
    with pytest.raises(EddyError, match="only insert"):
        make_merge("R1", insert="stable")
    with pytest.raises(EddyError, match='only missing="leader"'):
        make_merge("R4", missing="any")
    with pytest.raises(EddyError, match="lag of -1"):
        make_merge("R3", lag=-1)
    with pytest.raises(EddyError, match="no input has the number 3"):
        make_merge("R3").push(3, batch_of([stable(1)]))
    ordered = make_merge("R2")
    with pytest.raises(EddyError, match="adjust is not possible in case R2"):
        ordered.push(ordered.attach(), batch_of([adjust(A, 1, 3, 2)]))
