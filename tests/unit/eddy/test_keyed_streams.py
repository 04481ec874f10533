"""Streams with a key or an end of their own (semantics 34); random scripts are in `tests/model/test_keyed_streams.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eddy import Commit, ConflictError, EddyError, Engine, RowError, SchemaError
from tests.unit.eddy.digest import digest

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = {"k": "string", "v": "int", "until": "timestamp", "ts": "timestamp"}


def make(engine: Engine | None = None, **options: Any) -> Engine:
    engine = engine or Engine()
    engine.create_stream("s", COLUMNS, time="ts", **(options or {"key": "k", "end": "until"}))
    return engine


def push(engine: Engine, *rows: tuple[Any, ...]) -> Any:
    """Rows (time, key, value, end); an end that is not given is NULL."""
    return engine.push("s", [dict(zip(("ts", "k", "v", "until"), row)) for row in rows])


def held(query: Any) -> list[int]:
    return query.answer().column("v").to_pylist()  # type: ignore[no-any-return]  # a query of any engine


def changes(query: Any, since: int = 0) -> list[tuple[int, float, int, int]]:
    return [(c.seq, (c.time - EPOCH) / timedelta(milliseconds=1), c.sign, c.row["v"]) for c in query.changes(since)]


def counts(engine: Engine) -> tuple[int, ...]:
    found = engine.stats()["streams"]["s"]
    return found["over"], found["replaced"], found["retracted"], found["unknown_keys"]


# -- lives ---------------------------------------------------------------------------------------------------------------


def test_a_row_lives_to_the_earlier_of_its_window_and_its_end() -> None:
    engine = make(end="until")
    query = engine.submit("SELECT v FROM s [RANGE 10 MILLISECONDS]")
    push(engine, (100, "a", 1, 105), (100, "b", 2, 200), (100, "c", 3))
    engine.advance(104)
    assert held(query) == [1, 2, 3]
    engine.advance(300)
    assert changes(query, 2) == [(3, 105, -1, 1), (3, 110, -1, 2), (3, 110, -1, 3)]
    assert query.update_pattern == "weak" and query.explain()["edges"][0]["ends_known"]
    engine.check()


def test_a_row_that_is_over_when_it_comes_is_counted_and_not_shown() -> None:
    engine = make()
    windowed, plain = engine.submit("SELECT v FROM s [RANGE UNBOUNDED]"), engine.submit("SELECT v FROM s")
    heard: list[int] = []
    engine.on_commit(lambda commit: heard.extend(commit.columns["v"].to_pylist()) if len(commit.row_lists()[0]) else None)
    push(engine, (100, "a", 1))
    heard.clear()
    push(engine, (101, "b", 2, 101), (102, "c", 3, 50), (103, "a", 4, 103))
    assert held(windowed) == [] and held(plain) == [1] and counts(engine)[0] == 3
    assert changes(windowed, 1) == [(2, 103, -1, 1)], "it replaces the live row of its key all the same"
    assert 2 not in heard and 3 not in heard and changes(plain, 1) == []
    assert engine.trace("s", 1)["refused"]["q1"]["reason"].startswith("its life is empty")
    assert plain.kind == "stream" and plain.update_pattern == "monotonic" and windowed.update_pattern == "strict"


def test_a_late_row_is_adjusted_and_its_end_is_not() -> None:
    engine = make(end="until")
    query = engine.submit("SELECT v FROM s [RANGE 10 MILLISECONDS]")
    push(engine, (100, "a", 1))
    assert push(engine, (80, "b", 2, 95), (90, "c", 3, 105)).late == 2
    assert held(query) == [1, 3] and counts(engine)[0] == 1
    engine.advance(200)
    assert changes(query, 2) == [(3, 105, -1, 3), (3, 110, -1, 1)]


def test_a_row_replaces_the_live_one_of_its_key_at_its_own_start() -> None:
    engine = make(key="k")
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    push(engine, (100, "a", 1), (100, None, 2), (101, None, 3), (102, "b", 4))
    assert held(query) == [1, 3, 4], "NULL is a key"
    push(engine, (105, "a", 5))
    assert changes(query, 1) == [(2, 105, -1, 1), (2, 105, 1, 5)]
    push(engine, (105, "a", 6))
    assert changes(query, 2) == [(3, 105, -1, 5), (3, 105, 1, 6)], "shown by a commit, so taken back"
    assert counts(engine) == (0, 3, 0, 0)


# -- retractions -----------------------------------------------------------------------------------------------------------


def test_a_retraction_ends_live_rows_at_its_time_and_is_a_commit() -> None:
    engine = make()
    query, by_event = (engine.submit("SELECT v FROM s [RANGE 1 SECOND]", emit=emit) for emit in ("commit", "event"))
    parts: list[tuple[bool, list[int], list[float]]] = []

    def listen(commit: Commit) -> None:
        if len(commit.row_lists()[0]):
            parts.append((commit.added, commit.rows.tolist(), [time.timestamp() for time in commit.time.to_pylist()]))

    engine.on_commit(listen)
    push(engine, (100, "a", 1), (101, "b", 2), (102, "c", 3, 103))
    receipt = engine.retract("s", ["a", "c", "nobody", "a"], 110)
    assert (receipt.accepted, receipt.late, receipt.first_row) == (4, 0, None)
    assert held(query) == [2] and counts(engine) == (0, 0, 1, 3), "c is over, and a is retracted once"
    assert engine.stats()["seq"] == 2
    assert changes(query, 1) == [(2, 103, -1, 3), (2, 110, -1, 1)] == changes(by_event, 1)
    assert parts[1:] == [(False, [0, 2], [0.110, 0.103])]
    push(engine, (120, "a", 9))
    assert held(query) == [2, 9]
    engine.check()


def test_a_retraction_takes_effect_at_the_clock_where_it_is_behind_and_late_ones_are_never_dropped() -> None:
    engine = make(key="k", late="drop")
    engine.create_stream("other", {"ts": "timestamp"}, time="ts")
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    push(engine, (100, "a", 1), (100, "b", 2))
    engine.push("other", [{"ts": 150}])
    engine.retract("s", ["a"], 120)
    assert changes(query, 2) == [(3, 150, -1, 1)]
    assert engine.retract("s", ["b"], 50).late == 1
    assert changes(query, 3) == [(4, 150, -1, 2)]


def test_a_retraction_waits_with_the_rows_of_its_stream() -> None:
    engine = make(key="k", lateness=50)
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    engine.retract("s", ["new"], 100)
    push(engine, (90, "new", 1), (100, "new", 2), (120, "new", 3))
    assert engine.stats()["streams"]["s"]["waiting"] == 4
    engine.advance(110)
    assert held(query) == [2], "the one before it was retracted, the one of its time came after"
    assert changes(query) == [(3, 100, 1, 2)] and counts(engine) == (0, 0, 1, 0)
    engine.advance(200)
    assert held(query) == [3]


def test_a_retraction_moves_the_clock_as_a_row_would() -> None:
    engine = make(key="k")
    query = engine.submit("SELECT v FROM s [RANGE 10 MILLISECONDS]")
    push(engine, (100, "a", 1))
    engine.retract("s", ["b"], 115)
    assert changes(query, 1) == [(2, 110, -1, 1)]
    assert engine.retract("s", [], 500).accepted == 0 and engine.stats()["seq"] == 3
    assert engine.stats()["timelines"]["main"]["time"] == EPOCH + timedelta(milliseconds=115)


def test_in_a_window_that_counts_rows_a_retracted_row_leaves_its_place_empty() -> None:
    engine = make(key="k")
    newest = engine.submit("SELECT v FROM s [ROWS 3]")
    by_key = engine.submit("SELECT v FROM s [PARTITION BY v ROWS 1]")
    push(engine, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    engine.retract("s", ["b"], 4)
    assert held(newest) == [1, 3] == held(by_key)
    push(engine, (5, "d", 4))
    assert held(newest) == [3, 4], "a is the fourth newest"


def test_keys_of_several_columns_and_of_every_type() -> None:
    engine = Engine()
    columns = {"i": "int", "x": "float", "ok": "bool", "at": "timestamp", "v": "int", "ts": "timestamp"}
    engine.create_stream("s", columns, time="ts", key=["x", "at", "ok", "i"])
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    nan = float("nan")
    rows = [(0.0, 5, True, 1, 1), (-0.0, 5, True, 1, 2), (nan, 5, None, 1, 3), (nan, 5, None, 1, 4), (1.5, None, False, None, 5)]
    engine.push("s", [dict(zip(("x", "at", "ok", "i", "v"), row), ts=100) for row in rows])
    assert held(query) == [2, 4, 5], "-0.0 is 0.0, NaN is NaN, NULL is NULL"
    engine.retract("s", [(1.5, None, False, None), [nan, 5, None, 1]], 100)
    assert held(query) == [2]
    engine.check()


# -- other queries -----------------------------------------------------------------------------------------------------------


def test_history_leaves_out_rows_that_were_retracted_or_had_ended() -> None:
    engine = make(key="k", end="until", keep=1000)
    push(engine, (100, "a", 1), (100, "b", 2), (100, "c", 3, 105), (100, "d", 4, 500))
    engine.retract("s", ["b"], 110)
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]", history="window")
    assert held(query) == [1, 4]
    push(engine, (120, "a", 5))
    query.pause()
    engine.retract("s", ["a"], 130)
    assert held(query) == [4, 5]
    query.resume()
    assert held(query) == [4] and changes(query, 3)[-1][1:] == (130, -1, 5)
    engine.replace(query, "SELECT v FROM s [RANGE 1 SECOND] WHERE v > 4")
    assert held(query) == [] and changes(query, 6) == [(7, 130, -1, 4)]


def test_a_join_ends_with_the_row_that_is_retracted_and_a_table_stands_beside() -> None:
    engine = make(key="k")
    engine.create_stream("other", {"k": "string", "ts": "timestamp"}, time="ts")
    engine.create_table("t", {"k": "string", "name": "int"}, key="k", retroactive=True)
    engine.upsert("t", {"k": ["a", "b"], "name": [10, 20]})
    joined = engine.submit("SELECT s.v FROM s [RANGE 1 SECOND], other [RANGE 1 SECOND] o WHERE s.k = o.k")
    beside = engine.submit("SELECT s.v + t.name AS v FROM s [RANGE UNBOUNDED], t WHERE s.k = t.k")
    push(engine, (100, "a", 1), (100, "b", 2))
    engine.push("other", {"k": ["a", "b"], "ts": [105, 105]})
    assert held(joined) == [1, 2] and held(beside) == [11, 22]
    engine.retract("s", ["a"], 105)
    assert changes(joined, 3) == [(4, 105, -1, 1)] and changes(beside, 3) == [(4, 105, -1, 11)]
    assert joined.explain()["update_pattern"] == "strict"
    engine.check()


def test_other_streams_of_the_timeline_keep_their_plain_way() -> None:
    engine = make()
    engine.create_stream("plain", {"v": "int", "ts": "timestamp"}, time="ts")
    query = engine.submit("SELECT v FROM plain [RANGE 1 SECOND]")
    engine.push_many({"s": [{"ts": 1, "k": "a", "v": 1}], "plain": [{"ts": 1, "v": 7}]})
    assert held(query) == [7] and query.leg is not None and "over" not in engine.stats()["streams"]["plain"]
    assert query.update_pattern == "weakest"


# -- errors ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        ({"key": "kk"}, "bad_key", 'did you mean "k"?'),
        ({"key": []}, "bad_key", 'key="id"'),
        ({"key": ["k", "k"]}, "bad_key", "once"),
        ({"key": 5}, "bad_key", 'key="id"'),
        ({"end": "untl"}, "bad_end", 'did you mean "until"?'),
        ({"end": "v"}, "bad_end", "declare it as timestamp"),
        ({"end": "ts"}, "bad_end", "another column"),
        ({"end": 5}, "bad_end", ""),
    ],
)
def test_a_bad_key_or_end_is_refused_and_nothing_is_created(options: dict[str, Any], code: str, hint: str) -> None:
    engine = Engine()
    before = digest(engine)
    with pytest.raises(SchemaError) as error:
        make(engine, **options)
    assert error.value.code == code and hint in (error.value.hint or "")
    assert digest(engine) == before


@pytest.mark.parametrize(
    ("stream", "keys", "time", "kind", "code", "hint"),
    [
        ("plain", ["a"], 5, ConflictError, "no_key", "create_stream(..., key=...)"),
        ("ending", ["a"], 5, ConflictError, "no_key", "create_stream(..., key=...)"),
        ("sx", ["a"], 5, EddyError, "unknown_stream", 'did you mean "s"?'),
        ("s", "a", 5, RowError, "not_keys", "a list of values of k"),
        ("s", {"k": "a"}, 5, RowError, "not_keys", "a list of values of k"),
        ("s", [3.5], 5, RowError, None, ""),
        ("two", [("a",)], 5, RowError, "not_keys", "(k, v)"),
        ("two", [("a", "b")], 5, RowError, None, ""),
        ("s", ["a"], "tomorrow", EddyError, None, ""),
        ("s", ["a"], None, EddyError, None, ""),
    ],
)
def test_a_bad_retraction_is_refused_and_nothing_changes(
    stream: str, keys: Any, time: Any, kind: type[EddyError], code: str | None, hint: str
) -> None:
    engine = make()
    for name, options in (("plain", {}), ("ending", {"end": "until"}), ("two", {"key": ["k", "v"]})):
        engine.create_stream(name, COLUMNS, time="ts", **options)
    engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    push(engine, (1, "a", 1))
    before = digest(engine)
    with pytest.raises(kind) as error:
        engine.retract(stream, keys, time)
    assert (code is None or error.value.code == code) and hint in (error.value.hint or "")
    assert digest(engine) == before


# -- state ---------------------------------------------------------------------------------------------------------------


def test_a_stream_shows_its_key_and_end() -> None:
    stream = make(key=["v", "k"], end="until").streams["s"]
    assert (stream.key, stream.end) == (("v", "k"), "until")
    assert make(late="adjust").streams["s"].key == ()


def test_rows_that_are_over_are_forgotten_with_the_log_also_from_a_window_without_end() -> None:
    engine = make(Engine(log_rows=10), key="k")
    query = engine.submit("SELECT v FROM s [RANGE UNBOUNDED]")
    for ts in range(0, 60_000, 3_000):
        push(engine, *((ts + i, str((ts + i) % 100), ts + i) for i in range(3_000)))
    engine.advance(60_000)
    assert held(query) == list(range(59_900, 60_000))
    found = engine.stats()["streams"]["s"]
    assert found["held"] <= 3_100 and found["keys"] == 100
    engine.retract("s", [str(k) for k in range(100)], 60_001)
    engine._forget()  # the log
    assert engine.stats()["streams"]["s"]["held"] == 0 and engine.stats()["streams"]["s"]["keys"] == 0
    assert held(query) == [] and counts(engine)[3] == 0
    engine.check()


def test_a_key_is_unknown_once_its_row_is_forgotten() -> None:
    engine = make(key="k")
    query = engine.submit("SELECT v FROM s [RANGE 1 MILLISECOND]")
    push(engine, (1, "a", 1), (5, "b", 2))
    engine._forget()  # the log
    engine.retract("s", ["a", "b"], 5)
    assert counts(engine) == (0, 0, 1, 1) and held(query) == []


def test_the_state_cap_counts_keys_and_ends() -> None:
    engine = make(Engine(state_bytes=8 << 20), key="k")
    engine.submit("SELECT v FROM s [RANGE UNBOUNDED]")
    with pytest.raises(EddyError) as error:
        for ts in range(0, 1_000_000, 5_000):
            push(engine, *((ts + i, str(ts + i), i) for i in range(5_000)))
    assert error.value.code == "state_full"
    assert engine.stats()["streams"]["s"]["bytes"]["row_ends"] > 1 << 20
    assert engine.stats()["bytes"] < 9 << 20


def test_texts_of_keys_stay_when_dictionaries_are_compacted() -> None:
    engine = make(Engine(log_rows=1), key="k")
    query = engine.submit("SELECT v FROM s [RANGE 10 MILLISECONDS] WHERE v >= 0")
    n = 20_000
    for ts in range(5):
        push(engine, *((100 * ts, f"{ts} {i}", i) for i in range(n)))
    engine.advance(405)
    source = engine._catalog.sources["s"]
    assert source.dictionaries[0] is not None and len(source.dictionaries[0]) == n
    engine.retract("s", [f"4 {i}" for i in range(n - 2)], 406)
    assert held(query) == [n - 2, n - 1] and counts(engine)[2:] == (n - 2, 0)
    engine.check()
