"""Skeletons of texts: what has one, and which values stand in its slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddy import Engine
from eddy.catalog import planner
from eddy.operators.tree_query import TreeQuery
from eddy.preparing import Asked
from eddy.state.dump import dump_state, load_state
from lineage.errors import QueryError
from queries.parser import parse
from queries.skeletons import cut, slot_places


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("WHERE a1 = 17 AND b >= 2.50", [17, 2.5]),
        ("x<>'it''s' OR 'ü'=y", ["it's", "ü"]),
        ("x = -5", [5]),
        ("x IN (1,2,3)", [1, 2, 3]),
        ('"a 5" > 1e3', [1000.0]),
        ("x > .5 AND y < 5. AND z = 0x1F AND t1.c2 = 007", [7]),
        ("a > 123456789012345678", [123456789012345678]),
        ("''", [""]),
    ],
)
def test_the_values_of_a_text_stand_in_its_slots(text: str, values: list[Any]) -> None:
    found = cut(text)
    assert found is not None and found.values == values and len(slot_places(text)) == len(values)
    assert [type(value) for value in found.values] == [type(value) for value in values]


@pytest.mark.parametrize(
    "text",
    [
        "a > 1 -- five", "a > 1 /* 5 */", "s = 'a\\b'", "x = $1", "s = '{}'", "a > 1234567890123456789", "a > 1e999", "E'a'",
        "s = 'a\0'", "s = '\x01'",
    ],
)  # fmt: skip
def test_a_text_that_could_be_read_in_two_ways_has_no_skeleton(text: str) -> None:
    assert cut(text) is None


def test_literals_of_one_kind_give_one_skeleton_and_those_of_others_another() -> None:
    texts = ["a = 1", "a = 22", "a = 1.0", "a = '1'", "b = 1", "a = 1 "]
    found = [cut(text) for text in texts]
    skeletons = [one.skeleton for one in found if one is not None]
    assert skeletons[0] == skeletons[1] and len(set(skeletons)) == 5


@pytest.mark.parametrize(
    ("params", "code"),
    [({}, "missing_param"), ({"p": 1, "z": 2}, "unknown_param"), ({"z": 2}, "unknown_param"), ({"p": 2**70}, "number_too_large")],
)
def test_the_binder_says_what_is_wrong_with_parameters_of_a_known_text(params: dict[str, Any], code: str) -> None:
    engine = Engine()
    engine.create_stream("s", {"i": "int"})
    text = "SELECT i FROM s WHERE i > :p"
    engine.submit(text, params={"p": 1})
    with pytest.raises(QueryError) as found:
        engine.submit(text, params=params)
    assert found.value.code == code and len(engine.queries) == 1


def test_an_error_of_a_known_skeleton_points_into_its_own_text() -> None:
    engine = Engine()
    engine.create_stream("s", {"ts": "timestamp"}, time="ts")
    engine.submit("SELECT ts FROM s WHERE ts > '2024-05-01'")
    with pytest.raises(QueryError) as found:
        engine.submit("SELECT ts FROM s WHERE ts > 'tomorrow'")
    assert (found.value.code, found.value.line, found.value.column) == ("bad_timestamp", 1, 29)


@pytest.mark.parametrize("value", [np.int64(7), np.float64(2.5), np.uint8(3)])
def test_numbers_of_numpy_are_numbers(value: Any) -> None:
    engine = Engine()
    engine.create_stream("s", {"i": "int"})
    text = "SELECT i FROM s WHERE i >= :p AND i <= :q"
    first, second = (engine.submit(text, params={"p": one, "q": 9}) for one in (value, value.item()))
    assert first.plan == second.plan


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


def test_a_text_is_bound_again_when_the_query_that_it_reads_is_another_one() -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "int", "b": "string"})
    engine.submit("SELECT a AS v FROM s [RANGE 1 DAY]", name="q")
    engine.submit("SELECT v FROM q WHERE v > 1").cancel()
    engine.cancel("q")
    engine.submit("SELECT a + 1 AS w, b AS v FROM s [RANGE 1 DAY]", name="q")
    with pytest.raises(QueryError, match="cannot be compared"):
        engine.submit("SELECT v FROM q WHERE v > 2")
    query = engine.submit("SELECT v FROM q WHERE v > 'm'")
    engine.push("s", {"a": [1, 2], "b": ["a", "z"]})
    assert query.answer().to_pydict() == {"v": ["z"]}


def test_queries_of_one_text_keep_their_own_constants_and_share_legs() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int"})
    queries = [engine.submit("SELECT v FROM s WHERE v >= :low AND v < :high", params={"low": k, "high": 5}) for k in (1, 3, 3, 9)]
    engine.push("s", {"v": list(range(8))})
    assert [query.answer().column("v").to_pylist() for query in queries] == [[1, 2, 3, 4], [3, 4], [3, 4], []]
    assert engine.stats()["streams"]["s"]["legs"] == 3
    engine.check()


def test_queries_with_operators_keep_their_own_constants_over_a_dump() -> None:
    engine = Engine()
    engine.create_stream("s", {"g": "string", "v": "int"})
    text = "SELECT g, SUM(v) AS n FROM s [RANGE 1 DAY] WHERE v > {} GROUP BY g HAVING SUM(v) > {}"
    queries = [engine.submit(text.format(k, 3 * k)) for k in (1, 2, 3)]
    plans = [query.tree_plan for query in queries if isinstance(query, TreeQuery)]
    assert len({id(plan.shape) for plan in plans}) == 1 and [plan.constants for plan in plans] == [(1, 3), (2, 6), (3, 9)]
    other = load_state(dump_state(engine))
    other.push("s", {"g": ["a", "a", "b"], "v": [2, 3, 8]})
    assert [query.answer().to_pydict()["n"] for query in other.queries.values()] == [[5, 8], [8], []]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT g FROM s WHERE v = {} AND x > {}.5",
        "SELECT g, AVG(x) AS a FROM s [RANGE 1 MINUTE] WHERE v = {} GROUP BY g HAVING AVG(x) > {}.5",
        "SELECT g, COUNT(*) AS n FROM TUMBLE(s, INTERVAL '10 seconds') WHERE v = {} OR g LIKE 'a{}%' GROUP BY g",
        "SELECT a.g FROM s [NOW] AS a, s [RANGE 1 DAY] AS b WHERE a.g = b.g AND a.v = {} AND b.x * 2 < {}.25",
        "SELECT CASE WHEN v > {} THEN 'm{}' ELSE g END AS g FROM s",
    ],
)
def test_texts_that_differ_in_literals_only_are_parsed_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.create_stream("s", {"g": "string", "v": "int", "x": "float"})
    parsed = []

    def counted(*given: Any) -> Any:
        parsed.append(given)
        return parse(*given)

    monkeypatch.setattr(planner, "parse", counted)
    queries = engine.submit_many([Asked(text.format(7 * k + 100, 3 * k + 200)) for k in range(50)])
    assert len(parsed) == 1 and len({query.sql for query in queries}) == 50
