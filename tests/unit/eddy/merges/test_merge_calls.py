"""What merged streams refuse and show: definitions, calls, contradictions, gaps, limits, statistics."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from eddy import ConflictError, EddyError, Engine, InUseError, LimitError, MergedStream, NotFoundError, RowError, SchemaError
from eddy.catalog.merge_definition import merge_definition
from eddy.merges.merge_intake import MergeIntake
from lineage.elements import BEGINNING
from lineage.ingest import Ingestor
from lineage.schema import Schema

COLUMNS = {"sensor": "int", "temp": "float", "room": "string", "ts": "timestamp"}


def merged(engine: Engine | None = None, **options: Any) -> Engine:
    """An engine with a merge of two inputs."""
    engine = engine or Engine()
    columns = COLUMNS | ({"until": "timestamp"} if options.get("end") else {})
    engine.create_merge("m", columns, **{"time": "ts", "inputs": ("a", "b"), "unique": True} | options)
    return engine


def row(ts: int, sensor: int = 1, **more: Any) -> dict[str, Any]:
    return {"sensor": sensor, "temp": 20.5, "room": "x", "ts": ts} | more


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"time": None}, "no_time"),
        ({"timeline": "arrival"}, "schema_error"),
        ({"inputs": ()}, "bad_inputs"),
        ({"inputs": ("a", "A")}, "bad_inputs"),
        ({"inputs": ("a", "b c")}, "bad_name"),
        ({"unique": ["nothing"]}, "bad_unique"),
        ({"unique": ["sensor", "Sensor"]}, "bad_unique"),
        ({"unique": "sensor"}, "bad_unique"),
        ({"end": "until", "unique": ["until"]}, "bad_unique"),
        ({"missing": "none"}, "bad_option"),
        ({"order": "sorted"}, "bad_option"),
        ({"policy": "last"}, "bad_option"),
        ({"policy": "fraction:2"}, "bad_option"),
        ({"unique": False, "missing": "any"}, "needs_unique"),
        ({"unique": False, "policy": "first"}, "needs_unique"),
        ({"order": "strict", "lateness": 5}, "bad_option"),
        ({"case": "R9"}, "unknown_case"),
        ({"case": "R0"}, "bad_case"),
        ({"case": "R2", "order": "ordered", "end": "until"}, "bad_case"),
        ({"case": "R0", "order": "strict", "policy": "leader"}, "bad_case"),
        ({"case": "R3", "unique": False}, "bad_case"),
        ({"case": "R4"}, "bad_case"),
        ({"lag": -1}, "bad_duration"),
    ],
)
def test_definitions_that_cannot_be_are_refused_with_a_hint(options: dict[str, Any], code: str) -> None:
    engine = Engine()
    with pytest.raises(SchemaError) as raised:
        merged(engine, **options)
    assert raised.value.code == code or code == "schema_error"
    assert not engine.streams


@pytest.mark.parametrize(
    ("options", "case"),
    [
        ({}, "R3"),
        ({"unique": ["sensor"]}, "R3"),
        ({"unique": False}, "R4"),
        ({"order": "strict"}, "R0"),
        ({"order": "ordered"}, "R2"),
        ({"order": "ordered", "case": "R1"}, "R1"),
        ({"order": "strict", "end": "until"}, "R3"),
        ({"order": "strict", "policy": "leader"}, "R3"),
        ({"order": "any", "unique": False}, "R4"),
    ],
)
def test_properties_choose_the_case(options: dict[str, Any], case: str) -> None:
    engine = merged(**options)
    found = engine.streams["m"]
    assert isinstance(found, MergedStream) and (found.case, found.kind) == (case, "merge")
    assert engine.explain("m")["case"] == case and engine.explain("m")["why"]


def test_a_merge_has_a_name_like_a_stream_and_is_dropped_like_one() -> None:
    engine = merged()
    with pytest.raises(ConflictError):
        engine.create_stream("M", {"x": "int"})
    engine.submit("SELECT sensor FROM m", name="q")
    with pytest.raises(EddyError, match="is read by 1 queries"):
        engine.drop("m")
    engine.cancel("q")
    engine.drop("m")
    assert not engine.streams


def test_plain_calls_on_a_merge_name_the_right_call() -> None:
    engine = merged()
    for call in (lambda: engine.push("m", []), lambda: engine.push_many({"m": []}), lambda: engine.retract("m", [1], 0)):
        with pytest.raises(ConflictError) as raised:
            call()
        assert raised.value.code == "is_merge" and '"m", rows, input=' in raised.value.hint


def test_merge_calls_on_a_plain_stream_and_unknown_inputs_are_refused() -> None:
    engine = merged()
    engine.create_stream("s", COLUMNS, time="ts")
    with pytest.raises(ConflictError) as raised:
        engine.push("s", [row(1)], input="a")
    assert raised.value.code == "no_merge"
    with pytest.raises(NotFoundError) as unknown:
        engine.push("m", [row(1)], input="c")
    assert unknown.value.code == "unknown_input"
    engine.detach("m", "a")
    with pytest.raises(ConflictError) as detached:
        engine.push("m", [row(1)], input="a")
    assert detached.value.code == "detached"
    with pytest.raises(ConflictError) as attached:
        engine.attach("m", "b")
    assert attached.value.code == "attached"


def test_a_merge_that_is_not_there_is_called_one_and_the_merges_there_are_named() -> None:
    engine = merged()
    engine.create_stream("s", COLUMNS, time="ts")
    with pytest.raises(NotFoundError, match='merge "mm" does not exist') as near:
        engine.push("mm", [row(1)], input="a")
    with pytest.raises(NotFoundError, match='merge "nothing" does not exist') as far:
        engine.detach("nothing", "a")
    assert (near.value.hint, far.value.hint) == ('did you mean "m"?', "there are: m")
    engine.submit("SELECT sensor FROM m [NOW]", name="q")
    with pytest.raises(InUseError, match='merge "m" is read by'):
        engine.drop("m")


def test_what_an_input_must_not_say_has_a_hint() -> None:
    engine = merged(end="until", unique=["sensor"])
    engine.push("m", [row(4_000, until=5_000)], input="a")
    engine.stable("m", "a", 3_000)
    with pytest.raises(RowError) as below:
        engine.push("m", [row(2_000, until=5_000)], input="a")
    with pytest.raises(RowError) as unknown:
        engine.adjust("m", [{"sensor": 7, "ts": 4_000, "until": 4_500}], input="a")
    engine.detach("m", "a")
    with pytest.raises(ConflictError) as detached:
        engine.push("m", [row(4_000, until=5_000)], input="a")
    hints = [raised.value.hint for raised in (below, unknown, detached)]
    assert "attached again" in hints[0] and "sensor, ts" in hints[1] and hints[2] == "attach it again, as a new input"


def test_a_row_below_a_point_that_was_said_is_named_and_nothing_is_taken() -> None:
    engine = merged(order="any")
    engine.stable("m", "a", 1_000)
    with pytest.raises(RowError) as raised:
        engine.push("m", [row(1_500), row(999)], input="a")
    assert (raised.value.code, raised.value.row, raised.value.column) == ("below_point", 1, "ts")
    assert engine.stats()["streams"]["m"]["merge"]["inputs"]["a"]["rows"] == 0
    assert engine.push("m", [row(999)], input="b").settled == 1, "another input has not said so: it is settled"


@pytest.mark.parametrize(("order", "times"), [("strict", [1, 2, 2]), ("ordered", [1, 2, 1])])
def test_a_row_against_the_declared_order_is_named(order: str, times: list[int]) -> None:
    engine = merged(order=order)
    with pytest.raises(RowError) as raised:
        engine.push("m", [row(time) for time in times], input="a")
    assert (raised.value.code, raised.value.row, raised.value.column) == ("out_of_order", 2, "ts")


def test_adjusts_of_nothing_and_adjusts_below_a_point_are_refused() -> None:
    engine = merged(end="until", unique=["sensor"])
    engine.push("m", [row(1_000, until=5_000)], input="a")
    with pytest.raises(RowError) as unknown:
        engine.adjust("m", [{"sensor": 1, "ts": 1_000, "until": 4_000}], input="b")
    assert (unknown.value.code, unknown.value.row, unknown.value.column) == ("unknown_event", 0, "ts")
    with pytest.raises(RowError) as early:
        engine.adjust("m", [{"sensor": 1, "ts": 1_000, "until": 900}], input="a")
    assert (early.value.code, early.value.column) == ("bad_end", "until")
    engine.stable("m", "a", 3_000)
    with pytest.raises(RowError) as below:
        engine.adjust("m", [{"sensor": 1, "ts": 1_000, "until": 2_000}], input="a")
    assert below.value.code == "below_point"
    assert engine.adjust("m", [{"sensor": 1, "ts": 1_000, "until": 4_000}], input="a").accepted == 1
    engine.check()


def test_a_row_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(RowError) as raised:
        merged(end="until").push("m", [row(1_000, until=1_000)], input="a")
    assert (raised.value.code, raised.value.row, raised.value.column) == ("bad_end", 0, "until")


def test_times_and_points_too_far_ahead_are_refused() -> None:
    engine = merged(Engine(clock=lambda: 0, max_ahead=1_000))
    with pytest.raises(RowError) as raised:
        engine.push("m", [row(500), row(2_000)], input="a")
    assert (raised.value.code, raised.value.row, raised.value.column) == ("too_far_ahead", 1, "ts")
    with pytest.raises(RowError) as said:
        engine.stable("m", "a", 2_000)
    assert (said.value.code, said.value.column) == ("too_far_ahead", "ts")


def test_too_many_waiting_rows_are_refused_with_the_input_that_has_no_point() -> None:
    schema = Schema.parse({"k": "int", "ts": "timestamp"}, "m")
    stream = merge_definition("m", schema.declared(), time="ts", inputs=("a", "b"), unique=True, order="any")
    intake, ingestor = MergeIntake(stream, schema, [None, None], max_waiting=3), Ingestor(schema, 1, [None, None])
    a = intake.inputs.find("a")
    intake.say(intake.inputs.find("b"), 10_000)
    intake.give(a, ingestor.take({"k": [1, 2, 3], "ts": [20, 30, 40]}), BEGINNING)
    with pytest.raises(LimitError) as raised:
        intake.check_rows(a, ingestor.take({"k": [4], "ts": [50]}))
    assert '"a"' in raised.value.detail and '"b"' not in raised.value.detail


def test_contradictions_are_counted_and_shown_with_both_values() -> None:
    engine = merged(unique=["sensor"], order="any")
    engine.push("m", [row(1_000), row(1_001, temp=None)], input="a")
    assert engine.push("m", [row(1_000, temp=99.0), row(1_001)], input="b").accepted == 2
    shown = engine.stats()["streams"]["m"]["merge"]
    assert shown["inputs"]["b"]["contradictions"] == 2 and shown["inputs"]["a"]["contradictions"] == 0
    first = shown["contradictions"][0]
    assert (first["input"], first["column"], first["kept"], first["given"]) == ("b", "temp", 20.5, 99.0)
    assert first["event"] == {"sensor": 1}
    engine.stable("m", "b", 2_000)
    engine.check()


def test_a_receipt_says_what_a_sender_may_throw_away() -> None:
    engine = merged()
    receipt = engine.push("m", [row(1_000), row(1_000), row(2_000)], input="a")
    assert receipt[:3] == (2, 1, 0) and receipt.leader == "a"
    assert receipt.settled_before == datetime.fromtimestamp(2, UTC)


def test_an_input_that_comes_back_is_a_new_one_and_a_gap_is_shown() -> None:
    engine = merged(inputs=("a",), order="any")
    engine.push("m", [row(1_000)], input="a")
    engine.stable("m", "a", 1_500)
    engine.detach("m", "a")
    engine.attach("m", "a", since=4_000)
    assert engine.stats()["streams"]["m"]["merge"]["gaps"] == {
        "count": 1, "last": [("1970-01-01T00:00:01.500000Z", "1970-01-01T00:00:04Z")]
    }  # fmt: skip
    assert engine.push("m", [row(1_600)], input="a").accepted == 1, "it has said nothing yet"
    engine.check()


def test_advance_speaks_for_every_joined_input() -> None:
    engine = merged(order="any")
    engine.submit("SELECT sensor FROM m", name="q")
    engine.push("m", [row(1_000)], input="a")
    engine.push("m", [row(1_000)], input="b")
    engine.advance(2_000)
    assert [change.row for change in engine.changes("q", since=0)] == [{"sensor": 1}]
    with pytest.raises(RowError):
        engine.push("m", [row(1_500)], input="b")


def test_patterns_are_strict_where_rows_may_be_taken_back() -> None:
    first, plain = merged(policy="first"), merged()
    sql = "SELECT sensor FROM m [RANGE 1 SECOND]"
    assert first.explain(sql)["update_pattern"] == "strict"
    assert plain.explain(sql)["update_pattern"] == "weakest"
    assert plain.explain(sql)["merges"]["m"]["case"] == "R3"


@pytest.mark.parametrize(
    ("sql", "case"),
    [
        ("SELECT COUNT(*) AS n FROM m [RANGE 2 SECONDS SLIDE 1 SECOND]", "R0"),
        ("SELECT sensor FROM m", "R1"),
        ("ISTREAM (SELECT sensor FROM m [RANGE 1 SECOND])", "R1"),
        ("SELECT sensor, COUNT(*) AS n FROM m [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY sensor", "R2"),
        ("SELECT sensor, COUNT(*) AS n FROM m [RANGE 2 SECONDS] GROUP BY sensor", "R3"),
        ("SELECT COUNT(*) AS n FROM m [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY sensor", "R4"),
        ("SELECT DISTINCT room FROM m [RANGE 2 SECONDS]", "R3"),
        ("SELECT sensor FROM m [RANGE 2 SECONDS] EXCEPT SELECT sensor FROM m [RANGE 1 SECOND]", "R3"),
        ("SELECT sensor FROM m [ROWS 5]", "R4"),
    ],
)
def test_every_query_shows_its_case_as_an_input_of_a_merge(sql: str, case: str) -> None:
    found = merged().explain(sql)["lmerge"]
    assert found["case"] == case and found["properties"] and found["why"]
