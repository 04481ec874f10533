"""State buffers: they hold the same rows whatever their arrangement, and differ in what they touch."""

from __future__ import annotations

import random

import pytest

from experiments.papers.buffers import (
    CalendarBuffer,
    Element,
    FifoBuffer,
    GroupArray,
    HashBuffer,
    ListBuffer,
    RowBuffer,
    SharedBuffer,
)
from lineage.elements import FOREVER

BUFFERS = {
    "list": ListBuffer,
    "fifo": FifoBuffer,
    "hash": HashBuffer,
    "array": GroupArray,
    "calendar": CalendarBuffer,
    "calendar of 3": lambda: CalendarBuffer(partitions=3, adapts=False),
    "calendar by insertion": lambda: CalendarBuffer(partitions=2, by_end=False),
}


def row(id: int, end: int, start: int = 0, value: int = 0) -> Element:
    return Element(id, (value,), start, end, id)


@pytest.mark.parametrize("make", BUFFERS.values(), ids=BUFFERS.keys())
def test_random_insertions_and_ends_give_what_a_plain_dict_gives(make: type[RowBuffer]) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        buffer, model, clock = make(), {}, 0
        for number in range(1, 200):
            what = rng.random()
            if what < 0.6:
                end = FOREVER if rng.random() < 0.05 else clock + rng.randrange(1, 60)
                buffer.insert(row(number, end, clock, number % 4))
                model[number] = row(number, end, clock, number % 4)
            elif what < 0.75 and model:
                id = rng.choice([*model, -1])
                assert buffer.remove(row(id, 0)) == model.pop(id, None)
            elif what < 0.9:
                clock += rng.randrange(12)
                due = buffer.take_due(clock)
                assert due == sorted(due, key=lambda element: element.end)
                # due rows are found until they are forgotten
                assert all(element in buffer.find(element.values) for element in due)
                for element in due:
                    buffer.forget(element)
                assert {element.id for element in due} == {id for id, element in model.items() if element.end <= clock}
                model = {id: element for id, element in model.items() if element.end > clock}
            else:
                end = rng.choice([element.end for element in model.values()] or [0])
                ending = buffer.take_ending(end)
                for element in ending:
                    buffer.forget(element)
                assert {element.id for element in ending} == {id for id, element in model.items() if element.end == end}
                model = {id: element for id, element in model.items() if element.end != end}
            buffer.check()
            assert {element.id: element for element in buffer} == model
            assert {element.id for element in buffer.find((1,))} == {id for id, e in model.items() if e.values == (1,)}


def _touched(buffer: RowBuffer, upto: int) -> int:
    before = buffer.touched
    for element in buffer.take_due(upto):
        buffer.forget(element)
    return buffer.touched - before


def test_the_calendar_of_figure_7_looks_at_one_partition() -> None:
    """U Figure 7: the time is 50, the window 50 long, five partitions of ends 51-60 to 91-100."""
    ends = list(range(51, 101))
    random.Random(7).shuffle(ends)
    calendar, scanned = CalendarBuffer(partitions=5, adapts=False, by_end=False), ListBuffer()
    for number, end in enumerate(ends):
        calendar.insert(row(number, end))
        scanned.insert(row(number, end))
    assert 5 <= len(calendar._parts) <= 10
    assert _touched(calendar, 55) <= 2 * 10
    assert _touched(scanned, 55) == 50
    # a premature end looks through the partition of its scheduled end
    before = calendar.touched
    assert calendar.remove(row(ends.index(77), 77)) is not None
    assert calendar.touched - before <= 10


def test_order_inside_a_partition_pays_at_insertion_or_at_expiry() -> None:
    ends = list(range(1, 101))
    random.Random(1).shuffle(ends)
    by_end, by_insertion = (CalendarBuffer(partitions=2, adapts=False, by_end=by_end) for by_end in (True, False))
    for number, end in enumerate(ends):
        by_end.insert(row(number, end))
        by_insertion.insert(row(number, end))
    assert by_end.touched > 3 * by_insertion.touched
    assert _touched(by_end, 10) == 11
    assert _touched(by_insertion, 10) > 25


def test_the_number_of_partitions_follows_the_number_of_rows() -> None:
    buffer = CalendarBuffer(partitions=4)
    for number in range(1000):
        buffer.insert(row(number, 10 * number))
    assert buffer.partitions >= 1000 / 16
    most = buffer.partitions
    _touched(buffer, 9_900)
    for number in range(2000, 2010):
        buffer.insert(row(number, 10 * number))
        _touched(buffer, 10 * number - 200)
    assert buffer.partitions < most
    # and what an end costs does not grow with the rows
    few, many = (CalendarBuffer(partitions=4) for _ in range(2))
    for buffer, n_rows in ((few, 100), (many, 3000)):
        for number in range(n_rows):
            buffer.insert(row(number, 1000 + (number * 7919) % n_rows))
        assert _touched(buffer, 1000) < 40


def test_structures_touch_what_their_pattern_promises() -> None:
    """Rows that end as they came: a fifo touches each twice, a list all of them at every look."""
    touched = {}
    for name, make in BUFFERS.items():
        buffer = make()
        for number in range(300):
            buffer.insert(row(number, number + 50))
            for element in buffer.take_due(number):
                buffer.forget(element)
        touched[name] = buffer.touched
    assert touched["fifo"] == 300 + 250
    assert touched["list"] > 20 * touched["fifo"]
    assert touched["calendar"] < 4 * touched["fifo"]


def test_a_premature_end_is_one_step_in_a_hash_and_a_scan_in_a_list() -> None:
    hashed, scanned = HashBuffer(), ListBuffer()
    for number in range(100):
        hashed.insert(row(number, 500))
        scanned.insert(row(number, 500))
    before = hashed.touched, scanned.touched
    hashed.remove(row(80, 500))
    scanned.remove(row(80, 500))
    assert (hashed.touched - before[0], scanned.touched - before[1]) == (1, 81)


def test_an_array_replaces_the_result_of_a_group_in_its_place() -> None:
    array = GroupArray()
    for value in range(5):
        for group in ("a", "b"):
            array.insert(Element(group, (group, value), value, 100))
    assert sorted(element.values for element in array) == [("a", 4), ("b", 4)]
    assert _touched(array, 50) == 2, "a place for each group"
    array.check()


def test_a_reader_of_a_shared_state_sees_only_what_it_was_told() -> None:
    owner = FifoBuffer()
    reader = SharedBuffer(owner, lambda values: values[0])
    first, second = row(1, 10, value=7), row(2, 20, value=7)
    owner.insert(first)
    owner.insert(second)
    assert reader.find(7) == []
    reader.insert(first)
    assert reader.find(7) == [first] and len(reader) == 1
    reader.insert(second)
    assert reader.find(7) == [first, second]
    assert reader.take_due(15) == [] and reader.touched == 0
    for element in owner.take_due(15):
        owner.forget(element)
    assert reader.find(7) == [second]
    assert reader.remove(first) is first
