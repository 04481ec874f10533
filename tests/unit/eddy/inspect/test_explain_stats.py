"""What the engine tells about itself: plans, counters, bytes."""

from __future__ import annotations

import pytest

from eddy import Engine
from tests.unit.eddy.digest import at, digest, make_engine, row


def test_explain_tells_the_plan_of_a_query() -> None:
    engine = make_engine(policy="lottery")
    engine.register("risky", lambda temp: True, returns="bool")
    sql = "SELECT sensor FROM readings [RANGE 5 MINUTES] WHERE temp > 30 AND temp * sensor > 4 AND risky(temp)"
    query = engine.submit(sql, name="hot")
    plan = query.explain()
    assert plan == engine.explain("hot") == engine.explain(query.id)
    assert (plan["query"], plan["id"], plan["state"], plan["kind"]) == ("hot", 1, "running", "relation")
    assert (plan["stream"], plan["timeline"], plan["policy"]) == ("readings", "main", "lottery")
    kinds = sorted(name.partition("#")[0] for name in plan["modules"])
    assert kinds == ["filter:readings.(temp * sensor)", "filter:readings.temp", "function:risky"]
    assert [operator["name"] for operator in plan["operators"]] == plan["modules"]
    assert plan["update_pattern"] == "weakest"
    edge = {"from": "readings", "to": "result", "update_pattern": "weakest", "ends_known": True, "cases": ["+->+", "-->-"]}
    assert plan["edges"] == [edge]
    assert plan["columns"] == {"sensor": "int"}
    assert plan["shared_with"] == 0
    assert plan["storage"]["rows_held"] == 0


def test_explain_of_a_text_is_the_plan_it_would_get_and_changes_nothing() -> None:
    engine = make_engine()
    sql = "SELECT room FROM readings [RANGE 5 MINUTES] WHERE sensor > 30 AND temp + sensor > 3"
    before = digest(engine)
    plan = engine.explain(sql)
    assert digest(engine) == before
    assert plan["kind"] == "relation" and "query" not in plan
    query = engine.submit(sql)
    assert {**query.explain(), "operators": None, "modules": None}.items() >= {**plan, "operators": None, "modules": None}.items()
    assert engine.explain("SELECT sensor FROM readings [RANGE 300 SECONDS] WHERE sensor > 30 AND temp + sensor > 3")[
        "shared_with"
    ] in (0, 1)


@pytest.mark.parametrize("sql", ["SELECT\n*\nFROM\nreadings", "SELECT\t*\tFROM\treadings", " SELECT*FROM readings "])
def test_a_text_is_a_text_whatever_its_white_space(sql: str) -> None:
    assert make_engine().explain(sql)["kind"] == "stream"


@pytest.mark.parametrize(
    ("window", "kind", "pattern"),
    [("", "stream", "monotonic"), ("[RANGE UNBOUNDED]", "relation", "monotonic"), ("[NOW]", "relation", "weakest")],
)
def test_explain_names_kind_and_update_pattern(window: str, kind: str, pattern: str) -> None:
    plan = make_engine().explain(f"SELECT * FROM readings {window}")
    assert (plan["kind"], plan["update_pattern"], plan["condition"]) == (kind, pattern, "every row")


def test_explain_tells_candidates_from_bits() -> None:
    engine = make_engine()
    first = engine.submit("SELECT * FROM readings WHERE sensor = 0")
    assert first.explain()["matched_by"] == "a bit in the filters of its stream"
    for k in range(1, 70):
        engine.submit("SELECT * FROM readings WHERE sensor = :k", params={"k": k})
    assert first.explain()["matched_by"] == "candidates by sensor"
    assert engine.explain("SELECT * FROM readings WHERE sensor > 5 AND sensor < 3")["matched_by"].startswith("nothing")


def test_a_paused_query_explains_itself_too() -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings [NOW] WHERE temp > 3")
    query.pause()
    assert query.explain()["state"] == "paused"


def test_the_condition_of_a_float_is_written_with_its_number() -> None:
    assert "30.5" in make_engine().explain("SELECT * FROM readings WHERE temp > 30.5")["condition"]


def test_stats_count_rows_results_late_rows_and_time() -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings [RANGE 1 SECOND] WHERE temp > 10", name="hot")
    engine.push("readings", [row(1000), row(1000, temp=1.0), row(5000)])
    engine.push("readings", [row(2000)])
    stats = engine.stats()
    assert (stats["seq"], stats["policy"]) == (2, "auto")
    log = stats["timelines"]["main"].pop("log")
    assert stats["timelines"] == {"main": {"time": at(5000), "streams": 1}}
    assert log["commits"] == 2 and log["bytes"] > 0
    stream = stats["streams"]["readings"]
    expected = {
        "rows": 4, "late": 1, "dropped": 0, "waiting": 0, "queries": 1, "legs": 1, "slots": 1, "candidates": 0, "windows": 1,
    }  # fmt: skip
    assert {name: stream[name] for name in expected} == expected
    entry = stats["queries"]["hot"]
    assert (entry["id"], entry["state"], entry["results"], entry["errors"]) == (query.id, "running", 3, 0)
    module = stats["modules"]["filter:readings.temp"]
    assert (module["predicates"], module["rows_in"], module["rows_out"], module["selectivity"]) == (1, 4, 3, 0.75)
    assert {"tickets", "cost_ns", "visits", "cleared"} <= set(module)


def test_modules_are_named_by_stream_and_column_function_and_number() -> None:
    engine = make_engine()
    engine.register("risky", lambda temp: True, returns="bool")
    engine.submit(
        "SELECT * FROM readings WHERE temp > 1 AND risky(temp) AND risky(sensor) AND temp * sensor > 1 AND room LIKE '_x'"
    )
    names = list(engine.stats()["modules"])
    kinds = sorted(name.partition("#")[0] for name in names)
    filters = ["filter:readings.(temp * sensor)", "filter:readings.temp"]
    assert kinds == [*filters, "function:risky", "function:risky", "residual:q1"]
    assert len(set(names)) == 5


def test_modules_of_two_streams_are_all_listed() -> None:
    engine = Engine()
    engine.register("f", lambda v: True, returns="bool")
    for name in ("a", "b"):
        engine.create_stream(name, {"v": "int", "ts": "timestamp"}, time="ts")
        engine.submit(f"SELECT v FROM {name} WHERE v > 1 AND v * v > 3 AND f(v)")
    assert len(engine.stats()["modules"]) == 6


def test_bytes_are_the_sum_of_their_parts() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR] WHERE temp > 10")
    engine.push("readings", [row(1000, room="x"), row(1000, room="yy")])
    stats = engine.stats()
    own = sum(entry["own_bytes"] for entry in stats["queries"].values())
    shared = sum(sum(entry["bytes"].values()) for entry in stats["streams"].values())
    assert stats["bytes"] == own + shared
    assert all(value > 0 for value in (own, shared, stats["streams"]["readings"]["bytes"]["rows"]))
    entry = next(iter(stats["queries"].values()))
    assert entry["shared_bytes"] == stats["streams"]["readings"]["bytes"]["rows"]


def test_rows_are_forgotten_when_no_window_and_no_log_needs_them() -> None:
    engine = make_engine(log_rows=1)
    query = engine.submit("SELECT * FROM readings [RANGE 1 SECOND]")
    engine.push("readings", [row(k) for k in range(500)])
    assert engine.stats()["streams"]["readings"]["held"] == 500
    for seconds in (1000, 1002, 1004):
        engine.push("readings", [row(1000 * seconds)])
    engine.advance(3_000_000)
    assert engine.stats()["streams"]["readings"]["held"] <= 3
    query.cancel()
    engine.push("readings", [row(3_000_001)])
    engine.advance(3_000_002)
    assert engine.stats()["streams"]["readings"]["held"] == 0


def test_a_stream_nobody_reads_keeps_nothing() -> None:
    engine = make_engine()
    for _ in range(200):
        engine.push("readings", [row(1000, room=None)])
    engine.advance(2000)
    stream = engine.stats()["streams"]["readings"]
    assert (stream["rows"], stream["held"], stream["bytes"]["rows"]) == (200, 0, 0)


def test_check_finds_a_broken_engine() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR] WHERE temp > 10")
    engine.push("readings", [row(1000), row(2000)])
    engine.check()
    page, _, _ = next(engine._catalog.sources["readings"].store.slices(0, 2))
    page.times[0] = page.times[1] + 1
    with pytest.raises(AssertionError):
        engine.check()
