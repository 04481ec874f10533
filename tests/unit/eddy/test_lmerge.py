"""FROM LMERGE(..) by hand: what enters, what is taken back, who decides, and how a merge lives with its inputs (semantics 36)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from eddy import EddyError, Engine
from eddy.commit import ends
from eddy.operators.template import Member
from eddy.operators.tree_query import TreeQuery
from tests.reference.reloading import reloaded

COLUMNS = {"k": "int", "ts": "timestamp"}


def make(*streams: str, **options: Any) -> Engine:
    engine = Engine()
    for name in streams or ("a", "b", "c"):
        engine.create_stream(name, COLUMNS, time="ts", **options)
    return engine


def push(engine: Engine, stream: str, *rows: tuple[int, int]) -> None:
    engine.push(stream, {"k": [k for k, _ in rows], "ts": [ts for _, ts in rows]})


def shown(engine: Engine, name: str = "q") -> list[int]:
    return engine.answer(name).column("k").to_pylist()


def signed(engine: Engine, name: str = "q") -> list[tuple[int, int, int]]:
    """Sign, value and time in seconds of every change."""
    changes = engine.changes(name, since=0)
    return [(change.sign, change.row["k"], int(change.time.timestamp())) for change in changes]


def refused(fn: Any, *args: Any) -> EddyError:
    with pytest.raises(EddyError) as caught:
        fn(*args)
    return caught.value


# ---- streams


def test_a_row_enters_as_soon_as_one_stream_gives_it_and_once() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "b", (1, 1_000), (2, 2_000))
    assert shown(engine) == [1, 2]
    push(engine, "a", (1, 1_000), (2, 2_000), (3, 3_000))
    assert shown(engine) == [1, 2, 3]
    push(engine, "b", (3, 3_000), (4, 4_000))
    assert shown(engine) == [1, 2, 3, 4]
    engine.check()


def test_what_the_stream_that_moves_the_point_lacks_is_taken_back_at_the_clock() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "a", (1, 1_000))
    push(engine, "b", (1, 1_000), (7, 1_000))
    assert shown(engine) == [1, 7], "both stand at 1 s: nobody has passed it"
    push(engine, "a", (2, 5_000))
    assert shown(engine) == [1, 2] and signed(engine) == [(1, 1, 1), (1, 7, 1), (-1, 7, 5), (1, 2, 5)]


def test_what_the_stream_that_moves_the_point_has_stays_also_if_another_lacks_it() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "b", (1, 1_000), (7, 1_000))
    push(engine, "a", (1, 1_000))
    push(engine, "b", (2, 5_000))
    assert shown(engine) == [1, 7, 2]


def test_a_row_below_the_point_is_settled() -> None:
    engine = make()
    query = engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "a", (1, 1_000), (2, 5_000))
    push(engine, "b", (1, 1_000), (9, 3_000), (2, 5_000))
    assert shown(engine) == [1, 2]
    (merge,) = [operator for operator in engine.explain(query)["operators"] if "merge" in operator]
    assert {word: merge["holds"][word] for word in ("out", "settled", "known", "taken_back")} == {
        "out": 2, "settled": 2, "known": 1, "taken_back": 0,
    }  # fmt: skip


def test_equal_rows_of_one_time_are_told_apart_by_their_rank() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "a", (1, 1_000), (1, 1_000))
    push(engine, "b", (1, 1_000))
    assert shown(engine) == [1, 1]
    push(engine, "b", (1, 1_000), (1, 1_000))
    assert shown(engine) == [1, 1, 1]
    push(engine, "a", (2, 2_000))
    assert shown(engine) == [1, 1, 2], "the third goes: a has two"


def test_of_streams_at_the_same_point_the_first_named_decides() -> None:
    for order, kept in (("a, b", [1, 3]), ("b, a", [2, 3])):
        engine = make()
        engine.submit(f"SELECT k FROM LMERGE({order}) [RANGE 1 HOUR] AS r", name="q")
        engine.push_many({"b": {"k": [2, 3], "ts": [1_000, 2_000]}, "a": {"k": [1, 3], "ts": [1_000, 2_000]}})
        assert shown(engine) == kept, "what comes and is decided in one commit never enters"
        assert all(sign > 0 for sign, _, _ in signed(engine))


def test_advance_lets_the_first_named_decide() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "b", (1, 1_000), (2, 2_000))
    engine.advance(3_000)
    assert shown(engine) == [1], "b moved the point to 2 s alone; at 2 s, a has nothing"


def test_a_late_row_has_the_time_that_its_stream_gives_it() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "a", (1, 5_000))
    push(engine, "a", (2, 1_000))
    assert shown(engine) == [1, 2], "it is at the front of a, as in a alone"


def test_a_stream_without_a_window_gives_each_row_once_and_takes_nothing_back() -> None:
    engine = make()
    query = engine.submit("SELECT k FROM LMERGE(a, b) AS r WHERE k > 0", name="q")
    assert query.kind == "stream" and query.update_pattern == "monotonic"
    push(engine, "a", (1, 1_000), (0, 1_000))
    push(engine, "b", (1, 1_000), (7, 1_000))
    push(engine, "a", (2, 2_000))
    assert shown(engine) == [1, 7, 2] and signed(engine) == [(1, 1, 1), (1, 7, 1), (1, 2, 2)]


def test_a_row_that_is_taken_back_leaves_its_place_among_the_newest_rows_empty() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [ROWS 2] AS r", name="q")
    push(engine, "a", (1, 1_000))
    push(engine, "b", (1, 1_000), (7, 1_000))
    push(engine, "b", (8, 1_000))
    assert shown(engine) == [7, 8]
    engine.advance(2_000)
    assert shown(engine) == [], "no older row returns"
    push(engine, "a", (2, 3_000))
    assert shown(engine) == [2]


def test_rows_that_lag_behind_the_timeline_begin_at_its_clock_and_end_by_their_time() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 10 SECONDS] AS r", name="q")
    push(engine, "c", (0, 8_000))
    push(engine, "a", (1, 1_000), (2, 4_000))
    assert shown(engine) == [1, 2] and signed(engine) == [(1, 1, 8), (1, 2, 8)]
    push(engine, "c", (0, 11_000))
    assert shown(engine) == [2] and signed(engine)[2:] == [(-1, 1, 11)]


def test_a_row_that_is_over_when_it_comes_is_not_shown() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [ROWS 2 RANGE 2 SECONDS] AS r", name="q")
    push(engine, "a", (1, 14_500))
    push(engine, "c", (0, 16_000))
    push(engine, "a", (2, 14_500), (3, 14_500))
    assert shown(engine) == [2, 3]
    push(engine, "c", (0, 20_000))
    push(engine, "a", (4, 15_000), (5, 19_000))
    assert shown(engine) == [5] and (1, 4, 20) not in signed(engine)


def test_stored_rows_enter_in_order_of_their_times() -> None:
    engine = make(keep=3_600_000)
    push(engine, "b", (5, 10_000))
    push(engine, "c", (0, 12_000))
    push(engine, "a", (1, 7_000), (2, 10_000))
    engine.submit("SELECT k FROM LMERGE(a, b) [ROWS 2] AS r", name="q", history="window")
    assert sorted(shown(engine)) == [2, 5], "1 is older, though it came after 5"


@pytest.mark.parametrize("between", [False, True])
def test_an_input_that_was_paused_has_given_nothing(between: bool) -> None:
    engine = make()
    engine.submit("SELECT k, ts FROM a WHERE k > 0", name="above")
    engine.submit("SELECT k FROM LMERGE(above, b) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "a", (1, 1_000), (2, 1_000))
    engine.pause("above")
    if between:
        push(engine, "b", (3, 1_000))
    engine.resume("above")
    push(engine, "a", (1, 1_000))
    assert shown(engine) == ([1, 2, 3] if between else [1, 2]), "its first copy is the one that stands"
    engine.advance(2_000)
    assert shown(engine) == [1], "it has not given 2 again, nor 3"


@pytest.mark.parametrize("history", ["new", "window"])
def test_history_shows_what_is_stored_as_one_commit(history: str) -> None:
    engine = make(keep=3_600_000)
    push(engine, "a", (1, 1_000), (2, 2_000))
    push(engine, "b", (1, 1_000), (7, 1_500), (3, 3_000))
    query = engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r", name="q", history=history)
    rows = engine.submit("SELECT k FROM LMERGE(a, b) [ROWS 2] AS r", name="rows", history=history)
    assert shown(engine) == ([1, 7, 3] if history == "window" else []), "b is furthest"
    assert shown(engine, "rows") == ([7, 3] if history == "window" else [])
    assert query.complete_since is not None
    assert query.complete_since.timestamp() == (3 if history == "window" else 3_603), "the last row missed was at 3 s"
    push(engine, "a", (9, 2_500), (3, 3_000), (4, 4_000))
    assert shown(engine) == ([1, 7, 3, 4] if history == "window" else [3, 4]), "2.5 s is settled either way"
    assert rows.kind == "relation"


def test_changes_by_event_are_those_of_instants() -> None:
    engine = make()
    engine.submit("SELECT k FROM LMERGE(a, b) [RANGE 2 SECONDS] AS r", name="q", emit="event")
    push(engine, "a", (1, 1_000), (2, 2_000), (3, 4_000))
    assert signed(engine) == [(1, 1, 1), (1, 2, 2), (-1, 1, 3), (-1, 2, 4), (1, 3, 4)]


def test_a_stream_made_by_a_query_is_an_input_whose_point_is_the_clock() -> None:
    engine = make()
    engine.submit("SELECT k, ts FROM a WHERE k > 0", name="above")
    engine.submit("SELECT k FROM LMERGE(b, above) [RANGE 1 HOUR] AS r", name="q")
    push(engine, "b", (5, 1_000))
    push(engine, "a", (0, 1_000), (1, 1_000))
    assert shown(engine) == [5, 1]
    push(engine, "a", (2, 2_000))
    assert shown(engine) == [1, 2], "5 goes: it is not in the query, which stands at 2 s"
    push(engine, "b", (6, 1_500))
    assert shown(engine) == [1, 2]


def test_merges_stack_with_everything() -> None:
    engine = make()
    engine.create_table("names", {"k": "int", "name": "string"}, key="k")
    engine.upsert("names", {"k": [1, 2], "name": ["one", "two"]})
    texts = {
        "joined": "SELECT r.k, names.name FROM LMERGE(a, b) [RANGE 1 HOUR] AS r, names WHERE r.k = names.k",
        "self": "SELECT r.k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r, LMERGE(b, a) [RANGE 1 HOUR] AS s "
        "WHERE r.k = s.k AND r.ts = s.ts",
        "without": "SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r EXCEPT ALL SELECT k FROM c [RANGE 1 HOUR]",
        "counted": "SELECT COUNT(DISTINCT k) AS k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r HAVING COUNT(*) > 2",
        "changes": "ISTREAM (SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r)",
        "again": "SELECT k FROM LMERGE(changes, left) [RANGE 1 HOUR] AS r",
        "answers": "RSTREAM (SELECT COUNT(*) AS k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r)",
    }  # fmt: skip
    engine.submit("DSTREAM (SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r)", name="left")
    for name, sql in texts.items():
        engine.submit(sql, name=name)
    push(engine, "a", (1, 1_000), (2, 2_000))
    push(engine, "c", (2, 2_000))
    push(engine, "b", (1, 1_000), (2, 2_000), (7, 2_000), (3, 3_000))
    assert shown(engine, "joined") == [1, 2] and sorted(shown(engine, "self")) == [1, 2, 3, 7]
    assert sorted(shown(engine, "without")) == [1, 3, 7] and shown(engine, "counted") == [4]
    push(engine, "a", (3, 3_000), (4, 4_000))
    assert sorted(shown(engine, "self")) == [1, 2, 3, 4, 7], "7 was decided by b, which moved the point to 3 s"
    assert (
        shown(engine, "changes") == [1, 2, 7, 3, 4] and shown(engine, "again") == [1, 2, 7, 3, 4] and shown(engine, "left") == []
    )
    assert shown(engine, "answers") == [1, 3, 4]
    engine.check()


def test_a_call_that_is_cut_into_commits_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for most in (ends.MAX_ENDS, 5):
        monkeypatch.setattr(ends, "MAX_ENDS", most)
        engine = make()
        for window in ("[RANGE 3 SECONDS]", "[ROWS 7]", "[NOW]"):
            engine.submit(f"SELECT k FROM LMERGE(a, b) {window} AS r", name=f"w{len(engine.queries)}", emit="event")
        push(engine, "b", *((k, 100 * k) for k in range(0, 30, 2)))
        push(engine, "a", *((k, 100 * k) for k in range(0, 60, 2)))
        found.append([(shown(engine, name), signed(engine, name)) for name in engine.queries])
        assert (engine.stats()["seq"] > 2) == (most == 5), "it is cut"
    assert found[0] == found[1]


# ---- relations


def relations() -> Engine:
    engine = make()
    for name in ("a", "b"):
        engine.submit(f"SELECT k, COUNT(*) AS n FROM {name} [RANGE 1 HOUR] GROUP BY k", name=f"n{name}")
    engine.submit("SELECT k, n FROM LMERGE(na, nb) AS r", name="q")
    return engine


def test_of_relations_the_first_that_runs_is_shown_and_the_next_while_it_is_paused() -> None:
    engine = relations()
    push(engine, "a", (1, 1_000))
    push(engine, "b", (1, 1_000), (2, 2_000))
    assert shown(engine) == [1]
    engine.pause("na")
    assert shown(engine) == [1], "a pause is no commit"
    push(engine, "b", (3, 3_000))
    assert sorted(shown(engine)) == [1, 2, 3]
    assert signed(engine) == [(1, 1, 1), (1, 2, 3), (1, 3, 3)], "what both have stays"
    engine.resume("na")
    push(engine, "a", (4, 4_000))
    assert shown(engine) == [4], "a resumed query counts from its resume on"
    assert Counter(signed(engine)[3:]) == Counter({(-1, k, 4): 1 for k in (1, 2, 3)} | {(1, 4, 4): 1})
    engine.check()


def test_with_all_inputs_paused_the_merge_waits() -> None:
    engine = relations()
    push(engine, "a", (1, 1_000))
    engine.pause("na")
    engine.pause("nb")
    push(engine, "a", (2, 2_000))
    engine.advance(7_200_000)
    assert shown(engine) == [1]
    other = reloaded(engine)
    for one in (engine, other):
        one.resume("nb")
        push(one, "b", (5, 7_200_000))
        assert shown(one) == [5]
        one.check()


def test_a_query_that_is_merged_may_be_paused_but_neither_cancelled_nor_replaced() -> None:
    engine = relations()
    assert refused(engine.cancel, "na").code == "in_use"
    assert refused(engine.replace, "na", "SELECT k, COUNT(*) AS n FROM c [NOW] GROUP BY k").code == "in_use"
    engine.submit("SELECT k FROM na", name="reader")
    error = refused(engine.pause, "na")
    assert error.code == "in_use" and error.detail == "queries: reader"
    engine.cancel("reader")
    engine.pause("na")
    assert refused(engine.cancel, "na").code == "in_use"
    assert refused(engine.submit, "SELECT k FROM LMERGE(na, nb) AS r").code == "paused"
    engine.cancel("q")
    engine.cancel("na")


def test_a_query_that_reads_one_in_a_merge_and_beside_it_needs_it() -> None:
    engine = relations()
    engine.submit("SELECT r.k FROM LMERGE(na, nb) AS r, na WHERE r.k = na.k", name="both")
    assert refused(engine.pause, "na").detail == "queries: both"
    engine.pause("nb")


def test_a_merge_is_paused_resumed_and_replaced_while_an_input_is_paused() -> None:
    engine = relations()
    push(engine, "a", (1, 1_000))
    push(engine, "b", (2, 2_000))
    engine.pause("q")
    engine.pause("na")
    engine.resume("q")
    assert shown(engine) == [2]
    engine.resume("na")
    push(engine, "a", (3, 3_000))
    assert shown(engine) == [3]
    engine.replace("q", "SELECT k, n FROM LMERGE(nb, na) AS r")
    assert shown(engine) == [2]
    engine.check()


def test_windows_of_streams_stand_beside_relations() -> None:
    engine = make()
    engine.submit("SELECT k, ts FROM b [RANGE 1 HOUR]", name="backup")
    engine.submit("SELECT k FROM LMERGE(a, backup) [RANGE 5 SECONDS] AS r", name="q")
    push(engine, "a", (1, 1_000))
    assert shown(engine) == [1]
    push(engine, "b", (2, 2_000))
    assert shown(engine) == [2], "a lags: it stands at 1 s"
    push(engine, "a", (3, 2_000))
    assert shown(engine) == [1, 3]
    engine.pause("backup")
    push(engine, "c", (0, 4_000))
    assert shown(engine) == [1, 3], "nobody else has a say"
    push(engine, "c", (0, 6_500))
    assert shown(engine) == [3]


def test_keyed_streams_are_merged_by_their_windows() -> None:
    engine = make("a")
    for name in ("x", "y"):
        engine.create_stream(name, COLUMNS, time="ts", key="k")
        engine.submit(f"SELECT k, ts FROM {name} [RANGE 1 HOUR]", name=f"w{name}")
    engine.submit("SELECT k FROM LMERGE(wx, wy) AS r", name="q")
    push(engine, "x", (1, 1_000), (2, 1_000))
    engine.retract("x", [1], 2_000)
    assert shown(engine) == [2] and signed(engine) == [(1, 1, 1), (1, 2, 1), (-1, 1, 2)]


# ---- beside the engine


def test_explain_says_case_and_who_decides() -> None:
    engine = relations()
    push(engine, "a", (1, 1_000))
    (merge,) = [operator["merge"] for operator in engine.explain("q")["operators"] if "merge" in operator]
    assert (merge["case"], merge["kind"], merge["inputs"]) == ("R3", "relation", ["na", "nb"])
    assert merge["properties"] == "payload and start are a key" and merge["why"].startswith("events may change")
    assert merge["differs"] == "from na only where that lags or is paused"
    assert merge["deciding"] == "na" and set(merge["points"]) == {"na", "nb"}
    engine.pause("na")
    (merge,) = [operator["merge"] for operator in engine.explain("q")["operators"] if "merge" in operator]
    assert merge["points"]["na"] is None
    text = "SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r"
    (merge,) = [operator["merge"] for operator in engine.explain(text)["operators"] if "merge" in operator]
    assert (merge["case"], merge["kind"], merge["policy"], merge["missing"]) == ("R2", "stream", "first", "leader")
    assert "deciding" not in merge, "it does not run"
    assert engine.explain(text)["update_pattern"] == "strict"
    assert engine.explain("q")["plan"]["decided"].startswith("never: a merge")


def test_trace_follows_a_row_through_a_merge() -> None:
    engine = relations()
    engine.submit("SELECT k FROM LMERGE(a, c) [RANGE 1 HOUR] AS r", name="streams")
    push(engine, "a", (1, 1_000))
    found = engine.trace("a", {"k": 1, "ts": 1_000})
    assert set(found["matched"]) == {"na", "q", "streams"}
    (above,) = found["above"]["streams"]
    assert {"side": "input a of LMERGE(a, c)"} in above["facts"] and {"window": "[RANGE 1 HOUR]"} in above["facts"]
    assert {"answer": "a row with its values is shown"} in above["facts"]
    engine.pause("na")
    found = engine.trace("a", {"k": 1, "ts": 1_000})
    assert found["refused"]["q"]["reason"] == "the query by which it would come is paused"


def test_inputs_are_on_one_timeline() -> None:
    engine = make("a")
    engine.create_stream("far", COLUMNS, time="ts", timeline="other")
    error = refused(engine.submit, "SELECT k FROM LMERGE(a, far) AS r")
    assert error.code == "two_timelines" and error.fact == '"far" is on timeline "other", not on "main"'


def test_merged_streams_that_take_nothing_back_are_inputs_too() -> None:
    engine = make("a")
    engine.create_merge("m", COLUMNS, time="ts", inputs=("x", "y"), unique=True)
    engine.create_merge("first", COLUMNS, time="ts", inputs=("x", "y"), unique=True, policy="first")
    engine.submit("SELECT k FROM LMERGE(a, m) [RANGE 1 HOUR] AS r", name="q")
    assert refused(engine.submit, "SELECT k FROM LMERGE(a, first) AS r").code == "bad_merge_input"
    engine.push("m", {"k": [1, 2], "ts": [1_000, 2_000]}, input="x")
    push(engine, "a", (1, 1_000))
    assert shown(engine) == [1]


def test_the_state_of_a_merge_is_what_stands_at_one_instant() -> None:
    engine = make()
    query = engine.submit("SELECT k FROM LMERGE(a, b) [NOW] AS r", name="q")
    assert isinstance(query, TreeQuery) and isinstance(query.operation, Member)
    push(engine, "a", (0, 0))
    before = query.operation.bytes
    for at in range(1, 200):
        engine.push_many({name: {"k": list(range(50)), "ts": [at] * 50} for name in ("a", "b")})
    engine.advance(10_000)
    push(engine, "a", (0, 10_000))
    assert query.operation.bytes == before
    engine.check()


def test_a_query_over_queries_that_read_queries_can_be_dumped_at_once() -> None:
    engine = relations()
    engine.submit("SELECT k FROM q WHERE n > 0", name="above")
    engine.submit("SELECT k FROM above", name="top")
    assert list(reloaded(engine).queries) == ["na", "nb", "q", "above", "top"]
