"""Joins, windows by rows, tables, history and replace on the naive model: each rule by an example worked out by hand.

The numbers in the names are the points of `semantics.md`. A row is written (v, ts, k): its name, its time, its key (0 unless
told otherwise). A change is written (sign, time, value), a value shows the names of the rows it is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.reference.lives import NOW, Window
from tests.reference.matching import Condition, Input, Meaning, Rows
from tests.reference.naive import NEWEST, Naive
from tests.reference.workload import compare, kleene_and

Sent = tuple[Any, ...]
Shown = tuple[int, int, tuple[Any, ...]]


def model(*streams: str, **options: dict[str, Any]) -> Naive:
    """A model with these streams, each with a time column; `options` are those of some of them."""
    made = Naive()
    for name in streams:
        made.create_stream(name, time="ts", **options.get(name, {}))
    return made


def row(v: str, ts: int, k: Any = 0) -> dict[str, Any]:
    return {"v": v, "ts": ts, "k": k}


def push(naive: Naive, stream: str, *sent: Sent) -> None:
    naive.push(stream, [row(*values) for values in sent])


def push_many(naive: Naive, **sent: list[Sent]) -> None:
    naive.push_many({name: [row(*values) for values in rows] for name, rows in sent.items()})


def upsert(naive: Naive, *sent: tuple[Any, str]) -> None:
    """Rows (k, v) of the table `t`."""
    naive.upsert("t", [{"k": k, "v": v} for k, v in sent])


def equal_keys(rows: Rows) -> bool | None:
    """k of all inputs is equal, in SQL's three values."""
    return kleene_and(*(compare("=", rows[i]["k"], rows[i + 1]["k"]) for i in range(len(rows) - 1)))


def always(rows: Rows) -> bool | None:
    return True


def meaning(*inputs: str | tuple[str, Window], on: Callable[[Rows], bool | None] = equal_keys) -> Meaning:
    """A join that shows the name of each of its rows."""
    items = tuple(Input(item) if isinstance(item, str) else Input(*item) for item in inputs)
    condition = Condition(frozenset(range(len(items))), on)
    return Meaning(items, (condition,), lambda rows: tuple(entry["v"] for entry in rows))


def answer(naive: Naive, query: int) -> list[str]:
    """The answer, sorted, a value as its names with a blank between them."""
    return sorted(" ".join(map(str, value)) for value in naive.answer(query))


def changes(naive: Naive, query: int, since: int = 0) -> list[Shown]:
    """Changes in the order they are read; those of one commit, sign and time by value, as their order is free."""
    found = [(seq, c.sign, c.time, c.value) for seq, c in naive.changes(query, since)]
    ordered = sorted(found, key=lambda entry: (*entry[:3], str(entry[3])))
    assert [entry[:3] for entry in found] == [entry[:3] for entry in ordered], "- before +, each by time"
    return [entry[1:] for entry in ordered]


def last(naive: Naive, query: int) -> list[Shown]:
    """The changes of the last commit."""
    return changes(naive, query, naive.seq - 1)


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


# -- tables: points 9 and 15 -----------------------------------------------------------------------------------------


def with_table(retroactive: bool, *streams: str) -> Naive:
    naive = model(*(streams or ("a",)))
    naive.create_table("t", key=["k"], retroactive=retroactive)
    return naive


@pytest.mark.parametrize("retroactive", [False, True])
def test_09_a_stream_without_window_meets_a_table_as_it_is_when_the_row_is_taken(retroactive: bool) -> None:
    naive = with_table(retroactive)
    query = naive.submit(meaning("a", "t"))
    push(naive, "a", ("early", 1))
    upsert(naive, (0, "t1"))
    push(naive, "a", ("x", 2))
    upsert(naive, (0, "t2"))
    push(naive, "a", ("y", 3))
    naive.delete("t", [[0]])
    naive.advance(10**9)
    assert changes(naive, query) == [(1, 2, ("x", "t1")), (1, 3, ("y", "t2"))]
    assert answer(naive, query) == ["x t1", "y t2"]


def test_09_a_stream_table_query_keeps_its_newest_results_by_row_and_version() -> None:
    naive = with_table(False)
    query = naive.submit(meaning("a", "t", on=always))
    upsert(naive, (1, "t1"), (2, "t2"))
    push(naive, "a", *((f"x{i}", 5) for i in range(NEWEST)))
    assert naive.answer(query)[:2] == [(f"x{NEWEST // 2}", "t1"), (f"x{NEWEST // 2}", "t2")]
    assert len(naive.answer(query)) == NEWEST


def test_09_a_stream_without_window_is_refused_in_a_join_of_streams_and_unbounded_too() -> None:
    naive = model("a", "b")
    for bad in (meaning("a", ("b", Window(5))), meaning(("a", Window()), ("b", Window(5))), meaning("a", "b")):
        with pytest.raises(ValueError, match="bounded"):
            naive.submit(bad)


def test_15_a_non_retroactive_table_counts_as_it_was_when_the_stream_row_arrived() -> None:
    naive = with_table(False)
    query = naive.submit(meaning(("a", Window(10)), "t"))
    upsert(naive, (0, "t1"))
    push(naive, "a", ("x", 1))
    upsert(naive, (0, "t2"))
    assert (last(naive, query), answer(naive, query)) == ([], ["x t1"])
    push(naive, "a", ("y", 2))
    naive.delete("t", [[0]])
    assert answer(naive, query) == ["x t1", "y t2"]
    naive.advance(11)
    assert last(naive, query) == [(-1, 11, ("x", "t1"))], "the end comes from the result, not from the table"


def test_15_with_two_streams_it_is_the_last_of_the_rows_that_says_how_the_table_was() -> None:
    naive = with_table(False, "a", "b")
    query = naive.submit(meaning(("a", Window(50)), "t", ("b", Window(50))))
    upsert(naive, (0, "t1"))
    push(naive, "a", ("a1", 1))
    upsert(naive, (0, "t2"))
    push(naive, "b", ("b1", 2))
    upsert(naive, (0, "t3"))
    push(naive, "a", ("a2", 3))
    assert answer(naive, query) == ["a1 t2 b1", "a2 t3 b1"]


def test_15_a_retroactive_table_sends_signed_changes_for_live_rows() -> None:
    naive = with_table(True)
    query = naive.submit(meaning(("a", Window(10)), "t"))
    push(naive, "a", ("x", 1), ("y", 5))
    upsert(naive, (0, "t1"))
    assert last(naive, query) == [(1, 5, ("x", "t1")), (1, 5, ("y", "t1"))]
    naive.advance(11)
    assert last(naive, query) == [(-1, 11, ("x", "t1"))]
    upsert(naive, (0, "t2"))
    assert last(naive, query) == [(-1, 11, ("y", "t1")), (1, 11, ("y", "t2"))]
    naive.delete("t", [[0]])
    assert last(naive, query) == [(-1, 11, ("y", "t2"))]
    naive.advance(15)
    assert last(naive, query) == [], "what the table took back does not end again"


def test_15_a_version_that_was_there_and_is_gone_is_seen_by_no_later_row() -> None:
    naive = with_table(True)
    query = naive.submit(meaning(("a", Window(10)), "t"))
    naive.advance(5)
    upsert(naive, (0, "t1"))
    naive.delete("t", [[0]])
    push(naive, "a", ("x", 5))
    assert changes(naive, query) == [], "though both were at T = 5"


def test_15_a_retroactive_upsert_of_the_same_row_changes_nothing() -> None:
    naive = with_table(True)
    query = naive.submit(meaning(("a", Window(10)), "t"))
    upsert(naive, (0, "t1"))
    push(naive, "a", ("x", 1))
    upsert(naive, (0, "t1"))
    assert (last(naive, query), answer(naive, query)) == ([], ["x t1"])


def test_15_a_retroactive_change_finds_a_non_retroactive_table_as_it_was_for_the_rows() -> None:
    naive = with_table(True)
    naive.create_table("fixed", key=["k"])
    query = naive.submit(meaning(("a", Window(10)), "t", "fixed"))
    naive.upsert("fixed", [{"k": 0, "v": "f1"}])
    push(naive, "a", ("x", 1))
    naive.upsert("fixed", [{"k": 0, "v": "f2"}])
    upsert(naive, (0, "t1"))
    assert answer(naive, query) == ["x t1 f1"]


def test_15_a_table_change_is_a_commit_and_takes_effect_at_the_clock_of_each_timeline() -> None:
    naive = with_table(True, "a")
    naive.create_stream("o", time="ts", timeline="other")
    queries = [naive.submit(meaning((name, Window(100)), "t")) for name in ("a", "o")]
    push(naive, "a", ("a1", 10))
    push(naive, "o", ("o1", 70))
    upsert(naive, (0, "t1"))
    assert naive.seq == 3
    assert [last(naive, query) for query in queries] == [[(1, 10, ("a1", "t1"))], [(1, 70, ("o1", "t1"))]]


def test_15_nan_is_one_key_of_a_table_zero_has_no_sign_and_null_is_refused() -> None:
    naive = with_table(True)
    query = naive.submit(meaning("t"))
    upsert(naive, (math.nan, "n1"), (0.0, "z1"), (math.nan, "n2"))
    upsert(naive, (-0.0, "z2"))
    assert answer(naive, query) == ["n2", "z2"]
    naive.delete("t", [[math.nan], [5.0]])
    assert answer(naive, query) == ["z2"]
    with pytest.raises(ValueError, match="NULL"):
        upsert(naive, (None, "x"))


@pytest.mark.parametrize("retroactive", [False, True])
def test_a_query_over_a_table_alone_is_a_relation_over_what_it_holds(retroactive: bool) -> None:
    naive = with_table(retroactive)
    upsert(naive, (1, "t1"), (2, "t2"))
    query = naive.submit(meaning("t"))
    assert (naive.seq, changes(naive, query)) == (2, [(1, 0, ("t1",)), (1, 0, ("t2",))])
    naive.advance(40)
    upsert(naive, (2, "t3"))
    assert last(naive, query) == [(-1, 40, ("t2",)), (1, 40, ("t3",))]
    naive.delete("t", [[1]])
    assert answer(naive, query) == ["t3"]


def test_a_table_joins_itself_and_another_table() -> None:
    naive = with_table(False)
    naive.create_table("u", key=["k"], retroactive=True)
    pairs, both = naive.submit(meaning("t", "t")), naive.submit(meaning("t", "u"))
    upsert(naive, (1, "t1"))
    naive.upsert("u", [{"k": 1, "v": "u1"}, {"k": 2, "v": "u2"}])
    assert (answer(naive, pairs), answer(naive, both)) == (["t1 t1"], ["t1 u1"])
    upsert(naive, (1, "t2"))
    assert (answer(naive, pairs), answer(naive, both)) == (["t2 t2"], ["t2 u1"])


def test_a_table_takes_no_window_and_a_query_one_timeline() -> None:
    naive = with_table(False)
    naive.create_stream("o", time="ts", timeline="other")
    for bad in (meaning("a", ("t", Window(5))), meaning(("a", Window(5)), ("o", Window(5)))):
        with pytest.raises(ValueError, match="one timeline, no window on a table"):
            naive.submit(bad)


# -- history: point 16 -----------------------------------------------------------------------------------------------


def test_16_history_sees_the_rows_that_the_largest_window_of_a_live_query_keeps() -> None:
    naive = model("a")
    naive.submit(meaning(("a", Window(10))))
    push(naive, "a", ("x", 1), ("y", 5))
    naive.advance(11)
    query = naive.submit(meaning(("a", Window(100))), history="window")
    assert changes(naive, query) == [(1, 11, ("y",))], "x left the store at 11; the submit is a commit and takes effect at T"
    assert naive.seq == 3
    assert naive.queries[query].complete_since == 101, "when x would have ended"


def test_16_what_is_kept_is_what_was_kept_all_along() -> None:
    naive = model("a")
    push(naive, "a", ("gone", 1))
    naive.submit(meaning(("a", Window(1000))))
    push(naive, "a", ("x", 2))
    query = naive.submit(meaning(("a", Window(1000))), history="window")
    assert answer(naive, query) == ["x"], "nobody wanted the first row when it came"
    assert naive.queries[query].complete_since == 1001


def test_16_keep_stores_rows_without_any_query() -> None:
    naive = model("a", a={"keep": 10})
    push(naive, "a", ("x", 1), ("y", 5), ("z", 11))
    whole = naive.submit(meaning(("a", Window(10))), history="window")
    part = naive.submit(meaning(("a", Window(50))), history="window")
    assert (answer(naive, whole), answer(naive, part)) == (["y", "z"], ["y", "z"])
    assert [naive.queries[query].complete_since for query in (whole, part)] == [11, 51]


def test_16_a_cancelled_or_paused_query_keeps_nothing_from_the_next_commit_on() -> None:
    naive = model("a")
    wide, paused = naive.submit(meaning(("a", Window(100)))), naive.submit(meaning(("a", Window(50))))
    naive.submit(meaning(("a", Window(5))))
    push(naive, "a", ("x", 1), ("y", 8))
    naive.cancel(wide)
    naive.pause(paused)
    at_once = naive.submit(meaning(("a", Window(100))), history="window")
    assert answer(naive, at_once) == ["x", "y"], "the store is settled by commits"
    naive.cancel(at_once)
    naive.advance(9)
    query = naive.submit(meaning(("a", Window(100))), history="window")
    assert answer(naive, query) == ["y"]


def test_16_rows_windows_count_over_what_is_stored() -> None:
    naive = model("a", a={"keep": 10})
    push(naive, "a", ("w", 1), ("x", 12), ("y", 13), ("z", 14))
    two, five = (naive.submit(meaning(("a", Window(rows=n))), history="window") for n in (2, 5))
    assert (answer(naive, two), answer(naive, five)) == (["y", "z"], ["x", "y", "z"])
    assert [naive.queries[query].complete_since for query in (two, five)] == [14, None]
    push(naive, "a", ("new", 15))
    assert last(naive, two) == [(-1, 15, ("y",)), (1, 15, ("new",))]


def test_16_a_rows_window_keeps_its_rows_and_partition_by_all_from_its_oldest_on() -> None:
    naive = model("a")
    naive.submit(meaning(("a", Window(rows=1, partition=("k",)))))
    push(naive, "a", ("w", 1, "rare"), ("x", 2, "often"), ("y", 3, "often"))
    query = naive.submit(meaning(("a", Window(100))), history="window")
    assert answer(naive, query) == ["w", "x", "y"]
    push(naive, "a", ("z", 4, "rare"))
    assert naive.streams["a"].stored_from == 0, "the new query keeps them now"


def test_16_joins_of_history_are_whole_and_end_as_they_would_have() -> None:
    naive = model("a", "b", a={"keep": 100}, b={"keep": 100})
    push(naive, "a", ("a1", 1))
    push(naive, "b", ("b1", 4))
    naive.advance(7)
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(5))), history="window")
    assert last(naive, query) == [(1, 7, ("a1", "b1"))]
    naive.advance(9)
    assert last(naive, query) == [(-1, 9, ("a1", "b1"))]
    assert naive.queries[query].complete_since == 7


def test_16_rows_from_before_the_submit_meet_a_non_retroactive_table_as_it_is_at_the_submit() -> None:
    naive = model("a", a={"keep": 100})
    naive.create_table("t", key=["k"])
    upsert(naive, (0, "t1"))
    push(naive, "a", ("x", 1))
    upsert(naive, (0, "t2"))
    query = naive.submit(meaning(("a", Window(100)), "t"), history="window")
    assert answer(naive, query) == ["x t2"]
    upsert(naive, (0, "t3"))
    push(naive, "a", ("y", 2))
    assert answer(naive, query) == ["x t2", "y t3"]


def test_16_history_gives_a_stream_query_nothing_but_is_a_commit() -> None:
    naive = model("a", a={"keep": 100})
    push(naive, "a", ("x", 1))
    query = naive.submit(meaning("a"), history="window")
    assert (naive.seq, answer(naive, query), naive.queries[query].complete_since) == (2, [], 1)


def test_a_new_query_is_complete_when_the_rows_it_missed_have_ended() -> None:
    naive = model("a")
    push(naive, "a", ("x", 5))
    naive.advance(7)
    widths = {10: 15, 2: 7, math.inf: None}
    found = {w: naive.queries[naive.submit(meaning(("a", Window(w))))].complete_since for w in widths}
    assert found == widths


# -- replace, pause, resume, cancel ----------------------------------------------------------------------------------


def test_replace_is_one_commit_with_the_difference_of_the_two_answers() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(10))))
    push_many(naive, a=[("a1", 1, 1), ("a2", 2, 2)], b=[("b1", 2, 1), ("b2", 3, 2)])
    naive.advance(4)
    naive.replace(query, meaning(("a", Window(10)), ("b", Window(10)), on=lambda rows: rows[0]["k"] >= rows[1]["k"] > 1))
    assert (naive.seq, last(naive, query)) == (3, [(-1, 4, ("a1", "b1"))])
    naive.replace(query, meaning(("a", Window(10)), ("b", Window(10)), on=always))
    assert last(naive, query) == [(1, 4, ("a1", "b1")), (1, 4, ("a1", "b2")), (1, 4, ("a2", "b1"))]
    naive.advance(11)
    assert last(naive, query) == [(-1, 11, ("a1", "b1")), (-1, 11, ("a1", "b2"))]


def test_replace_keeps_the_birth_and_sees_only_what_is_stored() -> None:
    naive = model("a", a={"keep": 1000})
    push(naive, "a", ("before", 1))
    new = naive.submit(meaning(("a", Window(10))))
    window = naive.submit(meaning(("a", Window(10))), history="window")
    push(naive, "a", ("x", 2))
    naive.advance(50)
    for query in (new, window):
        naive.replace(query, meaning(("a", Window(500))))
    assert (answer(naive, new), answer(naive, window)) == (["x"], ["before", "x"])


def test_replace_may_read_another_stream_from_the_birth_on() -> None:
    naive = model("a", "b", b={"keep": 100})
    push(naive, "b", ("before", 1))
    query = naive.submit(meaning(("a", Window(10))))
    push(naive, "b", ("b1", 2))
    naive.replace(query, meaning(("b", Window(10))))
    assert changes(naive, query) == [(1, 2, ("b1",))]


def test_replaced_rows_meet_a_non_retroactive_table_as_it_is_at_the_replace() -> None:
    naive = with_table(False)
    query = naive.submit(meaning(("a", Window(10)), "t"))
    upsert(naive, (0, "t1"))
    push(naive, "a", ("x", 1))
    upsert(naive, (0, "t2"))
    naive.replace(query, meaning(("a", Window(10)), "t"))
    assert last(naive, query) == [(-1, 1, ("x", "t1")), (1, 1, ("x", "t2"))]


def test_a_replaced_stream_query_starts_empty_and_a_relation_is_not_replaced_by_a_stream() -> None:
    naive = model("a")
    stream, relation = naive.submit(meaning("a")), naive.submit(meaning(("a", Window(9))))
    push(naive, "a", ("x", 1))
    naive.replace(stream, meaning("a", on=always))
    assert (answer(naive, stream), last(naive, stream)) == ([], [])
    with pytest.raises(ValueError, match="nor a relation by a stream"):
        naive.replace(relation, meaning("a"))
    naive.pause(relation)
    with pytest.raises(ValueError, match="a paused query is not replaced"):
        naive.replace(relation, meaning(("a", Window(9))))


def test_13_a_paused_join_keeps_its_answer_and_resumes_as_if_new() -> None:
    naive = model("a", "b")
    query = naive.submit(meaning(("a", Window(10)), ("b", Window(10))))
    push_many(naive, a=[("a1", 1)], b=[("b1", 1)])
    naive.pause(query)
    push(naive, "a", ("a2", 5))
    naive.advance(30)
    assert answer(naive, query) == ["a1 b1"]
    naive.resume(query)
    assert last(naive, query) == [(-1, 30, ("a1", "b1"))]
    push(naive, "b", ("b2", 30))
    assert answer(naive, query) == []


def test_13_a_resumed_query_sees_tables_and_its_history_again_and_the_difference_is_net() -> None:
    naive = model("a", a={"keep": 100})
    naive.create_table("t", key=["k"])
    table = naive.submit(meaning("t"))
    held = naive.submit(meaning(("a", Window(50))), history="window")
    upsert(naive, (1, "t1"), (2, "t2"))
    push(naive, "a", ("x", 1))
    for query in (table, held):
        naive.pause(query)
    naive.delete("t", [[1]])
    push(naive, "a", ("y", 3))
    for query, difference in ((table, [(-1, 3, ("t1",))]), (held, [(1, 3, ("y",))])):
        naive.resume(query)
        assert last(naive, query) == difference


def test_13_a_cancelled_join_emits_no_final_minus_and_others_go_on() -> None:
    naive = model("a", "b")
    text = meaning(("a", Window(10)), ("b", Window(10)))
    first, second = naive.submit(text), naive.submit(text)
    push_many(naive, a=[("a1", 1)], b=[("b1", 1)])
    naive.cancel(first)
    naive.advance(11)
    assert naive.commits[naive.seq].keys() == {second}
    assert changes(naive, first) == [(1, 1, ("a1", "b1"))]


def test_an_empty_upsert_and_a_delete_of_nothing_are_commits() -> None:
    naive = with_table(False)
    upsert(naive)
    naive.delete("t", [[5]])
    assert naive.seq == 2
