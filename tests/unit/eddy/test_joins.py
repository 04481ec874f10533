"""Joins of streams by small tables, worked out by hand. Times are milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import Engine, InUseError

A = {"k": "int", "v": "int", "ts": "timestamp"}
B = {"k": "int", "w": "string", "ts": "timestamp"}


def make(**columns: dict[str, str]) -> Engine:
    engine = Engine()
    for name, given in (columns or {"a": A, "b": B}).items():
        engine.create_stream(name, given, time="ts")
    return engine


def push(engine: Engine, stream: str, *rows: tuple[Any, ...]) -> None:
    names = list(engine.streams[stream].columns)
    engine.push(stream, [dict(zip(names, row, strict=True)) for row in rows])
    engine.check()


def held(query: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in query.answer().to_pylist())


def signed(query: Any, since: int = 0) -> list[tuple[int, int, int, tuple[Any, ...]]]:
    """(commit, sign, time in milliseconds, row) of each change."""
    return [(c.seq, c.sign, round(c.time.timestamp() * 1000), tuple(c.row.values())) for c in query.changes(since)]


def test_a_match_lives_from_its_latest_start_to_its_earliest_end() -> None:
    engine = make()
    query = engine.submit("SELECT a.v, b.w FROM a [RANGE 10 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k")
    push(engine, "a", (1, 10, 0), (2, 20, 1000))
    push(engine, "b", (2, "x", 3000), (9, "y", 3000))
    assert held(query) == [(20, "x")]
    engine.advance(7999)
    assert held(query) == [(20, "x")]
    engine.advance(8000)
    assert held(query) == [], "the window of b has ended"
    push(engine, "b", (1, "z", 9999))
    assert held(query) == [(10, "z")]
    engine.advance(20_000)
    assert signed(query) == [
        (2, 1, 3000, (20, "x")),
        (4, -1, 8000, (20, "x")),
        (5, 1, 9999, (10, "z")),
        (6, -1, 10_000, (10, "z")),
    ]


def test_each_query_has_its_own_windows_and_conditions_on_shared_rows() -> None:
    engine = make()
    text = "SELECT a.v FROM a [RANGE :wa], b [RANGE :wb] WHERE a.k = b.k AND a.v > :low"
    queries = [
        engine.submit(text, params={"wa": wa, "wb": wb, "low": low})
        for wa, wb, low in (("1 second", "9 seconds", 0), ("9 seconds", "1 second", 0), ("9 seconds", "9 seconds", 5))
    ]
    push(engine, "a", (1, 3, 0), (1, 7, 500))
    push(engine, "b", (1, "x", 900))
    assert [held(query) for query in queries] == [[(3,), (7,)], [(3,), (7,)], [(7,)]]
    engine.advance(1000)
    assert [held(query) for query in queries] == [[(7,)], [(3,), (7,)], [(7,)]]
    engine.advance(1900)
    assert [held(query) for query in queries] == [[], [], [(7,)]]
    assert engine.stats()["streams"]["a"]["bytes"]["stems"] > 0


def test_a_self_join_pairs_a_row_with_itself_once() -> None:
    engine = make(a=A)
    query = engine.submit("SELECT x.v, y.v AS u FROM a [RANGE 1 SECOND] x, a [RANGE 1 SECOND] y WHERE x.k = y.k")
    push(engine, "a", (1, 1, 0), (1, 2, 0), (2, 3, 0))
    assert held(query) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]
    engine.advance(1000)
    assert held(query) == [] and sum(sign for _, sign, _, _ in signed(query)) == 0


def test_null_never_joins_and_numbers_join_exactly() -> None:
    engine = make(a={"k": "int", "ts": "timestamp"}, b={"k": "float", "ts": "timestamp"})
    query = engine.submit("SELECT a.k, b.k AS f FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k")
    push(engine, "a", (None, 0), (2**53 + 1, 0), (2**53, 0), (0, 0))
    push(engine, "b", (None, 0), (float(2**53), 0), (-0.0, 0), (0.5, 0), (float("nan"), 0))
    assert held(query) == [(0, 0.0), (2**53, float(2**53))]


def test_texts_of_two_streams_join_by_what_they_say() -> None:
    engine = make(a={"s": "string", "ts": "timestamp"}, b={"s": "string", "t": "string", "ts": "timestamp"})
    query = engine.submit("SELECT a.s, b.t FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.s = b.s")
    push(engine, "a", ("x", 0), ("y", 0))
    push(engine, "b", ("z", "1", 0), ("y", "2", 0))
    push(engine, "a", ("z", 0))
    assert held(query) == [("y", "2"), ("z", "1")]


def test_bands_residuals_and_disjunctions_over_inputs() -> None:
    engine = make(a={"k": "int", "v": "int", "ts": "timestamp"}, b={"k": "int", "v": "int", "ts": "timestamp"})
    windows = "FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE"
    band = engine.submit(f"SELECT a.v, b.v AS u {windows} b.v BETWEEN a.v - 1 AND a.v + 1")
    mixed = engine.submit(f"SELECT a.v, b.v AS u {windows} a.k = b.k AND (a.v * 2 = b.v OR a.v + b.v = 4)")
    unjoined = engine.submit(f"SELECT a.v, b.v AS u {windows} a.v = 1 AND b.v = 6")
    push(engine, "a", (1, 1, 0), (1, 3, 0), (2, 3, 0))
    push(engine, "b", (1, 2, 0), (1, 6, 0), (2, 1, 0), (1, 1, 0))
    assert held(band) == [(1, 1), (1, 1), (1, 2), (3, 2), (3, 2)]
    assert held(mixed) == [(1, 2), (3, 1), (3, 1), (3, 6)]
    assert held(unjoined) == [(1, 6)] and "every combination" in engine.explain(unjoined)["defaults"][0]


def test_three_inputs_in_a_chain() -> None:
    engine = make(a=A, b=B, c={"w": "string", "z": "int", "ts": "timestamp"})
    query = engine.submit(
        "SELECT a.v, c.z FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k JOIN c [RANGE 2 SECONDS] ON b.w = c.w"
    )
    push(engine, "c", ("x", 7, 0))
    push(engine, "a", (1, 10, 1000), (2, 20, 1000))
    push(engine, "b", (1, "x", 1500), (2, "y", 1500))
    assert held(query) == [(10, 7)]
    push(engine, "c", ("y", 8, 2500), ("x", 9, 2500))
    assert held(query) == [(10, 9), (20, 8)], "the first row of c has gone"


def test_a_query_sees_rows_from_its_submit_on() -> None:
    engine = make()
    push(engine, "a", (1, 10, 0))
    query = engine.submit("SELECT a.v FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k")
    push(engine, "b", (1, "x", 100))
    assert held(query) == []
    push(engine, "a", (1, 11, 200))
    assert held(query) == [(11,)]
    assert query.complete_since is not None and query.complete_since.timestamp() == 9.0


def test_a_lagging_stream_takes_effect_at_the_clock() -> None:
    engine = make()
    query = engine.submit("SELECT a.v FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k")
    push(engine, "b", (1, "x", 1000), (3, "y", 4000))
    push(engine, "a", (3, 5, 3000), (1, 6, 1500))
    assert held(query) == [(5,)], "b's first row has left, and a's second row with it"
    assert signed(query) == [(2, 1, 4000, (5,))]


def test_pause_keeps_the_answer_and_resume_takes_it_back() -> None:
    engine = make()
    query = engine.submit("SELECT a.v FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k")
    push(engine, "a", (1, 10, 0))
    push(engine, "b", (1, "x", 0))
    query.pause()
    push(engine, "a", (1, 11, 100))
    assert held(query) == [(10,)] and query.state == "paused"
    query.resume()
    assert held(query) == [] and signed(query, 3) == [(4, -1, 100, (10,))]
    push(engine, "a", (1, 12, 200))
    push(engine, "b", (1, "y", 200))
    assert held(query) == [(12,)]


def test_cancelled_joins_leave_nothing_behind() -> None:
    engine = make()
    baseline = engine.stats()["streams"]
    queries = [engine.submit(f"SELECT a.v FROM a [RANGE 1 SECOND], b [NOW] WHERE a.k = b.k AND a.v > {k}") for k in range(70)]
    with pytest.raises(InUseError):
        engine.drop("b")
    push(engine, "a", *((k % 5, k, k) for k in range(50)))
    for query in queries:
        query.cancel()
        engine.check()
    engine.advance(10_000)
    after = engine.stats()["streams"]
    assert {name: entry["bytes"] for name, entry in after.items()} == {name: entry["bytes"] for name, entry in baseline.items()}
    engine.drop("b")


def test_explain_names_the_stems_and_conditions_of_a_join() -> None:
    engine = make()
    found = engine.explain("SELECT a.v FROM a [RANGE 9 SECONDS], b [NOW] WHERE a.k = b.k AND a.v > 3 AND a.v + b.k > 4")
    assert found["modules"] == ["filter:a.v", "stem:a.k", "stem:b.k"] and found["windows"] == ["[RANGE 9 SECONDS]", "[NOW]"]
    assert found["update_pattern"] == "weak" and found["streams"] == ["a", "b"] and len(found["residuals"]) == 1
