"""Operators, sliding windows, keyed streams and queries over queries on the model: each rule by an example worked out by hand.

The numbers in the names are the points of `semantics.md`; how rows and changes are written is in
`tests/reference/trees_by_hand.py`.
"""

from __future__ import annotations

import math

import pytest

from tests.reference.aggregates import aggregate
from tests.reference.binding import answer_after
from tests.reference.lives import NOW, Window
from tests.reference.operators import Aggregate, Distinct, Expression, Slide, ToStream
from tests.reference.running import copies
from tests.reference.trees_by_hand import (
    answer,
    changes,
    column,
    combined,
    grouped,
    istream,
    joined,
    last,
    model,
    named,
    over,
    push,
    push_many,
    select,
    source,
    table,
)

# -- windows: points 7 and 8 -----------------------------------------------------------------------------------------


def test_07_an_extent_holds_the_rows_from_b_minus_w_up_to_b_and_is_shown_at_b() -> None:
    made = model("a")
    query = made.submit(over("a", Slide(10, 5)))
    push(made, "a", ("x", 0), ("y", 5), ("z", 9))
    assert answer(made, query) == [("x",)], "at 9 the boundary is 5: [-5, 5)"
    made.advance(10)
    assert answer(made, query) == [("x",), ("y",), ("z",)], "[0, 10)"
    made.advance(15)
    assert answer(made, query) == [("y",), ("z",)], "[5, 15)"
    made.advance(20)
    assert answer(made, query) == [], "[10, 20)"
    assert changes(made, query) == [
        (1, 5, ("x",)),
        (1, 10, ("y",)),
        (1, 10, ("z",)),
        (-1, 15, ("x",)),
        (-1, 20, ("y",)),
        (-1, 20, ("z",)),
    ]


def test_07_boundaries_are_multiples_since_1970_also_before_it() -> None:
    made = model("a")
    query = made.submit(over("a", Slide(5, 5)))
    push(made, "a", ("x", -8))
    made.advance(0)
    assert changes(made, query) == [], "shown at -5, gone at 0, all in one commit"
    push(made, "a", ("y", 2))
    made.advance(5)
    assert last(made, query) == [(1, 5, ("y",))]


def test_07_a_slide_wider_than_the_range_leaves_holes() -> None:
    made = model("a")
    query = made.submit(over("a", Slide(2, 10)))
    push(made, "a", ("x", 7), ("y", 8), ("z", 9))
    made.advance(10)
    assert answer(made, query) == [("y",), ("z",)]
    made.advance(19)
    assert answer(made, query) == [("y",), ("z",)]
    made.advance(20)
    assert answer(made, query) == []


def test_07_a_lagging_row_joins_from_the_next_boundary_on() -> None:
    made = model("a", "b")
    query = made.submit(over("a", Slide(10, 5)))
    push(made, "b", ("b", 12))
    push(made, "a", ("x", 6))  # lags: starts at 12, missed by the extent shown at 10
    assert answer(made, query) == []
    made.advance(15)
    assert last(made, query) == [(1, 15, ("x",))]
    made.advance(20)
    assert last(made, query) == [(-1, 20, ("x",))]


def test_07_tumble_shows_its_bounds() -> None:
    made = model("a")
    query = made.submit(over("a", Slide(10, 10, bounds=True), "v", "window_start", "window_end"))
    push(made, "a", ("x", 3))
    made.advance(10)
    assert answer(made, query) == [("x", 0, 10)]


def test_07_a_row_in_two_extents_changes_its_bounds() -> None:
    made = model("a")
    query = made.submit(over("a", Slide(10, 5, bounds=True), "v", "window_end"), emit="event")
    push(made, "a", ("x", 3))
    made.advance(30)
    assert changes(made, query) == [(1, 5, ("x", 5)), (-1, 10, ("x", 5)), (1, 10, ("x", 10)), (-1, 15, ("x", 10))]


def test_08_rows_are_the_newest_by_arrival_whatever_their_time_was() -> None:
    made = model("a")
    query = made.submit(over("a", Window(rows=2)))
    push(made, "a", ("x", 1), ("y", 2), ("z", 3))
    assert answer(made, query) == [("y",), ("z",)]
    push(made, "a", ("late", 1))
    assert answer(made, query) == [("late",), ("z",)]
    assert last(made, query) == [(-1, 3, ("y",)), (1, 3, ("late",))]


def test_08_partitions_count_their_own_rows_and_null_is_a_key() -> None:
    made = model("a")
    query = made.submit(over("a", Window(rows=1, partition=("k",))))
    push(made, "a", ("x", 1, 0), ("y", 2, None), ("z", 3, 0), ("u", 4, None), ("w", 5, 1))
    assert answer(made, query) == [("u",), ("w",), ("z",)]


def test_08_with_range_both_must_hold() -> None:
    made = model("a")
    query = made.submit(over("a", Window(10, rows=2)))
    push(made, "a", ("x", 0), ("y", 5), ("z", 6))
    assert answer(made, query) == [("y",), ("z",)]
    made.advance(15)
    assert answer(made, query) == [("z",)]


def test_08_rows_are_counted_before_where() -> None:
    made = model("a")
    query = made.submit(select(source("a", Window(rows=2)), "v", where=lambda row: row["k"] == 1))
    push(made, "a", ("x", 1, 1), ("y", 2, 0), ("z", 3, 0))
    assert answer(made, query) == []


# -- changes: point 12 -----------------------------------------------------------------------------------------------


def test_12_event_gives_one_net_change_set_for_each_instant() -> None:
    made = model("a")
    query = made.submit(grouped(source("a", Window(5)), ["k"], ("count", None)), emit="event")
    push(made, "a", ("x", 0), ("y", 0), ("z", 3))
    assert changes(made, query) == [(1, 0, (0, 2)), (-1, 3, (0, 2)), (1, 3, (0, 3))]
    made.advance(5)
    assert last(made, query) == [(-1, 5, (0, 3)), (1, 5, (0, 1))]


def test_12_commit_gives_the_net_change_of_all_of_it() -> None:
    made = model("a")
    query = made.submit(grouped(source("a", Window(5)), ["k"], ("count", None)))
    push(made, "a", ("x", 0), ("y", 0), ("z", 3))
    assert changes(made, query) == [(1, 3, (0, 3))]
    push(made, "a", ("u", 4), ("w", 6))  # 4 rows at 4; x and y end at 5; 3 rows at 6
    assert last(made, query) == [], "the answer is what it was"
    made.advance(100)
    assert last(made, query) == [(-1, 8, (0, 3))]


def test_12_a_value_that_hands_over_within_an_instant_nets_to_nothing() -> None:
    made = model("a")
    query = made.submit(Distinct(over("a", Window(5), "k")), emit="event")
    push(made, "a", ("x", 0), ("y", 5))
    assert changes(made, query) == [(1, 0, (0,))], "x ends at 5 and y comes at 5"


# -- aggregates: points 17 and 20 ------------------------------------------------------------------------------------


def test_17_a_scalar_aggregate_has_one_row_from_its_submit_on() -> None:
    made = model("a")
    push(made, "a", ("x", 0))
    query = made.submit(grouped(source("a", Window(5)), [], ("count", None), ("max", "v")))
    assert last(made, query) == [(1, 0, (0, None))]
    push(made, "a", ("y", 2))
    assert last(made, query) == [(-1, 2, (0, None)), (1, 2, (1, "y"))]
    made.advance(7)
    assert last(made, query) == [(-1, 7, (1, "y")), (1, 7, (0, None))]


def test_17_an_empty_group_has_no_row_and_null_is_a_group() -> None:
    made = model("a")
    query = made.submit(grouped(source("a", Window(5)), ["k"], ("count", None)))
    push(made, "a", ("x", 0, None), ("y", 1, 0), ("z", 2, None))
    assert answer(made, query) == [(0, 1), (None, 2)]
    made.advance(6)
    assert answer(made, query) == [(None, 1)]


def test_17_filter_leaves_rows_out_of_one_aggregate_and_having_groups_out_of_the_answer() -> None:
    made = model("a")
    item = source("a", Window(50))
    is_x = Expression("bool", "a.v = 'x'", None, lambda rows: rows[0]["v"] == "x")
    filtered = Aggregate("count", None, where=is_x)
    query = made.submit(grouped(item, ["k"], ("count", None), filtered, having=lambda row: row["a0"] > 1))
    push(made, "a", ("x", 0, 1), ("y", 1, 1), ("x", 2, 2), ("y", 3, 3), ("y", 4, 3))
    assert answer(made, query) == [(1, 2, 1), (3, 2, 0)]


def test_20_first_and_last_go_by_time_and_row_with_nulls() -> None:
    made = model("a")
    query = made.submit(grouped(source("a", Window(5)), [], ("first", "k"), ("last", "k")))
    push(made, "a", ("x", 0, None), ("y", 0, 1), ("z", 0, 2))
    assert answer(made, query) == [(None, 2)]
    push(made, "a", ("u", 3, 7))
    made.advance(5)
    assert answer(made, query) == [(7, 7)]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("sum", [1, None, 2], 3),
        ("sum", [], None),
        ("sum", [2**62, 2**62], None),
        ("sum", [1e100, 1.0, -1e100], 1.0),
        ("sum", [1.5, math.inf], math.inf),
        ("avg", [1, 2], 1.5),
        ("min", [2.5, math.nan, -1.0], -1.0),
        ("median", [3, 1, 2], 2.0),
        ("median", [4, 1, 2, 3], 2.5),
        ("median", ["a"][:0], None),
        ("variance", [1, 2, 4], 7 / 3),
        ("variance", [1], None),
        ("stddev", [1, 3], math.sqrt(2)),
        ("count", [None, 0], 1),
        ("first", [None, 1], None),
        ("last", [1, 2], 2),
    ],
)
def test_20_aggregates_are_those_of_duckdb_summed_exactly(kind: str, values: list[object], expected: object) -> None:
    assert aggregate(kind, values) == expected


def test_20_nan_is_one_value_above_all_numbers() -> None:
    assert math.isnan(aggregate("max", [math.nan, math.inf]))
    assert aggregate("count", [math.nan, math.nan, 0.0, -0.0, None], distinct=True) == 2
    assert math.isnan(aggregate("sum", [math.nan, 1.0]))


# -- set operators: point 18 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("UNION ALL", {(0, 0): 0, (2, 1): 3, (0, 2): 2}),
        ("UNION", {(0, 0): 0, (2, 1): 1, (0, 2): 1}),
        ("EXCEPT ALL", {(3, 1): 2, (1, 3): 0, (2, 0): 2}),
        ("EXCEPT", {(3, 1): 0, (1, 0): 1, (2, 0): 1, (0, 1): 0}),
        ("INTERSECT ALL", {(3, 2): 2, (1, 0): 0}),
        ("INTERSECT", {(3, 2): 1, (1, 0): 0, (0, 1): 0}),
    ],
)
def test_18_set_operators_are_functions_of_two_counts(text: str, counts: dict[tuple[int, int], int]) -> None:
    word, _, rest = text.lower().partition(" ")
    assert {pair: copies(word, rest == "all", *pair) for pair in counts} == counts


def test_18_except_brings_a_value_back_when_the_right_side_ends() -> None:
    made = model("a", "b")
    query = made.submit(combined("EXCEPT", over("a", Window(20), "k"), over("b", Window(5), "k")), emit="event")
    push(made, "a", ("x", 0), ("y", 1))
    push(made, "b", ("z", 2))
    made.advance(100)
    assert changes(made, query) == [(1, 0, (0,)), (-1, 2, (0,)), (1, 7, (0,)), (-1, 21, (0,))]


def test_18_except_all_keeps_the_difference_of_the_copies() -> None:
    made = model("a", "b")
    query = made.submit(combined("EXCEPT ALL", over("a", Window(20), "k"), over("b", Window(5), "k")), emit="event")
    push(made, "a", ("x", 0), ("y", 1))
    push(made, "b", ("z", 2))
    made.advance(100)
    expected = [(1, 0, (0,)), (1, 1, (0,)), (-1, 2, (0,)), (1, 7, (0,)), (-1, 20, (0,)), (-1, 21, (0,))]
    assert changes(made, query) == expected


def test_18_nulls_equal_each_other() -> None:
    made = model("a", "b")
    query = made.submit(combined("INTERSECT", over("a", Window(20), "k"), over("b", Window(20), "k")))
    push_many(made, a=[("x", 0, None), ("y", 0, 1)], b=[("z", 0, None), ("u", 0, 2)])
    assert answer(made, query) == [(None,)]


# -- streams: point 19 -----------------------------------------------------------------------------------------------


def test_19_istream_and_dstream_are_the_net_changes_of_each_event() -> None:
    made = model("a")
    tree = grouped(source("a", Window(5)), ["k"], ("count", None))
    inserted, deleted = (made.submit(ToStream(word, tree)) for word in ("istream", "dstream"))
    push(made, "a", ("x", 0), ("y", 0), ("z", 3))
    assert changes(made, inserted) == [(1, 0, (0, 1)), (1, 0, (0, 2)), (1, 3, (0, 3))], "each arrival is an event"
    assert changes(made, deleted) == [(1, 0, (0, 1)), (1, 3, (0, 2))]
    made.advance(5)
    assert last(made, inserted) == [(1, 5, (0, 1))], "both ends of the instant are one event"
    assert last(made, deleted) == [(1, 5, (0, 3))]


def test_19_an_event_that_hands_a_value_over_emits_nothing() -> None:
    made = model("a")
    query = made.submit(istream(over("a", Window(rows=1), "k")))
    push(made, "a", ("x", 0), ("y", 0))
    assert changes(made, query) == [(1, 0, (0,))], "y displaces x: - and + of one value in one event"


def test_19_an_end_and_an_arrival_of_one_instant_are_two_events() -> None:
    made = model("a")
    query = made.submit(istream(Distinct(over("a", Window(5), "k"))))
    push(made, "a", ("x", 0), ("y", 5))
    assert changes(made, query) == [(1, 0, (0,)), (1, 5, (0,))]


def test_19_rstream_is_the_answer_at_each_instant_at_which_it_changed_once_the_clock_has_passed() -> None:
    made = model("a")
    query = made.submit(ToStream("rstream", over("a", Window(5))))
    push(made, "a", ("x", 0))
    assert changes(made, query) == [], "more may come at 0"
    push(made, "a", ("y", 0))
    push(made, "a", ("z", 3))
    assert last(made, query) == [(1, 0, ("x",)), (1, 0, ("y",))]
    made.advance(4)
    assert last(made, query) == [(1, 3, (v,)) for v in "xyz"]
    made.advance(6)
    assert last(made, query) == [(1, 5, ("z",))]


def test_19_rstream_over_a_slide_is_the_answer_at_each_boundary_changed_or_not() -> None:
    made = model("a")
    query = made.submit(ToStream("rstream", over("a", Slide(20, 10))))
    push(made, "a", ("x", 3))
    made.advance(35)
    assert changes(made, query) == [(1, 10, ("x",)), (1, 20, ("x",))]


def test_19_a_window_over_istream_times_rows_by_their_change() -> None:
    made = model("a")
    counts = istream(grouped(source("a", Window(5)), [], ("count", None)))
    query = made.submit(select(source(counts, Window(10)), "a0"), emit="event")
    push(made, "a", ("x", 0))
    made.advance(100)
    assert changes(made, query) == [(1, 0, (1,)), (1, 5, (0,)), (-1, 10, (1,)), (-1, 15, (0,))]


def test_19_any_cutting_of_the_input_into_commits_emits_the_same() -> None:
    sent = [("a", "a1", 0), ("b", "b1", 1), ("a", "a2", 1), ("b", "b2", 5), ("a", "a3", 5), ("b", "b3", 6), ("a", "a4", 30)]
    tree = istream(combined("EXCEPT ALL", over("a", Window(5), "k"), over("b", Window(4), "k")))
    emitted = []
    for cuts in ([1] * 7, [7], [2, 3, 2], [3, 1, 3]):
        made = model("a", "b")
        query = made.submit(tree)
        rest = list(sent)
        for size in cuts:
            part, rest = rest[:size], rest[size:]
            push_many(made, **{name: [(v, t) for s, v, t in part if s == name] for name in dict.fromkeys(s for s, _, _ in part)})
        emitted.append(changes(made, query))
    assert emitted[0] and all(one == emitted[0] for one in emitted[1:])


# -- queries over queries: point 16 ----------------------------------------------------------------------------------


def test_16_a_named_query_counts_whole_from_the_start() -> None:
    made = model("a")
    tree = over("a", Window(10), "v", "k")
    first = made.submit(tree, name="hot")
    push(made, "a", ("x", 0))
    query = made.submit(grouped(source(named("hot", tree)), ["k"], ("count", None)))
    assert last(made, query) == [(1, 0, (0, 1))]
    push(made, "a", ("y", 4))
    assert last(made, query) == [(-1, 4, (0, 1)), (1, 4, (0, 2))]
    with pytest.raises(ValueError, match="read"):
        made.cancel(first)
    made.cancel(query)
    made.cancel(first)
    assert not made.queries


def test_16_a_named_stream_counts_from_the_submit_of_its_reader() -> None:
    made = model("a")
    tree = istream(over("a", Window(10)))
    made.submit(tree, name="new")
    push(made, "a", ("x", 0))
    query = made.submit(select(source(named("new", tree), Window(10)), "v"))
    push(made, "a", ("y", 4))
    assert answer(made, query) == [("y",)]


def test_16_history_gives_a_query_the_rows_that_are_kept_without_those_retracted() -> None:
    made = model("a", a={"keep": 100, "key": ["v"]})
    push(made, "a", ("x", 0), ("y", 1), ("z", 2))
    made.retract("a", [("y",)], 2)
    query = made.submit(over("a", Window(rows=2)), history="window")
    assert last(made, query) == [(1, 2, ("z",))], "y leaves its place empty"


# -- stacked ---------------------------------------------------------------------------------------------------------


def test_minus_over_join_over_distinct() -> None:
    """Update-pattern paper, Query 4 in spirit: values of a join that a third stream has not."""
    made = model("a", "b", "c")
    distinct = Distinct(over("a", Window(10), "v", "k"))
    join = joined(source(distinct, alias="l"), source("b", Window(10), "r"))
    left = select(source(join, alias="j"), "l")
    query = made.submit(combined("EXCEPT", left, over("c", Window(3), "v")), emit="event")
    push(made, "a", ("x", 0), ("x", 1))
    push(made, "b", ("b1", 2), ("b2", 2))
    push(made, "c", ("x", 5))
    made.advance(100)
    assert changes(made, query) == [(1, 2, ("x",)), (-1, 5, ("x",)), (1, 8, ("x",)), (-1, 11, ("x",))]


# -- tables ----------------------------------------------------------------------------------------------------------


def test_15_a_retroactive_table_counts_as_it_is_beside_a_relation() -> None:
    made = model("a")
    made.create_table("t", key=["k"], retroactive=True)
    made.upsert("t", [{"k": 0, "v": "old"}])
    distinct = Distinct(over("a", Window(10), "v", "k"))
    query = made.submit(joined(source(distinct), table("t")))
    push(made, "a", ("x", 0))
    made.upsert("t", [{"k": 0, "v": "new"}])
    assert last(made, query) == [(-1, 0, ("x", "old")), (1, 0, ("x", "new"))]


def test_15_a_sliding_window_meets_a_table_as_it_was_when_its_row_came() -> None:
    made = model("a")
    made.create_table("t", key=["k"])
    made.upsert("t", [{"k": 0, "v": "old"}])
    query = made.submit(joined(source("a", Slide(5, 5)), table("t")))
    push(made, "a", ("x", 1))
    made.upsert("t", [{"k": 0, "v": "new"}])
    made.advance(5)
    assert answer(made, query) == [("x", "old")]


# -- keyed streams: point 34 -----------------------------------------------------------------------------------------


def test_34_a_row_of_the_same_key_replaces_the_live_one_at_its_own_start() -> None:
    made = model("a", a={"key": ["k"]})
    query = made.submit(over("a", Window(10)), emit="event")
    push(made, "a", ("x", 0), ("y", 3))
    made.advance(100)
    assert changes(made, query) == [(1, 0, ("x",)), (-1, 3, ("x",)), (1, 3, ("y",)), (-1, 13, ("y",))]


def test_34_retract_ends_the_live_row_and_counts_unknown_keys() -> None:
    made = model("a", a={"key": ["k"]})
    query = made.submit(over("a", Window()))
    push(made, "a", ("x", 5, 1), ("y", 5, 2))
    made.retract("a", [(1,), (9,)], 3)
    assert last(made, query) == [(-1, 5, ("x",))], "max(time, T)"
    assert made.keyed["a"].n_unknown == 1
    made.retract("a", [(2,)], 8)
    assert last(made, query) == [(-1, 8, ("y",))]


def test_34_a_retraction_waits_with_the_rows() -> None:
    made = model("a", a={"key": ["k"], "lateness": 10})
    query = made.submit(over("a", Window()))
    push(made, "a", ("x", 0), ("y", 10, 1))  # releases x
    made.retract("a", [(0,)], 4)
    assert answer(made, query) == [("x",)]
    push(made, "a", ("z", 14, 2))
    assert last(made, query) == [(-1, 4, ("x",))]


def test_34_a_row_lives_to_the_earlier_of_its_window_and_its_end() -> None:
    made = model("a", a={"end": "until"})
    query = made.submit(over("a", Window(10)), emit="event")
    push(made, "a", ("x", 0, 0, 4), ("y", 0, 0, 40), ("z", 0, 0, None), ("never", 1, 0, 1))
    made.advance(100)
    assert changes(made, query) == [
        (1, 0, ("x",)),
        (1, 0, ("y",)),
        (1, 0, ("z",)),
        (-1, 4, ("x",)),
        (-1, 10, ("y",)),
        (-1, 10, ("z",)),
    ]
    assert made.keyed["a"].n_ended == 1


def test_34_a_late_row_is_adjusted_and_its_end_is_not() -> None:
    made = model("a", a={"end": "until"})
    query = made.submit(over("a", Window(10)))
    push(made, "a", ("x", 8))
    push(made, "a", ("late", 2, 0, 9), ("over", 2, 0, 7))
    assert last(made, query) == [(1, 8, ("late",))]
    made.advance(9)
    assert last(made, query) == [(-1, 9, ("late",))]


def test_34_in_rows_a_retracted_row_leaves_its_place_empty() -> None:
    made = model("a", a={"key": ["v"]})
    query = made.submit(over("a", Window(rows=2)))
    push(made, "a", ("x", 0), ("y", 1), ("z", 2))
    made.retract("a", [("z",)], 3)
    assert answer(made, query) == [("y",)], "x does not return"


# -- events ----------------------------------------------------------------------------------------------------------


def test_05_ends_of_an_instant_come_before_its_arrivals() -> None:
    made = model("a")
    query = made.submit(istream(grouped(source("a", Window(5)), [], ("count", None))))
    push(made, "a", ("x", 0), ("y", 5))
    assert changes(made, query) == [(1, 0, (1,)), (1, 5, (0,)), (1, 5, (1,))]


def test_the_answer_after_every_event_is_kept() -> None:
    made = model("a")
    number = made.submit(over("a", NOW))
    push(made, "a", ("x", 0), ("y", 0))
    made.advance(1)
    opening = made.queries[number].opening
    assert opening is not None
    sizes = {event.kind: answer_after(opening, event.number).total() for event in made.events}
    assert sizes == {"open": 0, "arrival": 2, "close": 2, "ends": 0}


def test_what_has_no_meaning_is_refused() -> None:
    made = model("a", "b")
    with pytest.raises(ValueError, match="stands alone"):
        made.submit(joined(source("a"), source("b", Window(5), "b")))
    assert column(source("a"), 0, "k").type == "int"
