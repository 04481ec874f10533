"""Expressions compared with constants: which of them are columns, for how long, and how their failures are counted."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import Engine
from eddy.state.dump import dump_state, load_state
from eddy.streams.derived_filters import MAX_ALONE, MAX_ASKING, can_fail
from queries.binder import bind
from queries.bound import Block, Readable
from queries.parser import parse

COLUMNS = {"k": "int", "n": "int", "x": "float", "y": "float", "s": "string", "ts": "timestamp"}


def make() -> Engine:
    engine = Engine()
    engine.create_stream("r", COLUMNS, time="ts")
    return engine


def push(engine: Engine, at: int, **columns: list[Any]) -> None:
    n = len(next(iter(columns.values())))
    rows = {name: columns.get(name, [1] * n if name != "s" else ["a"] * n) for name in COLUMNS}
    engine.push("r", {**rows, "ts": [at] * n})


def columns(engine: Engine) -> list[str]:
    derived: dict[str, Any] = engine.stats()["streams"]["r"]["derived"]
    return list(derived)


def where(condition: str, window: str = "[RANGE 1 HOUR]") -> str:
    return f"SELECT k, x FROM r {window} WHERE {condition}"


def test_queries_that_compare_one_expression_share_a_column_and_a_filter() -> None:
    engine = make()
    for c in range(20):
        engine.submit(where(f"x * 2 + y > {c}"))
    engine.submit(where("x * 2 + y BETWEEN 1 AND 4 AND k = 1"))
    stats = engine.stats()
    assert stats["streams"]["r"]["derived"] == {"((x * 2) + y)": {"users": 21, "errors": 0}}
    assert stats["modules"]["filter:r.((x * 2) + y)"]["predicates"] == 21
    push(engine, 1, x=[1.0, 0.25], y=[2.0, 0.0], k=[1, 1])
    assert [len(query.answer()) for query in engine.queries.values()] == [2, *[1] * 3, *[0] * 16, 1]


def test_a_column_goes_with_the_last_query_and_leaves_nothing() -> None:
    engine = make()
    push(engine, 1, x=[1.0], y=[2.0])
    before = engine.stats()["streams"]["r"]
    queries = [engine.submit(where(f"LOWER(s) = '{c}'"), history="window") for c in "abc"]
    assert columns(engine) == ["LOWER(s)"]
    for query in queries:
        query.cancel()
        engine.check()
    assert columns(engine) == [] and engine.stats()["streams"]["r"]["filters"]["predicates"] == 0
    assert engine.stats()["streams"]["r"]["stems"] == before["stems"]


def test_filters_of_columns_that_went_serve_those_that_come() -> None:
    engine = make()
    for k in range(2, 40):
        engine.submit(where(f"x * {k} > 1")).cancel()
    assert len(engine._catalog.sources["r"].modules.bank.filters) == 1
    engine.check()


@pytest.mark.parametrize("condition", ["NOT (x * 2 > 5)", "5 >= x * 2", "x * 2 <= 5", "x * 2 IN (1, 2, 5)", "x * 2 IS NULL"])
def test_each_way_to_compare_is_an_interval(condition: str) -> None:
    engine = make()
    query = engine.submit(where(condition))
    assert columns(engine) == ["(x * 2)"] and query.explain()["modules"] == ["filter:r.(x * 2)"]


@pytest.mark.parametrize("condition", ["x > y + 1", "x * 2 > y", "s || 'a' LIKE '%b%'", "x * 2 > 1 OR y < 3"])
def test_what_has_no_constant_alone_on_its_side_stays_a_module(condition: str) -> None:
    engine = make()
    query = engine.submit(where(condition))
    assert columns(engine) == [] and "residual:" in "".join(query.explain()["modules"])


def test_a_user_function_stays_a_module() -> None:
    engine = make()
    engine.register("f", lambda x: x, returns="float")
    engine.submit(where("f(x) > 1"))
    assert columns(engine) == []


def test_few_columns_are_made_for_one_query_alone_and_more_for_what_several_ask() -> None:
    engine = make()
    for k in range(MAX_ALONE + 3):
        engine.submit(where(f"x * {k + 2} > 1"))
    assert len(columns(engine)) == MAX_ALONE
    for c in range(MAX_ASKING + 2):
        engine.submit(where(f"x - y > {c}"))
    assert len(columns(engine)) == MAX_ALONE + 1
    assert engine.stats()["streams"]["r"]["derived"]["(x - y)"]["users"] == 2
    engine.check()


def test_a_text_that_has_a_module_stays_with_it() -> None:
    engine = make()
    for k in range(MAX_ALONE):
        engine.submit(where(f"x * {k + 2} > 1"))
    first = engine.submit(where("x - y > 0"))
    for c in range(MAX_ASKING + 1):
        engine.submit(where(f"x - y > {c + 1}"))
    wider = engine.submit(where("x - y > 0", "[RANGE 2 HOURS]"))
    assert "(x - y)" in columns(engine)
    assert first.explain()["modules"][0].startswith("residual:") and wider.explain()["modules"] == first.explain()["modules"]
    push(engine, 1, x=[3.0, 1.0], y=[1.0, 1.0])
    assert [len(query.answer()) for query in (first, wider)] == [1, 1]
    engine.check()


# -- failures


def errors(engine: Engine, name: str) -> int:
    found: int = engine.stats()["queries"][name]["errors"]
    return found


def test_a_failure_counts_once_a_row_from_the_submit_on() -> None:
    engine = make()
    engine.submit(where("x / y > 1"), name="first")
    push(engine, 1, x=[1.0, 2.0, 3.0], y=[0.0, 1.0, 0.0])
    engine.submit(where("x / y > 2"), name="second")
    push(engine, 2, x=[1.0], y=[0.0])
    assert (errors(engine, "first"), errors(engine, "second")) == (3, 1)
    assert columns(engine) == ["(x / y)"]


def test_failures_of_stored_rows_count_for_the_query_that_looks_back() -> None:
    engine = make()
    engine.submit(where("k > 0"), name="holds")
    push(engine, 1, x=[1.0, 2.0, 3.0], y=[0.0, 1.0, 0.0])
    engine.submit(where("x / y > 1"), name="new")
    engine.submit(where("x / y > 1.5"), name="back", history="window")
    assert (errors(engine, "new"), errors(engine, "back")) == (0, 2)
    push(engine, 2, x=[1.0], y=[0.0])
    assert (errors(engine, "new"), errors(engine, "back")) == (1, 3)


def test_what_can_fail_is_computed_only_where_other_conditions_let_a_row_through() -> None:
    engine = Engine(policy="fixed:filter:r.y")
    engine.create_stream("r", COLUMNS, time="ts")
    engine.submit(where("x / y > 1 AND y <> 0"), name="guarded")
    push(engine, 1, x=[1.0, 2.0, 3.0], y=[0.0, 1.0, 0.0])
    assert columns(engine) == [] and errors(engine, "guarded") == 0


@pytest.mark.parametrize(
    ("expression", "fails"),
    [
        ("x * 2 + y", False), ("x + k", False), ("ABS(x)", False), ("LOWER(s)", False), ("LENGTH(s)", False), ("k + n", True),
        ("x / y", True), ("SQRT(x)", True), ("-k", True), ("CAST(s AS int)", True), ("n % k", True), ("COALESCE(x, y)", False),
        ("ts - INTERVAL 1 DAY", True),
    ],
)  # fmt: skip
def test_what_can_fail_is_known(expression: str, fails: bool) -> None:
    from lineage.schema import Schema

    node = bind(parse(f"SELECT {expression} AS v FROM r"), {"r": Readable(Schema.parse(COLUMNS, "r"))}.get)
    assert isinstance(node, Block) and can_fail(node.columns[0].expression) == fails


# -- life


def test_a_column_serves_after_a_dump() -> None:
    engine = make()
    query = engine.submit(where("UPPER(s) = 'AB'"), name="q")
    push(engine, 1, s=["ab", "x"])
    other = load_state(dump_state(engine))
    for one in (engine, other):
        push(one, 2, s=["Ab", "c"])
        one.check()
    assert other.queries["q"].answer() == query.answer() and len(query.answer()) == 2


def test_texts_of_a_column_are_compacted_while_a_filter_reads_it() -> None:
    engine = make()
    query = engine.submit(where("LOWER(s) = 'keep'", "[RANGE 2 SECONDS]"))
    for at in range(20):
        push(engine, at * 1_000, s=[f"T{at}_{n}" for n in range(8_000)] + ["KEEP"])
        assert len(query.answer()) == min(at + 1, 2)
    engine.check()


def test_a_change_in_the_log_is_read_after_the_column_has_gone() -> None:
    engine = make()
    query = engine.submit(where("x * 2 > 1"))
    push(engine, 1, x=[1.0, 0.0])
    cursor = query.changes(0)
    query.pause()
    assert columns(engine) == [] and [(change.sign, change.row["x"]) for change in cursor] == [(1, 1.0)]


def test_a_trace_says_which_expression_refused_a_row() -> None:
    engine = make()
    engine.submit(where("x * 2 > 1"), name="q")
    push(engine, 1, x=[0.0])
    assert "x * 2" in str(engine.trace("r", 0))


def test_a_block_below_operators_and_an_input_of_a_join_use_columns_too() -> None:
    engine = make()
    engine.create_stream("q", COLUMNS, time="ts")
    grouped = engine.submit("SELECT k, COUNT(*) AS c FROM r [RANGE 1 HOUR] WHERE x * 2 > 1 GROUP BY k HAVING COUNT(*) > 0")
    joined = engine.submit(
        "SELECT a.k FROM r [RANGE 1 HOUR] AS a, q [RANGE 1 HOUR] AS b WHERE a.k = b.k AND a.x * 2 > 1.5 AND a.x + b.x > 1"
    )
    assert engine.stats()["streams"]["r"]["derived"]["(x * 2)"]["users"] == 2
    push(engine, 1, x=[1.0, 0.0], k=[1, 1])
    engine.push("q", {**{name: [1] for name in ("k", "n", "x", "y")}, "s": ["a"], "ts": [1]})
    assert grouped.answer().to_pydict() == {"k": [1], "c": [1]} and joined.answer().to_pydict() == {"k": [1]}
    engine.check()
