"""The order of a stream: what is late, what waits, and in which order rows are released."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddy.base.compile import ensure
from eddy.streams.timeline import Intake, Rows, Timeline, merge
from lineage.elements import BEGINNING
from lineage.errors import LimitError
from tests.reference.limits import wait_for_few

ensure()


class Accepted(NamedTuple):
    """The rows released by a push, and its receipt."""

    released: Rows | None
    accepted: int
    late: int
    first_row: int | None
    last_row: int | None
    expired: int = 0


def push(intake: Intake, times: list[int], nulls: list[int] | None = None) -> Accepted:
    """Rows whose one column holds their own time, as it was sent."""
    sent = np.array(times, np.int64)
    mask = None if nulls is None else np.array(nulls, np.uint8)
    released, receipt = intake.accept([sent.copy()], [mask], len(times), sent)
    return Accepted(released, *receipt)


def listed(rows: Rows | None) -> list[tuple[int, int, int]]:
    """(effective time, row number, time sent) of each row."""
    if rows is None:
        return []
    numbers = [rows.numbers + i if isinstance(rows.numbers, int) else int(rows.numbers[i]) for i in range(rows.n_rows)]
    return [(rows.time_at(i), numbers[i], int(rows.cells[0][i])) for i in range(rows.n_rows)]


def test_without_lateness_a_push_is_released_sorted_by_time_with_ties_by_acceptance() -> None:
    intake = Intake(0, drop_late=False)
    found = push(intake, [5, 3, 5, 3, 4])
    assert listed(found.released) == [(3, 1, 3), (3, 3, 3), (4, 4, 4), (5, 0, 5), (5, 2, 5)]
    assert (found.accepted, found.late, found.first_row, found.last_row) == (5, 0, 0, 4)
    assert intake.front == 5 == intake.largest and intake.n_waiting == 0


def test_a_push_in_order_is_released_as_it_is() -> None:
    intake = Intake(0, drop_late=False)
    push(intake, [1])
    found = push(intake, [2, 2, 9])
    assert found.released is not None and found.released.numbers == 1
    assert listed(found.released) == [(2, 1, 2), (2, 2, 2), (9, 3, 9)]


def test_a_late_row_takes_the_front_as_its_time_and_keeps_what_was_sent() -> None:
    intake = Intake(0, drop_late=False)
    push(intake, [10])
    found = push(intake, [12, 7, 10, 9])
    assert listed(found.released) == [(10, 2, 7), (10, 3, 10), (10, 4, 9), (12, 1, 12)]
    assert found.late == 2 and found.accepted == 4 and intake.late_rows == 2 and intake.dropped_rows == 0


def test_lateness_is_judged_by_the_front_before_the_push() -> None:
    intake = Intake(0, drop_late=False)
    found = push(intake, [100, 1])
    assert found.late == 0 and listed(found.released) == [(1, 1, 1), (100, 0, 100)]


def test_a_row_at_the_front_is_not_late() -> None:
    intake = Intake(0, drop_late=True)
    push(intake, [10])
    found = push(intake, [10])
    assert found.late == 0 and listed(found.released) == [(10, 1, 10)]


def test_dropped_rows_have_no_number() -> None:
    intake = Intake(0, drop_late=True)
    push(intake, [10])
    found = push(intake, [12, 7, 11, 9])
    assert listed(found.released) == [(11, 2, 11), (12, 1, 12)]
    assert (found.accepted, found.late, found.first_row, found.last_row) == (2, 2, 1, 2)
    assert intake.late_rows == intake.dropped_rows == 2 and intake.next_row == 3


def test_a_push_of_late_rows_alone_that_are_dropped_leaves_nothing() -> None:
    intake = Intake(0, drop_late=True)
    push(intake, [10])
    found = push(intake, [1, 2])
    assert found == Accepted(None, 0, 2, None, None) and intake.next_row == 1 and intake.front == 10


def test_an_empty_push_does_nothing() -> None:
    intake = Intake(5, drop_late=False)
    assert push(intake, []) == Accepted(None, 0, 0, None, None) and intake.front == BEGINNING


def test_rows_wait_for_stragglers_within_the_lateness() -> None:
    intake = Intake(10, drop_late=False)
    assert listed(push(intake, [100, 95]).released) == []
    assert intake.n_waiting == 2 and intake.front == BEGINNING
    assert listed(push(intake, [104, 92]).released) == [(92, 3, 92)]
    assert intake.front == 92
    found = push(intake, [110, 91])
    assert found.late == 1, "91 is older than the front 92"
    assert listed(found.released) == [(92, 5, 91), (95, 1, 95), (100, 0, 100)]
    intake.check()
    assert intake.n_waiting == 2


def test_a_row_within_the_lateness_is_not_late() -> None:
    intake = Intake(10, drop_late=True)
    push(intake, [100])
    push(intake, [101])
    found = push(intake, [91, 90])
    assert found.late == 0 and listed(found.released) == [(90, 3, 90), (91, 2, 91)], "the bound itself is released"


def test_ties_between_pushes_are_released_in_order_of_acceptance() -> None:
    intake = Intake(10, drop_late=False)
    for times in ([50, 55], [55, 50], [50], [55]):
        push(intake, times)
    found = push(intake, [70])
    assert [number for _, number, _ in listed(found.released)] == [0, 3, 4, 1, 2, 5]


def test_advance_releases_up_to_its_time_and_moves_the_front() -> None:
    intake = Intake(1000, drop_late=False)
    push(intake, [30, 10, 20])
    assert listed(intake.advance(20)) == [(10, 1, 10), (20, 2, 20)]
    assert intake.front == 20
    assert listed(intake.advance(25)) == [] and intake.front == 25
    found = push(intake, [24])
    assert found.late == 1 and listed(found.released) == [(25, 3, 24)]
    assert listed(intake.advance(10)) == [] and intake.front == 25, "a front never goes back"
    assert listed(intake.advance(10**9)) == [(30, 0, 30)] and intake.n_waiting == 0
    assert intake.front == 10**9


def test_a_new_intake_starts_at_the_front_it_is_given() -> None:
    intake = Intake(0, drop_late=False, front=50)
    found = push(intake, [40, 60])
    assert found.late == 1 and listed(found.released) == [(50, 0, 40), (60, 1, 60)]


def test_rows_without_a_time_are_released_at_once_and_never_before_the_front() -> None:
    intake = Intake(0, drop_late=False)
    released, receipt = intake.accept_now([np.array([7, 8])], [None], 2, 33)
    assert listed(released) == [(33, 0, 7), (33, 1, 8)] and receipt == (2, 0, 0, 1, 0)
    assert intake.front == 33 == intake.largest
    released, receipt = intake.accept_now([np.array([9])], [None], 1, 32)
    assert listed(released) == [(33, 2, 9)] and receipt == (1, 0, 2, 2, 0) and intake.front == 33
    assert intake.accept_now([np.zeros(0, np.int64)], [None], 0, 99) == (None, (0, 0, None, None, 0)) and intake.front == 33


def test_nulls_follow_their_rows_through_waiting_and_merging() -> None:
    intake = Intake(10, drop_late=False)
    push(intake, [50, 49], [1, 0])
    push(intake, [51, 48])
    push(intake, [47, 52], [0, 1])
    rows = intake.advance(100)
    assert rows is not None and rows.nulls[0] is not None
    assert [(time, null) for (time, _, _), null in zip(listed(rows), rows.nulls[0].tolist())] == [
        (47, 0),
        (48, 0),
        (49, 0),
        (50, 1),
        (51, 0),
        (52, 1),
    ]


def test_waiting_rows_do_not_share_memory_with_what_was_pushed() -> None:
    intake = Intake(10, drop_late=False)
    times = np.array([50, 51])
    column = np.array([50, 51])
    intake.accept([column], [None], 2, times)
    times[:] = column[:] = 0
    assert listed(intake.advance(100)) == [(50, 0, 50), (51, 1, 51)]


def test_runs_stay_few_however_many_pushes_wait() -> None:
    intake = Intake(10**9, drop_late=False)
    rng = random.Random(1)
    for _ in range(500):
        push(intake, [rng.randint(0, 1000) for _ in range(rng.randint(1, 3))])
        lengths = [run.n_rows for run in intake._waiting]
        assert all(older > 2 * newer for older, newer in zip(lengths, lengths[1:]))
    assert len(intake._waiting) <= 10


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for few rows that wait for stragglers."""
    wait_for_few(monkeypatch, 3)


def test_too_many_waiting_rows_are_refused_before_anything_changes(little_room: None) -> None:
    intake = Intake(10, drop_late=False)
    intake.check_room(3)
    push(intake, [50, 51])
    with pytest.raises(LimitError, match="more than 3 rows wait for stragglers"):
        intake.check_room(2)
    assert intake.next_row == 2 and intake.n_waiting == 2 and intake.largest == 51
    intake.check_room(1)
    push(intake, [52])
    with pytest.raises(LimitError):
        intake.check_room(1)


def test_a_stream_without_lateness_has_room_for_any_number_of_rows(little_room: None) -> None:
    Intake(0, drop_late=False).check_room(1000)


def test_codes_of_waiting_rows_are_renumbered() -> None:
    intake = Intake(10**6, drop_late=False)
    intake.accept([np.array([4, 2])], [None], 2, np.array([10, 11]))
    intake.accept([np.array([7, 4, 0, 4, 2, 4])], [None], 6, np.arange(12, 18))
    assert sorted(np.concatenate(intake.used_codes(0)).tolist()) == [0, 2, 2, 4, 4, 4, 4, 7]
    assert intake.bytes() == 8 * 8
    new_code = np.array([-1, -1, 0, -1, 1, -1, -1, 2])
    intake.recode(0, new_code)
    assert [value for _, _, value in listed(intake.advance(10**6))] == [1, 0, 2, 1, 0, 1, 0, 1]


def test_merging_gives_ties_to_the_older_run() -> None:
    older = Rows(3, [np.array([1, 2, 3])], [None], np.array([5, 6, 6]), 0)
    newer = Rows(2, [np.array([4, 5])], [np.array([0, 1], np.uint8)], 6, np.array([9, 8]))
    both = merge(older, newer)
    assert listed(both) == [(5, 0, 1), (6, 1, 2), (6, 2, 3), (6, 9, 4), (6, 8, 5)]
    assert both.nulls[0] is not None and both.nulls[0].tolist() == [0, 0, 0, 0, 1]


def test_a_timeline_begins_before_every_row() -> None:
    one = Timeline("arrival")
    assert one.now == one.advanced == BEGINNING and one.sources == []
    assert Timeline("other").sources is not one.sources and Timeline("other").log is not one.log


# ---- against a list


@dataclass
class Model:
    """The rules as they are written, over a list."""

    lateness: int
    drop_late: bool
    front: int = BEGINNING
    largest: int = BEGINNING
    next_row: int = 0
    #: (effective time, acceptance, time sent)
    waiting: list[tuple[int, int, int]] = field(default_factory=list)

    def push(self, times: list[int]) -> tuple[list[tuple[int, int, int]], int, int]:
        late = [time for time in times if time < self.front]
        kept = [time for time in times if time >= self.front or not self.drop_late]
        for time in kept:
            self.waiting.append((max(time, self.front), self.next_row, time))
            self.next_row += 1
        self.largest = max([self.largest, *kept])
        return self.release(max(self.largest - self.lateness, self.front)), len(kept), len(late)

    def release(self, bound: int) -> list[tuple[int, int, int]]:
        released = sorted(row for row in self.waiting if row[0] <= bound)
        self.waiting = [row for row in self.waiting if row[0] > bound]
        self.front = max([self.front, *(row[0] for row in released)])
        return released

    def advance(self, time: int) -> list[tuple[int, int, int]]:
        released = self.release(time)
        self.front = max(self.front, time)
        return released


PUSHES = st.lists(st.integers(-20, 20), min_size=0, max_size=6)
STEPS = st.lists(st.tuples(st.sampled_from(["push", "push", "push", "advance"]), st.integers(0, 60), PUSHES), max_size=25)


@settings(max_examples=250, deadline=None)
@given(STEPS, st.sampled_from([0, 1, 5, 20, 1000]), st.booleans())
def test_any_pushes_and_advances_release_what_the_rules_say(steps: list[Any], lateness: int, drop_late: bool) -> None:
    intake, model = Intake(lateness, drop_late), Model(lateness, drop_late)
    clock = 0
    for kind, number, offsets in steps:
        if kind == "advance":
            assert listed(intake.advance(clock + number - 30)) == model.advance(clock + number - 30)
        else:
            clock += number // 6
            times = [clock + offset for offset in offsets]
            found = push(intake, times)
            released, accepted, late = model.push(times)
            assert listed(found.released) == released
            assert (found.accepted, found.late) == (accepted, late)
            first = model.next_row - accepted
            assert (found.first_row, found.last_row) == ((first, model.next_row - 1) if accepted else (None, None))
        intake.check()
        assert intake.front == model.front and intake.n_waiting == len(model.waiting) and intake.next_row == model.next_row
    assert listed(intake.advance(10**6)) == model.advance(10**6)
