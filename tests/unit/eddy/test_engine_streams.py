"""Declaring streams: options, refusals, names, dropping, and the life of an engine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from eddy import ConflictError, EddyError, Engine, InUseError, NotFoundError, SchemaError, Stream
from tests.unit.eddy.digest import READINGS, at, digest, make_engine, row, values


def test_a_stream_is_shown_as_it_was_declared() -> None:
    engine = Engine()
    made = engine.create_stream(
        "Readings",
        {"v": "int", "when": "timestamp[s]"},
        time="WHEN",
        lateness=timedelta(seconds=2),
        late="drop",
        timeline="plant",
    )
    assert made == Stream("Readings", {"v": "int", "when": "timestamp[s]"}, "when", "plant", 2_000_000, "drop", None)
    assert engine.streams["Readings"] == made
    assert dict(made.columns) == {"v": "int", "when": "timestamp[s]"}


def test_the_defaults_are_no_lateness_adjust_and_timeline_main() -> None:
    stream = Engine().create_stream("s", {"ts": "timestamp"}, time="ts")
    assert (stream.lateness_us, stream.late, stream.timeline) == (0, "adjust", "main")


def test_a_number_for_lateness_is_milliseconds() -> None:
    assert Engine().create_stream("s", {"ts": "timestamp"}, time="ts", lateness=1.5).lateness_us == 1500


def test_a_stream_without_a_time_column_is_on_timeline_arrival() -> None:
    stream = Engine().create_stream("s", {"v": "int"})
    assert (stream.time, stream.timeline) == (None, "arrival")
    assert Engine().create_stream("s", {"v": "int"}, timeline="arrival").timeline == "arrival"


def test_the_unit_of_a_time_column_is_that_of_its_bare_numbers() -> None:
    engine = Engine()
    for unit, number in (("s", 2), ("ms", 2_000), ("us", 2_000_000), ("ns", 2_000_000_000)):
        name = f"in_{unit}"
        engine.create_stream(name, {"ts": f"timestamp[{unit}]"}, time="ts", timeline=name)
        query = engine.submit(f"SELECT ts FROM {name} [NOW]")
        engine.push(name, {"ts": [number]})
        assert values(query.answer()) == [at(2000)]


BAD_STREAMS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "9s"}, "bad_name", "a letter or _ first"),
    ({"name": "a b"}, "bad_name", "a letter or _ first"),
    ({"name": ""}, "bad_name", "a letter or _ first"),
    ({"name": 7}, "bad_name", "a letter or _ first"),
    ({"name": "x" * 129}, "bad_name", "128 at most"),
    ({"columns": {}}, "bad_schema", "a mapping such as"),
    ({"columns": ["ts"]}, "bad_schema", "a mapping such as"),
    ({"columns": {"a": "int", "A": "int", "ts": "timestamp"}}, "bad_schema", "not case-sensitive"),
    ({"columns": {"a": "integer", "ts": "timestamp"}}, "unknown_type", 'did you mean "int"?'),
    ({"columns": {"a": "int[s]", "ts": "timestamp"}}, "unknown_type", ""),
    ({"columns": {"a": None, "ts": "timestamp"}}, "unknown_type", "there are: int"),
    ({"columns": {"a b": "int", "ts": "timestamp"}}, "bad_name", "a letter or _ first"),
    ({"time": "tss"}, "bad_schema", 'did you mean "ts"?'),
    ({"time": 5}, "bad_schema", "there are: v, ts"),
    ({"time": "v"}, "bad_schema", "declare it as timestamp"),
    ({"late": "keep"}, "bad_schema", '"adjust" or "drop"'),
    ({"lateness": -1}, "bad_duration", "0 or more milliseconds"),
    ({"lateness": "5 s"}, "bad_duration", "a number of milliseconds"),
    ({"lateness": float("nan")}, "bad_duration", "a number of milliseconds"),
    ({"timeline": "my line"}, "bad_name", "a letter or _ first"),
    ({"timeline": "arrival"}, "bad_schema", ""),
    ({"time": None, "timeline": "plant"}, "bad_schema", "name its time column"),
    ({"time": None, "lateness": 5}, "bad_schema", "name its time column"),
]


@pytest.mark.parametrize(("changed", "code", "hint"), BAD_STREAMS)
def test_a_bad_declaration_is_refused_and_changes_nothing(changed: dict[str, Any], code: str, hint: str) -> None:
    engine = make_engine()
    before = digest(engine)
    given = {"name": "s", "columns": {"v": "int", "ts": "timestamp"}, "time": "ts", **changed}
    with pytest.raises(SchemaError) as error:
        engine.create_stream(given.pop("name"), given.pop("columns"), **given)
    assert error.value.code == code
    assert hint in error.value.hint
    assert digest(engine) == before


WORDS = ["input", "negative", "negative+message", "piggyback", "direct", "update-pattern", "auto"]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("of_engine", [False, True])
def test_answers_and_changes_are_the_same_under_every_expiry_word(word: str, of_engine: bool) -> None:
    engine = make_engine(expiry=word if of_engine else "auto")
    text = "SELECT room, COUNT(*) AS n FROM readings [RANGE 2 SECONDS] GROUP BY room"
    query = engine.submit(text, expiry=None if of_engine else word)
    assert engine.explain(query)["expiry"] == word
    engine.push("readings", [row(1000), row(2000), row(2500, room="b")])
    engine.advance(3000)
    assert sorted(query.answer().to_pylist(), key=lambda found: found["room"]) == [{"room": "a", "n": 1}, {"room": "b", "n": 1}]
    engine.advance(10_000)
    assert query.answer().num_rows == 0
    assert sorted((c.seq, c.sign, *c.row.values()) for c in query.changes(since=0)) == [
        (1, 1, "a", 2), (1, 1, "b", 1), (2, -1, "a", 2), (2, 1, "a", 1), (3, -1, "a", 1), (3, -1, "b", 1),
    ]  # fmt: skip


def test_an_unknown_expiry_word_is_refused_with_the_known_ones() -> None:
    engine = make_engine()
    before = digest(engine)
    for call in (lambda: engine.submit("SELECT * FROM readings", expiry="eager"), lambda: Engine(expiry="eager")):
        with pytest.raises(EddyError) as error:
            call()
        assert error.value.code == "bad_option"
        assert all(word in error.value.hint for word in WORDS)
    assert digest(engine) == before


def test_streams_and_queries_share_one_namespace_in_any_case() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings", name="Hot")
    for call in (
        lambda: engine.create_stream("READINGS", READINGS, time="ts"),
        lambda: engine.create_stream("hot", READINGS, time="ts"),
        lambda: engine.submit("SELECT * FROM readings", name="HOT"),
        lambda: engine.submit("SELECT * FROM readings", name="Readings"),
    ):
        before = digest(engine)
        with pytest.raises(ConflictError) as error:
            call()
        assert error.value.code == "name_taken"
        assert digest(engine) == before


def test_names_made_by_the_engine_avoid_those_in_use() -> None:
    engine = make_engine()
    engine.create_stream("q1", {"ts": "timestamp"}, time="ts")
    first = engine.submit("SELECT * FROM readings")
    second = engine.submit("SELECT * FROM readings")
    assert first.name not in ("q1", second.name)
    assert set(engine.queries) == {first.name, second.name}


def test_names_are_found_in_any_case() -> None:
    engine = make_engine()
    query = engine.submit("select SENSOR from Readings where TEMP > 3", name="Hot")
    engine.push("READINGS", [{"Sensor": 7, "TEMP": 5.0, "Ts": 1000}])
    assert values(engine.answer("hOT")) == [7]
    assert query.columns == {"sensor": "int"} or query.columns == {"SENSOR": "int"}
    engine.cancel("hot")
    engine.drop("ReAdInGs")
    assert not engine.streams


def test_the_mappings_show_what_there_is_and_cannot_be_written() -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings", name="hot")
    assert list(engine.streams) == ["readings"]
    assert dict(engine.queries) == {"hot": query}
    assert dict(engine.tables) == {}
    for mapping in (engine.streams, engine.queries, engine.tables, engine.streams["readings"].columns):
        with pytest.raises(TypeError):
            mapping["new"] = None  # type: ignore[index]  # what is tested


def test_a_stream_that_queries_read_is_not_dropped_and_they_are_listed() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings", name="hot")
    engine.submit("SELECT * FROM readings WHERE temp < 0", name="cold")
    engine.pause("cold")
    before = digest(engine)
    with pytest.raises(InUseError, match="2 queries") as error:
        engine.drop("readings")
    assert error.value.code == "in_use"
    assert "hot" in error.value.detail and "cold" in error.value.detail
    assert error.value.hint == "cancel them first"
    assert digest(engine) == before


def test_a_long_list_of_readers_is_cut() -> None:
    engine = make_engine()
    for i in range(12):
        engine.submit("SELECT * FROM readings", name=f"reader{i}")
    with pytest.raises(InUseError, match="12 queries") as error:
        engine.drop("readings")
    assert "reader9" in error.value.detail and error.value.detail.endswith("...")


def test_after_a_drop_the_name_is_free_and_the_new_stream_knows_nothing_of_the_old() -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000), row(2000)])
    query.cancel()
    engine.drop("readings")
    assert engine.streams == {}
    with pytest.raises(NotFoundError) as error:
        engine.push("readings", [row(1000)])
    assert error.value.code == "unknown_stream"
    engine.create_stream("readings", {"v": "int", "ts": "timestamp"}, time="ts")
    again = engine.submit("SELECT v FROM readings [RANGE 1 HOUR]")
    receipt = engine.push("readings", {"v": [5], "ts": [3000]})
    assert (receipt.first_row, values(again.answer())) == (0, [5])
    engine.check()


def test_dropping_a_stream_leaves_the_clock_of_its_timeline() -> None:
    engine = make_engine()
    engine.push("readings", [row(5000)])
    engine.drop("readings")
    engine.create_stream("other", {"v": "int", "ts": "timestamp"}, time="ts")
    query = engine.submit("SELECT v FROM other [RANGE 1 SECOND]")
    engine.push("other", {"v": [1, 2], "ts": [4000, 4500]})
    assert values(query.answer()) == [2]


def test_an_engine_is_a_context_manager_that_closes_itself() -> None:
    with make_engine() as engine:
        query = engine.submit("SELECT * FROM readings", name="hot")
        cursor = query.changes()
    assert "closed" in repr(engine)
    for call in (
        lambda: engine.push("readings", [row(1)]),
        lambda: engine.push_many({"readings": [row(1)]}),
        lambda: engine.advance(5),
        lambda: engine.submit("SELECT * FROM readings"),
        lambda: engine.create_stream("s", {"v": "int"}),
        lambda: engine.drop("readings"),
        lambda: engine.register("f", abs, returns="int"),
        lambda: engine.on_commit(print),
        lambda: engine.explain("hot"),
        lambda: engine.trace("readings", 0),
        lambda: list(cursor),
        query.answer, query.changes, query.cancel, query.pause, query.resume, query.explain, engine.stats, engine.check,
    ):  # fmt: skip
        with pytest.raises(ConflictError) as error:
            call()
        assert error.value.code == "closed"


def test_an_engine_that_was_closed_inside_its_with_block_leaves_it_without_an_error() -> None:
    with make_engine() as engine:
        engine.close()
    assert repr(engine).endswith("closed>")


def test_reprs_say_what_there_is() -> None:
    engine = make_engine(policy="lottery")
    query = engine.submit("SELECT sensor\n  FROM readings [NOW]\n WHERE temp > 1", name="hot")
    long = engine.submit("SELECT * FROM readings WHERE " + " AND ".join(["temp > 1"] * 20))
    engine.push("readings", [row(1)])
    assert repr(engine) == "<Engine lottery: 1 streams, 2 queries, commit 1>"
    assert repr(query) == "<Query 1 'hot' running relation: SELECT sensor FROM readings [NOW] WHERE temp > 1>"
    assert repr(long).endswith("...>")
    engine.pause(query)
    assert "paused" in repr(query)
    engine.cancel(query)
    assert "cancelled" in repr(query)
    assert repr(long.changes("now")) == f"<Changes of {long.name!r} after commit 1>"


@pytest.mark.parametrize("rows", [0, -1, 65_537, True, 1.5, "64", None])
def test_batch_rows_is_a_whole_number_in_bounds(rows: Any) -> None:
    with pytest.raises(EddyError) as error:
        Engine(batch_rows=rows)
    assert error.value.code == "bad_option"
    assert error.value.hint == "a whole number from 1 to 65536"


@pytest.mark.parametrize("rows", [0, -5, True, "many"])
def test_log_rows_is_a_whole_number_in_bounds(rows: Any) -> None:
    with pytest.raises(EddyError) as error:
        Engine(log_rows=rows)
    assert error.value.code == "bad_option"


@pytest.mark.parametrize("seed", ["x", 1.5, None])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(EddyError):
        Engine(policy="random", seed=seed)


@pytest.mark.parametrize(
    ("policy", "hint"),
    [("greedyy", 'did you mean "greedy"?'), ("", "there are:"), (5, "there are:"), ("Lottery", 'did you mean "lottery"?')],
)
def test_an_unknown_policy_is_refused_with_the_nearest_one(policy: Any, hint: str) -> None:
    with pytest.raises(EddyError) as error:
        Engine(policy=policy)
    assert error.value.code == "unknown_policy"
    assert hint in error.value.hint
