"""Joins whose key is an expression: found by an index over a derived column, shared, exact, and gone with their queries."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import Engine
from tests.reference.reloading import reloaded
from tests.unit.eddy.digest import digest

COLUMNS = {"k": "int", "x": "float", "s": "string", "ts": "timestamp"}
MODULO = "SELECT a.k AS one, b.k AS two FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k % 10 = b.k"


def make(*streams: str) -> Engine:
    engine = Engine()
    for name in streams or ("a", "b"):
        engine.create_stream(name, COLUMNS, time="ts")
    return engine


def push(engine: Engine, stream: str, *rows: dict[str, Any]) -> None:
    whole = {"k": None, "x": None, "s": None, "ts": 1000}
    engine.push(stream, [whole | row for row in rows])
    engine.check()


def held(query: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in query.answer().to_pylist())


def derived(engine: Engine, stream: str) -> dict[str, int]:
    """The derived columns of a stream and how many users each has."""
    return {name: column["users"] for name, column in engine.stats()["streams"][stream]["derived"].items()}


def rows_bytes(engine: Engine, stream: str) -> int:
    found = engine.stats()["streams"][stream]["bytes"]
    return int(found["rows"] + found["stems"] + found["strings"])


# -- what is shared, and when it goes


def test_queries_with_the_same_expression_share_one_column_and_one_index() -> None:
    engine = make("a", "b", "c")
    engine.submit(MODULO)
    engine.submit(MODULO + " AND a.x > 3")
    assert derived(engine, "a") == {"(k % 10)": 1}, "one group, whatever the number of its queries"
    engine.submit("SELECT c.k AS c FROM a [RANGE 5 SECONDS] AS other, c [ROWS 9] WHERE c.k = other.k % 10")
    assert derived(engine, "a") == {"(k % 10)": 2} and derived(engine, "b") == derived(engine, "c") == {}
    assert list(engine.stats()["streams"]["a"]["stems"]) == ["(k % 10)"]
    engine.check()


def test_a_column_goes_with_the_last_query_and_gives_its_memory_back() -> None:
    engine = make()
    engine.submit("SELECT * FROM a [RANGE 1 HOUR]")
    push(engine, "a", *({"k": k, "s": str(k)} for k in range(3000)))
    before = rows_bytes(engine, "a")
    queries = [engine.submit(MODULO), engine.submit(MODULO + " AND b.x > 3")]
    queries.append(engine.submit("SELECT 1 AS one FROM a [RANGE 1 HOUR], b [NOW] WHERE a.s || '!' = b.s"))
    assert rows_bytes(engine, "a") >= before + 2 * 8 * 3000
    for query in queries:
        assert derived(engine, "a")
        engine.cancel(query)
        engine.check()
    assert derived(engine, "a") == {} and rows_bytes(engine, "a") == before


def test_a_column_stays_over_a_pause_and_as_long_as_an_earlier_version_can_be_read() -> None:
    engine = make()
    engine.submit(MODULO, name="q")
    engine.pause("q")
    assert derived(engine, "a") == {"(k % 10)": 1}
    engine.resume("q")
    push(engine, "a", {"k": 17})
    push(engine, "b", {"k": 7})
    assert held(engine.queries["q"]) == [(17, 7)]
    engine.replace("q", MODULO.replace("% 10", "+ 1"))
    assert list(derived(engine, "a")) == ["(k % 10)", "(k + 1)"]
    engine.cancel("q")
    assert derived(engine, "a") == {}
    engine.check()


def test_rows_that_were_stored_before_the_query_are_found_by_history() -> None:
    engine = Engine()
    for name in ("a", "b"):
        engine.create_stream(name, COLUMNS, time="ts", keep=3_600_000)
    push(engine, "a", {"k": 17, "s": "X"}, {"k": 21, "s": "y"}, {"k": None})
    push(engine, "b", {"k": 7, "s": "x"}, {"k": 1, "s": "Y"})
    assert held(engine.submit(MODULO, history="window")) == [(17, 7), (21, 1)]
    lower = "SELECT a.s AS one, b.s AS two FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE LOWER(a.s) = LOWER(b.s)"
    assert held(engine.submit(lower, history="window")) == [("X", "x"), ("y", "Y")]
    assert held(engine.submit(MODULO)) == []
    engine.check()


# -- what is found, and by how much work


def test_a_walk_looks_at_pairs_of_equal_keys_only() -> None:
    engine = make()
    query = engine.submit(MODULO.replace("% 10", "% 1000"))
    push(engine, "a", *({"k": k} for k in range(2000)))
    push(engine, "b", *({"k": k} for k in range(1000)))
    modules = engine.stats()["modules"]
    assert set(modules) == {"stem:a.(k % 1000)", "stem:b.k"} == set(engine.explain(query)["modules"])
    assert sum(module["rows_out"] for module in modules.values()) == 2000 == query.answer().num_rows
    assert engine.explain(query)["residuals"] == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.k % 10 = b.k", [(17, 7), (27, 7)]),
        ("a.k + 1 = b.k * 4", [(27, 7)]),
        ("a.k - a.k % 10 = b.k + 3", [(17, 7)]),
        ("a.k / 2 = b.x", [(17, 7)]),
        ("CAST(a.k AS float) = b.k + 10", [(17, 7)]),
        ("LOWER(a.s) = b.s", [(17, 7), (17, 8)]),
        ("DATE_TRUNC('second', a.ts) = DATE_TRUNC('second', b.ts)", [(17, 7), (17, 8), (27, 7), (27, 8)]),
        ("-a.x = b.x - b.x", [(27, 7)]),
        ("COALESCE(a.x, 8.5) = b.x", [(17, 7)]),
        ("a.x / a.x = b.x - b.x", []),
        ("(a.k % 10 = 7) = (b.k = 7)", [(17, 7), (27, 7)]),
    ],
)
def test_rows_meet_where_the_expressions_are_equal(condition: str, expected: list[tuple[int, int]]) -> None:
    engine = make()
    query = engine.submit(f"SELECT a.k AS one, b.k AS two FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE {condition}")
    plan = engine.explain(query)
    assert plan["residuals"] == [] and len(plan["modules"]) == 2
    push(engine, "a", {"k": 17, "s": "AB"}, {"k": 27, "x": 0.0}, {"s": None, "x": 77.0, "ts": 5000})
    push(engine, "b", {"k": 7, "x": 8.5, "s": "ab"}, {"k": 8, "x": float("nan"), "s": "ab"}, {"s": None, "ts": 9000})
    assert held(query) == expected


def test_nan_is_nan_and_minus_zero_is_zero_in_a_computed_key() -> None:
    engine = make()
    query = engine.submit("SELECT a.k AS one, b.k AS two FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE -a.x = b.x * 1")
    nan = float("nan")
    push(engine, "a", {"k": 1, "x": 0.0}, {"k": 2, "x": -0.0}, {"k": 3, "x": nan}, {"k": 4})
    push(engine, "b", {"k": 1, "x": 0.0}, {"k": 2, "x": -0.0}, {"k": 3, "x": nan}, {"k": 4})
    assert held(query) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]


def test_a_large_int_meets_a_float_iff_they_are_the_same_number() -> None:
    engine = make()
    query = engine.submit("SELECT a.k AS one, b.x AS two FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k + 1 = b.x * 1")
    push(engine, "a", {"k": 2**53 - 1}, {"k": 2**53}, {"k": 2**63 - 1})
    push(engine, "b", {"x": 2.0**53}, {"x": 2.0**63})
    assert held(query) == [(2**53 - 1, 2.0**53)]
    assert engine.stats()["queries"][query.name]["errors"] == 1, "2**63 is no int"


def test_three_inputs_meet_in_any_order_by_an_expression_that_two_of_them_equal() -> None:
    engine = make("a", "b", "c")
    text = "SELECT a.k AS one, b.k AS two, c.k AS three FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR], c [RANGE 1 HOUR] WHERE "
    query = engine.submit(text + "a.k % 10 = b.k AND c.k / 2 = b.k AND UPPER(a.s) = UPPER(c.s)")
    triangle = engine.submit(text + "a.k % 10 = b.k AND b.x * 2 = c.x AND UPPER(a.s) = LOWER(c.s) || '!'")
    for stream in ("c", "a", "b"):
        rows = [{"k": k, "s": "pP"[k % 2], "x": 0.0} for k in (1, 2, 4, 11, 12, 22)]
        push(engine, stream, *rows, {"k": 24, "s": "q", "x": 0.0}, {"k": 34, "s": "q!" if stream == "c" else "Q!", "x": 0.0})
    assert held(query) == [(1, 1, 2), (2, 2, 4), (11, 1, 2), (12, 2, 4), (22, 2, 4)]
    assert held(triangle) == []
    push(engine, "a", {"k": 44, "s": "p!"})
    push(engine, "c", {"k": 5, "s": "P", "x": 0.0}, {"k": 6, "s": "", "x": 0.0})
    assert held(triangle) == [], "a text in capitals is none in small letters"
    push(engine, "a", {"k": 54, "s": "!"})
    assert held(triangle) == [(54, 4, 6)]
    assert engine.explain(query)["residuals"] == []


def test_a_stream_meets_itself_by_an_expression() -> None:
    engine = make()
    query = engine.submit(
        "SELECT one.k AS one, two.k AS two FROM a [RANGE 1 HOUR] one, a [RANGE 1 HOUR] two WHERE one.k * 2 = two.k"
    )
    push(engine, "a", {"k": 0}, {"k": 1}, {"k": 2}, {"k": 4}, {"k": None})
    assert held(query) == [(0, 0), (1, 2), (2, 4)]
    assert derived(engine, "a") == {"(k * 2)": 1}


@pytest.mark.parametrize("retroactive", [False, True])
def test_a_table_is_found_by_an_expression_of_either_side(retroactive: bool) -> None:
    engine = make()
    engine.create_table("t", {"id": "int", "name": "string"}, key="id", retroactive=retroactive)
    engine.upsert("t", [{"id": 7, "name": "Seven"}, {"id": 8, "name": "Eight"}])
    by_key = engine.submit("SELECT a.k, t.name FROM a [RANGE 1 HOUR], t WHERE a.k % 10 = t.id")
    by_name = engine.submit("SELECT a.k, t.id FROM a [RANGE 1 HOUR], t WHERE a.s = LOWER(t.name)")
    push(engine, "a", {"k": 17, "s": "eight"}, {"k": 28, "s": "Eight"}, {"k": 5, "s": None})
    assert held(by_key) == [(17, "Seven"), (28, "Eight")] and held(by_name) == [(17, 8)]
    engine.upsert("t", [{"id": 8, "name": "EIGHT!"}, {"id": 5, "name": "EIGHT"}])
    engine.check()
    assert held(by_name) == ([(17, 5)] if retroactive else [(17, 8)])
    assert (5, "EIGHT") in held(by_key) if retroactive else (5, "EIGHT") not in held(by_key)
    assert list(engine.stats()["tables"]["t"]["derived"]) == ["LOWER(name)"]
    for _ in range(1500):
        engine.upsert("t", [{"id": 8, "name": "Other"}])
    engine.check()
    push(engine, "a", {"k": 99, "s": "other"})
    assert (99, 8) in held(by_name), "versions that closed ranks took their derived columns with them"
    engine.cancel(by_name)
    assert engine.stats()["tables"]["t"]["derived"] == {}
    engine.check()


# -- what is counted, and what is left alone


def test_a_value_that_cannot_be_computed_is_counted_once_a_row_and_joins_nothing() -> None:
    engine = make()
    query = engine.submit("SELECT a.k AS one FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE 100 % a.k = b.k AND a.x > 0")
    push(engine, "b", *({"k": 0} for _ in range(50)))
    push(engine, "a", {"k": 0, "x": 1.0}, {"k": 0, "x": 1.0}, {"k": 10, "x": 1.0}, {"k": 0, "x": -1.0}, {"k": None})
    assert len(held(query)) == 50
    shown = engine.stats()
    assert shown["queries"][query.name]["errors"] == 3, "each of three rows once, whomever it might have met"
    assert shown["streams"]["a"]["derived"] == {"(100 % k)": {"users": 1, "errors": 3}}


def test_a_user_function_in_a_key_is_called_as_before() -> None:
    engine = make()
    calls: list[int] = []

    def odd(k: int) -> int:
        calls.append(k)
        return k % 2

    engine.register("odd", odd, returns="int")
    query = engine.submit(
        "SELECT a.k AS one, b.k AS two FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE odd(a.k) = b.k AND a.k > 5"
    )
    assert derived(engine, "a") == {} and len(engine.explain(query)["residuals"]) == 1
    push(engine, "a", {"k": 3}, {"k": 7})
    assert calls == [], "no row has met another"
    push(engine, "b", {"k": 1})
    assert sorted(calls) == sorted(set(calls)) and 7 in calls and held(query) == [(7, 1)]


def test_a_long_text_is_a_key_like_any_other() -> None:
    engine = make()
    query = engine.submit("SELECT a.k AS one, b.k AS two FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.s || a.s = b.s || b.s")
    text = "x" * 600_000
    push(engine, "a", {"k": 1, "s": text})
    push(engine, "b", {"k": 2, "s": text}, {"k": 3, "s": text[1:]})
    assert held(query) == [(1, 2)]


# -- trace, state, operators


def test_a_trace_of_a_row_that_is_not_pushed_computes_its_key_and_changes_nothing() -> None:
    engine = make()
    engine.submit(MODULO, name="q")
    push(engine, "b", {"k": 7})
    before = digest(engine)
    assert engine.trace("a", {"k": 17, "x": None, "s": None, "ts": 1000})["matched"] == ["q"]
    assert engine.trace("a", {"k": 18, "x": None, "s": None, "ts": 1000})["waiting"]["q"]["partner"] == "b"
    assert digest(engine) == before
    push(engine, "a", {"k": 18}, {"k": 27})
    assert engine.trace("a", 0)["waiting"]["q"]["partner"] == "b" and engine.trace("a", 1)["matched"] == ["q"]
    assert engine.trace("b", 0)["matched"] == ["q"]


def test_a_loaded_engine_goes_on_with_its_derived_columns() -> None:
    engine = make()
    engine.submit(MODULO, name="q")
    engine.submit("SELECT a.s AS one, b.s AS two FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE LOWER(a.s) = b.s", name="texts")
    push(engine, "a", {"k": 17, "s": "AB"}, {"k": None, "s": None})
    push(engine, "b", {"k": 7, "s": "ab"})
    loaded = reloaded(engine)
    for each in (engine, loaded):
        push(each, "b", {"k": 7, "s": "cd"})
        push(each, "a", {"k": 27, "s": "CD"})
        assert held(each.queries["q"]) == [(17, 7), (17, 7), (27, 7), (27, 7)]
        assert held(each.queries["texts"]) == [("AB", "ab"), ("CD", "cd")]
        for name in ("q", "texts"):
            each.cancel(name)
        assert derived(each, "a") == {}
        each.check()


def test_operators_that_join_look_at_equal_keys_only() -> None:
    engine = make()
    query = engine.submit(
        "SELECT a.n, b.k FROM (SELECT k, COUNT(*) AS n FROM a [RANGE 1 HOUR] GROUP BY k) AS a, b [RANGE 1 HOUR] "
        "WHERE a.k % 100 = b.k AND 10 / (b.k - 3) < 100"
    )
    push(engine, "a", *({"k": k % 200} for k in range(400)))
    push(engine, "b", *({"k": k} for k in (*range(50), None)))
    assert held(query) == sorted((2, k) for k in range(50) for _ in range(2) if k != 3)


def test_a_key_of_operators_that_cannot_be_computed_is_counted_once_a_row() -> None:
    engine = make()
    query = engine.submit(
        "SELECT a.n, b.k FROM (SELECT k, COUNT(*) AS n FROM a [RANGE 1 HOUR] GROUP BY k) AS a, b [RANGE 1 HOUR] "
        "WHERE a.k = 6 % b.k"
    )
    push(engine, "a", *({"k": k} for k in range(3)))
    push(engine, "b", *({"k": k} for k in (0, 0, 4, None)))
    assert held(query) == [(1, 4)]
    assert engine.stats()["queries"][query.name]["errors"] == 2
