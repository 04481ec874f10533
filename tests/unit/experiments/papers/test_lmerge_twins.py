"""The slow merges over random presentations of one table: compatible after every element, and right at the end."""

from __future__ import annotations

from random import Random

import pytest

from experiments.papers.lmerge import PhysicalElement, adjust, insert, make_slow_merge, stable
from lineage.elements import FOREVER
from lineage.errors import EddyError
from lmerge.cases.outcomes import IGNORED, KNOWN, NEW, REPEATED, SETTLED, UNKNOWN
from lmerge.streams.conditions import find_union_breach
from lmerge.streams.elements import ADJUST, INSERT, STABLE
from tests.reference.comparison import compared, same
from tests.reference.element_table import SlowTable
from tests.reference.merge_play import MergePlay
from tests.reference.presentations import (
    COMPLETE,
    SLOPPY,
    Manner,
    Push,
    Step,
    distinct_starts,
    present,
    present_in_order,
    random_table,
    shuffle,
    shuffle_joins,
)
from tests.reference.seeds import seeds

A, B = 1, 2
INSERTS = ["first", "leader", "highest", "unfrozen", "half-frozen", "fraction:0.5", "fraction:1", "stable"]
ADJUSTS = ["lazy", "every", "leader"]


def steps_of(rng: Random, *, key: bool, lag: int = 0, manner: Manner = COMPLETE) -> tuple[list[tuple[int, int, int]], list[Step]]:
    """A table, and presentations of it in pieces: with inputs killed, or with inputs that come and go."""
    table = random_table(rng, rng.randrange(1, 8), key=key)
    if rng.random() < 0.5:
        streams = [present(rng, table, manner, key=key) for _ in range(rng.randrange(1, 6))]
        return sorted(table), shuffle(rng, streams, kill=rng.choice((0, 0.05)))
    return sorted(table), shuffle_joins(rng, table, rng.randrange(1, 6), manner, key=key, lag=lag)


@pytest.mark.parametrize("seed", seeds(range(600), 40))
@pytest.mark.parametrize("case", ["R3", "R3-", "R4"])
def test_after_every_element_the_output_is_compatible_with_all_inputs(seed: int, case: str) -> None:
    rng = Random(seed)
    key = case != "R4"
    table, steps = steps_of(rng, key=key)
    done = MergePlay(make_slow_merge(case), key=key)
    done.run(steps, MergePlay.compatible)
    same("table at the end", done.output.events(), table)
    assert done.merge.stable == FOREVER


@pytest.mark.parametrize("seed", seeds(range(80), 6))
@pytest.mark.parametrize("insert_word", INSERTS)
@pytest.mark.parametrize("case", ["R3", "R4"])
def test_every_policy_is_compatible_at_every_lag(seed: int, insert_word: str, case: str) -> None:
    rng = Random(seed)
    key = case == "R3"
    lag = rng.choice((0, 0, 1, 4))
    table, steps = steps_of(rng, key=key, lag=lag)
    words = {"insert": insert_word, "adjust": rng.choice(ADJUSTS)}
    done = MergePlay(make_slow_merge(case, lag=lag, **words), key=key)
    done.run(steps, MergePlay.compatible)
    same("table at the end", done.output.events(), table)


@pytest.mark.parametrize("seed", seeds(range(200), 20))
def test_what_waits_for_the_stable_point_is_never_taken_back(seed: int) -> None:
    rng = Random(seed)
    table, steps = steps_of(rng, key=True)
    done = MergePlay(make_slow_merge("R3", insert="stable")).run(steps)
    compared()
    assert done.given[INSERT] == len(table)


@pytest.mark.parametrize("seed", seeds(range(300), 30))
@pytest.mark.parametrize(("case", "bag"), [("R0", False), ("R1", False), ("R2", False), ("R2", True)])
def test_merges_of_ordered_inputs_give_every_event_once(seed: int, case: str, bag: bool) -> None:
    rng = Random(seed)
    table = random_table(rng, rng.randrange(1, 12), key=not bag)
    table = distinct_starts(table) if case == "R0" else table
    streams = [present_in_order(rng, table, case=case) for _ in range(rng.randrange(1, 6))]
    done = MergePlay(make_slow_merge(case, bag=bag), key=not bag)
    done.run(shuffle(rng, streams, kill=rng.choice((0, 0.05))), lambda play: None if bag else play.compatible())
    same("table at the end", done.output.events(), sorted(table))


@pytest.mark.parametrize("seed", seeds(range(300), 30))
@pytest.mark.parametrize("case", ["R0", "R2", "R3", "R3-", "R4"])
def test_the_output_is_a_valid_stream_where_inputs_lack_events_and_repeat_others(seed: int, case: str) -> None:
    rng = Random(seed)
    table = random_table(rng, rng.randrange(2, 8), key=case != "R4")
    if case in ("R0", "R2"):
        table = distinct_starts(table) if case == "R0" else table
        streams = [present_in_order(rng, table, case=case, missing=0.12) for _ in range(rng.randrange(2, 5))]
    else:
        streams = [present(rng, table, SLOPPY, key=case != "R4") for _ in range(rng.randrange(2, 5))]
    done = MergePlay(make_slow_merge(case), key=case != "R4").run(shuffle(rng, streams))
    compared()
    # whose end only a lagging input knows keeps the one that was given out
    assert {event[:2] for event in done.output.events()} <= {event[:2] for event in table}


class InTime(MergePlay):
    """A play in which a table of an input holds what it gave before the output had passed it."""

    def push(self, stream: int, element: PhysicalElement) -> None:
        late = element.kind != STABLE and element.start < self.output.stable
        before = self.inputs[stream]
        if late:
            self.inputs[stream] = SlowTable()
        super().push(stream, element)
        self.inputs[stream] = before

    def holds_the_union(self) -> None:
        compared()
        breach = find_union_breach([table.presented() for table in self.inputs.values()], self.output.presented())
        assert breach is None, breach


@pytest.mark.parametrize("seed", seeds(range(400), 40))
def test_with_missing_any_what_some_input_gave_in_time_stays(seed: int) -> None:
    rng = Random(seed)
    table = random_table(rng, rng.randrange(2, 8))
    manner = Manner(revised=0.3, wavering=0, spurious=0, missing=0.2)
    streams = [present(rng, table, manner) for _ in range(rng.randrange(2, 5))]
    words = {"insert": rng.choice(INSERTS), "adjust": rng.choice(ADJUSTS)}
    done = InTime(make_slow_merge("R3", missing="any", **words))
    done.run(shuffle(rng, streams), InTime.holds_the_union)


@pytest.mark.parametrize("seed", seeds(range(200), 20))
def test_r3_with_an_index_for_each_input_gives_out_the_same(seed: int) -> None:
    rng = Random(seed)
    _, steps = steps_of(rng, key=True, manner=SLOPPY)
    shared, apart = make_slow_merge("R3"), make_slow_merge("R3-")
    numbers: dict[int, int] = {}
    for step in steps:
        if isinstance(step, Push):
            for element in step.elements:
                same("taken", shared.push(numbers[step.stream], element), apart.push(numbers[step.stream], element))
            same("live events", shared.n_live, apart.n_live)
        elif hasattr(step, "since"):
            numbers[step.stream] = shared.attach(step.since)
            same("number", apart.attach(step.since), numbers[step.stream])
        else:
            shared.detach(numbers[step.stream])
            apart.detach(numbers.pop(step.stream))


@pytest.mark.parametrize("seed", seeds(range(300), 10))
@pytest.mark.parametrize("key", [True, False])
def test_presentations_are_valid_streams_of_their_table(seed: int, key: bool) -> None:
    rng = Random(seed)
    table = random_table(rng, rng.randrange(20), key=key)
    stream = SlowTable(key=key)
    elements = present(rng, table, key=key)
    for element in elements:
        stream.take(element)
    assert stream.fault == ""
    same("table", stream.events(), sorted(table))


def test_presentations_differ_in_all_the_ways_that_inputs_do() -> None:
    rng = Random(1)
    table = random_table(rng, 200, span=300, payloads=50)
    elements = present(rng, table, SLOPPY)
    kinds = [element.kind for element in elements]
    starts = [element.start for element in elements if element.kind == INSERT]
    removed = [element for element in present(rng, table) if element.kind == ADJUST and element.end == element.start]
    assert kinds.count(STABLE) > 20 and kinds.count(ADJUST) > 50
    assert starts != sorted(starts)
    assert len(starts) > len({(e.start, e.payload) for e in elements if e.kind == INSERT}), "some inserts come twice"
    assert len(table) - 60 < len({(e.start, e.payload) for e in elements if e.kind == INSERT}) < len(table) - 5, (
        "some are missing"
    )
    assert len(removed) > 20


def test_outcomes_say_what_became_of_an_element() -> None:
    merge = make_slow_merge("R3")
    one, two = merge.attach(), merge.attach()
    late = merge.attach(since=50)
    calls = [
        (one, insert(A, 5, 9), NEW),
        (two, insert(A, 5, 7), KNOWN),
        (two, insert(A, 5, 8), REPEATED),
        (two, adjust(B, 5, 9, 8), UNKNOWN),
        (late, stable(60), IGNORED),
        (one, stable(20), 6),
        (two, insert(A, 5, 7), SETTLED),
        (two, adjust(A, 5, 7, 9), SETTLED),
        (two, stable(20), IGNORED),
    ]
    assert [merge.push(number, element).outcome for number, element, _ in calls] == [outcome for *_, outcome in calls]
    assert (merge.stable, merge.leader, merge.point(late), merge.joined(late)) == (20, one, 60, False)


def test_the_next_input_joins_at_once_where_none_is_left_and_the_gap_is_counted() -> None:
    merge = make_slow_merge("R3")
    one = merge.attach()
    merge.push(one, stable(10))
    waiting = merge.attach(since=30)
    merge.detach(one)
    assert (merge.leader, merge.joined(waiting), merge.gaps) == (-1, False, 0)
    assert merge.joined(merge.attach(since=20))
    assert merge.gaps == 1


def test_a_merge_of_ordered_inputs_takes_no_adjust() -> None:
    merge = make_slow_merge("R2")
    with pytest.raises(EddyError, match="adjust is not possible in case R2"):
        merge.push(merge.attach(), adjust(A, 1, 3, 2))


def test_an_unknown_policy_is_named_with_the_words_that_there_are() -> None:
    with pytest.raises(EddyError, match='unknown word "eager" for adjust\nhint: One of lazy, every, leader'):
        make_slow_merge("R3", adjust="eager")


def test_payloads_are_kept_once_in_r3_and_once_an_input_in_its_other_form() -> None:
    sizes = {}
    for case in ("R3", "R3-"):
        for n in (2, 10):
            merge = make_slow_merge(case)
            for number in [merge.attach() for _ in range(n)]:
                for k in range(20):
                    merge.push(number, insert(k, k, 100))
            sizes[case, n] = merge.bytes(payload_bytes=1_000)
    assert sizes["R3", 10] <= 1.15 * sizes["R3", 2]
    assert sizes["R3-", 10] >= 3 * sizes["R3-", 2]
