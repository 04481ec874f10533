"""C1 to C3: on a small time axis they are the definition of compatibility, word by word."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from lineage.elements import FOREVER
from lmerge.streams.conditions import Presented, find_breach, find_count_breach, find_union_breach
from tests.reference.comparison import compared

START = 2
KEY = (START, 1)
POINTS = range(7)
ENDS = [None, 3, 4, 5, 6, FOREVER]
#: Ends that an event can have at last; some are beyond all points.
LAST = [3, 4, 5, 6, 7, 8, FOREVER]

#: What a stream says of one payload and start, and its stable point.
Say = tuple[int | None, int]


def presented(say: Say) -> Presented:
    end, point = say
    return Presented(point, {} if end is None else {KEY: [end]})


@cache
def futures(say: Say) -> frozenset[int | None]:
    """Every end at last that a valid extension of the stream reaches; None: no event."""
    end, point = say
    if point <= START:
        return frozenset([None, *LAST])
    if end is None or end < point:
        return frozenset([end])
    return frozenset(last for last in LAST if last >= point)


def follows(inputs: tuple[Say, ...], output: Say) -> bool | None:
    """The definition (L III-B): wherever the inputs can go together the output can go too. None: they contradict each other."""
    shared = frozenset.intersection(*map(futures, inputs))
    if not shared:
        return None
    # some payload that nobody has given yet may come with the latest start that the inputs leave open
    if output[1] > max(point for _, point in inputs):
        return False
    return shared <= futures(output)


def says() -> Iterator[Say]:
    return product(ENDS, POINTS)


@pytest.mark.parametrize("n", [1, 2])
def test_the_conditions_are_the_definition_of_compatibility(n: int) -> None:
    checked = 0
    for inputs in product(says(), repeat=n):
        tables = [presented(say) for say in inputs]
        for output in says():
            right = follows(inputs, output)
            if right is not None:
                checked += 1
                assert (find_breach(tables, presented(output)) is None) == right, (inputs, output)
    compared(checked)
    assert checked == {1: 1_764, 2: 63_168}[n]


def test_two_events_of_one_payload_and_start_break_the_key() -> None:
    breach = find_breach([Presented(0, {})], Presented(0, {KEY: [3, 4]}))
    assert breach is not None
    assert (breach.condition, breach.key) == ("C2", KEY)


def test_a_bag_agrees_with_its_leader_in_frozen_events_and_in_numbers() -> None:
    leader = Presented(10, {(1, 1): [4, 12], (3, 1): [20, 20], (30, 1): [40]})
    assert find_count_breach(leader, Presented(10, {(1, 1): [4, 17], (3, 1): [10, 11]})) is None
    assert find_count_breach(leader, Presented(3, {(1, 1): [3, 9]})) is None

    def condition(stable: int, events: dict[tuple[int, int], list[int]]) -> str:
        breach = find_count_breach(leader, Presented(stable, events))
        assert breach is not None
        return breach.condition

    assert condition(11, {}) == "C1"
    assert condition(10, {(1, 1): [4, 17], (3, 1): [10]}) == "counts"
    assert condition(10, {(1, 1): [5, 17], (3, 1): [10, 11]}) == "counts"
    assert condition(10, {(1, 1): [4, 17], (3, 1): [10, 11], (4, 1): [50]}) == "counts"


def test_the_union_of_the_inputs_is_what_the_output_holds_below_its_point() -> None:
    inputs = [Presented(10, {(1, 1): [4]}), Presented(5, {(3, 1): [20], (11, 2): [12]})]
    assert find_union_breach(inputs, Presented(10, {(1, 1): [4], (3, 1): [15]})) is None
    assert find_union_breach(inputs, Presented(3, {(1, 1): [4]})) is None

    def condition(stable: int, events: dict[tuple[int, int], list[int]]) -> str:
        breach = find_union_breach(inputs, Presented(stable, events))
        assert breach is not None
        return breach.condition

    assert condition(11, {(1, 1): [4], (3, 1): [15]}) == "C1"
    assert condition(10, {(1, 1): [4]}) == "C3"
    assert condition(10, {(1, 1): [4], (3, 1): [15], (4, 1): [5]}) == "C2"
    assert condition(10, {(1, 1): [4, 4], (3, 1): [15]}) == "C2"
