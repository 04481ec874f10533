"""Every clause of the window language with wrong input: an error with its place and a hint, and nothing has changed."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from eddy import ConflictError, EddyError, Engine, InUseError, NotFoundError, QueryError
from tests.unit.eddy.digest import READINGS, assert_refused, digest, row

Bad = tuple[Callable[[Engine], Any], type[EddyError], str, dict[str, Any], str]


def nested(levels: int) -> str:
    """A query of so many SELECTs inside each other."""
    text = "SELECT sensor FROM readings [NOW]"
    for level in range(levels - 1):
        text = f"SELECT sensor FROM ({text}) AS a{level}"
    return text


def engine_with_operators() -> Engine:
    """Queries with operators, some read by others, with rows in their state."""
    engine = Engine(seed=1)
    engine.create_stream("readings", READINGS, time="ts")
    engine.create_stream("arrivals", {"v": "int"})
    engine.create_stream("elsewhere", {"v": "int", "ts": "timestamp"}, time="ts", timeline="plant")
    engine.create_table("rooms", {"room": "string", "floor": "int"}, key="room", retroactive=True)
    engine.submit("SELECT room, COUNT(*) AS n FROM readings [RANGE 1 MINUTE] GROUP BY room HAVING COUNT(*) > 1", name="groups")
    engine.submit("SELECT room FROM groups WHERE n > 2", name="many")
    engine.submit("ISTREAM (SELECT DISTINCT sensor FROM readings [RANGE 1 SECOND])", name="fresh")
    engine.submit("SELECT sensor FROM readings [ROWS 5] EXCEPT SELECT sensor FROM readings [NOW]", name="old")
    engine.submit("SELECT window_end, MAX(temp) AS top FROM TUMBLE(readings, 1 SECOND) GROUP BY window_end", name="tops")
    engine.submit("SELECT sensor FROM readings [NOW]", name="paused")
    engine.push("readings", [row(1000 + 300 * k, sensor=k % 4, room=f"room {k % 3}") for k in range(12)])
    engine.pause("paused")
    return engine


def sql(text: str, code: str, column: int, hint: str, **options: Any) -> Bad:
    """A text that is refused at a column of its first line."""
    return lambda e: e.submit(text, **options), QueryError, code, {"line": 1, "column": column}, hint


def option(hint: str, **options: Any) -> Bad:
    return lambda e: e.submit("SELECT sensor FROM readings [NOW]", **options), EddyError, "bad_option", {}, hint


W, ZERO = timedelta(seconds=5), timedelta(0)

GROUPS: list[Bad] = [
    sql("SELECT room, COUNT(*) FROM readings [NOW] GROUP BY room HAVING tempp > 1", "unknown_column", 64, 'did you mean "temp"?'),
    sql("SELECT room, COUNT(*) FROM readings [NOW] GROUP BY room HAVING temp > 1", "not_grouped", 64, "GROUP BY"),
    sql("SELECT room, COUNT(*) FROM readings [NOW] GROUP BY room HAVING COUNT(*)", "type_mismatch", 64, "compare it"),
    sql("SELECT room, COUNT(*) FROM readings [NOW] GROUP BY room HAVING room > 3", "type_mismatch", 64, "CAST"),
    sql("SELECT sensor FROM readings [NOW] HAVING COUNT(*) > 1", "not_grouped", 8, "GROUP BY"),
    sql("SELECT * FROM readings [NOW] GROUP BY room", "not_grouped", 8, "GROUP BY"),
    sql("SELECT room FROM readings [NOW] GROUP BY roomm", "unknown_column", 42, 'did you mean "room"?'),
    sql("SELECT room FROM readings [NOW] GROUP BY 3", "bad_group", 42, "from 1"),
    sql("SELECT COUNT(*) FROM readings [NOW] GROUP BY COUNT(*)", "misplaced_aggregate", 46, "HAVING"),
    sql("SELECT COUNT(*) FROM readings [NOW] GROUP BY", "syntax_error", 45, "missing"),
    sql("SELECT room FROM readings [NOW] WHERE COUNT(*) > 1 GROUP BY room", "misplaced_aggregate", 39, "HAVING"),
    sql("SELECT SUM(COUNT(*)) FROM readings [NOW]", "misplaced_aggregate", 12, "in FROM"),
    sql("SELECT SUM(room) FROM readings [NOW]", "type_mismatch", 12, "any column"),
    sql("SELECT SUM(*) FROM readings [NOW]", "wrong_arguments", 12, "SUM(x)"),
    sql("SELECT COUNT(sensor, temp) FROM readings [NOW]", "wrong_arguments", 20, "COUNT(*)"),
    sql("SELECT SUM(DISTINCT sensor) FROM readings [NOW]", "not_supported", 12, "COUNT(DISTINCT x)"),
    sql("SELECT COUNT(*) FILTER (WHERE temp) FROM readings [NOW]", "type_mismatch", 31, "compare it"),
    sql("SELECT COUNT(*) FILTER (temp > 1) FROM readings [NOW]", "syntax_error", 25, "WHERE"),
    sql("SELECT ABS(temp) FILTER (WHERE ok) FROM readings [NOW]", "not_supported", 18, "SUM(x)"),
    sql("SELECT MEDIAN(temp) FROM readings [RANGE UNBOUNDED]", "unbounded_aggregate", 8, "for ever"),
    sql("SELECT COUNT(DISTINCT room) FROM readings [RANGE UNBOUNDED]", "unbounded_aggregate", 8, "for ever"),
    sql("SELECT QUANTILE(temp, 0.5) FROM readings [NOW]", "not_supported", 8, "later"),
    sql("SELECT SUM(temp) OVER () FROM readings [NOW]", "not_supported", 18, "behind the stream"),
    sql("SELECT room, COUNT(*) FROM readings GROUP BY room", "missing_window", 28, "[ROWS 100]"),
    sql("SELECT DISTINCT room FROM readings", "missing_window", 27, "[ROWS 100]"),
    sql("SELECT DISTINCT FROM readings [NOW]", "syntax_error", 17, "SELECT *"),
]  # fmt: skip

SETS: list[Bad] = [
    sql("SELECT sensor FROM readings [NOW] UNION SELECT room FROM readings [NOW]", "type_mismatch", 48, "CAST"),
    sql("SELECT sensor FROM readings [NOW] UNION SELECT sensor, room FROM readings [NOW]", "column_count", 35, "by their place"),
    sql("SELECT sensor FROM readings [NOW] EXCEPT SELECT sensor FROM readings", "missing_window", 61, "[ROWS 100]"),
    sql("SELECT sensor FROM readings [NOW] INTERSECT ISTREAM (SELECT sensor FROM readings [NOW])", "missing_window", 45, "as a source"),
    sql("SELECT sensor FROM readings [NOW] UNION", "syntax_error", 40, "SELECT"),
    sql("SELECT sensor FROM readings [NOW] EXCEPT SELECT v FROM elsewhere [NOW]", "two_timelines", 56, "one timeline"),
    sql("SELECT sensor FROM readings [NOW] MINUS SELECT sensor FROM readings [NOW]", "not_supported", 35, "EXCEPT"),
    sql("SELECT sensor FROM readings [NOW] UNION BY NAME SELECT sensor FROM readings [NOW]", "not_supported", 41, "by their place"),
]  # fmt: skip

WINDOWS: list[Bad] = [
    sql("SELECT * FROM TUMBLE(readings)", "syntax_error", 30, "TUMBLE(stream, 5 MINUTES)"),
    sql("SELECT * FROM TUMBLE(readings, 0 SECONDS)", "bad_window", 32, "[NOW]"),
    sql("SELECT * FROM TUMBLE(readings, temp, 1 SECOND)", "bad_window", 32, 'that is "ts"'),
    sql("SELECT * FROM TUMBLE(readings, tss, 1 SECOND)", "unknown_column", 32, 'did you mean "ts"?'),
    sql("SELECT * FROM TUMBLE(arrivals, v, 1 SECOND)", "bad_window", 32, "left out"),
    sql("SELECT * FROM TUMBLE(rooms, 1 SECOND)", "table_window", 29, "only a stream"),
    sql("SELECT * FROM TUMBLE(groups, 1 SECOND)", "relation_window", 30, "ISTREAM"),
    sql("SELECT * FROM TUMBLE(fresh, ts, 1 SECOND)", "bad_window", 29, "leave the column out"),
    sql("SELECT * FROM TUMBLE(readings, 5)", "bad_interval", 33, "SECONDS"),
    sql("SELECT * FROM TUMBLE(readings, 5 SECONDS) [NOW]", "syntax_error", 43, "behind the stream"),
    sql("SELECT * FROM HOP(readings, 5 SECONDS)", "syntax_error", 38, "HOP(stream, 1 MINUTE, 5 MINUTES)"),
    sql("SELECT * FROM HOP(readings, 0 SECONDS, 5 SECONDS)", "bad_window", 29, "[NOW]"),
    sql("SELECT * FROM SESSION(readings, 5 SECONDS)", "not_supported", 15, "later"),
    sql("SELECT * FROM readings [RANGE 5 SECONDS SLIDE 0 SECONDS]", "bad_window", 47, "[NOW]"),
    sql("SELECT * FROM readings [SLIDE 5 SECONDS]", "not_supported", 25, "SLIDE 1 MINUTE"),
    sql("SELECT * FROM readings [RANGE UNBOUNDED SLIDE 5 SECONDS]", "syntax_error", 41, "SLIDE 1 MINUTE"),
    sql("SELECT * FROM readings [ROWS 5 SLIDE 5 SECONDS]", "syntax_error", 32, "SLIDE 1 MINUTE"),
    sql("SELECT * FROM readings [RANGE :w SLIDE :s]", "bad_param", 40, "timedelta", params={"w": W, "s": 3}),
    sql("SELECT * FROM readings [RANGE :w SLIDE :s]", "bad_window", 40, "[NOW]", params={"w": W, "s": ZERO}),
    sql("SELECT * FROM readings [RANGE :w SLIDE :s]", "missing_param", 40, 'params={"s"', params={"w": W}),
    sql("SELECT * FROM readings [ROWS 0]", "bad_window", 30, "[ROWS 100]"),
    sql("SELECT * FROM readings [ROWS :n]", "bad_param", 30, "whole number", params={"n": True}),
    sql("SELECT * FROM readings [PARTITION BY nope ROWS 1]", "unknown_column", 38, "there are: sensor"),
    sql("SELECT * FROM readings [PARTITION BY room]", "syntax_error", 42, "needs ROWS"),
]  # fmt: skip

QUERIES: list[Bad] = [
    sql(nested(17), "query_too_deep", 1 + nested(17).index("FROM readings") - len("SELECT sensor "), "by itself"),
    sql("SELECT * FROM (SELECT sensor FROM readings [NOW])", "missing_alias", 15, "AS"),
    sql("SELECT * FROM (SELECT sensor FROM readings [NOW]) [RANGE 1 SECOND] AS a", "relation_window", 52, "ISTREAM"),
    sql("SELECT * FROM groups [RANGE 1 SECOND]", "relation_window", 23, "ISTREAM"),
    sql("SELECT * FROM grups", "unknown_stream", 15, 'did you mean "groups"?'),
    sql("SELECT m FROM groups", "unknown_column", 8, "there are: room, n"),
    sql("SELECT * FROM paused", "paused", 15, "resume it first"),
    sql("SELECT * FROM fresh, groups", "missing_window", 15, "[ROWS 100]"),
    sql("SELECT COUNT(*) FROM fresh", "missing_window", 22, "[ROWS 100]"),
    sql("SELECT 1 FROM (SELECT sensor FROM readings [RANGE UNBOUNDED]) AS a, readings [NOW] b", "unbounded_join", 15, "for ever"),
    sql("SELECT e.v FROM elsewhere [NOW] e, groups g", "two_timelines", 36, "one timeline"),
    sql("WITH a AS (SELECT sensor FROM readings [NOW]) SELECT x FROM a", "unknown_column", 54, "sensor"),
    sql("WITH a AS (SELECT sensor FROM readings [NOW])", "syntax_error", 46, "SELECT"),
    sql("WITH a AS (SELECT 1 FROM rooms), a AS (SELECT 2 FROM rooms) SELECT * FROM a", "duplicate_alias", 34, "rename"),
    sql("WITH a AS (SELECT sensor FROM a) SELECT * FROM a", "unknown_stream", 31, "there are: readings"),
    sql("WITH RECURSIVE a AS (SELECT sensor FROM a) SELECT * FROM a", "not_supported", 6, ""),
    sql("WITH a AS (SELECT sensor FROM readings [NOW]) SELECT * FROM a [RANGE 1 SECOND]", "relation_window", 64, "ISTREAM"),
    sql("ISTREAM SELECT sensor FROM readings [NOW]", "syntax_error", 1, "ISTREAM (SELECT ...)"),
    sql("DSTREAM (SELECT sensor FROM readings)", "missing_window", 1, "leave it out"),
    sql("RSTREAM (SELECT sensor FROM fresh)", "missing_window", 1, "leave it out"),
    sql("SELECT ISTREAM (sensor) FROM readings [NOW]", "not_supported", 8, "around a query"),
    sql("SELECT sensor FROM readings [NOW] WHERE room IN (SELECT room FROM rooms)", "not_supported", 46, "list the values"),
    (lambda e: e.cancel("groups"), InUseError, "in_use", {"detail": "queries: many"}, "cancel them first"),
    (lambda e: e.pause("groups"), InUseError, "in_use", {"detail": "queries: many"}, "cancel them first"),
    (lambda e: e.replace("groups", "SELECT room, 1 AS n FROM readings [NOW]"), InUseError, "in_use", {}, "cancel them first"),
    (lambda e: e.replace("many", "SELECT room, 1 AS n FROM readings [NOW]"), ConflictError, "other_columns", {}, "AS"),
    (lambda e: e.replace("old", "SELECT sensor FROM old"), ConflictError, "reads_itself", {}, "another name"),
    (lambda e: e.replace("fresh", "SELECT sensor FROM readings [NOW]"), ConflictError, "other_kind", {}, "leave out the window"),
    (lambda e: e.drop("groups"), NotFoundError, "unknown_stream", {}, '"groups" is a query'),
    (lambda e: e.push("groups", {"room": ["a"]}), NotFoundError, "unknown_stream", {}, '"groups" is a query'),
]  # fmt: skip

OPTIONS: list[Bad] = [
    option("update-pattern", expiry="never"),
    option("update-pattern", expiry=5),
    option("update-pattern", expiry=[]),
    option('"commit" or "event"', emit="row"),
    option('"commit" or "event"', emit=None),
    option('"commit" or "event"', emit=[]),
]

_ENGINE: list[tuple[Engine, dict[str, str]]] = []


@pytest.fixture
def engine() -> tuple[Engine, dict[str, str]]:
    """One engine for all of them, and its digest: what changes nothing can be repeated for ever."""
    if not _ENGINE:
        made = engine_with_operators()
        made.check()  # makes what it looks at, the first time
        _ENGINE.append((made, digest(made)))
    return _ENGINE[0]


@pytest.mark.parametrize(
    ("call", "kind", "code", "place", "hint"),
    [
        pytest.param(*bad, id=f"{kind}{i}")
        for kind, cases in (("groups", GROUPS), ("sets", SETS), ("windows", WINDOWS), ("queries", QUERIES), ("options", OPTIONS))
        for i, bad in enumerate(cases)
    ],
)
def test_wrong_input_of_the_window_language_is_refused_with_its_place_and_changes_nothing(
    engine: tuple[Engine, dict[str, str]], call: Callable[[Engine], Any], kind: type[EddyError], code: str, place: dict[str, Any],
    hint: str,
) -> None:  # fmt: skip
    made, before = engine
    try:
        assert_refused(made, call, kind, code, place, hint, before)
    except BaseException:
        # one mistake found must not spoil the tests that follow
        _ENGINE.clear()
        raise


def test_an_engine_does_not_start_with_an_unknown_expiry_word() -> None:
    with pytest.raises(EddyError) as error:
        Engine(expiry="never")
    assert (error.value.code, "piggyback" in error.value.hint) == ("bad_option", True)


def test_the_digest_sees_what_happens_to_queries_with_operators() -> None:
    engine = engine_with_operators()
    last = digest(engine)
    for call in (
        lambda: engine.push("readings", [row(5000, sensor=9)]),
        lambda: engine.advance(6000),
        lambda: engine.submit("SELECT COUNT(*) FROM groups", name="n_groups"),
        lambda: engine.cancel("n_groups"),
        lambda: engine.pause("old"),
        lambda: engine.resume("old"),
        lambda: engine.replace("old", "SELECT DISTINCT sensor FROM readings [ROWS 2]"),
        lambda: engine.submit("SELECT room FROM groups EXCEPT SELECT room FROM rooms"),
    ):
        call()
        now = digest(engine)
        assert now != last
        assert digest(engine) == now, "reading changes nothing"
        last = now


def test_running_queries_stand_above_each_other_sixteen_deep_and_no_deeper() -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "int", "ts": "timestamp"}, time="ts")
    below = "s [RANGE 1 SECOND]"
    for level in range(1, 17):
        engine.submit(f"SELECT a + 1 AS a FROM {below}", name=f"level{level}")
        below = f"level{level}"
    engine.push("s", {"a": [1], "ts": [1]})
    assert engine.answer("level16")["a"].to_pylist() == [17]
    place = {"line": 1, "column": 15}
    assert_refused(
        engine, lambda e: e.submit("SELECT a FROM level16"), QueryError, "query_too_deep", place, 'read what "level16" reads'
    )


def test_union_alls_stand_above_each_other_as_long_as_rows_can_be_told_apart() -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "int", "ts": "timestamp"}, time="ts")
    below = "s [RANGE 1 SECOND]"
    for level in range(2):
        text = f"SELECT a + 1 AS a FROM {below}"
        for k in range(10):
            text = f"SELECT a + 1 AS a FROM ({text} UNION ALL SELECT a FROM s [NOW]) AS u{k}"
        engine.submit(text, name=f"level{level}")
        below = f"level{level}"
    engine.push("s", {"a": [1], "ts": [1]})
    assert len(engine.answer("level1")) == 21
    over = "SELECT a FROM level1 UNION ALL SELECT a FROM s [NOW]"
    place = {"line": 1, "column": 1}
    assert_refused(engine, lambda e: e.submit(over), QueryError, "query_too_deep", place, "write them in one")
    engine.submit("SELECT DISTINCT a FROM level1 UNION ALL SELECT a FROM s [NOW]", name="numbered_anew")


def test_a_query_may_be_cancelled_once_its_readers_are() -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "int", "ts": "timestamp"}, time="ts")
    engine.submit("SELECT DISTINCT a FROM s [RANGE 1 SECOND]", name="below")
    engine.submit("SELECT COUNT(*) AS n FROM below", name="above")
    with pytest.raises(InUseError):
        engine.cancel("below")
    engine.cancel("above")
    engine.cancel("below")
    engine.push("s", {"a": [1], "ts": [1]})
    assert not engine.queries
    engine.check()


@pytest.mark.parametrize("n", [2, 5, 64])
def test_a_union_of_many_parts_is_one_operator(n: int) -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "int", "ts": "timestamp"}, time="ts")
    query = engine.submit(" UNION ALL ".join([f"SELECT a + {k} AS a FROM s [RANGE {1 + k % 3} SECONDS]" for k in range(n)]))
    engine.push("s", {"a": [0, 1000], "ts": [1, 1]})
    assert sorted(query.answer()["a"].to_pylist()) == [*range(n), *range(1000, 1000 + n)]
    engine.advance(1500)
    left = [k for k in range(n) if k % 3]
    assert sorted(query.answer()["a"].to_pylist()) == [*left, *(1000 + k for k in left)]
    engine.advance(5000)
    assert query.answer().num_rows == 0
    engine.check()


def test_a_query_that_is_read_in_many_places_at_each_of_sixteen_levels_is_read_once() -> None:
    """Four readers a level would be four to the fifteenth."""
    engine = Engine()
    engine.create_stream("s", {"a": "int", "ts": "timestamp"}, time="ts")
    below = "s [RANGE 1 SECOND]"
    for level in range(16):
        engine.submit(" UNION ".join([f"SELECT a FROM {below} WHERE a > 0"] * 4), name=f"q{level}")
        below = f"q{level}"
    engine.push("s", {"a": [0], "ts": [1]})
    assert engine.answer("q15").num_rows == 0
