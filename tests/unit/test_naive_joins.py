"""Joins and windows by rows on the naive model: each rule by an example worked out by hand.

The numbers in the names are the points of `semantics.md`; how rows and changes are written is in `tests/reference/by_hand.py`.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.reference.by_hand import answer, changes, last, meaning, model, push, push_many
from tests.reference.lives import NOW, Window
from tests.reference.matching import Condition, Input, Meaning, Rows
from tests.reference.workload import compare

# -- lives and matches: points 2-7, 26 -------------------------------------------------------------------------------


def test_06_a_match_lives_from_the_latest_start_to_the_earliest_end_of_its_parts() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(3))))
    push(naive, "a", ("a1", 100))
    push(naive, "b", ("b1", 104))
    naive.advance(200)
    assert changes(naive, query) == [(1, 104, ("a1", "b1")), (-1, 107, ("a1", "b1"))]


def test_06_the_older_part_may_end_first() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(30))))
    push(naive, "a", ("a1", 100))
    push(naive, "b", ("b1", 104))
    naive.advance(200)
    assert changes(naive, query) == [(1, 104, ("a1", "b1")), (-1, 110, ("a1", "b1"))]


@pytest.mark.parametrize(("b_time", "met"), [(109, ["a1 b1"]), (110, [])])
def test_26_a_match_counts_when_its_life_is_not_empty(b_time: int, met: list[str]) -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(3))))
    push(naive, "a", ("a1", 100))
    push(naive, "b", ("b1", b_time))
    assert answer(naive, query) == met


@pytest.mark.parametrize(("a_time", "met"), [(98, ["a1 b1"]), (97, [])])
def test_26_without_lag_it_is_a_band_of_the_two_windows(a_time: int, met: list[str]) -> None:
    """-wL < tL - tR < wR, here -3 < a - b < 10, whichever comes first."""
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(3)), ("b", Window(10))))
    push_many(naive, b=[("b1", 100)], a=[("a1", a_time)])
    assert answer(naive, query) == met


def test_02_a_lagging_row_meets_what_lives_at_the_clock_not_what_lived_at_its_own_time() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(10))))
    push(naive, "a", ("a1", 95), ("a2", 106))
    push(naive, "b", ("b1", 100))  # lags: lives [106, 110); a1 ended at 105
    assert last(naive, query) == [(1, 106, ("a2", "b1"))]
    naive.advance(110)
    assert last(naive, query) == [(-1, 110, ("a2", "b1"))]


def test_02_a_lagging_row_whose_window_is_over_meets_nothing() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(100)), ("b", Window(10))))
    push(naive, "a", ("a1", 110))
    push(naive, "b", ("b1", 100))
    assert answer(naive, query) == []


def test_01_a_late_row_joins_at_its_stream_s_front() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(10))))
    push(naive, "b", ("b1", 100))
    push(naive, "b", ("late", 3))  # t = 100
    push(naive, "a", ("a1", 109))
    assert last(naive, query) == [(1, 109, ("a1", "b1")), (1, 109, ("a1", "late"))]


def test_01_a_row_that_waits_joins_only_when_it_is_released() -> None:
    naive = model("a", "b", b={"lateness": 50})
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(10))))
    push(naive, "b", ("b1", 100))
    push(naive, "a", ("a1", 103))
    assert answer(naive, query) == []
    naive.advance(105)
    assert last(naive, query) == [(1, 103, ("a1", "b1"))], "b1 lags by now"


def test_03_push_many_merges_so_that_a_batch_over_several_windows_gives_what_single_rows_give() -> None:
    sent = [("a", "a1", 0), ("b", "b1", 4), ("a", "a2", 5), ("b", "b2", 9), ("a", "a3", 30), ("b", "b3", 34), ("b", "b4", 35)]
    whole, single = model("a", "b"), model("a", "b")
    text = meaning(("a", Window(5)), ("b", Window(5)))
    queries = [naive.submit(text) for naive in (whole, single)]
    push_many(whole, a=[(v, t) for s, v, t in sent if s == "a"], b=[(v, t) for s, v, t in sent if s == "b"])
    for stream, v, t in sent:
        push(single, stream, (v, t))
    lives = {"a1 b1": (4, 5), "a2 b1": (5, 9), "a2 b2": (9, 10), "a3 b3": (34, 35)}
    for naive, query in zip((whole, single), queries, strict=True):
        found = {" ".join(r.value): (r.start, r.end) for r in naive.queries[query].results}
        assert found == lives
    assert changes(whole, queries[0]) == [], "all of them come and go inside the commit"


def test_03_at_equal_times_the_order_of_the_mapping_does_not_change_the_answer() -> None:
    for names in (("a", "b"), ("b", "a")):
        naive = model("a", "b")
        query = naive.submit(meaning(("a", NOW), ("b", NOW)))
        push_many(naive, **{name: [(f"{name}1", 7)] for name in names})
        assert changes(naive, query) == [(1, 7, ("a1", "b1"))]


@pytest.mark.parametrize(("b_time", "met"), [(100, ["a1 b1"]), (101, [])])
def test_07_now_joins_the_rows_of_one_microsecond(b_time: int, met: list[str]) -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", NOW), ("b", NOW)))
    push(naive, "a", ("a1", 100))
    push(naive, "b", ("b1", b_time))
    assert answer(naive, query) == met


def test_07_two_queries_over_the_same_streams_have_their_own_windows() -> None:
    naive = model("a", "b")
    narrow = naive.submit(meaning(("a", Window(2)), ("b", Window(2))))
    wide = naive.submit(meaning(("a", Window(20)), ("b", Window(2))))
    push(naive, "a", ("a1", 100))
    push(naive, "b", ("b1", 105))
    assert (answer(naive, narrow), answer(naive, wide)) == ([], ["a1 b1"])


def test_05_ends_come_before_arrivals_of_the_same_instant() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(50))))
    push(naive, "a", ("a1", 100))
    push(naive, "b", ("b1", 100))
    push(naive, "a", ("a2", 110))
    assert last(naive, query) == [(-1, 110, ("a1", "b1")), (1, 110, ("a2", "b1"))]


def test_a_query_sees_rows_taken_after_its_submit_on_every_input() -> None:
    naive = model("a", "b")
    push(naive, "a", ("old", 100))
    query = naive.submit(meaning(("a", Window(100)), ("b", Window(100))))
    push(naive, "b", ("b1", 101))
    assert answer(naive, query) == []
    push(naive, "a", ("new", 102))
    assert answer(naive, query) == ["new b1"]


def test_three_inputs_in_any_order_of_arrival_give_each_match_once() -> None:
    for order in (("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")):
        naive = model("a", "b", "c")
        query = naive.submit(meaning(("a", Window(10)), ("b", Window(20)), ("c", Window(5))))
        for t, name in enumerate(order):
            push(naive, name, (f"{name}1", t), (f"{name}x", t, 9))
        assert changes(naive, query) == [(1, 2, ("a1", "b1", "c1")), (1, 2, ("ax", "bx", "cx"))]


def test_eight_inputs_join_and_nine_are_refused() -> None:
    naive = model("a")
    query = naive.submit(meaning(*[("a", Window(10))] * 8))
    push(naive, "a", ("x", 1), ("y", 1, 2))
    assert answer(naive, query) == [" ".join("x" * 8), " ".join("y" * 8)]
    with pytest.raises(ValueError, match="not 9"):
        naive.submit(meaning(*[("a", Window(10))] * 9))


def test_conditions_are_checked_wherever_their_inputs_stand() -> None:
    """WHERE 1 = 0 over a and b, and a cycle a-b, b-c, c-a as three conditions."""
    naive = model("a", "b", "c")

    def link(i: int, j: int) -> Condition:
        return Condition(frozenset({i, j}), lambda rows: compare("=", rows[i]["k"], rows[j]["k"]))

    inputs = tuple(Input(name, Window(10)) for name in "abc")

    def names(rows: Rows) -> tuple[Any, ...]:
        return tuple(entry["v"] for entry in rows)

    cycle = naive.submit(Meaning(inputs, (link(0, 1), link(1, 2), link(2, 0)), names))
    never = naive.submit(Meaning(inputs, (Condition(frozenset(), lambda rows: False),), names))
    push_many(naive, a=[("a1", 1, 1), ("a2", 1, 2)], b=[("b1", 1, 1), ("b2", 1, 2)], c=[("c2", 1, 2)])
    assert (answer(naive, cycle), answer(naive, never)) == (["a2 b2 c2"], [])


def test_14_a_self_join_holds_the_pair_of_a_row_with_itself_and_both_orders_of_two() -> None:
    naive = model("a")
    query = naive.submit(meaning(("a", Window(10)), ("a", Window(10))))
    push(naive, "a", ("x", 1))
    assert answer(naive, query) == ["x x"]
    push(naive, "a", ("y", 2))
    assert last(naive, query) == [(1, 2, ("x", "y")), (1, 2, ("y", "x")), (1, 2, ("y", "y"))]


def test_14_the_aliases_of_a_self_join_have_their_own_windows() -> None:
    naive = model("a")
    query = naive.submit(meaning(("a", Window(10)), ("a", NOW)))
    push(naive, "a", ("x", 1))
    push(naive, "a", ("y", 5))
    assert answer(naive, query) == ["x y", "y y"]


@pytest.mark.parametrize(
    ("a", "b", "met"),
    [(None, None, 0), (None, 1, 0), (math.nan, math.nan, 1), (-0.0, 0.0, 1), (math.nan, math.inf, 0), ("", "", 1)],
)
def test_18_20_null_keys_never_join_and_nan_joins_nan(a: Any, b: Any, met: int) -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(10))))
    push(naive, "a", ("a1", 1, a))
    push(naive, "b", ("b1", 1, b))
    assert len(naive.answer(query)) == met


def test_an_inequality_that_is_null_is_not_a_match_but_or_may_save_it() -> None:
    naive = model("a", "b")
    inputs = (("a", Window(10)), ("b", Window(10)))
    less = naive.submit(meaning(*inputs, on=lambda rows: compare("<", rows[0]["k"], rows[1]["k"])))
    either = naive.submit(meaning(*inputs, on=lambda rows: rows[1]["v"] == "b1" or compare("<", rows[0]["k"], rows[1]["k"])))
    push(naive, "a", ("a1", 1, None), ("a2", 1, 1))
    push(naive, "b", ("b1", 1, 2), ("b2", 1, 3))
    assert answer(naive, less) == ["a2 b1", "a2 b2"]
    assert answer(naive, either) == ["a1 b1", "a2 b1", "a2 b2"]


def test_12_equal_values_of_different_matches_net_and_the_answer_is_a_bag() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(100))))
    push(naive, "a", ("a", 1), ("a", 2))
    push(naive, "b", ("b", 3))
    assert changes(naive, query) == [(1, 3, ("a", "b"))] * 2
    push(naive, "a", ("a", 11))
    assert last(naive, query) == [], "- at 11 and + at 11 are of one value"
    assert answer(naive, query) == ["a b", "a b"]


# -- ROWS and PARTITION BY: point 8 ----------------------------------------------------------------------------------


def test_08_row_n_plus_1_ends_the_oldest_at_its_own_start_minus_before_plus() -> None:
    naive = model("a")
    query = naive.submit(meaning(("a", Window(rows=2))))
    push(naive, "a", ("x", 1), ("y", 2))
    push(naive, "a", ("z", 9))
    assert last(naive, query) == [(-1, 9, ("x",)), (1, 9, ("z",))]
    naive.advance(2**60)
    assert answer(naive, query) == ["y", "z"]


def test_08_rows_are_counted_before_where() -> None:
    naive = model("a")
    query = naive.submit(meaning(("a", Window(rows=2)), on=lambda rows: rows[0]["k"] == 1))
    push(naive, "a", ("x", 1, 1), ("y", 2, 0), ("z", 3, 0))
    assert answer(naive, query) == []


def test_08_rows_are_counted_from_the_submit_on() -> None:
    naive = model("a")
    naive.submit(meaning(("a", Window(rows=5))))
    push(naive, "a", ("old", 1))
    query = naive.submit(meaning(("a", Window(rows=2))))
    push(naive, "a", ("x", 2))
    assert answer(naive, query) == ["x"]


def test_08_rows_of_one_instant_go_by_arrival_and_two_commits_of_it_show_both() -> None:
    naive = model("a")
    query = naive.submit(meaning(("a", Window(rows=1))))
    push(naive, "a", ("x", 5), ("y", 5))
    assert last(naive, query) == [(1, 5, ("y",))], "x comes and goes at 5"
    push(naive, "a", ("z", 5))
    assert last(naive, query) == [(-1, 5, ("y",)), (1, 5, ("z",))]


def test_08_a_lagging_row_displaces_at_its_start() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(rows=1))))
    push(naive, "a", ("x", 5))
    push(naive, "b", ("b", 50))
    push(naive, "a", ("y", 7))
    assert last(naive, query) == [(-1, 50, ("x",)), (1, 50, ("y",))]


def test_08_in_a_join_newest_n_is_taken_at_the_later_row() -> None:
    """a1 is the newest when b1 comes, a2 when b2 comes; b1 still meets a2 afterwards."""
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(rows=1)), ("b", Window(100))))
    push_many(naive, a=[("a1", 1), ("a2", 3)], b=[("b1", 2), ("b2", 4)])
    lives = [(r.value, r.start, r.end) for r in naive.queries[query].results]
    assert sorted(lives) == [(("a1", "b1"), 2, 3), (("a2", "b1"), 3, 102), (("a2", "b2"), 4, 104)]
    assert answer(naive, query) == ["a2 b1", "a2 b2"]


def test_08_a_row_displaced_before_its_partner_comes_does_not_meet_it() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(rows=1)), ("b", Window(100))))
    push_many(naive, a=[("a1", 1), ("a2", 2)], b=[("b1", 2)])
    assert [r.value for r in naive.queries[query].results] == [("a2", "b1")]


def test_08_rows_that_no_condition_lets_through_still_displace_in_a_join() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(rows=1)), ("b", Window(100))))
    push(naive, "b", ("b1", 1))
    push(naive, "a", ("a1", 2))
    push(naive, "a", ("other", 3, 77))
    assert last(naive, query) == [(-1, 3, ("a1", "b1"))]


def test_08_partition_by_counts_per_key_and_null_nan_and_zero_are_keys() -> None:
    naive = model("a")
    query = naive.submit(meaning(("a", Window(rows=1, partition=("k",)))))
    keys = [None, 1, math.nan, 0.0, None, math.nan, -0.0]
    push(naive, "a", *((f"x{i}", i, k) for i, k in enumerate(keys)))
    assert answer(naive, query) == ["x1", "x4", "x5", "x6"]


def test_08_partition_by_two_columns() -> None:
    naive = model("a")
    query = naive.submit(meaning(("a", Window(rows=1, partition=("k", "v")))))
    push(naive, "a", ("x", 1, 1), ("y", 2, 1), ("x", 3, 1), ("x", 4, 2))
    assert last(naive, query) == [(1, 2, ("y",)), (1, 3, ("x",)), (1, 4, ("x",))]


@pytest.mark.parametrize(("now", "held"), [(12, ["y", "z"]), (14, ["z"]), (15, [])])
def test_08_with_range_both_must_hold(now: int, held: list[str]) -> None:
    naive = model("a")
    query = naive.submit(meaning(("a", Window(10, rows=2))))
    push(naive, "a", ("x", 3), ("y", 4), ("z", 5))
    naive.advance(now)
    assert answer(naive, query) == held


def test_08_a_lagging_row_displaces_within_range_and_one_out_of_range_is_never_held() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10, rows=1, partition=("k",)))))
    push(naive, "a", ("x", 5))
    push(naive, "b", ("b", 14))
    push(naive, "a", ("y", 5))
    assert last(naive, query) == [(-1, 14, ("x",)), (1, 14, ("y",))]
    push(naive, "b", ("b", 15))
    push(naive, "a", ("z", 5))
    assert answer(naive, query) == []
