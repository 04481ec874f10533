"""Cleanse: every event of a stream once, as an insert, in order of its start, and only when nothing can change it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from experiments.papers.lmerge import SlowCleanse, adjust, batch_of, elements_of, insert, make_slow_merge, stable
from lineage.elements import FOREVER
from lmerge.streams.cleanse import Cleanse
from lmerge.streams.elements import ElementBatch
from lmerge.streams.table import find_fault, reconstitute
from tests.reference.comparison import same
from tests.reference.merge_play import MergePlay
from tests.reference.presentations import present, random_table, shuffle
from tests.reference.seeds import seeds

A, B, C = 1, 2, 3


@pytest.mark.parametrize("seed", seeds(range(300), 30))
@pytest.mark.parametrize("key", [True, False])
def test_cleanse_and_its_twin_agree_after_every_element(seed: int, key: bool) -> None:
    rng = Random(seed)
    fast, slow = Cleanse(), SlowCleanse()
    elements = present(rng, random_table(rng, rng.randrange(1, 40), key=key, span=rng.choice((3, 12, 60))), key=key)
    while elements:
        n = rng.randrange(1, 6)
        piece, elements = elements[:n], elements[n:]
        out = list(elements_of(fast.push(batch_of(piece))))
        same("elements out", out, [one for element in piece for one in slow.push(element)])
        same("events held", fast.n_held, slow.n_held)
        same("stable point", fast.stable, slow.stable)
        fast.check()
    assert fast.n_held == fast.n_dropped == 0


@pytest.mark.parametrize("seed", seeds(range(200), 10))
def test_what_comes_out_is_the_same_table_in_order(seed: int) -> None:
    rng = Random(seed)
    table = random_table(rng, 30, key=False)
    out = Cleanse().push(batch_of(present(rng, table, key=False)))
    assert find_fault([out]) is None
    same("table", sorted(reconstitute([out]).events().elements()), sorted(table))
    starts = out.starts[out.kinds == 0]
    assert (np.diff(starts) >= 0).all()


@pytest.mark.parametrize("seed", seeds(range(200), 15))
@pytest.mark.parametrize("key", [True, False])
def test_cleansed_inputs_are_merged_by_r1(seed: int, key: bool) -> None:
    rng = Random(seed)
    table = random_table(rng, 12, key=key)
    cleansed = [Cleanse().push(batch_of(present(rng, table, key=key))) for _ in range(3)]
    done = MergePlay(make_slow_merge("R1"), key=key).run(shuffle(rng, [list(elements_of(one)) for one in cleansed], kill=0.02))
    same("table", done.output.events(), sorted(table))


def test_an_event_that_is_frozen_waits_for_one_that_started_before_it_and_is_not() -> None:
    cleanse = Cleanse()
    assert list(elements_of(cleanse.push(batch_of([insert(A, 1, 9), insert(B, 3, 4), stable(6)])))) == [stable(1)]
    assert list(elements_of(cleanse.push(batch_of([adjust(A, 1, 9, 7), stable(8)])))) == [
        insert(A, 1, 7),
        insert(B, 3, 4),
        stable(8),
    ]


def test_events_of_one_start_come_together_in_order_of_payload_and_end() -> None:
    cleanse = Cleanse()
    out = cleanse.push(batch_of([insert(C, 1, 3), insert(B, 1, 9), insert(A, 1, 5), insert(A, 1, 4), stable(6), stable(10)]))
    assert list(elements_of(out)) == [stable(1), insert(A, 1, 4), insert(A, 1, 5), insert(B, 1, 9), insert(C, 1, 3), stable(10)]


def test_a_removed_event_holds_nothing_back() -> None:
    cleanse = Cleanse()
    out = cleanse.push(batch_of([insert(A, 1, 9), insert(B, 3, 4), adjust(A, 1, 9, 1), stable(6)]))
    assert list(elements_of(out)) == [insert(B, 3, 4), stable(6)]


def test_what_breaks_a_promise_of_its_stream_is_dropped_and_counted() -> None:
    cleanse = Cleanse()
    out = cleanse.push(
        batch_of([insert(A, 1, 9), stable(5), insert(B, 4, 9), adjust(A, 1, 8, 9), adjust(A, 1, 9, 4), insert(B, 6, 6)])
    )
    assert list(elements_of(out)) == [stable(1)]
    assert cleanse.n_dropped == 4
    assert list(elements_of(cleanse.push(batch_of([stable(FOREVER)])))) == [insert(A, 1, 9), stable(FOREVER)]


def test_state_shrinks_with_what_is_held() -> None:
    cleanse = Cleanse()
    for k in range(20):
        starts = np.arange(k * 10_000, (k + 1) * 10_000)
        none = np.zeros(10_000, np.int64)
        cleanse.push(ElementBatch(none, starts, none, none, starts + 5))
        if k == 9:
            most = cleanse.bytes
            cleanse.push(batch_of([stable(100_000)]))
    for k in range(200_000, 200_100):
        cleanse.push(batch_of([insert(A, k, k + 5), stable(k)]))
        cleanse.check()
    assert cleanse.n_held < 10
    assert cleanse.bytes < most / 20


def test_removed_events_do_not_pile_up_behind_one_that_stays() -> None:
    cleanse = Cleanse()
    cleanse.push(batch_of([insert(A, 0, FOREVER), stable(5)]))
    for k in range(20):
        cleanse.push(batch_of([one for p in range(200) for one in (insert(p, 10 + k, 30), adjust(p, 10 + k, 30, 10 + k))]))
        cleanse.check()
    assert cleanse.n_held == 1
    assert cleanse.bytes < 200_000


@pytest.mark.parametrize("n_ends", [1, 3, 1_000_000])
def test_a_bag_of_many_copies_costs_no_more_for_each_than_its_logarithm(n_ends: int) -> None:
    looked = []
    for n in (1_000, 8_000):
        cleanse, rng = Cleanse(), np.random.default_rng(1)
        zeros, ends = np.zeros(n, np.int64), 10 + rng.integers(0, n_ends, n)
        cleanse.push(ElementBatch(zeros, zeros + 5, zeros + A, zeros, ends))
        cleanse.push(ElementBatch(zeros + 1, zeros + 5, zeros + A, ends, ends + 1))
        out = cleanse.push(batch_of([stable(FOREVER)]))
        assert out.ends[:-1].tolist() == sorted((ends + 1).tolist())
        cleanse.check()
        looked.append(cleanse.n_looked / n)
    assert looked[1] < 2 * looked[0] + 1 and looked[1] < 60
