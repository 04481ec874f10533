"""Prepared texts: the same condition as binding afresh, for every parameter, or none at all."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from eddy import Engine
from filters.expressions.predicate import normalise
from lineage.errors import QueryError
from lineage.schema import Schema
from queries.binder import bind
from queries.bound import Readable
from queries.parser import parse
from queries.prepared import PreparedQuery, prepare

SCHEMA = Schema.parse({"i": "int", "x": "float", "s": "string", "ok": "bool", "ts": "timestamp"}, "r")
KNOWN = {"r": Readable(SCHEMA)}


def prepared(sql: str, **params: Any) -> PreparedQuery | None:
    parsed = parse(sql)
    return prepare(parsed, bind(parsed, KNOWN.get, params))


VALUES: list[Any] = [0, 7, -3, 2**63 - 1, -(2**63), 2.5, -0.0, float("inf"), float("nan"), 1e300, "a", "", "b\0", None, True]


@pytest.mark.parametrize("seed", range(60))
def test_a_prepared_text_gives_the_condition_that_binding_gives(seed: int) -> None:
    rng = random.Random(seed)
    ops = ["<", "<=", ">", ">=", "=", "<>"]
    constants = {"i": ["5", "2.5", ":p", ":q"], "x": ["5", "-2.5", ":p", ":q"], "s": ["'a'", ":t"]}
    parts = []
    for _ in range(rng.randint(0, 4)):
        column = rng.choice("ixs")
        sides = [rng.choice([column, f"r.{column.upper()}"]), rng.choice(constants[column])]
        if rng.random() < 0.3:
            sides.reverse()
        parts.append(f" {rng.choice(ops)} ".join(sides))
    sql = "SELECT i, x + 1 AS y FROM r [RANGE 5 SECONDS]" + (" WHERE " + " AND ".join(parts) if parts else "")
    parsed = parse(sql)
    first = {name: {"p": 1, "q": 2.0, "t": "m"}[name] for name in parsed.params}
    one = prepare(parsed, bind(parsed, KNOWN.get, first))
    assert one is not None and one.readable is KNOWN["r"]
    n_served = 0
    for _ in range(40):
        params = {name: rng.choice(VALUES) for name in parsed.params}
        try:
            expected = normalise(bind(parsed, KNOWN.get, params).condition)
        except QueryError:
            assert one.condition(params) is None, "the binder says what is wrong"
            continue
        found = one.condition(params)
        assert found is None or found == expected
        n_served += found is not None
    assert n_served, "numbers for numbers and texts for texts are served"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT i FROM r WHERE i > :p OR x > 1",
        "SELECT i FROM r WHERE i + 1 > :p",
        "SELECT i FROM r WHERE i IN (1, :p)",
        "SELECT i FROM r WHERE NOT i > :p",
        "SELECT i + :p AS j FROM r WHERE i > 1",
        "SELECT i FROM r WHERE i > x AND i > :p",
        "SELECT i FROM r WHERE s LIKE 'a%' AND i > :p",
        "SELECT i FROM r [RANGE :w] WHERE i > :p",
        "SELECT i FROM (SELECT i FROM r WHERE i > 1) AS x",
        "WITH x AS (SELECT i FROM r WHERE i > 1) SELECT i FROM x",
        "ISTREAM (SELECT i FROM r WHERE i > :p)",
    ],
)
def test_texts_of_other_shapes_have_no_prepared_form(sql: str) -> None:
    params: dict[str, Any] = {"p": 1} if ":p" in sql else {}
    if ":w" in sql:
        params["w"] = "5 seconds"
    assert prepared(sql, **params) is None


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT i FROM r WHERE ok = :p", {"p": True}),
        ("SELECT i FROM r WHERE ts > :p", {"p": datetime(2024, 1, 1, tzinfo=UTC)}),
        ("SELECT i FROM r WHERE ts > :p", {"p": "2024-01-01"}),
        ("SELECT i FROM r WHERE i > :p", {"p": None}),
    ],
)
def test_values_of_other_kinds_are_left_to_the_binder(sql: str, params: dict[str, Any]) -> None:
    one = prepared(sql, **params)
    assert one is not None and one.condition(params) is None


@pytest.mark.parametrize("value", [np.int64(7), np.float64(2.5), np.uint8(3)])
def test_numbers_of_numpy_are_numbers(value: Any) -> None:
    one = prepared("SELECT i FROM r WHERE i > :p AND x <= :p", p=1)
    assert one is not None and one.condition({"p": value}) == one.condition({"p": value.item()}) is not None


def test_texts_beyond_ascii_are_served_unless_they_are_no_utf_8() -> None:
    one = prepared("SELECT i FROM r WHERE s = :p", p="a")
    assert one is not None and one.condition({"p": "Zürich"}) is not None and one.condition({"p": "\ud800"}) is None


@pytest.mark.parametrize(
    ("params", "code"),
    [({}, "missing_param"), ({"p": 1, "z": 2}, "unknown_param"), ({"z": 2}, "unknown_param"), ({"p": 2**70}, "number_too_large")],
)
def test_the_binder_says_what_is_wrong_with_parameters_of_a_prepared_text(params: dict[str, Any], code: str) -> None:
    engine = Engine()
    engine.create_stream("s", {"i": "int"})
    text = "SELECT i FROM s WHERE i > :p"
    engine.submit(text, params={"p": 1})
    with pytest.raises(QueryError) as found:
        engine.submit(text, params=params)
    assert found.value.code == code and len(engine.queries) == 1


def test_a_text_is_bound_again_when_its_stream_is_another_one() -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "int", "b": "int"})
    text = "SELECT b FROM s WHERE b > :p"
    engine.submit(text, params={"p": 1}).cancel()
    engine.drop("s")
    engine.create_stream("s", {"b": "string"})
    query = engine.submit(text, params={"p": "m"})
    engine.push("s", {"b": ["a", "z"]})
    assert query.answer().to_pydict() == {"b": ["z"]} and query.columns == {"b": "string"}
    engine.check()


def test_queries_of_one_text_keep_their_own_constants_and_share_legs() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int"})
    queries = [engine.submit("SELECT v FROM s WHERE v >= :low AND v < :high", params={"low": k, "high": 5}) for k in (1, 3, 3, 9)]
    engine.push("s", {"v": list(range(8))})
    assert [query.answer().column("v").to_pylist() for query in queries] == [[1, 2, 3, 4], [3, 4], [3, 4], []]
    assert engine.stats()["streams"]["s"]["legs"] == 3
    engine.check()


def test_a_text_whose_block_stands_in_parentheses_means_the_same_a_second_time() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int"})
    queries = [engine.submit("SELECT * FROM (SELECT v FROM s WHERE v >= 6) AS x") for _ in range(2)]
    engine.push("s", {"v": list(range(8))})
    assert [query.answer().column("v").to_pylist() for query in queries] == [[6, 7], [6, 7]]
