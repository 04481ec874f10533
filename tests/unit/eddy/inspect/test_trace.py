"""Why a row did or did not match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddy import ConflictError, Engine, NotFoundError
from tests.unit.eddy.digest import at, digest, make_engine, row, values


def test_a_stored_row_is_told_by_its_number() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR] WHERE sensor > 3", name="high")
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR] WHERE sensor < 3 AND room = 'a'", name="low")
    engine.push("readings", [row(1000, sensor=5), row(2000, sensor=1, room="b")])
    found = engine.trace("readings", 1)
    assert (found["stream"], found["late"], found["time"], found["matched"], found["waiting"]) == (
        "readings",
        False,
        at(2000),
        [],
        {},
    )
    assert found["row"] == {"number": 1, "values": {"sensor": 1, "room": "b", "temp": 20.0, "ok": True, "ts": at(2000)}}
    assert found["refused"]["high"]["values"] == {"sensor": 1}
    assert found["refused"]["low"]["values"] == {"room": "b"}
    assert engine.trace("READINGS", 0)["matched"] == ["high"]


def test_a_row_that_is_not_pushed_is_judged_and_leaves_no_trace() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR] WHERE room = 'new' AND temp > 3", name="q")
    before = digest(engine)
    assert engine.trace("readings", {"room": "new", "temp": 4.0, "ts": 1000})["matched"] == ["q"]
    found = engine.trace("readings", {"room": "never seen", "ts": 1000})
    assert found["row"]["number"] is None
    assert found["refused"]["q"]["values"] in ({"room": "never seen"}, {"temp": None})
    assert digest(engine) == before


def test_one_query_can_be_asked_for() -> None:
    engine = make_engine()
    engine.create_stream("other", {"ts": "timestamp"}, time="ts")
    query = engine.submit("SELECT * FROM readings WHERE sensor > 3", name="high")
    engine.submit("SELECT * FROM readings", name="all")
    engine.push("readings", [row(1000, sensor=5)])
    for named in (query, query.id, "HIGH"):
        assert engine.trace("readings", 0, named)["matched"] == ["high"]
    with pytest.raises(ConflictError) as error:
        engine.trace("other", {"ts": 1}, "high")
    assert error.value.code == "other_stream"


@pytest.mark.parametrize(
    ("condition", "values_seen"),
    [
        ("temp > 30", {"temp": 20.0}),
        ("temp * sensor > 30", {"temp": 20.0, "sensor": 1}),
        ("room LIKE 'b%'", {"room": "a"}),
        ("temp > 30 OR sensor > 3", {"temp": 20.0, "sensor": 1}),
        ("temp IS NULL", {"temp": 20.0}),
        ("temp > 10 AND sensor <> 1", {"sensor": 1}),
    ],
)
def test_the_first_refusing_predicate_comes_with_the_values_it_saw(condition: str, values_seen: dict[str, Any]) -> None:
    engine = make_engine()
    engine.submit(f"SELECT * FROM readings [RANGE 1 HOUR] WHERE {condition}", name="q")
    engine.push("readings", [row(1000)])
    for subject in (0, row(1000)):
        refused = engine.trace("readings", subject)["refused"]["q"]
        assert refused["values"] == values_seen
        assert refused["predicate"] and refused["reason"]


def test_a_condition_no_row_can_satisfy_says_so() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings WHERE sensor > 3 AND sensor < 2", name="q")
    assert engine.trace("readings", row(1))["refused"]["q"]["reason"] == "no row can satisfy it"


def test_the_predicate_of_a_float_is_written_with_its_number() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings WHERE temp > 3.5", name="q")
    assert "3.5" in engine.trace("readings", row(1, temp=1.0))["refused"]["q"]["predicate"]


def test_a_residual_that_was_never_run_on_a_row_is_not_blamed() -> None:
    """Two residuals; the one that runs first refuses the row, so the other has no stored outcome."""
    for first, second in (("residual:q#1", "residual:q#2"), ("residual:q#2", "residual:q#1")):
        engine = make_engine(policy=f"fixed:{first},{second}")
        engine.submit("SELECT * FROM readings [RANGE 1 HOUR] WHERE temp * sensor > 0 AND temp + sensor > 1000", name="q")
        engine.push("readings", [row(1000, temp=20.0, sensor=1)])
        refused = engine.trace("readings", 0)["refused"]["q"]
        assert "1000" in refused["predicate"], "20 * 1 > 0 is true: it did not refuse the row"


def test_late_and_lagging_rows_are_told_apart() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR]", name="q")
    engine.push("readings", [row(5000)])
    engine.push("readings", [row(1000)])
    found = engine.trace("readings", 1)
    assert (found["late"], found["time"], found["row"]["values"]["ts"]) == (True, at(5000), at(1000))
    assert engine.trace("readings", 0)["late"] is False
    assert engine.trace("readings", row(4999))["late"] is True
    assert engine.trace("readings", row(5000))["late"] is False


def test_a_row_that_would_be_dropped_matches_nothing() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", late="drop")
    engine.submit("SELECT * FROM s", name="q")
    engine.push("s", {"ts": [5000]})
    assert "late" in engine.trace("s", {"ts": 1})["refused"]["q"]["reason"]


def test_rows_from_before_the_submit_and_paused_queries_are_named_as_such() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR]", name="old")
    engine.push("readings", [row(1000)])
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR]", name="new")
    engine.pause("old")
    refused = engine.trace("readings", 0)["refused"]
    assert "before the query" in refused["new"]["reason"]
    assert "paused" in refused["old"]["reason"]


def test_a_waiting_row_and_an_unknown_one_are_not_found() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", lateness=1000)
    engine.push("s", {"ts": [5000]})
    with pytest.raises(NotFoundError) as error:
        engine.trace("s", 0)
    assert error.value.code == "unknown_row" and "waits for stragglers" in error.value.detail
    with pytest.raises(NotFoundError) as error:
        engine.trace("s", 1)
    assert "1 rows were accepted" in error.value.detail


def test_a_row_number_may_be_a_numpy_integer_as_commits_give_it() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings", name="q")
    numbers: list[Any] = []
    engine.on_commit(lambda commit: numbers.extend(commit.rows))
    engine.push("readings", [row(1)])
    assert isinstance(numbers[0], np.integer)
    assert engine.trace("readings", numbers[0])["matched"] == ["q"]


def test_a_stored_row_is_judged_as_it_was_matched_when_functions_are_asked() -> None:
    engine = make_engine()
    calls = []
    engine.register("once", lambda sensor: calls.append(sensor) or True, returns="bool")
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE once(sensor)", name="q")
    engine.push("readings", [row(1, sensor=7)])
    assert engine.trace("readings", 0)["matched"] == ["q"]
    assert values(query.answer()) == [7]
    assert calls == [7], "the outcome is kept with the row"


def test_trace_and_answer_agree_on_every_row() -> None:
    engine = make_engine()
    rng = np.random.default_rng(2)
    conditions = [
        "temp > 5",
        "temp > 5 OR sensor = 3",
        "temp * sensor > 9",
        "sensor IN (1, 4)",
        "temp IS NULL",
        "room LIKE 'a%' OR temp < 2",
    ]
    queries = [engine.submit(f"SELECT sensor, temp, room, ts FROM readings [RANGE 1 HOUR] WHERE {c}") for c in conditions]
    rows = [
        row(k, int(rng.integers(0, 6)), None if k % 7 == 0 else float(rng.integers(0, 10)), "ab"[k % 2] + "x") for k in range(40)
    ]
    engine.push("readings", rows)
    for query in queries:
        matched = [engine.trace("readings", k, query)["matched"] == [query.name] for k in range(40)]
        given = [engine.trace("readings", rows[k], query)["matched"] == [query.name] for k in range(40)]
        expected = values(query.answer(), "ts")
        assert matched == given == [at(k) in expected for k in range(40)]
