"""The bounds of windows in steps as columns: `window_start` and `window_end` of TUMBLE, HOP and `[RANGE w SLIDE s]`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from eddy import EddyError, Engine, Query

COLUMNS = {"k": "int", "v": "int", "ts": "timestamp"}


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    for name in ("s", "r"):
        engine.create_stream(name, COLUMNS, time="ts")
    return engine


def push(engine: Engine, stream: str, *rows: tuple[int, int, int]) -> None:
    engine.push(stream, [dict(zip(COLUMNS, row, strict=True)) for row in rows])


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def rows(query: Query) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in query.answer().to_pylist())


def test_a_star_has_the_bounds_of_the_extent(engine: Engine) -> None:
    query = engine.submit("SELECT * FROM s [RANGE 10 MILLISECONDS SLIDE 5 MILLISECONDS]")
    assert list(query.columns) == ["k", "v", "ts", "window_start", "window_end"]
    push(engine, "s", (1, 2, 3))
    engine.advance(5)
    assert rows(query) == [(1, 2, at(3), at(-5), at(5))]
    engine.advance(10)
    assert rows(query) == [(1, 2, at(3), at(0), at(10))]
    engine.advance(15)
    assert rows(query) == []
    signed = [(change.sign, change.row["window_end"]) for change in query.changes(since=0)]
    assert signed == [(1, at(5)), (-1, at(5)), (1, at(10)), (-1, at(10))]


@pytest.mark.parametrize(
    ("slide", "call"),
    [
        ("s [RANGE 10 MILLISECONDS SLIDE 5 MILLISECONDS]", "HOP(s, INTERVAL '5' MILLISECONDS, INTERVAL '10' MILLISECONDS)"),
        ("s [RANGE 5 MILLISECONDS SLIDE 5 MILLISECONDS]", "TUMBLE(s, ts, INTERVAL '5' MILLISECONDS)"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM {}",
        "SELECT window_end, k FROM {} WHERE window_start >= '1970-01-01' AND v > 1",
        "SELECT window_start, k, COUNT(*) AS n, MAX(window_end) AS e FROM {} GROUP BY window_start, k",
        "SELECT k, COUNT(*) AS n FROM {} GROUP BY k HAVING MIN(window_start) IS NOT NULL",
        "SELECT DISTINCT window_end FROM {}",
    ],
)
def test_the_window_in_brackets_is_the_one_of_the_function(engine: Engine, slide: str, call: str, text: str) -> None:
    brackets, function = engine.submit(text.format(slide)), engine.submit(text.format(call))
    assert brackets.columns == function.columns
    n_changes = 0
    for t in range(0, 40, 3):
        push(engine, "s", (t % 2, t % 5, t), (1, 3, t + 1))
        assert rows(brackets) == rows(function)
        n_changes += len(rows(function))
    assert n_changes and brackets.changes(since=0).arrow() == function.changes(since=0).arrow()


def test_a_join_of_two_windows_in_steps_names_the_bounds_by_their_alias(engine: Engine) -> None:
    text = (
        "SELECT a.window_end AS l, b.window_end AS r, a.v + b.v AS v FROM s [RANGE 4 MILLISECONDS SLIDE 4 MILLISECONDS] AS a, "
        "r [RANGE 8 MILLISECONDS SLIDE 8 MILLISECONDS] AS b WHERE a.k = b.k AND a.window_end <= b.window_end"
    )
    query = engine.submit(text)
    with pytest.raises(EddyError, match="window_end"):
        engine.submit(text.replace("a.window_end AS l", "window_end AS l"))
    push(engine, "r", (1, 10, 1))
    push(engine, "s", (1, 1, 5))
    engine.advance(8)
    assert rows(query) == [(at(8), at(8), 11)]
    star = engine.submit("SELECT a.* FROM s [RANGE 4 MILLISECONDS SLIDE 4 MILLISECONDS] AS a, r [NOW] AS b")
    assert list(star.columns) == ["k", "v", "ts", "window_start", "window_end"]


def test_the_stream_of_a_query_has_bounds_in_its_window_too(engine: Engine) -> None:
    totals = "ISTREAM (SELECT k, SUM(v) AS total FROM s [RANGE 100 MILLISECONDS] GROUP BY k)"
    inner = f"({totals}) [RANGE 10 MILLISECONDS SLIDE 5 MILLISECONDS]"
    whole = engine.submit(f"SELECT * FROM {inner} AS a")
    bound = engine.submit(f"SELECT total, window_start FROM {inner} AS a WHERE window_end > '1970-01-01T00:00:00.005Z'")
    plain = engine.submit(f"SELECT total FROM {inner} AS a")
    push(engine, "s", (1, 7, 2))
    engine.advance(5)
    assert rows(whole) == [(1, 7, at(-5), at(5))] and rows(bound) == []
    engine.advance(10)
    assert rows(whole) == [(1, 7, at(0), at(10))] and rows(bound) == [(7, at(0))]
    # who does not look at the bounds does not see the steps
    assert [change.sign for change in plain.changes(since=0)] == [1]


def test_a_running_stream_has_bounds_in_its_window(engine: Engine) -> None:
    engine.submit("ISTREAM (SELECT k, v FROM s [NOW] WHERE v > 1)", name="high")
    query = engine.submit(
        "SELECT window_end, COUNT(*) AS n FROM high [RANGE 10 MILLISECONDS SLIDE 10 MILLISECONDS] GROUP BY window_end"
    )
    push(engine, "s", (1, 5, 1), (1, 1, 2), (2, 9, 3))
    engine.advance(10)
    assert rows(query) == [(at(10), 2)]


def test_a_column_of_that_name_is_in_the_way_of_every_window_in_steps(engine: Engine) -> None:
    engine.create_stream("own", {"window_start": "int", "v": "int", "ts": "timestamp"}, time="ts")
    for source in ("own [RANGE 5 MILLISECONDS SLIDE 5 MILLISECONDS]", "TUMBLE(own, INTERVAL '5' MILLISECONDS)"):
        with pytest.raises(EddyError) as caught:
            engine.submit(f"SELECT v FROM {source}")
        assert caught.value.code == "duplicate_column" and "window_start AS" in caught.value.hint
    query = engine.submit("SELECT * FROM (SELECT window_start AS w, v FROM own) [RANGE 5 MILLISECONDS SLIDE 5 MILLISECONDS] AS a")
    engine.push("own", [{"window_start": 3, "v": 1, "ts": 1}])
    engine.advance(5)
    assert rows(query) == [(3, 1, at(0), at(5))]
