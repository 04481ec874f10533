"""The examples of the LMerge paper: Tables I and II, Example 3, the streams of III-D, and Theorem 1 as it holds."""

from __future__ import annotations

from random import Random

import pytest

from experiments.papers.lmerge import PhysicalElement, SlowMerge, adjust, batch_of, insert, make_slow_merge, stable
from lineage.elements import FOREVER
from lmerge.streams.conditions import Presented, find_breach
from lmerge.streams.elements import ADJUST, INSERT, STABLE
from lmerge.streams.table import find_fault, reconstitute
from tests.reference.comparison import compared
from tests.reference.merge_play import MergePlay
from tests.reference.presentations import present, random_table, shuffle
from tests.reference.seeds import seeds

A, B, C, D, E = range(1, 6)


def play(merge: SlowMerge, *calls: tuple[int, PhysicalElement]) -> list[PhysicalElement]:
    """All that a merge of two inputs gives out."""
    numbers = [merge.attach(), merge.attach()]
    return [one for k, element in calls for one in merge.push(numbers[k], element).out]


FIRST = [insert(B, 8, FOREVER), insert(A, 6, 12), adjust(B, 8, FOREVER, 10), stable(11), stable(FOREVER)]
SECOND = [insert(A, 6, 7), insert(B, 8, 15), adjust(A, 6, 7, 12), adjust(B, 8, 15, 10), stable(FOREVER)]


def test_table_1_two_physical_streams_are_one_table() -> None:
    for stream in (FIRST, SECOND):
        assert find_fault([batch_of(stream)], key=True) is None
        assert reconstitute([batch_of(stream)]).events() == {(A, 6, 12): 1, (B, 8, 10): 1}


def test_the_stable_point_of_one_stream_of_table_1_waits_until_the_output_agrees_with_it() -> None:
    # the output has followed the second stream when the first one says stable(11)
    calls = [(1, SECOND[0]), (1, SECOND[1]), *((0, element) for element in FIRST[:4])]
    assert play(make_slow_merge("R3"), *calls) == [
        *(insert(A, 6, 7), insert(B, 8, 15)),
        *(adjust(A, 6, 7, 12), adjust(B, 8, 15, 10), stable(11)),
    ]


CHATTY = [
    (0, insert(A, 6, 10)),
    (1, insert(A, 6, 12)),
    (1, insert(B, 7, 14)),
    (0, adjust(A, 6, 10, 15)),
    (1, adjust(A, 6, 12, 15)),
    (1, stable(16)),
]


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (
            {"adjust": "every"},
            [insert(A, 6, 10), adjust(A, 6, 10, 12), insert(B, 7, 14), adjust(A, 6, 12, 15), stable(16)],
        ),
        ({"insert": "stable"}, [insert(A, 6, 15), insert(B, 7, 14), stable(16)]),
        ({}, [insert(A, 6, 10), insert(B, 7, 14), adjust(A, 6, 10, 15), stable(16)]),
    ],
    ids=["Out1", "Out2", "Out3"],
)
def test_table_2_each_policy_gives_its_output(words: dict[str, str], out: list[PhysicalElement]) -> None:
    assert play(make_slow_merge("R3", **words), *CHATTY) == out
    assert play(make_slow_merge("R4", **words), *CHATTY)[-1] == stable(16)


INPUTS = [
    Presented(14, {(2, A): [16], (3, B): [10], (4, C): [18], (15, D): [20]}),
    Presented(11, {(2, A): [12], (3, B): [10], (4, C): [18], (17, E): [21]}),
]
CONSERVATIVE = Presented(11, {(2, A): [FOREVER], (3, B): [10], (4, C): [11]})
AGGRESSIVE = Presented(14, {(2, A): [16], (3, B): [10], (4, C): [18], (15, D): [20], (17, E): [21]})


def test_the_first_two_outputs_of_section_3d_are_compatible() -> None:
    assert find_breach(INPUTS, CONSERVATIVE) is None
    assert find_breach(INPUTS, AGGRESSIVE) is None


def test_the_third_output_of_section_3d_is_wrong_for_both_of_its_reasons() -> None:
    third = Presented(13, {(2, A): [12], (4, C): [18], (15, D): [20]})
    with_b = Presented(13, third.events | {(3, B): [10]})
    without_a = Presented(13, third.events | {(2, A): [13]})
    assert [(breach.condition, breach.key) for one in (third, with_b, without_a) if (breach := find_breach(INPUTS, one))] == [
        ("C2", (2, A)),
        ("C2", (2, A)),
        ("C3", (3, B)),
    ]


@pytest.mark.parametrize("seed", seeds(range(400), 30))
def test_theorem_1_inserts_and_adjusts_out_are_at_most_those_in(seed: int) -> None:
    rng = Random(seed)
    table = random_table(rng, 6)
    streams = [present(rng, table) for _ in range(rng.randrange(1, 4))]
    done = MergePlay(make_slow_merge("R3")).run(shuffle(rng, streams))
    compared()
    assert done.given[INSERT] + done.given[ADJUST] <= done.taken[INSERT] + done.taken[ADJUST]
    assert done.given[STABLE] <= done.taken[STABLE]
