"""History, replace, pause, resume and cancel on the naive model: each rule by an example worked out by hand.

The numbers in the names are the points of `semantics.md`; how rows and changes are written is in `tests/reference/by_hand.py`.
"""

from __future__ import annotations

import math

import pytest

from tests.reference.by_hand import always, answer, changes, last, meaning, model, push, push_many, upsert, with_table
from tests.reference.lives import Window

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
