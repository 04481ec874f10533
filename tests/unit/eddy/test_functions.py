"""Python functions in queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from eddy import QueryError
from tests.unit.eddy.digest import at, make_engine, row, values


def test_a_function_works_in_select_and_where() -> None:
    engine = make_engine()
    engine.register("double", lambda temp: temp * 2, returns="float")
    engine.register("risky", lambda temp, room: temp > 30 and room == "a", returns="bool")
    query = engine.submit("SELECT sensor, Double(temp) AS twice FROM readings [RANGE 1 HOUR] WHERE RISKY(temp, room)")
    assert query.columns == {"sensor": "int", "twice": "float"}
    engine.push("readings", [row(1, 1, 40.0, "a"), row(1, 2, 40.0, "b"), row(1, 3, 10.0, "a")])
    assert query.answer().to_pydict() == {"sensor": [1], "twice": [80.0]}
    assert [change.row for change in query.changes(0)] == [{"sensor": 1, "twice": 80.0}]


def test_null_arguments_come_as_none_and_none_is_null() -> None:
    engine = make_engine()
    seen: list[Any] = []

    def spy(*args: Any) -> int | None:
        seen.append(args)
        return None

    engine.register("spy", spy, returns="int")
    query = engine.submit("SELECT spy(sensor, room, temp, ok, ts) AS x FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000, None, None, None, None), row(1000, 3, 1.5, "a", False)])
    assert values(query.answer()) == [None, None]
    assert seen == [(None, None, None, None, at(1000)), (3, "a", 1.5, False, at(1000))]
    assert [type(value) for value in seen[1]] == [int, str, float, bool, datetime]
    assert engine.stats()["queries"][query.name]["errors"] == 0


@pytest.mark.parametrize(
    ("returns", "result", "expected"),
    [
        ("int", 7, 7), ("int", np.int32(7), 7), ("float", 1.5, 1.5), ("float", 2, 2.0), ("float", np.float32(0.5), 0.5),
        ("string", "ä", "ä"), ("bool", np.bool_(True), True),
        ("timestamp", at(1500), at(1500)), ("timestamp", datetime(1970, 1, 1, 0, 0, 2), at(2000)),
    ],
)  # fmt: skip
def test_a_function_returns_its_type(returns: str, result: Any, expected: Any) -> None:
    engine = make_engine()
    engine.register("f", lambda sensor: result, returns=returns)
    query = engine.submit("SELECT f(sensor) AS x FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1)])
    assert values(query.answer()) == [expected]
    assert query.columns == {"x": returns}


@pytest.mark.parametrize(
    ("returns", "result"),
    [
        ("int", "7"), ("int", 7.0), ("int", True), ("int", 2**63), ("float", "x"), ("float", True), ("string", 7),
        ("string", "\ud800"), ("bool", 1), ("bool", "yes"), ("timestamp", 5), ("timestamp", "1970-01-01"),
        ("float", 10**400),
    ],
)  # fmt: skip
def test_a_result_of_another_type_is_null_and_counted(returns: str, result: Any) -> None:
    engine = make_engine()
    engine.register("f", lambda sensor: result, returns=returns)
    query = engine.submit("SELECT f(sensor) AS x FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1)])
    assert values(query.answer()) == [None]
    assert engine.stats()["queries"][query.name]["errors"] == 1


def test_a_function_that_raises_in_where_is_null_is_counted_and_breaks_nothing() -> None:
    engine = make_engine()

    def picky(sensor: int) -> bool:
        if sensor == 2:
            raise ValueError("not this one")
        return sensor > 0

    engine.register("picky", picky, returns="bool")
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE picky(sensor)")
    negated = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE NOT picky(sensor)")
    missing = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE picky(sensor) IS NULL")
    engine.push("readings", [row(1, sensor=k) for k in (0, 1, 2, 3, 2)])
    assert [values(q.answer()) for q in (query, negated, missing)] == [[1, 3], [0], [2, 2]]
    assert engine.stats()["queries"][query.name]["errors"] == 2
    assert sum(module["errors"] for module in engine.stats()["modules"].values()) >= 2
    engine.check()


def test_a_function_in_where_is_called_once_a_row_however_many_queries_share_it() -> None:
    engine = make_engine()
    calls: list[int] = []
    engine.register("spy", lambda sensor: calls.append(sensor) or True, returns="bool")
    queries = [engine.submit(f"SELECT sensor FROM readings [RANGE {k + 1} SECONDS] WHERE spy(sensor)") for k in range(5)]
    engine.push("readings", [row(1000, sensor=k) for k in range(10)])
    for query in queries:
        assert len(values(query.answer())) == 10
        list(query.changes(0))
    engine.advance(1_000_000)
    assert sorted(calls) == list(range(10)), "not for answers, changes or rows that leave"


def test_a_function_is_not_called_on_rows_nobody_wants_any_more() -> None:
    engine = make_engine(policy="fixed:filter:sensor")
    calls: list[int] = []
    engine.register("spy", lambda sensor: calls.append(sensor) or True, returns="bool")
    engine.submit("SELECT sensor FROM readings WHERE sensor > 6 AND spy(sensor)")
    engine.push("readings", [row(1, sensor=k) for k in range(10)])
    assert calls == [7, 8, 9]


def test_the_outcome_of_a_function_that_changes_its_mind_is_that_of_the_rows_arrival() -> None:
    engine = make_engine()
    verdict = [True]
    engine.register("mood", lambda sensor: verdict[0], returns="bool")
    query = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS] WHERE mood(sensor)")
    engine.push("readings", [row(1000, sensor=1)])
    verdict[0] = False
    engine.push("readings", [row(2000, sensor=2)])
    assert values(query.answer()) == [1]
    engine.advance(100_000)
    assert [(change.sign, change.row["sensor"]) for change in query.changes(0)] == [(1, 1), (-1, 1)]


def test_reading_an_answer_again_does_not_count_its_errors_again() -> None:
    engine = make_engine()
    engine.register("broken", lambda sensor: 1 / 0, returns="int")
    query = engine.submit("SELECT broken(sensor) AS x FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1)])
    for _ in range(3):
        assert values(query.answer()) == [None]
    assert engine.stats()["queries"][query.name]["errors"] == 1


def test_what_cannot_be_computed_is_null_and_counted() -> None:
    engine = make_engine()
    query = engine.submit("SELECT 1 / (sensor - 1) AS x FROM readings [RANGE 1 HOUR]")
    where = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE 1 / (sensor - 1) > 0")
    engine.push("readings", [row(1, sensor=1), row(1, sensor=3)])
    assert values(query.answer()) == [None, 0.5]
    assert values(where.answer()) == [3]
    assert engine.stats()["queries"][where.name]["errors"] == 1
    assert engine.stats()["queries"][query.name]["errors"] == 1


def test_a_function_must_be_registered_before_the_query() -> None:
    engine = make_engine()
    with pytest.raises(QueryError) as error:
        engine.submit("SELECT riskyy(temp) FROM readings")
    assert error.value.code == "unknown_function"
    engine.register("risky", lambda temp: True, returns="bool")
    with pytest.raises(QueryError) as error:
        engine.submit("SELECT riskyy(temp) FROM readings")
    assert error.value.hint == 'did you mean "risky"?'
    engine.submit("SELECT risky(temp) AS r FROM readings")


def test_a_bool_function_stands_alone_and_others_do_not() -> None:
    engine = make_engine()
    engine.register("size", lambda room: len(room), returns="int")
    with pytest.raises(QueryError) as error:
        engine.submit("SELECT * FROM readings WHERE size(room)")
    assert error.value.code == "type_mismatch"
    query = engine.submit("SELECT room FROM readings [RANGE 1 HOUR] WHERE size(room) > 2")
    engine.push("readings", [row(1, room="abc"), row(1, room="a"), row(1, room=None)])
    assert values(query.answer()) == ["abc"]
    assert engine.stats()["queries"][query.name]["errors"] == 1


def test_a_function_without_arguments_is_called_for_each_row() -> None:
    engine = make_engine()
    engine.register("yes", lambda: True, returns="bool")
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE yes()")
    engine.push("readings", [row(1, sensor=1), row(1, sensor=2)])
    assert values(query.answer()) == [1, 2]


def test_a_timestamp_function_takes_part_in_time_arithmetic() -> None:
    engine = make_engine()
    engine.register("next_day", lambda ts: ts + timedelta(days=1), returns="timestamp")
    query = engine.submit("SELECT next_day(ts) - INTERVAL '1' DAY AS back FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000)])
    assert values(query.answer()) == [at(1000)]
    assert values(query.answer())[0].astimezone(UTC).tzinfo is UTC


@pytest.mark.parametrize("n_rows", [1, 20, 600])
@pytest.mark.parametrize("n_queries", [1, 80, 200])
def test_functions_agree_with_python_in_every_layout(n_rows: int, n_queries: int) -> None:
    engine = make_engine()
    engine.register("odd", lambda sensor: sensor % 2 == 1, returns="bool")
    queries = {
        k: engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE sensor > :k AND odd(sensor)", params={"k": k})
        for k in range(n_queries)
    }
    sensors = np.random.default_rng(n_rows).integers(0, 250, n_rows)
    engine.push("readings", {"sensor": sensors, "ts": np.full(n_rows, 1000)})
    for k, query in queries.items():
        assert values(query.answer()) == [int(s) for s in sensors if s > k and s % 2 == 1]
