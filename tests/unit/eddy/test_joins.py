"""Joins of streams by small tables, worked out by hand. Times are milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import Engine, GoneError, InUseError

A = {"k": "int", "v": "int", "ts": "timestamp"}
B = {"k": "int", "w": "string", "ts": "timestamp"}


def make(**columns: dict[str, str]) -> Engine:
    engine = Engine()
    for name, given in (columns or {"a": A, "b": B}).items():
        engine.create_stream(name, given, time="ts")
    return engine


def push(engine: Engine, stream: str, *rows: tuple[Any, ...]) -> None:
    names = list(engine.streams[stream].columns)
    engine.push(stream, [dict(zip(names, row, strict=True)) for row in rows])
    engine.check()


def held(query: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in query.answer().to_pylist())


def signed(query: Any, since: int = 0) -> list[tuple[int, int, int, tuple[Any, ...]]]:
    """(commit, sign, time in milliseconds, row) of each change."""
    return [(c.seq, c.sign, round(c.time.timestamp() * 1000), tuple(c.row.values())) for c in query.changes(since)]


def test_a_match_lives_from_its_latest_start_to_its_earliest_end() -> None:
    engine = make()
    query = engine.submit("SELECT a.v, b.w FROM a [RANGE 10 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k")
    push(engine, "a", (1, 10, 0), (2, 20, 1000))
    push(engine, "b", (2, "x", 3000), (9, "y", 3000))
    assert held(query) == [(20, "x")]
    engine.advance(7999)
    assert held(query) == [(20, "x")]
    engine.advance(8000)
    assert held(query) == [], "the window of b has ended"
    push(engine, "b", (1, "z", 9999))
    assert held(query) == [(10, "z")]
    engine.advance(20_000)
    assert signed(query) == [
        (2, 1, 3000, (20, "x")),
        (4, -1, 8000, (20, "x")),
        (5, 1, 9999, (10, "z")),
        (6, -1, 10_000, (10, "z")),
    ]


def test_each_query_has_its_own_windows_and_conditions_on_shared_rows() -> None:
    engine = make()
    text = "SELECT a.v FROM a [RANGE :wa], b [RANGE :wb] WHERE a.k = b.k AND a.v > :low"
    queries = [
        engine.submit(text, params={"wa": wa, "wb": wb, "low": low})
        for wa, wb, low in (("1 second", "9 seconds", 0), ("9 seconds", "1 second", 0), ("9 seconds", "9 seconds", 5))
    ]
    push(engine, "a", (1, 3, 0), (1, 7, 500))
    push(engine, "b", (1, "x", 900))
    assert [held(query) for query in queries] == [[(3,), (7,)], [(3,), (7,)], [(7,)]]
    engine.advance(1000)
    assert [held(query) for query in queries] == [[(7,)], [(3,), (7,)], [(7,)]]
    engine.advance(1900)
    assert [held(query) for query in queries] == [[], [], [(7,)]]
    assert engine.stats()["streams"]["a"]["bytes"]["stems"] > 0


def test_a_self_join_pairs_a_row_with_itself_once() -> None:
    engine = make(a=A)
    query = engine.submit("SELECT x.v, y.v AS u FROM a [RANGE 1 SECOND] x, a [RANGE 1 SECOND] y WHERE x.k = y.k")
    push(engine, "a", (1, 1, 0), (1, 2, 0), (2, 3, 0))
    assert held(query) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]
    engine.advance(1000)
    assert held(query) == [] and sum(sign for _, sign, _, _ in signed(query)) == 0


def test_null_never_joins_and_numbers_join_exactly() -> None:
    engine = make(a={"k": "int", "ts": "timestamp"}, b={"k": "float", "ts": "timestamp"})
    query = engine.submit("SELECT a.k, b.k AS f FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k")
    push(engine, "a", (None, 0), (2**53 + 1, 0), (2**53, 0), (0, 0))
    push(engine, "b", (None, 0), (float(2**53), 0), (-0.0, 0), (0.5, 0), (float("nan"), 0))
    assert held(query) == [(0, 0.0), (2**53, float(2**53))]


def test_texts_of_two_streams_join_by_what_they_say() -> None:
    engine = make(a={"s": "string", "ts": "timestamp"}, b={"s": "string", "t": "string", "ts": "timestamp"})
    query = engine.submit("SELECT a.s, b.t FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.s = b.s")
    push(engine, "a", ("x", 0), ("y", 0))
    push(engine, "b", ("z", "1", 0), ("y", "2", 0))
    push(engine, "a", ("z", 0))
    assert held(query) == [("y", "2"), ("z", "1")]


def test_bands_residuals_and_disjunctions_over_inputs() -> None:
    engine = make(a={"k": "int", "v": "int", "ts": "timestamp"}, b={"k": "int", "v": "int", "ts": "timestamp"})
    windows = "FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE"
    band = engine.submit(f"SELECT a.v, b.v AS u {windows} b.v BETWEEN a.v - 1 AND a.v + 1")
    mixed = engine.submit(f"SELECT a.v, b.v AS u {windows} a.k = b.k AND (a.v * 2 = b.v OR a.v + b.v = 4)")
    unjoined = engine.submit(f"SELECT a.v, b.v AS u {windows} a.v = 1 AND b.v = 6")
    push(engine, "a", (1, 1, 0), (1, 3, 0), (2, 3, 0))
    push(engine, "b", (1, 2, 0), (1, 6, 0), (2, 1, 0), (1, 1, 0))
    assert held(band) == [(1, 1), (1, 1), (1, 2), (3, 2), (3, 2)]
    assert held(mixed) == [(1, 2), (3, 1), (3, 1), (3, 6)]
    assert held(unjoined) == [(1, 6)] and "every combination" in engine.explain(unjoined)["defaults"][0]


def test_three_inputs_in_a_chain() -> None:
    engine = make(a=A, b=B, c={"w": "string", "z": "int", "ts": "timestamp"})
    query = engine.submit(
        "SELECT a.v, c.z FROM a [RANGE 5 SECONDS] JOIN b [RANGE 5 SECONDS] ON a.k = b.k JOIN c [RANGE 2 SECONDS] ON b.w = c.w"
    )
    push(engine, "c", ("x", 7, 0))
    push(engine, "a", (1, 10, 1000), (2, 20, 1000))
    push(engine, "b", (1, "x", 1500), (2, "y", 1500))
    assert held(query) == [(10, 7)]
    push(engine, "c", ("y", 8, 2500), ("x", 9, 2500))
    assert held(query) == [(10, 9), (20, 8)], "the first row of c has gone"


def test_a_query_sees_rows_from_its_submit_on() -> None:
    engine = make()
    push(engine, "a", (1, 10, 0))
    query = engine.submit("SELECT a.v FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k")
    push(engine, "b", (1, "x", 100))
    assert held(query) == []
    push(engine, "a", (1, 11, 200))
    assert held(query) == [(11,)]
    assert query.complete_since is not None and query.complete_since.timestamp() == 9.0


def test_a_lagging_stream_takes_effect_at_the_clock() -> None:
    engine = make()
    query = engine.submit("SELECT a.v FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k")
    push(engine, "b", (1, "x", 1000), (3, "y", 4000))
    push(engine, "a", (3, 5, 3000), (1, 6, 1500))
    assert held(query) == [(5,)], "b's first row has left, and a's second row with it"
    assert signed(query) == [(2, 1, 4000, (5,))]


def test_pause_keeps_the_answer_and_resume_takes_it_back() -> None:
    engine = make()
    query = engine.submit("SELECT a.v FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k")
    push(engine, "a", (1, 10, 0))
    push(engine, "b", (1, "x", 0))
    query.pause()
    push(engine, "a", (1, 11, 100))
    assert held(query) == [(10,)] and query.state == "paused"
    query.resume()
    assert held(query) == [] and signed(query, 3) == [(4, -1, 100, (10,))]
    push(engine, "a", (1, 12, 200))
    push(engine, "b", (1, "y", 200))
    assert held(query) == [(12,)]


def test_cancelled_joins_leave_nothing_behind() -> None:
    engine = make()
    baseline = engine.stats()["streams"]
    queries = [engine.submit(f"SELECT a.v FROM a [RANGE 1 SECOND], b [NOW] WHERE a.k = b.k AND a.v > {k}") for k in range(70)]
    with pytest.raises(InUseError):
        engine.drop("b")
    push(engine, "a", *((k % 5, k, k) for k in range(50)))
    for query in queries:
        query.cancel()
        engine.check()
    engine.advance(10_000)
    after = engine.stats()["streams"]
    assert {name: entry["bytes"] for name, entry in after.items()} == {name: entry["bytes"] for name, entry in baseline.items()}
    engine.drop("b")


def test_explain_names_the_stems_and_conditions_of_a_join() -> None:
    engine = make()
    found = engine.explain("SELECT a.v FROM a [RANGE 9 SECONDS], b [NOW] WHERE a.k = b.k AND a.v > 3 AND a.v + b.k > 4")
    assert found["modules"] == ["filter:a.v", "stem:a.k", "stem:b.k"] and found["windows"] == ["[RANGE 9 SECONDS]", "[NOW]"]
    assert found["update_pattern"] == "weak" and found["streams"] == ["a", "b"] and len(found["residuals"]) == 1


# ---- windows that count rows


def test_a_newer_row_displaces_the_oldest_at_its_own_start() -> None:
    engine = make()
    query = engine.submit("SELECT a.v, b.w FROM a [ROWS 2], b [RANGE 1 HOUR] WHERE a.k = b.k")
    push(engine, "b", (1, "x", 0))
    push(engine, "a", (1, 1, 1000), (9, 2, 2000))
    assert held(query) == [(1, "x")], "counted before WHERE: the other row takes a place"
    push(engine, "a", (1, 3, 5000))
    assert held(query) == [(3, "x")]
    engine.advance(9000)
    push(engine, "a", (1, 4, 8000), (1, 5, 8500))
    assert held(query) == [(4, "x"), (5, "x")]
    assert signed(query) == [
        (2, 1, 1000, (1, "x")),
        (3, -1, 5000, (1, "x")),
        (3, 1, 5000, (3, "x")),
        (5, -1, 9000, (3, "x")),
        (5, 1, 9000, (4, "x")),
        (5, 1, 9000, (5, "x")),
    ]
    assert query.update_pattern == "strict" and query.complete_since is None


def test_a_push_displaces_rows_inside_itself() -> None:
    engine = make()
    query = engine.submit("SELECT a.v, b.w FROM a [ROWS 2], b [ROWS 1] WHERE a.k = b.k")
    engine.push_many(
        {
            "a": {"k": [1, 1, 1, 1], "v": [1, 2, 3, 4], "ts": [0, 10, 20, 30]},
            "b": {"k": [1, 1], "w": ["x", "y"], "ts": [5, 25]},
        }
    )
    engine.check()
    assert held(query) == [(3, "y"), (4, "y")]
    # (1, x) and (2, x) came and went: their values net to nothing
    assert signed(query) == [(1, 1, 25, (3, "y")), (1, 1, 30, (4, "y"))]


def test_a_row_displaced_while_the_clock_stands_still_was_in_the_answer() -> None:
    engine = make()
    query = engine.submit("SELECT a.v, b.w FROM a [ROWS 1], b [RANGE 1 HOUR] WHERE a.k = b.k")
    by_key = engine.submit("SELECT a.v, b.w FROM a [PARTITION BY k ROWS 1], b [RANGE 1 HOUR] WHERE a.k = b.k")
    push(engine, "b", (1, "x", 1000))
    for value in (1, 2):
        push(engine, "a", (1, value, 1000))
    for each in (query, by_key):
        assert held(each) == [(2, "x")]
        expected = [(2, 1, 1000, (1, "x")), (3, -1, 1000, (1, "x")), (3, 1, 1000, (2, "x"))]
        assert signed(each) == expected, "its life is empty in event time, but a commit has shown it"
    push(engine, "a", (1, 3, 1000), (1, 4, 1000))
    for each in (query, by_key):
        assert signed(each, 3) == [(4, -1, 1000, (2, "x")), (4, 1, 1000, (4, "x"))], "3 had no life at all"
        assert signed(each)[:3] == expected, "what was true after an earlier commit stays so"


def test_a_self_join_of_a_rows_window_with_a_range_window() -> None:
    engine = make(a=A)
    query = engine.submit("SELECT x.v, y.v AS u FROM a [ROWS 1] x, a [RANGE 2 SECONDS] y WHERE x.k = y.k")
    push(engine, "a", (1, 1, 0))
    assert held(query) == [(1, 1)], "a row meets itself"
    push(engine, "a", (1, 2, 1000), (2, 3, 1500))
    assert held(query) == [(3, 3)], "the newest row alone stands on the left"
    push(engine, "a", (1, 4, 1900))
    assert held(query) == [(4, 1), (4, 2), (4, 4)]
    engine.advance(3000)
    assert held(query) == [(4, 4)]
    engine.advance(60_000)
    assert held(query) == [] and sum(sign for _, sign, _, _ in signed(query)) == 0


def test_partition_by_with_range_ends_rows_by_what_comes_first() -> None:
    engine = make()
    query = engine.submit(
        "SELECT a.v FROM a [PARTITION BY k ROWS 2 RANGE 10 SECONDS], b [RANGE 1 HOUR] WHERE a.v < 100 AND b.k = 0"
    )
    push(engine, "b", (0, "", 0))
    push(engine, "a", (None, 1, 0), (1, 2, 0), (None, 3, 1000), (1, 4, 2000), (None, 5, 3000))
    assert held(query) == [(2,), (3,), (4,), (5,)], "NULL is a key of its own"
    push(engine, "a", (1, 200, 4000))
    assert held(query) == [(3,), (4,), (5,)], "a row displaces before WHERE"
    engine.advance(11_000)
    assert held(query) == [(4,), (5,)]
    engine.advance(13_000)
    assert held(query) == []
    assert [(time, sign, row[0]) for _, sign, time, row in signed(query, 2)] == [
        (4000, -1, 2), (11_000, -1, 3), (12_000, -1, 4), (13_000, -1, 5)
    ]  # fmt: skip


def test_time_alone_ends_nothing_in_a_rows_window() -> None:
    engine = make()
    query = engine.submit("SELECT a.v FROM a [ROWS 3], b [PARTITION BY w ROWS 1] WHERE a.k = b.k")
    push(engine, "a", *((1, value, value) for value in range(5)))
    push(engine, "b", (1, "x", 10), (1, "y", 10))
    for hour in range(1, 80):
        engine.advance(3_600_000 * hour)
        engine.check()
    assert held(query) == [(2,), (2,), (3,), (3,), (4,), (4,)]
    push(engine, "b", (2, "y", 3_600_000 * 80))
    assert held(query) == [(2,), (3,), (4,)]


def test_rows_before_the_submit_take_no_places() -> None:
    engine = make()
    early = engine.submit("SELECT a.v FROM a [ROWS 2], b [RANGE 1 HOUR] WHERE a.k = b.k")
    push(engine, "b", (1, "x", 0))
    push(engine, "a", (1, 1, 0), (1, 2, 0))
    late = engine.submit("SELECT a.v FROM a [ROWS 2], b [RANGE 1 HOUR] WHERE a.k = b.k")
    push(engine, "b", (1, "y", 0))
    push(engine, "a", (1, 3, 0))
    assert held(early) == [(2,), (2,), (3,), (3,)] and held(late) == [(3,)]
    assert late.complete_since is None, "nobody knows when the rows it did not see will be gone"
    assert engine.explain(late)["windows"] == ["[ROWS 2]", "[RANGE 1 HOUR]"]
    edges = [(edge["from"], edge["to"], edge["update_pattern"], edge["cases"]) for edge in engine.explain(late)["edges"]]
    assert edges == [
        ("a", "join", "strict", ["+->+", "+->-"]),
        ("b", "join", "weakest", ["+->+", "-->-"]),
        ("join", "result", "strict", ["+->+", "-->-"]),
    ]


def test_explain_shows_query_1_of_the_update_pattern_paper_with_a_pattern_on_every_edge() -> None:
    """U Figure 8: two weakest edges into the join, a weak one out of it."""
    found = make().explain("SELECT a.v FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k")
    edges = [(edge["from"], edge["to"], edge["update_pattern"], edge["ends_known"]) for edge in found["edges"]]
    assert edges == [("a", "join", "weakest", True), ("b", "join", "weakest", True), ("join", "result", "weak", True)]


def test_the_log_of_a_rows_window_is_read_as_it_was_and_rows_nobody_needs_are_forgotten() -> None:
    engine = Engine(log_rows=8)
    for name, columns in (("a", A), ("b", B)):
        engine.create_stream(name, columns, time="ts")
    plain = engine.submit("SELECT a.v FROM a [ROWS 3], b [ROWS 1] WHERE a.k >= b.k")
    by_key = engine.submit("SELECT a.v FROM a [PARTITION BY k ROWS 1], b [ROWS 1] WHERE a.k >= b.k")
    push(engine, "b", (0, "x", 0))
    push(engine, "a", (77, 0, 0))
    told: dict[int, list[Any]] = {}
    for number in range(1, 60):
        push(engine, "a", (number % 2, number, number))
        told[number + 2] = [[c[1:] for c in signed(query, number + 1) if c[0] == number + 2] for query in (plain, by_key)]
        assert told[number + 2][0] == [(-1, number, (number - 3,)), (1, number, (number,))] or number <= 2
    engine.advance(100)
    gone = engine.stats()["seq"] - engine.stats()["timelines"]["main"]["log"]["commits"]
    with pytest.raises(GoneError):
        engine.changes(plain, since=gone - 1)
    for seq in range(gone + 1, 62):
        assert [[c[1:] for c in signed(query, seq - 1) if c[0] == seq] for query in (plain, by_key)] == told[seq]
    assert gone > 40 and held(by_key) == [(0,), (58,), (59,)], "the row of key 77 is still the newest of its key"
    rows = engine.stats()["streams"]["a"]
    assert rows["held"] == rows["rows"] == 60, "and with it the rows in between are kept"
    by_key.cancel()
    engine.advance(200)
    assert engine.stats()["streams"]["a"]["held"] <= 8 + 3 and held(plain) == [(57,), (58,), (59,)]
    engine.check()


def test_a_rows_window_keeps_no_more_than_it_needs() -> None:
    engine = Engine(log_rows=10)
    engine.create_stream("a", A, time="ts")
    query = engine.submit("SELECT x.v FROM a [ROWS 50] x, a [PARTITION BY k ROWS 2 RANGE 1 SECOND] y WHERE x.k = y.k")
    for at in range(0, 40_000, 100):
        engine.push("a", {"k": [i % 7 for i in range(100)], "v": list(range(100)), "ts": list(range(at, at + 100))})
    engine.advance(40_000)
    engine.check()
    assert engine.stats()["streams"]["a"]["held"] <= 1100, "the rows of a second and of the log"
    assert engine.stats()["streams"]["a"]["bytes"]["row_ends"] > 0
    assert len(held(query)) == 100
    query.cancel()
    engine.advance(41_000)
    assert engine.stats()["streams"]["a"]["bytes"]["row_ends"] == 0


def test_a_paused_join_over_rows_windows_keeps_its_answer_and_its_log() -> None:
    engine = make()
    query = engine.submit("SELECT a.v FROM a [ROWS 1], b [PARTITION BY k ROWS 1] WHERE a.k = b.k")
    push(engine, "b", (1, "x", 0))
    push(engine, "a", (1, 1, 1))
    query.pause()
    push(engine, "a", (1, 2, 2), (1, 3, 3))
    assert held(query) == [(1,)] and signed(query) == [(2, 1, 1, (1,))]
    query.resume()
    assert held(query) == []
    push(engine, "b", (1, "y", 4))
    push(engine, "a", (1, 4, 5))
    assert held(query) == [(4,)]
    query.pause()
    query.cancel()
    engine.advance(1000)
    engine.check()


def test_a_text_partition_outlives_a_compacted_dictionary() -> None:
    engine = Engine(log_rows=5)
    engine.create_stream("a", {"s": "string", "v": "int", "ts": "timestamp"}, time="ts")
    query = engine.submit(
        "SELECT x.v FROM a [PARTITION BY s ROWS 1 RANGE 10 SECONDS] x, a [ROWS 9] y WHERE x.s = y.s AND y.v = 0"
    )
    engine.push("a", {"s": [f"gone {i}" for i in range(70_000)], "v": [1] * 70_000, "ts": [0] * 70_000})
    assert engine.stats()["streams"]["a"]["bytes"]["strings"] > 70_000 * len("gone 70000")
    engine.push("a", {"s": [str(i) for i in range(9)], "v": [1] * 9, "ts": [80_000] * 9})
    engine.push("a", {"s": ["p", "q", None], "v": [0] * 3, "ts": [90_000, 90_001, 90_002]})
    engine.advance(90_003)
    engine.check()
    assert engine.stats()["streams"]["a"]["bytes"]["strings"] < 20_000, "the dictionary was compacted"
    push(engine, "a", ("p", 3, 90_004), ("r", 0, 90_005), ("p", 4, 90_006))
    assert held(query) == [(0,), (0,), (4,)]


def test_listeners_are_told_whom_a_newer_row_displaced() -> None:
    engine = make()
    plain = engine.submit("SELECT 1 AS one FROM a [ROWS 2], b [RANGE 1 HOUR] WHERE a.k = b.k")
    same_way = engine.submit("SELECT 1 AS one FROM a [ROWS 2 RANGE 2 SECONDS], b [RANGE 1 HOUR] WHERE a.k = b.k AND a.v > 1")
    by_key = engine.submit("SELECT 1 AS one FROM a [PARTITION BY v ROWS 1], b [RANGE 1 HOUR] WHERE a.k = b.k")
    assert plain.group is same_way.group and by_key.group is not plain.group, "windows of a group count alike"
    shared = [engine.explain(f"SELECT 1 AS one FROM a [ROWS {n}], b [NOW] WHERE a.k = b.k")["shared_with"] for n in (2, 3)]
    assert shared == [2, 0]
    told: list[tuple[int, str, int, int, int]] = []

    def listen(part: Any) -> None:
        queries, offsets, rows = part.row_lists()
        for number, query in enumerate(queries.tolist()):
            for row in rows[offsets[number] : offsets[number + 1]].tolist():
                at = int(part.time.to_numpy().astype("datetime64[ms]").astype(int)[row])
                told.append((part.seq, names[query], int(part.sign[row]), at, part.columns["v"][row].as_py()))

    names = {plain.id: "plain", same_way.id: "range", by_key.id: "key"}
    engine.on_commit(listen)
    push(engine, "b", (1, "x", 0))
    push(engine, "a", (1, 1, 1000), (1, 2, 2000))
    push(engine, "a", (1, 2, 3000))
    engine.advance(5000)
    push(engine, "a", (1, 2, 5000))
    by_query = {name: sorted((seq, sign, at, v) for seq, query, sign, at, v in told if query == name) for name in names.values()}
    assert by_query == {
        "plain": [(2, 1, 1000, 1), (2, 1, 2000, 2), (3, -1, 3000, 1), (3, 1, 3000, 2), (5, -1, 5000, 2), (5, 1, 5000, 2)],
        "range": [(2, 1, 2000, 2), (3, 1, 3000, 2), (4, -1, 4000, 2), (4, -1, 5000, 2), (5, 1, 5000, 2)],
        "key": [(2, 1, 1000, 1), (2, 1, 2000, 2), (3, -1, 3000, 2), (3, 1, 3000, 2), (5, -1, 5000, 2), (5, 1, 5000, 2)],
    }
