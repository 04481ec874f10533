"""The clock rules of `semantics.md` 1-6, on the naive model: each by an example small enough to check by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference.changes import Change, net
from tests.reference.lives import UNBOUNDED, Window
from tests.reference.matching import over_one
from tests.reference.naive import NEWEST, Naive
from tests.reference.timelines import Receipt
from tests.reference.values import canonical


def model(**streams: dict[str, Any]) -> Naive:
    """A model with a stream per keyword; each has a time column `ts` unless told otherwise."""
    made = Naive()
    for name, options in streams.items():
        made.create_stream(name, **{"time": "ts", **options})
    return made


def push(naive: Naive, stream: str, *times: int) -> Receipt:
    return naive.push(stream, [{"ts": time} for time in times])


def follow(naive: Naive, stream: str, width: float | None) -> int:
    """A query that keeps every row and shows the time that was sent."""
    window = None if width is None else Window(width)
    return naive.submit(over_one(stream, window, lambda row: True, lambda row: (row["ts"],)))


def taken(naive: Naive, stream: str) -> list[tuple[int, int, int]]:
    """(sent, t, start) of each row taken."""
    return [(entry.row["ts"], entry.t, entry.start) for entry in naive.streams[stream].taken]


def times(naive: Naive, query: int) -> list[int]:
    return [value[0] for value in naive.answer(query)]


def test_a_push_is_sorted_by_time_and_ties_keep_their_order() -> None:
    naive = model(a={})
    naive.push("a", [{"ts": 5, "k": 1}, {"ts": 3, "k": 2}, {"ts": 5, "k": 3}, {"ts": 3, "k": 4}])
    assert [entry.row["k"] for entry in naive.streams["a"].taken] == [2, 4, 1, 3]
    assert naive.T == {"main": 5}


def test_a_row_older_than_the_front_is_taken_at_the_front_but_keeps_its_columns() -> None:
    naive = model(a={})
    push(naive, "a", 10)
    assert push(naive, "a", 4, 12) == Receipt(accepted=2, late=1, first_row=1, last_row=2)
    assert taken(naive, "a") == [(10, 10, 10), (4, 10, 10), (12, 12, 12)]


def test_a_row_older_than_the_front_is_dropped_on_a_stream_that_says_so() -> None:
    naive = model(a={"late": "drop"})
    push(naive, "a", 10)
    assert push(naive, "a", 4, 12) == Receipt(accepted=1, late=1, first_row=1, last_row=1)
    assert taken(naive, "a") == [(10, 10, 10), (12, 12, 12)]


def test_lateness_is_judged_by_the_front_before_the_push() -> None:
    naive = model(a={})
    assert push(naive, "a", 10, 1).late == 0
    assert push(naive, "a", 10).late == 0, "a row at the front is not late"


def test_rows_above_the_bound_wait_and_are_released_in_order() -> None:
    naive = model(a={"lateness": 5})
    push(naive, "a", 10)
    assert taken(naive, "a") == []
    assert naive.T == {}
    push(naive, "a", 6)
    assert taken(naive, "a") == [], "6 is above 10 - 5"
    push(naive, "a", 12)
    assert taken(naive, "a") == [(6, 6, 6)], "the bound is 7"
    push(naive, "a", 15)
    assert taken(naive, "a")[1:] == [(10, 10, 10)]
    assert [t for t, _, _ in naive.streams["a"].waiting] == [12, 15]


def test_the_front_is_what_was_released_not_the_bound() -> None:
    naive = model(a={"lateness": 5})
    push(naive, "a", 20)
    assert push(naive, "a", 3).late == 0, "nothing was released, so nothing is late"
    assert taken(naive, "a") == [(3, 3, 3)]


def test_a_late_row_is_released_at_once_even_with_lateness() -> None:
    naive = model(a={"lateness": 5})
    push(naive, "a", 10, 20)
    assert push(naive, "a", 2) == Receipt(accepted=1, late=1, first_row=2, last_row=2)
    assert taken(naive, "a")[-1] == (2, 10, 10)


def test_advance_releases_every_stream_of_its_timeline_and_makes_older_rows_late() -> None:
    naive = model(a={"lateness": 100}, b={"lateness": 100}, other={"lateness": 100, "timeline": "other"})
    push(naive, "a", 5, 9)
    push(naive, "b", 7)
    push(naive, "other", 7)
    assert naive.advance(8)
    assert taken(naive, "a") == [(5, 5, 5)]
    assert taken(naive, "b") == [(7, 7, 7)]
    assert taken(naive, "other") == []
    assert push(naive, "b", 7).late == 1
    assert naive.T == {"main": 8}


def test_advance_below_the_clock_does_nothing_and_is_no_commit() -> None:
    naive = model(a={}, b={"lateness": 100})
    push(naive, "b", 3)
    push(naive, "a", 10)
    assert not naive.advance(9)
    assert (naive.seq, taken(naive, "b")) == (2, [])
    assert naive.advance(10)
    assert (naive.seq, taken(naive, "b")) == (3, [(3, 3, 10)])


def test_a_lagging_row_starts_at_the_clock_and_lives_only_what_is_left() -> None:
    naive = model(a={}, b={})
    query = follow(naive, "b", 10)
    push(naive, "a", 100)
    push(naive, "b", 95, 90)
    assert taken(naive, "b") == [(90, 90, 100), (95, 95, 100)]
    assert times(naive, query) == [95], "90 + 10 is not after its start"
    assert naive.changes(query, 0) == [(2, Change(1, 100, (95,)))]
    naive.advance(105)
    assert naive.changes(query, 2) == [(3, Change(-1, 105, (95,)))]


def test_push_many_merges_by_time_so_that_no_stream_lags() -> None:
    naive = model(a={}, b={})
    naive.push_many({"a": [{"ts": 10}, {"ts": 30}], "b": [{"ts": 20}, {"ts": 10}]})
    assert taken(naive, "a") == [(10, 10, 10), (30, 30, 30)]
    assert taken(naive, "b") == [(10, 10, 10), (20, 20, 20)]
    assert (naive.T, naive.seq) == ({"main": 30}, 1)


@pytest.mark.parametrize(("now", "alive"), [(10, [10]), (14, [10]), (15, []), (16, [])])
def test_a_range_window_is_open_at_its_old_end(now: int, alive: list[int]) -> None:
    naive = model(a={})
    query = follow(naive, "a", 5)
    push(naive, "a", 10)
    naive.advance(now)
    assert times(naive, query) == alive


def test_now_holds_the_rows_of_this_microsecond() -> None:
    naive = model(a={})
    query = follow(naive, "a", 1)
    push(naive, "a", 10, 10, 9)
    assert times(naive, query) == [10, 10]
    naive.advance(11)
    assert times(naive, query) == []
    assert [change.time for _, change in naive.changes(query, 1)] == [11, 11]


def test_an_unbounded_window_never_ends() -> None:
    naive = model(a={})
    query = follow(naive, "a", UNBOUNDED)
    push(naive, "a", 1)
    naive.advance(2**60)
    assert times(naive, query) == [1]


def test_a_stream_query_counts_each_row_once_and_keeps_the_newest() -> None:
    naive = model(a={}, b={})
    query = follow(naive, "b", None)
    push(naive, "a", 10_000)
    push(naive, "b", *range(NEWEST + 5))
    assert times(naive, query) == list(range(5, NEWEST + 5))
    assert [change.sign for _, change in naive.changes(query, 0)] == [1] * (NEWEST + 5)
    assert {change.time for _, change in naive.changes(query, 0)} == {10_000}, "all of them lag"


def test_a_query_sees_rows_released_after_its_submit_even_if_pushed_before() -> None:
    naive = model(a={"lateness": 10})
    push(naive, "a", 1, 15)
    query = follow(naive, "a", UNBOUNDED)
    naive.advance(20)
    assert taken(naive, "a") == [(1, 1, 1), (15, 15, 15)]
    assert times(naive, query) == [15]


def test_a_stream_created_after_an_advance_has_that_front() -> None:
    naive = model(a={})
    naive.advance(50)
    naive.create_stream("b", time="ts")
    assert push(naive, "b", 40).late == 1
    assert taken(naive, "b") == [(40, 50, 50)]


def test_rows_without_a_time_column_are_timed_by_the_clock_which_never_goes_back() -> None:
    clock = iter([100, 90, 120])
    naive = Naive(lambda: next(clock))
    naive.create_stream("a")
    for _ in range(3):
        naive.push("a", [{"ts": 0}])
    assert [entry.t for entry in naive.streams["a"].taken] == [100, 100, 120]
    assert naive.T == {"arrival": 120}


def test_changes_of_one_commit_net_by_value_and_the_latest_remain() -> None:
    naive = model(a={})
    query = naive.submit(over_one("a", Window(5), lambda row: True, lambda row: ("v",)))
    push(naive, "a", 1, 2)
    assert [c for _, c in naive.changes(query, 0)] == [Change(1, 1, ("v",)), Change(1, 2, ("v",))]
    push(naive, "a", 10, 11, 12)
    assert [c for _, c in naive.changes(query, 1)] == [Change(1, 12, ("v",))], "-6 and -7 net with +10 and +11"
    push(naive, "a", 16)
    assert naive.changes(query, 2) == [(3, Change(-1, 16, ("v",)))], "-15 and +16 net, -16 remains"


def test_a_row_that_comes_and_goes_inside_a_commit_is_not_shown() -> None:
    naive = model(a={})
    query = follow(naive, "a", 5)
    push(naive, "a", 1, 100)
    assert [c for _, c in naive.changes(query, 0)] == [Change(1, 100, (100,))]


def test_minus_comes_before_plus_and_each_is_ordered_by_time() -> None:
    changes = net([Change(1, 3, ("c",)), Change(1, 2, ("d",))], [Change(-1, 9, ("a",)), Change(-1, 8, ("b",))])
    assert [(c.sign, c.time) for c in changes] == [(-1, 8), (-1, 9), (1, 2), (1, 3)]


def test_nan_equals_nan_and_minus_zero_equals_zero() -> None:
    nan, zero = canonical(float("nan")), canonical(0.0)
    assert net([Change(1, 1, (nan,))], [Change(-1, 1, (canonical(float("nan")),))]) == []
    assert net([Change(1, 1, (zero,))], [Change(-1, 1, (canonical(-0.0),))]) == []
    assert len(net([Change(1, 1, (None,))], [Change(-1, 1, (zero,))])) == 2


def test_a_paused_query_keeps_its_answer_and_resumes_as_if_new() -> None:
    naive = model(a={})
    query = follow(naive, "a", 10)
    push(naive, "a", 1, 2)
    naive.pause(query)
    assert naive.seq == 1, "a pause is no commit"
    push(naive, "a", 30)
    assert times(naive, query) == [1, 2]
    assert naive.changes(query, 1) == []
    naive.resume(query)
    assert [(seq, c.sign, c.time, c.value) for seq, c in naive.changes(query, 1)] == [(3, -1, 30, (1,)), (3, -1, 30, (2,))]
    push(naive, "a", 31)
    assert times(naive, query) == [31], "30 was taken before the new birth"


def test_a_resumed_stream_query_starts_empty_and_takes_nothing_back() -> None:
    naive = model(a={})
    query = follow(naive, "a", None)
    push(naive, "a", 1)
    naive.pause(query)
    naive.resume(query)
    assert (times(naive, query), naive.changes(query, 1), naive.seq) == ([], [], 2)


def test_an_empty_push_is_a_commit_and_submit_and_cancel_are_not() -> None:
    naive = model(a={})
    naive.cancel(follow(naive, "a", 1))
    assert naive.seq == 0
    assert push(naive, "a") == Receipt(0, 0)
    assert naive.seq == 1
