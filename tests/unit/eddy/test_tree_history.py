"""What queries with operators see of rows from before them, and from when on they miss none (semantics 16)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from eddy import Engine

T0 = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def at(seconds: float) -> dt.datetime:
    return T0 + dt.timedelta(seconds=seconds)


def filled(*times: float) -> Engine:
    engine = Engine()
    engine.create_stream("s", {"ts": "timestamp[us]", "x": "int"}, time="ts", keep=dt.timedelta(minutes=10))
    for number, time in enumerate(times):
        engine.push("s", [{"ts": at(time), "x": number}])
    return engine


def answer(query: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in query.answer().columns), strict=True))


def test_the_extent_that_is_shown_at_the_submit_holds_rows_from_before() -> None:
    engine = filled(1, 12, 23)
    sliding = engine.submit("SELECT x FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS]", history="window")
    tumbling = engine.submit("SELECT COUNT(*) AS n, MAX(window_end) AS e FROM TUMBLE(s, INTERVAL '10' SECONDS)", history="window")
    hopping = engine.submit("SELECT x, window_start FROM HOP(s, INTERVAL '10' SECONDS, INTERVAL '20' SECONDS)", history="window")
    assert answer(sliding) == [(0,), (1,)]
    assert answer(tumbling) == [(1, at(20))]
    assert answer(hopping) == [(0, at(0)), (1, at(0))]
    engine.advance(at(30))
    assert answer(sliding) == [(1,), (2,)]
    assert answer(tumbling) == [(1, at(30))]
    assert answer(hopping) == [(1, at(10)), (2, at(10))]
    assert [query.complete_since for query in (sliding, tumbling, hopping)] == [at(23)] * 3


def test_rows_that_are_counted_are_counted_from_what_is_stored() -> None:
    engine = filled(1, 2, 3, 4)
    query = engine.submit("SELECT SUM(x) AS x FROM s [ROWS 3]", history="window")
    new = engine.submit("SELECT SUM(x) AS x FROM s [ROWS 3]")
    assert (answer(query), query.complete_since) == ([(6,)], at(4))
    assert (answer(new), new.complete_since) == ([(None,)], None)


def test_a_window_over_a_stream_that_a_query_makes_begins_with_the_query() -> None:
    engine = filled(1, 2)
    query = engine.submit(
        "SELECT x FROM (ISTREAM (SELECT DISTINCT x FROM s [RANGE 5 SECONDS])) [RANGE 10 SECONDS] AS r", history="window"
    )
    assert (answer(query), query.complete_since) == ([], at(12))
    engine.push("s", [{"ts": at(3), "x": 7}])
    assert answer(query) == [(7,)]


@pytest.mark.parametrize(
    ("sql", "since"),
    [
        ("SELECT DISTINCT x FROM s [RANGE 5 SECONDS]", 16),
        ("SELECT COUNT(*) AS n FROM s [RANGE 15 SECONDS SLIDE 10 SECONDS]", 30),
        ("SELECT COUNT(*) AS n FROM TUMBLE(s, INTERVAL '10' SECONDS)", 30),
        ("SELECT x FROM s [RANGE 5 SECONDS] EXCEPT SELECT x FROM s [RANGE 7 SECONDS]", 18),
        ("SELECT x FROM (SELECT x FROM s) [RANGE 4 SECONDS] AS r", 15),
        ("SELECT x FROM (ISTREAM (SELECT DISTINCT x FROM s [RANGE 5 SECONDS])) [RANGE 4 SECONDS] AS r", 20),
        ("SELECT a.x FROM (SELECT DISTINCT x FROM s [RANGE 5 SECONDS]) AS a, (SELECT DISTINCT x FROM s [NOW]) AS b", 16),
        ("SELECT COUNT(*) AS n FROM v", 11),
        ("SELECT x FROM (ISTREAM (SELECT DISTINCT x FROM s [RANGE 5 SECONDS])) [ROWS 4] AS r", None),
        ("SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]", None),
        ("ISTREAM (SELECT DISTINCT x FROM s [RANGE 5 SECONDS])", 16),
    ],
)
def test_a_query_says_from_when_on_it_misses_nothing(sql: str, since: int | None) -> None:
    engine = filled(1, 11)
    engine.submit("SELECT DISTINCT x FROM s [RANGE 1 MINUTE]", name="v")
    query = engine.submit(sql)
    assert query.complete_since == (None if since is None else at(since))


def test_where_no_row_came_before_nothing_is_missed() -> None:
    engine = filled()
    engine.advance(at(5))
    query = engine.submit("SELECT COUNT(*) AS n FROM (SELECT x FROM s) [RANGE UNBOUNDED] AS r")
    assert query.complete_since == at(5)


WINDOWED = {
    "sliding": "SELECT x FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS]",
    "over a stream": "SELECT a.x FROM (ISTREAM (SELECT x FROM s [RANGE UNBOUNDED])) [RANGE 4 SECONDS] AS a",
    "the newest of a stream": "SELECT a.x FROM (ISTREAM (SELECT x FROM s [RANGE UNBOUNDED])) [ROWS 4] AS a",
    "the newest of parts": "SELECT a.x FROM (ISTREAM (SELECT x FROM s [RANGE UNBOUNDED])) [PARTITION BY x ROWS 1] AS a",
}


@pytest.mark.parametrize("word", ["auto", "update-pattern", "negative", "piggyback"])
@pytest.mark.parametrize("kind", WINDOWED)
def test_who_reads_a_running_window_by_name_gets_its_rows_in_the_order_in_which_they_came(kind: str, word: str) -> None:
    """Also once rows have left it and new ones have taken their places."""
    engine = filled(0)
    window = engine.submit(WINDOWED[kind], name="window")
    for number in range(60):
        engine.push("s", [{"ts": at(0.7 * number), "x": 2 * number}, {"ts": at(0.7 * number), "x": 2 * number + 1}])
        shown = sorted(row["x"] for row in window.answer().to_pylist())
        reader = engine.submit("SELECT FIRST(x) AS f, LAST(x) AS l, COUNT(*) AS n FROM window", expiry=word)
        assert answer(reader) == [(shown[0] if shown else None, shown[-1] if shown else None, len(shown))], f"after {number}"
        engine.cancel(reader)
    assert len(shown) > 3
    engine.check()
