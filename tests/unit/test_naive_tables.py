"""Tables on the naive model, alone and joined with streams: each rule by an example worked out by hand.

The numbers in the names are the points of `semantics.md`; how rows and changes are written is in `tests/reference/by_hand.py`.
"""

from __future__ import annotations

import math

import pytest

from tests.reference.by_hand import always, answer, changes, last, meaning, model, push, upsert, with_table
from tests.reference.lives import Window
from tests.reference.naive import NEWEST


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
