"""A call that raises has changed nothing: every mistake we know, against a digest of the whole engine."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddy import ConflictError, EddyError, Engine, LimitError, NotFoundError, QueryError, RowError, SchemaError
from tests.reference.limits import wait_for_few
from tests.unit.eddy.digest import READINGS, assert_refused, digest, row


def busy_engine() -> Engine:
    """Streams, queries of all kinds, stored and waiting rows: something to damage."""
    engine = Engine(seed=1)
    engine.create_stream("readings", READINGS, time="ts")
    engine.create_stream("slow", {"name": "string", "v": "int", "ts": "timestamp"}, time="ts", lateness=5000)
    engine.create_stream("arrivals", {"name": "string", "v": "int"})
    engine.create_stream("elsewhere", {"v": "int", "ts": "timestamp"}, time="ts", timeline="plant")
    engine.register("risky", lambda temp: temp is not None and temp > 30, returns="bool")
    engine.submit("SELECT sensor, room FROM readings [RANGE 5 MINUTES] WHERE temp > 10 AND room <> 'z'", name="hot")
    engine.submit("SELECT * FROM readings [RANGE 1 SECOND] WHERE temp > 10 OR sensor = 3", name="either")
    engine.submit("SELECT sensor FROM readings WHERE temp * sensor > 4 AND risky(temp)", name="residual")
    engine.submit("SELECT v FROM slow [RANGE UNBOUNDED]", name="unbounded")
    engine.submit("SELECT v FROM arrivals", name="newest")
    for k in range(70):
        engine.submit("SELECT sensor FROM readings WHERE sensor = :k AND temp > 1", params={"k": k}, name=f"key{k}")
    engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]", name="paused")
    engine.push("readings", [row(1000, sensor=k, temp=float(k), room=f"room {k % 7}") for k in range(50)])
    engine.push("slow", {"name": ["a", "b"], "v": [1, 2], "ts": [1000, 2000]})
    engine.pause("paused")
    engine.advance(2000)
    engine.push("slow", {"name": ["c", "d"], "v": [3, 4], "ts": [9000, 12_000]})
    engine.create_table("rooms", {"room": "string", "floor": "int", "size": "float"}, key="room", retroactive=True)
    engine.create_table("places", {"x": "float", "y": "int", "name": "string"}, key=["x", "y"])
    engine.upsert("rooms", {"room": ["room 1", "room 2"], "floor": [1, 2]})
    engine.submit("SELECT r.sensor, f.floor FROM readings [RANGE 1 HOUR] r JOIN rooms f ON r.room = f.room", name="floors")
    engine.submit("SELECT name FROM places WHERE name LIKE 'a%'", name="named")
    engine.upsert("rooms", {"room": ["room 2", "room 3"], "floor": [3, 4]})
    engine.on_commit(lambda commit: None)
    return engine


NEW = ["new string one", "new string two"]
Bad = tuple[Callable[[Engine], Any], type[EddyError], str, dict[str, Any], str]

SQL: list[Bad] = [
    (lambda e: e.submit("SELECT *\nFROM readings\nWHERE tempp > 1"), QueryError, "unknown_column", {"line": 3, "column": 7}, 'did you mean "temp"?'),
    (lambda e: e.submit("SELECT nope FROM readings"), QueryError, "unknown_column", {"line": 1, "column": 8}, "there are: sensor"),
    (lambda e: e.submit("SELECT * FROM reading"), QueryError, "unknown_stream", {"line": 1, "column": 15}, 'did you mean "readings"?'),
    (lambda e: e.submit("SELECT * FROM readings WHERE room > 1"), QueryError, "type_mismatch", {"line": 1, "column": 30}, "CAST"),
    (lambda e: e.submit("SELECT * FROM readings WHERE temp"), QueryError, "type_mismatch", {"line": 1, "column": 30}, ""),
    (lambda e: e.submit("(" * 1_000_000), QueryError, "query_too_long", {"line": 1, "column": 1}, "parameters"),
    (lambda e: e.submit("SELECT * FROM readings WHERE " + "(" * 60 + "ok" + ")" * 60), QueryError, "query_too_deep", {"line": 1}, ""),
    (lambda e: e.submit("SELECT * FROM readings WHERE " + "NOT " * 10_000 + "ok"), QueryError, "query_too_deep", {"line": 1}, ""),
    (lambda e: e.submit("SELECT * FROM readings WHERE " + " AND ".join(["ok"] * 1500)), QueryError, "too_many_tokens", {"line": 1}, ""),
    (lambda e: e.submit(""), QueryError, "syntax_error", {"line": 1, "column": 1}, "SELECT"),
    (lambda e: e.submit("SELECT * FROM readings WHERE room = 'open"), QueryError, "syntax_error", {"line": 1, "column": 37}, "quote"),
    (lambda e: e.submit("SELECT * FROM readings; SELECT 1"), QueryError, "not_supported", {"line": 1}, ""),
    (lambda e: e.submit("SELECT COUNT(*) FROM readings"), QueryError, "missing_window", {"line": 1, "column": 22}, "[ROWS 100]"),
    (lambda e: e.submit("SELECT 1 FROM readings [NOW] a, readings b"), QueryError, "missing_window", {"column": 33}, "[ROWS 100]"),
    (lambda e: e.submit("SELECT 1 FROM readings [NOW] a JOIN readings [RANGE UNBOUNDED] b ON a.ts = b.ts"), QueryError, "unbounded_join", {"column": 47}, "for ever"),
    (lambda e: e.submit("SELECT 1 FROM readings [NOW] a, elsewhere [NOW] b"), QueryError, "two_timelines", {"column": 33}, "one timeline"),
    (lambda e: e.submit("SELECT sensor FROM readings [NOW] a, readings [NOW] b"), QueryError, "ambiguous_column", {"column": 8}, "a.sensor"),
    (lambda e: e.submit("SELECT 1 FROM readings [NOW] a, readings [NOW] b WHERE a.room = b.sensor"), QueryError, "type_mismatch", {"column": 56}, ""),
    (lambda e: e.submit("SELECT * FROM readings [RANGE 0 SECONDS]"), QueryError, "bad_window", {"line": 1}, ""),
    (lambda e: e.submit("SELECT foo(temp) FROM readings"), QueryError, "unknown_function", {"line": 1, "column": 8}, ""),
    (lambda e: e.submit("SELECT * FROM readings WHERE temp > :x"), QueryError, "missing_param", {"line": 1, "column": 37}, 'params={"x"'),
    (lambda e: e.submit("SELECT * FROM readings", params={"x": 1}), QueryError, "unknown_param", {"line": 1}, "no parameters"),
    (lambda e: e.submit("SELECT * FROM readings WHERE temp > :x", params={"x": 1, "y": 2}), QueryError, "unknown_param", {}, "x"),
    (lambda e: e.submit("SELECT * FROM readings WHERE temp > :x", params={"x": "a"}), QueryError, "type_mismatch", {"line": 1}, ""),
    (lambda e: e.submit("SELECT * FROM readings WHERE temp > :x", params={"x": [1]}), QueryError, "bad_param", {"line": 1}, "an int"),
    (lambda e: e.submit("SELECT * FROM readings WHERE sensor > :x", params={"x": 2**64}), QueryError, "number_too_large", {}, "64 bits"),
    (lambda e: e.submit("SELECT * FROM readings [RANGE :w]", params={"w": 5}), QueryError, "bad_param", {"line": 1}, "timedelta"),
    (lambda e: e.submit("SELECT * FROM readings [RANGE :w]", params={"w": timedelta(0)}), QueryError, "bad_window", {}, ""),
    (lambda e: e.submit("SELECT sensor FROM readings", history="all"), EddyError, "bad_option", {}, '"new" or "window"'),
    (lambda e: e.submit("SELECT sensor FROM readings", history=True), EddyError, "bad_option", {}, '"new" or "window"'),
    (lambda e: e.submit("SELECT nope FROM readings [NOW]", history="window"), QueryError, "unknown_column", {}, "there are: sensor"),
    (lambda e: e.replace("hot", "SELECT *\nFROM readings\nWHERE tempp > 1"), QueryError, "unknown_column", {"line": 3, "column": 7}, 'did you mean "temp"?'),
    (lambda e: e.replace("hot", "SELECT sensor, room FROM readings [NOW] WHERE temp > :x"), QueryError, "missing_param", {}, 'params={"x"'),
    (lambda e: e.replace("hot", "SELECT room, sensor FROM readings [NOW]"), ConflictError, "other_columns", {}, "AS"),
    (lambda e: e.replace("hot", "SELECT sensor, room FROM readings"), ConflictError, "other_kind", {}, "a window"),
    (lambda e: e.replace("newest", "SELECT v FROM arrivals [NOW]"), ConflictError, "other_kind", {}, "leave out the window"),
    (lambda e: e.replace("paused", "SELECT sensor FROM readings [NOW]"), ConflictError, "paused", {}, "resume it first"),
    (lambda e: e.replace("hott", "SELECT sensor, room FROM readings [NOW]"), NotFoundError, "unknown_query", {}, 'did you mean "hot"?'),
    (lambda e: e.replace("hot", 5), QueryError, "not_a_text", {}, "SELECT"),
    (lambda e: e.submit("SELECT sensor FROM readings", name="9lives"), SchemaError, "bad_name", {}, "a letter"),
    (lambda e: e.submit("SELECT sensor FROM readings", name="HOT"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.submit("SELECT sensor FROM readings", name="slow"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.explain("SELECT tempp FROM readings"), QueryError, "unknown_column", {"line": 1, "column": 8}, "temp"),
    (lambda e: e.explain("hott"), NotFoundError, "unknown_query", {}, 'did you mean "hot"?'),
    (lambda e: e.submit(5), EddyError, "", {}, ""),
    (lambda e: e.submit(None), EddyError, "", {}, ""),
    (lambda e: e.submit(b"SELECT * FROM readings"), EddyError, "", {}, ""),
    (lambda e: e.submit("SELECT * FROM readings", params=5), EddyError, "", {}, ""),
]  # fmt: skip


def two(**columns: Any) -> dict[str, Any]:
    return {"room": NEW, "ts": [3000, 3000], **columns}


ROWS: list[Bad] = [
    (lambda e: e.push("reading", two()), NotFoundError, "unknown_stream", {}, 'did you mean "readings"?'),
    (lambda e: e.push(5, two()), NotFoundError, "unknown_stream", {}, ""),
    (lambda e: e.push("readings", two(tempp=[1, 2])), RowError, "unknown_column", {"column": "tempp"}, 'did you mean "temp"?'),
    (lambda e: e.push("readings", two(temp=[1.0])), RowError, "ragged_columns", {"column": "temp"}, "same length"),
    (lambda e: e.push("readings", two(ts=[3000])), RowError, "ragged_columns", {"column": "ts"}, "same length"),
    (lambda e: e.push("readings", two(temp=["x", 1.0])), RowError, "bad_value", {"row": 0, "column": "temp"}, ""),
    (lambda e: e.push("readings", two(sensor=[1, "2"])), RowError, "bad_value", {"row": 1, "column": "sensor"}, "a number"),
    (lambda e: e.push("readings", two(sensor=[1, 2**64])), RowError, "", {"row": 1, "column": "sensor"}, ""),
    (lambda e: e.push("readings", two(ok=[True, "no"])), RowError, "bad_value", {"row": 1, "column": "ok"}, ""),
    (lambda e: e.push("readings", two(room=["new a", 7])), RowError, "bad_value", {"row": 1, "column": "room"}, ""),
    (lambda e: e.push("readings", two(room=["new a", "\ud800"])), RowError, "", {"row": 1, "column": "room"}, ""),
    (lambda e: e.push("readings", two(ts=[3000, float("inf")])), RowError, "bad_value", {"row": 1, "column": "ts"}, "finite"),
    (lambda e: e.push("readings", two(ts=[3000, float("nan")])), RowError, "bad_value", {"row": 1, "column": "ts"}, ""),
    (lambda e: e.push("readings", two(ts=np.array([3000.0, np.nan]))), RowError, "bad_value", {"row": 1, "column": "ts"}, ""),
    (lambda e: e.push("readings", two(ts=[3000, None])), RowError, "null_time", {"row": 1, "column": "ts"}, "needs a time"),
    (lambda e: e.push("readings", two(ts=pa.array([3000, None]))), RowError, "null_time", {"row": 1, "column": "ts"}, "needs a time"),
    (lambda e: e.push("readings", two(ts=[3000, 10**18])), RowError, "time_out_of_range", {"row": 1, "column": "ts"}, "milliseconds"),
    (lambda e: e.push("readings", two(ts=[3000, "soon"])), RowError, "bad_value", {"row": 1, "column": "ts"}, ""),
    (lambda e: e.push("readings", {"room": NEW}), RowError, "missing_time", {"column": "ts"}, "needs a time"),
    (lambda e: e.push("readings", [{"room": "new", "ts": 3000}, {"room": "newer"}]), RowError, "null_time", {"row": 1, "column": "ts"}, ""),
    (lambda e: e.push("readings", [{"room": "new", "ts": 3000}, 5]), RowError, "not_rows", {"row": 1}, "a dict"),
    (lambda e: e.push("readings", [{"room": "new", "ts": 3000}, {"roomm": "x", "ts": 3000}]), RowError, "unknown_column", {"row": 1}, "room"),
    (lambda e: e.push("readings", 5), RowError, "not_rows", {}, "a dict of columns"),
    (lambda e: e.push("readings", "rows"), RowError, "not_rows", {}, "a dict of columns"),
    (lambda e: e.push("readings", None), RowError, "not_rows", {}, "a dict of columns"),
    (lambda e: e.push("readings", {"room": NEW, "ROOM": NEW, "ts": [3000, 3000]}), RowError, "duplicate_column", {"column": "room"}, "case"),
    (lambda e: e.push("readings", pa.table({"room": NEW, "ts": pa.array(["x", "y"])})), RowError, "bad_value", {"row": 0, "column": "ts"}, ""),
    (lambda e: e.push_many({"slow": {"name": NEW, "ts": [1, 2]}, "readings": two(temp=["x", "y"])}), RowError, "bad_value",
     {"row": 0, "column": "temp"}, ""),
    (lambda e: e.push_many({"readings": two(), "slow": {"v": [1, "x"], "ts": [1, 2]}}), RowError, "bad_value", {"row": 1, "column": "v"}, ""),
    (lambda e: e.push_many({"readings": two(), "sloww": {"ts": [1]}}), NotFoundError, "unknown_stream", {}, 'did you mean "slow"?'),
    (lambda e: e.push_many({"readings": two(), "elsewhere": {"ts": [1]}}), ConflictError, "two_timelines", {}, "apart"),
]  # fmt: skip

KEYED = {"k": "int", "v": "int"}

TABLES: list[Bad] = [
    (lambda e: e.create_table("t", KEYED, key=None), SchemaError, "bad_key", {}, 'key="id"'),
    (lambda e: e.create_table("t", KEYED, key=[]), SchemaError, "bad_key", {}, 'key="id"'),
    (lambda e: e.create_table("t", KEYED, key="kk"), SchemaError, "bad_key", {}, 'did you mean "k"?'),
    (lambda e: e.create_table("t", KEYED, key=["k", 5]), SchemaError, "bad_key", {}, "there are: k, v"),
    (lambda e: e.create_table("t", KEYED, key=["k", "K"]), SchemaError, "bad_key", {}, "once"),
    (lambda e: e.create_table("t", KEYED, key="k", retroactive="yes"), SchemaError, "bad_schema", {}, "True"),
    (lambda e: e.create_table("t", {}, key="k"), SchemaError, "bad_schema", {}, "mapping"),
    (lambda e: e.create_table("9t", KEYED, key="k"), SchemaError, "bad_name", {}, "a letter"),
    (lambda e: e.create_table("Readings", KEYED, key="k"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.create_table("rooms", KEYED, key="k"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.create_stream("ROOMS", READINGS, time="ts"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.submit("SELECT sensor FROM readings", name="rooms"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.upsert("room", {"room": NEW}), NotFoundError, "unknown_table", {}, 'did you mean "rooms"?'),
    (lambda e: e.upsert("readings", two()), NotFoundError, "unknown_table", {}, '"readings" is a stream: push'),
    (lambda e: e.upsert(5, two()), NotFoundError, "unknown_table", {}, ""),
    (lambda e: e.delete("slow", ["a"]), NotFoundError, "unknown_table", {}, "push"),
    (lambda e: e.push("rooms", {"room": NEW}), NotFoundError, "unknown_stream", {}, '"rooms" is a table: upsert'),
    (lambda e: e.push_many({"readings": two(), "rooms": {"room": NEW}}), NotFoundError, "unknown_stream", {}, "upsert"),
    (lambda e: e.trace("rooms", 0), NotFoundError, "unknown_stream", {}, "table"),
    (lambda e: e.upsert("rooms", {"room": ["new a", None], "floor": [1, 2]}), RowError, "null_key", {"row": 1, "column": "room"}, "its key"),
    (lambda e: e.upsert("rooms", {"floor": [1, 2]}), RowError, "null_key", {"row": 0, "column": "room"}, "its key"),
    (lambda e: e.upsert("places", [{"name": "new", "x": 1.0}]), RowError, "null_key", {"row": 0, "column": "y"}, "its key"),
    (lambda e: e.upsert("rooms", {"room": NEW, "flor": [1, 2]}), RowError, "unknown_column", {"column": "flor"}, 'did you mean "floor"?'),
    (lambda e: e.upsert("rooms", {"room": NEW, "floor": [1, "x"]}), RowError, "bad_value", {"row": 1, "column": "floor"}, ""),
    (lambda e: e.upsert("rooms", 5), RowError, "not_rows", {}, "a dict of columns"),
    (lambda e: e.delete("rooms", "room 1"), RowError, "not_keys", {}, "a list of values of room"),
    (lambda e: e.delete("rooms", 5), RowError, "not_keys", {}, "a list of values of room"),
    (lambda e: e.delete("rooms", {"room": NEW}), RowError, "not_keys", {}, "a list"),
    (lambda e: e.delete("rooms", [1]), RowError, "bad_value", {"row": 0, "column": "room"}, ""),
    (lambda e: e.delete("rooms", [("room 1",)]), RowError, "bad_value", {"row": 0, "column": "room"}, ""),
    (lambda e: e.delete("places", [(1.0, 2), 3.0]), RowError, "not_keys", {"row": 1}, "(x, y)"),
    (lambda e: e.delete("places", [(1.0, 2, 3)]), RowError, "not_keys", {"row": 0}, "(x, y)"),
    (lambda e: e.delete("places", [(1.0, "x")]), RowError, "bad_value", {"row": 0, "column": "y"}, ""),
    (lambda e: e.drop("rooms"), EddyError, "in_use", {}, "cancel them first"),
    (lambda e: e.submit("SELECT floor FROM rooms [NOW]"), QueryError, "table_window", {"column": 26}, "only a stream"),
    (lambda e: e.submit("SELECT flor FROM rooms"), QueryError, "unknown_column", {"column": 8}, "floor"),
    (lambda e: e.submit("SELECT 1 FROM readings [NOW] a, slow b, rooms"), QueryError, "missing_window", {"column": 33}, ""),
    (lambda e: e.submit("SELECT 1 FROM readings [NOW] a, rooms, elsewhere [NOW] b"), QueryError, "two_timelines", {"column": 40}, ""),
    (lambda e: e.submit("SELECT floor FROM romms"), QueryError, "unknown_stream", {"column": 19}, 'did you mean "rooms"?'),
]  # fmt: skip

OTHER: list[Bad] = [
    (lambda e: e.cancel("hott"), NotFoundError, "unknown_query", {}, 'did you mean "hot"?'),
    (lambda e: e.cancel(999), NotFoundError, "unknown_query", {}, ""),
    (lambda e: e.pause("paused"), ConflictError, "already_paused", {}, ""),
    (lambda e: e.resume("hot"), ConflictError, "not_paused", {}, ""),
    (lambda e: e.drop("readings"), EddyError, "in_use", {}, "cancel them first"),
    (lambda e: e.drop("nothing"), NotFoundError, "unknown_stream", {}, "there are: readings"),
    (lambda e: e.advance(5, timeline="plantt"), NotFoundError, "not_found", {}, 'did you mean "plant"?'),
    (lambda e: e.advance(5, timeline=[]), NotFoundError, "not_found", {}, ""),
    (lambda e: e.advance(float("inf")), RowError, "bad_value", {}, "finite"),
    (lambda e: e.advance(float("nan")), RowError, "bad_value", {}, "finite"),
    (lambda e: e.advance("never"), RowError, "bad_value", {}, "ISO 8601"),
    (lambda e: e.advance(10**18), RowError, "time_out_of_range", {}, "milliseconds"),
    (lambda e: e.register("risky", abs, returns="int"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.register("RISKY", abs, returns="int"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.register("f", 5, returns="int"), EddyError, "bad_function", {}, ""),
    (lambda e: e.register("f", abs, returns="blob"), EddyError, "bad_function", {}, "int, float"),
    (lambda e: e.register("f", abs, returns="int", cost=-1), EddyError, "bad_function", {}, "microseconds"),
    (lambda e: e.register("f", abs, returns="int", cost=float("nan")), EddyError, "bad_function", {}, "microseconds"),
    (lambda e: e.register("9f", abs, returns="int"), SchemaError, "bad_name", {}, "a letter"),
    (lambda e: e.register("abs", abs, returns="int"), EddyError, "", {}, ""),
    (lambda e: e.register("count", abs, returns="int"), EddyError, "", {}, ""),
    (lambda e: e.trace("readings", 9999), NotFoundError, "unknown_row", {}, ""),
    (lambda e: e.trace("readings", -1), NotFoundError, "unknown_row", {}, ""),
    (lambda e: e.trace("readings", "x"), RowError, "bad_row", {}, "a row number"),
    (lambda e: e.trace("readings", {"room": "new", "ts": 1, "sensor": "x"}), RowError, "bad_value", {"row": 0, "column": "sensor"}, ""),
    (lambda e: e.trace("readings", {"room": "new"}), RowError, "null_time", {"column": "ts"}, ""),
    (lambda e: e.trace("slow", 0, "hot"), ConflictError, "other_stream", {}, ""),
    (lambda e: e.trace("nothing", 0), NotFoundError, "unknown_stream", {}, ""),
    (lambda e: e.changes("hot", since=-1), EddyError, "bad_option", {}, "snapshot"),
    (lambda e: e.on_commit(5), EddyError, "bad_option", {}, ""),
    (lambda e: e.create_stream("hot", READINGS, time="ts"), ConflictError, "name_taken", {}, ""),
    (lambda e: e.create_stream("s", READINGS, time="ts", timeline="new line"), SchemaError, "bad_name", {}, ""),
    (lambda e: e.create_stream("s", READINGS, time="ts", timeline="fresh", keep=-1), SchemaError, "bad_duration", {}, "0 or more"),
    (lambda e: e.create_stream("s", READINGS, time="ts", timeline="fresh", keep="5 s"), SchemaError, "bad_duration", {}, "milliseconds"),
    (lambda e: e.create_stream("s", READINGS, time="ts", timeline="fresh", late="x"), SchemaError, "bad_schema", {}, "adjust"),
]  # fmt: skip

_ENGINE: list[tuple[Engine, dict[str, str]]] = []


@pytest.fixture
def engine() -> tuple[Engine, dict[str, str]]:
    """One engine for all of them, and its digest: what changes nothing can be repeated for ever."""
    if not _ENGINE:
        made = busy_engine()
        made.check()  # makes what it looks at, the first time
        _ENGINE.append((made, digest(made)))
    return _ENGINE[0]


@pytest.mark.parametrize(
    ("call", "kind", "code", "place", "hint"),
    [
        pytest.param(*bad, id=f"{kind}{i}")
        for kind, cases in (("sql", SQL), ("rows", ROWS), ("tables", TABLES), ("other", OTHER))
        for i, bad in enumerate(cases)
    ],
)
def test_a_bad_call_is_refused_with_its_place_and_changes_nothing(
    engine: tuple[Engine, dict[str, str]], call: Callable[[Engine], Any], kind: type[EddyError], code: str, place: dict[str, Any],
    hint: str,
) -> None:  # fmt: skip
    made, before = engine
    try:
        assert_refused(made, call, kind, code, place, hint, before)
    except BaseException:
        # one mistake found must not spoil the tests that follow
        _ENGINE.clear()
        raise


def test_the_digest_sees_every_good_call() -> None:
    """A digest that never changes would pass every test above."""
    engine = busy_engine()
    last = digest(engine)
    for call in (
        lambda: engine.push("readings", [row(5000)]),
        lambda: engine.push("readings", []),
        lambda: engine.push("slow", {"ts": [20_000]}),
        lambda: engine.advance(30_000),
        lambda: engine.submit("SELECT * FROM readings [RANGE 9 SECONDS] WHERE temp < 1"),
        lambda: engine.cancel("key5"),
        lambda: engine.pause("hot"),
        lambda: engine.resume("hot"),
        lambda: engine.register("other", abs, returns="int"),
        lambda: engine.create_stream("fresh", READINGS, time="ts", timeline="fresh"),
        lambda: engine.drop("elsewhere"),
        lambda: engine.create_table("fresh_table", KEYED, key="k"),
        lambda: engine.upsert("fresh_table", {"k": [1]}),
        lambda: engine.delete("fresh_table", [1]),
        lambda: engine.delete("fresh_table", [1]),
        lambda: engine.drop("fresh_table"),
        lambda: engine.upsert("rooms", []),
        lambda: engine.submit("SELECT room FROM rooms"),
    ):
        call()
        now = digest(engine)
        assert now != last
        assert digest(engine) == now, "reading changes nothing"
        last = now


def test_cancelling_twice_changes_nothing() -> None:
    engine = busy_engine()
    query = engine.queries["hot"]
    query.cancel()
    before = digest(engine)
    for call in (query.cancel, query.pause, query.resume, query.answer, query.explain):
        with pytest.raises(NotFoundError) as error:
            call()
        assert (error.value.code, error.value.hint) == ("unknown_query", "it was cancelled")
        assert digest(engine) == before


@pytest.mark.parametrize("form", ["columns", "dicts", "arrow", "long list"])
def test_a_row_that_does_not_fit_in_the_last_column_leaves_no_string_of_an_earlier_one(form: str) -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "string", "ts": "timestamp", "b": "string", "z": "int"}, time="ts")
    engine.push("s", [{"a": "old", "ts": 1, "b": "old", "z": 1}])
    n = 5000 if form == "long list" else 3
    columns = {"a": [f"new {k}" for k in range(n)], "ts": [2] * n, "b": ["fresh"] * n, "z": [*range(n - 1), "x"]}
    given: Any = columns
    if form == "dicts":
        given = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if form == "arrow":
        given = pa.table({**columns, "z": [str(z) for z in columns["z"]]})
    before, texts = digest(engine), engine.stats()["streams"]["s"]["bytes"]["strings"]
    with pytest.raises(RowError) as error:
        engine.push("s", given)
    assert (error.value.column, error.value.row) == ("z", 0 if form == "arrow" else n - 1)
    assert digest(engine) == before
    assert engine.stats()["streams"]["s"]["bytes"]["strings"] == texts


def test_push_many_with_one_bad_stream_leaves_no_string_of_the_good_one() -> None:
    engine = Engine()
    for name in ("a", "b"):
        engine.create_stream(name, {"text": "string", "v": "int", "ts": "timestamp"}, time="ts")
    before = digest(engine)
    with pytest.raises(RowError):
        engine.push_many({"a": {"text": ["new"], "ts": [1]}, "b": {"v": ["x"], "ts": [1]}})
    assert digest(engine) == before


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for few rows that wait for stragglers."""
    wait_for_few(monkeypatch, 5)


def test_too_many_waiting_rows_are_refused_and_nothing_of_the_push_is_taken(little_room: None) -> None:
    engine = Engine()
    engine.create_stream("s", {"text": "string", "ts": "timestamp"}, time="ts", lateness=10_000)
    engine.push("s", {"text": ["a"] * 4, "ts": [1, 2, 3, 4]})
    before = digest(engine)
    with pytest.raises(LimitError) as error:
        engine.push("s", {"text": ["b", "c"], "ts": [5, 6]})
    assert error.value.hint == "advance the timeline, or lower lateness"
    assert digest(engine) == before


def test_too_many_waiting_rows_of_one_stream_leave_the_others_of_a_push_many_alone(little_room: None) -> None:
    engine = Engine()
    for name, lateness in (("fast", 0), ("slow", 10_000)):
        engine.create_stream(name, {"v": "int", "ts": "timestamp"}, time="ts", lateness=lateness)
    query = engine.submit("SELECT v FROM fast [RANGE 1 HOUR]")
    before = digest(engine)
    with pytest.raises(LimitError):
        engine.push_many({"fast": {"v": [1], "ts": [1]}, "slow": {"ts": [1, 2, 3, 4, 5, 6]}})
    assert digest(engine) == before
    assert engine.push("fast", {"v": [2], "ts": [1]}).first_row == 0
    assert query.answer().num_rows == 1


@pytest.mark.parametrize("clock", [lambda: "soon", lambda: None, lambda: 1 / 0, lambda: float("nan")])
def test_a_broken_clock_changes_nothing(clock: Callable[[], Any]) -> None:
    engine = Engine(clock=clock)
    engine.create_stream("s", {"text": "string"})
    before = digest(engine)
    with pytest.raises((EddyError, ZeroDivisionError)):
        engine.push("s", {"text": ["new"]})
    assert digest(engine) == before


def test_reading_changes_nothing() -> None:
    engine = busy_engine()
    before = digest(engine)
    for query in engine.queries.values():
        list(query.changes())
        list(query.changes(0))
        query.explain()
    engine.explain("SELECT room FROM readings [RANGE 7 HOURS] WHERE temp + sensor > 3 AND room = 'never seen'")
    engine.trace("readings", 3)
    engine.trace("readings", {"room": "never seen", "ts": 99_999})
    assert digest(engine) == before
