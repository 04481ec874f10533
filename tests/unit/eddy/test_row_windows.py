"""Windows that count rows over one stream: what only they have; answers are compared with the model in `tests/model`."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import Commit, Engine

COLUMNS = {"k": "int", "v": "int", "ts": "timestamp"}


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.create_stream("s", COLUMNS, time="ts")
    return engine


def push(engine: Engine, *rows: tuple[int, int, int]) -> Any:
    """Rows (time, key, value)."""
    return engine.push("s", [{"ts": ts, "k": k, "v": v} for ts, k, v in rows])


def held(query: Any) -> list[int]:
    return query.answer().column("v").to_pylist()  # type: ignore[no-any-return]  # a query of any engine


def test_listeners_get_its_rows_as_those_of_any_query_over_one_stream(engine: Engine) -> None:
    parts: list[tuple[Any, ...]] = []

    def listen(commit: Commit) -> None:
        queries, offsets, rows = commit.row_lists()
        if len(queries):
            numbers = commit.rows[rows].tolist()
            parts.append((commit.seq, commit.stream, commit.added, list(commit.columns), queries.tolist(), numbers))

    engine.on_commit(listen)
    query = engine.submit("SELECT v FROM s [ROWS 2] WHERE v > 1")
    push(engine, (1, 0, 1), (2, 0, 2), (3, 0, 3))
    push(engine, (4, 0, 4))
    names = ["k", "v", "ts"]
    assert parts == [(1, "s", True, names, [query.id], [1, 2]), (2, "s", False, names, [query.id], [1]),
                     (2, "s", True, names, [query.id], [3])]  # fmt: skip


def test_a_replace_of_a_range_by_rows_tells_listeners_only_of_rows_that_differ() -> None:
    engine = Engine()
    engine.create_stream("s", COLUMNS, time="ts", keep=1000)
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    push(engine, (1, 0, 1), (2, 0, 2), (3, 0, 3))
    told: list[tuple[bool, list[int]]] = []
    engine.on_commit(lambda commit: told.append((commit.added, commit.rows.tolist())) if commit.n_rows else None)
    engine.replace(query, "SELECT v FROM s [ROWS 2]")
    assert told == [(False, [0])] and held(query) == [2, 3]
    engine.replace(query, "SELECT v FROM s [RANGE 1 SECOND]")
    assert told[1:] == [(True, [0])] and held(query) == [1, 2, 3]
    assert [(c.sign, c.row["v"]) for c in query.changes(1)] == [(-1, 1), (1, 1)]
    engine.check()


def test_explain_says_what_it_says_of_any_query_over_one_stream(engine: Engine) -> None:
    sql = "SELECT v FROM s [PARTITION BY k ROWS 3] WHERE v > 1"
    plain = engine.explain("SELECT v FROM s [RANGE 1 SECOND] WHERE v > 1")
    found = engine.explain(sql)
    assert set(found) == set(plain)
    assert found["window"] == "[PARTITION BY k ROWS 3]" and found["update_pattern"] == "strict"
    edge = {"from": "s", "to": "result", "update_pattern": "strict", "ends_known": False, "cases": ["+->+", "+->-"]}
    assert found["edges"] == [edge]
    queries = [engine.submit(sql) for _ in range(3)]
    assert engine.explain(sql)["shared_with"] == 3 and queries[0].explain()["shared_with"] == 2
    assert "stem:s" not in engine.stats()["modules"], "nothing is probed"


def test_queries_of_one_count_share_one_column_of_ends_and_cancel_frees_it(engine: Engine) -> None:
    queries = [engine.submit(f"SELECT v FROM s [PARTITION BY k ROWS 2] WHERE v > {low}") for low in range(100)]
    push(engine, *((ts, ts % 7, ts) for ts in range(1000)))
    assert engine.explain(queries[0])["shared_with"] == 99
    one = engine.stats()["streams"]["s"]["bytes"]["row_ends"]
    assert one > 0 and held(queries[-1]) == list(range(986, 1000))
    queries.append(engine.submit("SELECT k FROM s [PARTITION BY k ROWS 2]", history="window"))
    assert engine.stats()["streams"]["s"]["bytes"]["row_ends"] == one
    for query in queries:
        query.cancel()
    assert engine.stats()["streams"]["s"]["bytes"]["row_ends"] == 0 and not engine.stats()["modules"]


def test_rows_that_were_displaced_are_forgotten_with_the_log() -> None:
    engine = Engine(log_rows=10)
    engine.create_stream("s", COLUMNS, time="ts")
    query = engine.submit("SELECT v FROM s [ROWS 5]")
    for ts in range(0, 60_000, 2_000):
        push(engine, *((ts + i, 0, ts + i) for i in range(2_000)))
    engine.advance(60_000)
    assert held(query) == list(range(59_995, 60_000))
    assert engine.stats()["streams"]["s"]["held"] <= 2_000, "the last commit with rows, which is always logged"


def test_trace_tells_a_row_that_newer_ones_of_its_instant_displaced(engine: Engine) -> None:
    engine.submit("SELECT v FROM s [ROWS 1] WHERE v < 3", name="q")
    push(engine, (1, 0, 1), (1, 0, 2), (1, 0, 3))
    assert engine.trace("s", 0)["refused"]["q"]["reason"].startswith("its life is empty")
    assert engine.trace("s", 2)["refused"]["q"]["predicate"] == "v < 3"
    assert engine.trace("s", {"ts": 5, "k": 0, "v": 0})["matched"] == ["q"]
    assert not engine.trace("s", 0)["waiting"]


def test_a_paused_query_keeps_its_rows_and_resumes_as_if_new(engine: Engine) -> None:
    query = engine.submit("SELECT v FROM s [ROWS 2]")
    push(engine, (1, 0, 1), (2, 0, 2))
    query.pause()
    push(engine, (3, 0, 3))
    assert held(query) == [1, 2]
    query.resume()
    assert held(query) == []
    push(engine, (4, 0, 4))
    assert [(c.seq, c.sign, c.row["v"]) for c in query.changes(0)] == [(1, 1, 1), (1, 1, 2), (3, -1, 1), (3, -1, 2), (4, 1, 4)]


def test_a_function_is_called_once_a_row_also_where_a_join_would_put_it_off(engine: Engine) -> None:
    calls: list[int] = []

    def seen(v: int) -> bool:
        calls.append(v)
        return v % 2 == 0

    engine.register("seen", seen, returns="bool", cost=50.0)
    engine.submit("SELECT a.v FROM s [ROWS 5] a, s [RANGE 1 SECOND] b WHERE a.k = b.v AND seen(a.v)")
    query = engine.submit("SELECT v FROM s [ROWS 3] WHERE seen(v)")
    for ts in range(40):
        push(engine, (ts, -1, ts))
    assert held(query) == [38] and sorted(calls) == list(range(40))
