"""What asks for the order of rows, FIRST, LAST and [ROWS n], has one answer: whatever the strategy, the policy and the cut into
commits, and whatever operators show and hand over inside (decision 14)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from eddy import Engine

A, B, C = "a [RANGE 20 MICROSECONDS]", "b [RANGE 24 MICROSECONDS]", "c [RANGE 28 MICROSECONDS]"
EXPIRIES = ("negative", "input", "piggyback", "direct", "update-pattern", "auto")


def ends_of(query: str, column: str = "v") -> str:
    return f"SELECT FIRST({column}) AS f, LAST({column}) AS l FROM ({query}) AS x"


#: query over streams a, b, c with v and a number of their own, the table t and the running query base
QUERIES = {
    "rows of a stream": ends_of(f"SELECT id FROM {A}", "id"),
    "a join of streams": ends_of(f"SELECT b.id FROM {A} JOIN {B} ON a.v = b.v", "id"),
    "a join of three": ends_of(f"SELECT b.id * 1000 + c.id AS id FROM {A} JOIN {B} ON a.v = b.v JOIN {C} ON c.v = b.v", "id"),
    "distinct": ends_of(f"SELECT DISTINCT v FROM {A}"),
    "union": ends_of(f"SELECT v FROM {A} UNION SELECT v FROM {B}"),
    "except all": ends_of(f"SELECT v FROM {A} EXCEPT ALL SELECT v FROM {B}"),
    "intersect all": ends_of(f"SELECT v FROM {A} INTERSECT ALL SELECT v FROM {B}"),
    "groups": ends_of(f"SELECT v, COUNT(*) AS n FROM {A} GROUP BY v"),
    "a join of distincts": ends_of(
        f"SELECT y.id FROM (SELECT DISTINCT v FROM {A}) AS z JOIN (SELECT DISTINCT v, id FROM {B}) AS y ON z.v = y.v", "id"
    ),
    "a frozen table": ends_of(f"SELECT t.n FROM (SELECT v FROM {A} UNION ALL SELECT v FROM {A}) AS x JOIN t ON x.v = t.v", "n"),
    "a running query": "SELECT FIRST(v) AS f, LAST(v) AS l FROM base",
    "a slide": ends_of("SELECT id FROM a [RANGE 10 MICROSECONDS SLIDE 3 MICROSECONDS]", "id"),
    "rows of a stream of changes": ends_of(
        f"SELECT id FROM (ISTREAM (SELECT b.id FROM {A} JOIN {B} ON a.v = b.v)) [ROWS 3] AS y", "id"
    ),
    "rows of a stream of answers": ends_of(f"SELECT v FROM (RSTREAM (SELECT DISTINCT v FROM {A})) [ROWS 2] AS y"),
}
N_EVENTS, LOOKS = 60, range(10, 61, 10)


def run(sql: str, seed: int, expiry: str, *, cut: int | None = None, late: bool = False, **options: Any) -> list[Any]:
    """The answers after every tenth row; `late`: the query is submitted when some rows have come, and sees those stored."""
    engine = Engine(expiry=expiry, **options)
    for name in "abc":
        engine.create_stream(name, {"v": "int", "id": "int", "ts": "timestamp[us]"}, time="ts")
    engine.create_table("t", {"v": "int", "n": "int"}, key="v")
    engine.upsert("t", {"v": [0, 1, 2, 3], "n": [7, 5, 8, 6]})
    # whose rows are handed over from one to another
    engine.submit(f"SELECT DISTINCT v FROM {A}", name="base")
    query = None if late else engine.submit(sql)
    rng, cuts = random.Random(seed), random.Random(cut)
    # rows of different streams have different times: which is first is then no matter of the order of a mapping
    clock, rows = 0, []
    for id in range(N_EVENTS):
        clock += rng.choice([1, 1, 2, 4])
        rows.append((rng.choice("aabc"), {"v": rng.randrange(4), "id": id, "ts": clock}))
    found, at = [], 0
    while at < N_EVENTS:
        n = 1 if cut is None else min(10 - at % 10, cuts.choice([1, 2, 5, 10]))
        given: dict[str, list[dict[str, Any]]] = {}
        for name, row in rows[at : at + n]:
            given.setdefault(name, []).append(row)
        engine.push_many(given)
        at += n
        if at == 20 and query is None:
            query = engine.submit(sql, history="window")
        if at in LOOKS:
            found.append(None if query is None else query.answer().to_pylist())
    engine.check()
    return found


def ways(seed: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"expiry": expiry, "cut": [None, seed][k % 2]} for k, expiry in enumerate(EXPIRIES)]
    found += [{"expiry": "update-pattern", "cut": seed + 1, "batch_rows": 3}, {"expiry": "auto", "policy": "random"}]
    return found


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.slow
def test_the_first_and_the_last_row_are_the_same_however_it_is_run(name: str, late: bool) -> None:
    for seed in range(2):
        first, *others = ways(seed)
        right = run(QUERIES[name], seed, late=late, **first)
        assert len({repr(answer) for answer in right}) > 1
        for way in others:
            assert run(QUERIES[name], seed, late=late, **way) == right, (seed, way)


def test_a_value_that_is_handed_over_stays_where_it_was() -> None:
    """Two 5s and a 7 between them: when the first 5 ends the value has been there all the time."""
    for expiry in EXPIRIES:
        engine = Engine(expiry=expiry)
        engine.create_stream("a", {"v": "int", "ts": "timestamp[us]"}, time="ts")
        query = engine.submit(ends_of(f"SELECT DISTINCT v FROM {A}"))
        engine.push("a", {"v": [5, 7, 5], "ts": [1, 2, 3]})
        engine.push("a", {"v": [7], "ts": [21]})
        assert query.answer().to_pylist() == [{"f": 5, "l": 7}], expiry


def test_values_that_come_in_one_event_are_taken_in_their_order_and_null_last() -> None:
    engine = Engine()
    engine.create_stream("a", {"k": "int", "ts": "timestamp[us]"}, time="ts")
    engine.create_table("t", {"id": "int", "k": "int", "name": "string"}, key="id", retroactive=True)
    rows = engine.submit("SELECT y.name FROM (ISTREAM (SELECT t.name FROM a [NOW] JOIN t ON a.k = t.k)) [ROWS 2] AS y")
    engine.upsert("t", {"id": [1, 2, 3, 4], "k": [0] * 4, "name": ["b", None, "c", "a"]})
    engine.push("a", {"k": [0], "ts": [1]})
    assert [row["name"] for row in rows.answer().to_pylist()] == ["c", None]


@pytest.mark.parametrize("rows", ["ROWS 2", "PARTITION BY k ROWS 1", "ROWS 3 RANGE 5 MICROSECONDS"])
def test_a_window_holds_no_more_rows_than_it_says_when_many_come_in_one_event(rows: str) -> None:
    engine = Engine()
    engine.create_stream("a", {"k": "int", "ts": "timestamp[us]"}, time="ts")
    engine.create_table("t", {"id": "int", "k": "int"}, key="id")
    engine.upsert("t", {"id": [1, 2, 3, 4], "k": [0, 0, 1, 1]})
    # every row of the stream meets all of the table
    query = engine.submit(f"SELECT y.id FROM (SELECT t.k, t.id FROM a JOIN t ON a.k <= t.k) [{rows}] AS y")
    right = {"ROWS 2": [3, 4], "PARTITION BY k ROWS 1": [2, 4], "ROWS 3 RANGE 5 MICROSECONDS": [2, 3, 4]}[rows]
    for time in range(1, 4):
        engine.push("a", {"k": [0], "ts": [time]})
        assert sorted(query.answer()["id"].to_pylist()) == right
        engine.check()
    counted = sum(change.sign for change in query.changes(0))
    assert counted == len(right), "what never was is not in the changes"


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize(
    "source", ["a [RANGE 10 MICROSECONDS]", "base", "HOP(a, 3 MICROSECONDS, 7 MICROSECONDS)", "live"], ids=str
)  # fmt: skip
def test_rows_of_a_union_that_begin_together_end_as_they_should(source: str, expiry: str) -> None:
    """A query over rows that are there already begins with all of them; a window that slides shows many at once."""
    engine = Engine(expiry=expiry)
    engine.create_stream("a", {"v": "int", "ts": "timestamp[us]"}, time="ts")
    engine.submit("SELECT v FROM a [RANGE 10 MICROSECONDS]", name="base")
    engine.create_table("t", {"v": "int"}, key="v")
    engine.upsert("t", {"v": [0, 1, 2, 3, 9]})
    engine.submit("SELECT a.v FROM a [RANGE 10 MICROSECONDS] JOIN t ON a.v = t.v", name="live")
    engine.push("a", {"v": [0, 1, 2, 3], "ts": [1, 2, 3, 4]})
    union = engine.submit(f"SELECT v FROM {source} UNION ALL SELECT v FROM {source} WHERE v > 1", history="window")
    alone = engine.submit(f"SELECT v FROM {source}", history="window")
    for time in range(5, 30):
        engine.push("a", {"v": [9], "ts": [time]}) if time < 15 else engine.advance(time / 1000)
        there = alone.answer()["v"].to_pylist()
        assert sorted(union.answer()["v"].to_pylist()) == sorted(there + [v for v in there if v > 1])
    engine.check()
