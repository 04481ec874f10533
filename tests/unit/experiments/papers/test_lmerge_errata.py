"""Errata of the LMerge paper: of each a case in which the printed form is wrong and the one used here is right (L1 to L13).

The printed forms are subclasses in this file: what is printed stands in the one method that each of them replaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from experiments.papers.lmerge import (
    PhysicalElement,
    SlowCleanse,
    SlowMerge,
    SlowR0,
    SlowR1,
    SlowR2,
    SlowR3,
    SlowR4,
    Taken,
    adjust,
    elements_of,
    insert,
    make_slow_merge,
    stable,
)
from experiments.papers.lmerge.changes import ChangeReader, SignedChanges
from experiments.papers.lmerge.in2t import In2tNode
from experiments.papers.lmerge.in3t import In3tNode, move
from experiments.papers.lmerge.indexed import Key
from experiments.papers.lmerge.ordered import SlowOrdered
from lineage.elements import BEGINNING, FOREVER
from lmerge.cases.outcomes import CHANGED
from lmerge.streams.conditions import Presented, find_breach
from lmerge.streams.elements import ADJUST, INSERT
from lmerge.streams.table import FROZEN, HALF_FROZEN, freeze_state
from tests.reference.comparison import compared
from tests.reference.element_table import SlowTable
from tests.reference.merge_play import MergePlay
from tests.reference.presentations import Manner, present, random_table, shuffle
from tests.reference.seeds import amount

A, B, C = 1, 2, 3
Call = tuple[int, PhysicalElement]


def output(merge: SlowMerge, calls: Sequence[Call], n: int = 2) -> SlowTable:
    """The table of what a merge of n inputs gives out."""
    table = SlowTable()
    numbers = [merge.attach() for _ in range(n)]
    for k, element in calls:
        for one in merge.push(numbers[k], element).out:
            table.take(one)
    return table


# L1


def printed_half_frozen(say: tuple[int, int], output: tuple[int, int], start: int) -> bool:
    """C2 of a half-frozen event, for one input: (end, stable point) of both."""
    (end, stable_in), (_, stable_out) = say, output
    state = freeze_state(start, end, stable_in)
    return (state == HALF_FROZEN and stable_in <= stable_out) or (state == FROZEN and stable_out <= end)


def test_an_input_that_is_ahead_of_the_output_supports_its_half_frozen_events() -> None:
    key = (2, A)
    # whatever end from 5 on the input gives it at last, the output can still have, as it is stable up to 3 only
    assert not printed_half_frozen((6, 5), (6, 3), start=2)
    assert find_breach([Presented(5, {key: [6]})], Presented(3, {key: [6]})) is None
    # and the other way round it could not
    assert printed_half_frozen((6, 3), (6, 5), start=2)
    assert find_breach([Presented(3, {key: [6]})], Presented(5, {key: [6]})) is not None


# L2


def test_theorem_1_counts_adjusts_in_as_well() -> None:
    merge = make_slow_merge("R3")
    one = merge.attach()
    calls = [insert(A, 6, 10), adjust(A, 6, 10, 20), stable(15), adjust(A, 6, 20, 30), stable(25)]
    given = Counter(out.kind for element in calls for out in merge.push(one, element).out)
    taken = Counter(element.kind for element in calls)
    assert given[INSERT] + given[ADJUST] > taken[INSERT]
    assert given[INSERT] + given[ADJUST] <= taken[INSERT] + taken[ADJUST]


# L3


class PrintedRemoval(SlowR4):
    """Line 15: the count of the new end goes up, also where that is the start."""

    def _adjust(self, number: int, element: PhysicalElement) -> int:
        node = self.nodes.get((element.start, element.payload))
        if node is not None:
            move(node.ends[number], element.old, element.end)
        return CHANGED


def test_a_removal_leaves_nothing_to_count() -> None:
    calls = [(1, insert(A, 5, 20)), (0, insert(A, 5, 9)), (0, adjust(A, 5, 9, 5)), (0, insert(A, 5, 20))]
    assert output(PrintedRemoval(), calls).events() == [(A, 5, 20), (A, 5, 20)]  # no input has two
    assert output(SlowR4(), calls).events() == [(A, 5, 20)]


# L4


class PrintedLine27(SlowR4):
    """Lines 27, 28: a node goes when the largest end of the deciding input is frozen."""

    def _settle(self, number: int, reached: int) -> None:
        for key in self._below(reached):
            node: In3tNode = self.nodes[key]
            self._agree(number, key, node, reached)
            if max(node.ends[number]) < reached:
                del self.nodes[key]


def test_an_input_without_the_event_decides_too() -> None:
    calls = [(1, insert(A, 5, 20)), (0, stable(9))]
    with pytest.raises(KeyError):
        output(PrintedLine27(), calls)
    merge = SlowR4()
    assert output(merge, calls).events() == []
    assert merge.n_live == 0


# L5


class PrintedLine20(SlowR3):
    """Line 20: no entry means that the event is to go."""

    def _said(self, number: int, key: Key, node: In2tNode) -> int:
        return node.ends.get(number, key[0])


@pytest.mark.parametrize("said", [[], [insert(A, 5, 8)]], ids=["nothing", "an end that is frozen"])
def test_an_input_has_no_say_in_what_is_half_frozen_and_it_has_not(said: list[PhysicalElement]) -> None:
    calls = [(0, insert(A, 5, 20)), *((1, one) for one in said), (0, stable(10)), (1, stable(12))]
    assert "adjust below the stable point" in output(PrintedLine20(), calls).fault
    table = output(SlowR3(), calls)
    assert table.fault == ""
    assert table.events() == [(A, 5, 20)]


def faults_with_gaps(make: type[SlowR3], n: int) -> int:
    """How many of n merges of inputs that lack events give out an invalid stream."""
    found = 0
    for seed in range(n):
        rng = Random(seed)
        table = random_table(rng, rng.randrange(2, 6))
        streams = [present(rng, table, Manner(missing=0.12, spurious=0)) for _ in range(rng.randrange(2, 4))]
        try:
            MergePlay(make()).run(shuffle(rng, streams))
        except AssertionError:
            found += 1
    return found


def test_no_output_adjusts_below_its_own_stable_point_where_inputs_lack_events() -> None:
    n = amount(150, long=4_000)
    compared(2 * n)
    assert faults_with_gaps(PrintedLine20, n) > n // 50
    assert faults_with_gaps(SlowR3, n) == 0


# L6


class Unguarded(SlowOrdered):
    """R0 to R2 as printed: no insert is held against the stable point."""

    def push(self, number: int, element: PhysicalElement) -> Taken:
        if element.kind != INSERT:
            return super().push(number, element)
        point, self.stable = self.stable, BEGINNING
        taken = super().push(number, element)
        self.stable = point
        return taken


class PrintedR0(Unguarded, SlowR0):
    pass


class PrintedR1(Unguarded, SlowR1):
    pass


class PrintedR2(Unguarded, SlowR2):
    pass


@pytest.mark.parametrize(("printed", "used"), [(PrintedR0, SlowR0), (PrintedR1, SlowR1), (PrintedR2, SlowR2)])
def test_no_insert_goes_out_below_the_stable_point(printed: type[SlowOrdered], used: type[SlowOrdered]) -> None:
    calls = [(0, insert(A, 5, 6)), (0, stable(10)), (1, insert(A, 5, 6)), (1, insert(B, 7, 8))]
    assert "insert below the stable point" in output(printed(), calls).fault
    assert output(used(), calls).events() == [(A, 5, 6)]


# L7


class PrintedCounts(SlowR1):
    """Algorithm R1: every input is counted from the first element on that it sends."""

    def attach(self, since: int | None = None) -> int:
        return super().attach()


@pytest.mark.parametrize(
    ("make", "out"),
    [(PrintedCounts, [insert(A, 5, 6), insert(C, 5, 6), insert(C, 5, 6)]), (SlowR1, [insert(p, 5, 6) for p in (A, B, C)])],
)
def test_a_joiner_of_r1_counts_from_the_next_start_on(make: type[SlowR1], out: list[PhysicalElement]) -> None:
    merge = make()
    one = merge.attach()
    given = [*merge.push(one, stable(5)).out, *merge.push(one, insert(A, 5, 6)).out]
    two = merge.attach(since=5)
    calls = [(two, insert(B, 5, 6)), (two, insert(C, 5, 6)), (one, insert(B, 5, 6)), (one, insert(C, 5, 6))]
    given += [element for number, call in calls for element in merge.push(number, call).out]
    assert given == [stable(5), *out]


# L8


class PrintedJoin(SlowR3):
    """A joining input, whose stables are as good as any other's."""

    def attach(self, since: int | None = None) -> int:
        return super().attach()


@pytest.mark.parametrize(("make", "right"), [(PrintedJoin, False), (SlowR3, True)])
def test_the_stables_of_a_joiner_count_once_the_merge_has_reached_where_it_begins(make: type[SlowR3], right: bool) -> None:
    merge, table = make(), SlowTable()
    one = merge.attach()
    two = merge.attach(since=10)
    calls = [
        *((one, insert(A, 1, 20)), (one, insert(B, 2, 5)), (two, insert(A, 1, 20)), (two, stable(8))),
        *((one, stable(10)), (two, stable(12)), (one, stable(FOREVER))),
    ]
    for number, element in calls:
        for out in merge.push(number, element).out:
            table.take(out)
    assert (table.events() == [(A, 1, 20), (B, 2, 5)]) == right
    assert merge.joined(two)


# L9


class PrintedLeave(SlowR3):
    """An input that leaves is marked; what it said stays."""

    def _forget(self, number: int) -> None:
        del self._highest[number]


@pytest.mark.parametrize(("make", "right"), [(PrintedLeave, False), (SlowR3, True)])
def test_what_an_input_said_before_it_left_is_not_held_against_the_one_that_has_its_number_now(
    make: type[SlowR3], right: bool
) -> None:
    merge, table = make(), SlowTable()
    first = merge.attach()
    table.take(merge.push(first, insert(A, 5, 9)).out[0])  # an event that it would have taken back
    merge.detach(first)
    again = merge.attach()
    assert again == first
    for out in merge.push(again, stable(6)).out:
        table.take(out)
    assert (table.events() == []) == right


# L10


def changes(*rows: tuple[int, int, int]) -> SignedChanges:
    return SignedChanges(*(np.array(column, np.int64) for column in zip(*rows)))


@pytest.mark.parametrize(("by_value", "right"), [(False, False), (True, True)])
def test_a_plan_that_starts_later_takes_over_open_events_by_value(by_value: bool, right: bool) -> None:
    merge, table = make_slow_merge("R4"), SlowTable()
    old, new = ChangeReader(), ChangeReader()
    first, second = merge.attach(), merge.attach(since=10)

    def push(number: int, elements: Sequence[PhysicalElement]) -> None:
        for element in elements:
            for out in merge.push(number, element).out:
                table.take(out)

    push(first, [*elements_of(old.read(changes((1, 2, A)))), stable(10)])
    # the second plan begins at 10 with what is open then: the same row, with another start
    opening = list(elements_of(new.read(changes((1, 10, A)))))
    if by_value:
        new.adopt(old)
        opening = [insert(A, 2, FOREVER)]
    push(second, [*opening, stable(12)])
    merge.detach(first)
    push(second, [*elements_of(new.read(changes((-1, 15, A)))), stable(FOREVER)])
    alive_at_13 = [event for event in table.events() if event[1] <= 13 < event[2]]
    assert (len(alive_at_13) == 1 and table.events() == [(A, 2, 15)]) == right


# L11


class PrintedCleanse(SlowCleanse):
    """All frozen events go out at a stable, in order of their starts."""

    def _release(self, point: int) -> list[PhysicalElement]:
        out = []
        for start, held in list(self._held.items()):
            out += [insert(payload, start, end) for payload, end in sorted(held) if end < point]
            self._held[start] = [(payload, end) for payload, end in held if end >= point]
            if not self._held[start]:
                del self._held[start]
        return out


@pytest.mark.parametrize(("make", "starts"), [(PrintedCleanse, [3, 1]), (SlowCleanse, [1, 3])])
def test_cleanse_holds_back_what_starts_after_an_event_that_is_not_frozen(make: type[SlowCleanse], starts: list[int]) -> None:
    cleanse = make()
    calls = [insert(A, 1, 9), insert(B, 3, 4), stable(6), stable(10)]
    assert [out.start for call in calls for out in cleanse.push(call) if out.kind == INSERT] == starts


# L12


def test_an_event_of_the_example_in_section_3d_is_frozen_and_not_half_frozen() -> None:
    assert freeze_state(4, 8, 11) == FROZEN
    inputs = [Presented(14, {(4, C): [18]}), Presented(11, {(4, C): [18]})]
    breach = find_breach(inputs, Presented(11, {(4, C): [8]}))
    assert breach is not None
    assert breach.key == (4, C)
    assert find_breach(inputs, Presented(11, {(4, C): [11]})) is None


# L13


def test_the_state_of_r2_does_not_know_its_inputs() -> None:
    """Table IV says O(s) for an insert of R2: that is R1's. The hash table of R2 is one, and asked once."""
    sizes = {}
    for make in (SlowR1, SlowR2):
        for n in (2, 10):
            merge = make()
            calls = [(k, insert(p, 5, 6)) for k in range(n) for p in (A, B)]
            assert output(merge, calls, n).events() == [(A, 5, 6), (B, 5, 6)]
            sizes[make, n] = merge.bytes(payload_bytes=1_000)
    assert sizes[SlowR2, 2] == sizes[SlowR2, 10]
    assert sizes[SlowR1, 2] < sizes[SlowR1, 10]
