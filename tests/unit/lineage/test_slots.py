"""Slots: the lowest free one comes first, and whoever keeps state per slot is told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage.slots import Slots, resized


class Told:
    """Slots and what they told."""

    def __init__(self) -> None:
        self.assigned: list[int] = []
        self.grew: list[int] = []
        self.slots = Slots(self.assigned.append, self.grew.append)


def test_slots_are_handed_out_from_zero_and_every_one_is_told() -> None:
    told = Told()
    assert [told.slots.take() for _ in range(64)] == list(range(64)) == told.assigned
    assert told.grew == [] and told.slots.n_words == 1 and told.slots.taken == 64


def test_room_doubles_before_the_first_slot_beyond_it_is_assigned() -> None:
    events: list[str] = []
    slots = Slots(lambda slot: events.append(f"slot {slot}"), lambda n_words: events.append(f"words {n_words}"))
    for _ in range(129):
        slots.take()
    assert events[64:66] == ["words 2", "slot 64"] and events[-2:] == ["words 4", "slot 128"]


def test_the_lowest_free_slot_is_used_again_and_told_again() -> None:
    told = Told()
    for _ in range(6):
        told.slots.take()
    for slot in (4, 1, 3):
        told.slots.give_back(slot)
    assert [told.slots.take() for _ in range(4)] == [1, 3, 4, 6]
    assert told.assigned[6:] == [1, 3, 4, 6]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=400))
def test_any_mix_of_taking_and_giving_back_hands_out_the_lowest_free_slot(steps: list[int]) -> None:
    told = Told()
    owned: set[int] = set()
    most = 0
    for step in steps:
        if step < 100 and owned:
            gone = sorted(owned)[step % len(owned)]
            told.slots.give_back(gone)
            owned.remove(gone)
        else:
            slot = told.slots.take()
            assert slot == min(set(range(len(owned) + 1)) - owned)
            owned.add(slot)
            most = max(most, len(owned))
        told.slots.check(owned)
    assert told.slots.n_words == max(1, 1 << max(0, (most - 1) // 64).bit_length())


def test_check_sees_a_slot_that_nobody_owns() -> None:
    told = Told()
    told.slots.take()
    with pytest.raises(AssertionError, match="every slot taken has an owner"):
        told.slots.check(set())
    told.slots.give_back(0)
    told.slots.take()
    with pytest.raises(AssertionError):
        told.slots.check({1})


def test_the_width_is_halved_while_a_quarter_of_it_is_enough() -> None:
    told = Told()
    for _ in range(200):
        told.slots.take()
    assert told.grew == [2, 4]
    for slot in range(60, 200):
        told.slots.give_back(slot)
    told.slots.shrink()
    assert told.slots.n_words == 2 and told.grew == [2, 4, 2], "60 of 256 are a quarter, of 128 they are not"
    told.slots.check(set(range(60)))
    for slot in range(10, 60):
        told.slots.give_back(slot)
    told.slots.shrink()
    assert told.slots.n_words == 1
    told.slots.check(set(range(10)))
    assert [told.slots.take() for _ in range(55)] == list(range(10, 65)) and told.slots.n_words == 2


def test_a_slot_in_the_upper_half_keeps_the_width() -> None:
    told = Told()
    for _ in range(128):
        told.slots.take()
    for slot in range(127):
        told.slots.give_back(slot)
    told.slots.shrink()
    assert told.slots.n_words == 2 and told.slots.take() == 0


def test_resized_keeps_what_fits_and_fills_the_rest() -> None:
    before = np.array([3, 4], np.int32)
    after = resized(before, 4, -1)
    assert after.tolist() == [3, 4, -1, -1] and after.dtype == np.int32
    after[0] = 9
    assert before[0] == 3 and resized(before, 1, -1).tolist() == [3]
