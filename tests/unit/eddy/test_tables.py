"""Tables by small cases, worked out by hand. Times are milliseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddy import Engine, InUseError, RowError
from tests.reference.limits import make_small
from tests.unit.eddy.test_joins import held, push, signed

STREAM = {"k": "int", "v": "int", "ts": "timestamp"}
TABLE = {"k": "int", "name": "string"}
JOINED = "SELECT s.v, t.name FROM s [RANGE 10 SECONDS], t WHERE s.k = t.k"


def make(retroactive: bool = False, **options: Any) -> Engine:
    engine = Engine(**options)
    engine.create_stream("s", STREAM, time="ts")
    engine.create_table("t", TABLE, key="k", retroactive=retroactive)
    return engine


def upsert(engine: Engine, *rows: tuple[Any, ...], table: str = "t") -> Any:
    names = list(engine.tables[table].columns)
    receipt = engine.upsert(table, [dict(zip(names, row, strict=True)) for row in rows])
    engine.check()
    return receipt


def delete(engine: Engine, *keys: Any, table: str = "t") -> Any:
    receipt = engine.delete(table, list(keys))
    engine.check()
    return receipt


# -- what a change does --------------------------------------------------------------------------------------------------


def test_a_table_is_described_and_its_changes_are_counted() -> None:
    engine = make(retroactive=True)
    assert engine.tables["t"].key == ("k",) and engine.tables["t"].retroactive and engine.tables["t"].columns == TABLE
    assert upsert(engine, (1, "a"), (2, "b"), (1, "c")) == (2, 0, 0, 0), "of two rows with one key the last counts"
    assert upsert(engine, (2, "b"), (3, None)) == (1, 1, 0, 0)
    assert delete(engine, 1, 9, 9, 1, None) == (0, 0, 1, 3)
    assert delete(engine) == upsert(engine) == (0, 0, 0, 0)
    query = engine.submit("SELECT k, name FROM t")
    assert sorted(map(str, held_unsorted(query))) == ["(2, 'b')", "(3, None)"]
    stats = engine.stats()["tables"]["t"]
    assert (stats["rows"], stats["unknown_keys"], stats["queries"]) == (2, 3, 1)
    assert engine.stats()["seq"] == 6, "five changes, empty ones too, and the submit over a table alone"


def held_unsorted(query: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in query.answer().to_pylist()]


def test_a_key_of_several_columns_is_deleted_by_tuples_in_the_declared_order() -> None:
    engine = Engine()
    engine.create_table("t", {"a": "string", "b": "float", "c": "int"}, key=["b", "a"])
    query = engine.submit("SELECT c FROM t")
    rows = {"a": ["x", "y", "x", "x"], "b": [1.0, 1.0, float("nan"), -0.0], "c": [1, 2, 3, 4]}
    assert engine.upsert("t", pa.table(rows)).inserted == 4
    assert engine.upsert("t", [{"a": "x", "b": 0.0, "c": 5}, {"a": "x", "b": float("nan"), "c": 6}]).updated == 2
    texts = engine.stats()["tables"]["t"]["bytes"]["strings"]
    assert engine.delete("t", [(1.0, "x"), [1.0, "new text"], (float("nan"), "x"), (7.0, "x")]) == (0, 0, 2, 2)
    engine.check()
    assert held(query) == [(2,), (5,)]
    assert engine.stats()["tables"]["t"]["bytes"]["strings"] == texts, "a text of a delete is not remembered"


def test_keys_are_deleted_from_arrays_too() -> None:
    engine = make()
    upsert(engine, *((k, f"n{k}") for k in range(10)))
    assert engine.delete("t", np.arange(3, 20)) == (0, 0, 7, 10)
    assert engine.delete("t", pa.array([0, 1])).deleted == 2
    assert held(engine.submit("SELECT k FROM t")) == [(2,)]


# -- non-retroactive -----------------------------------------------------------------------------------------------------


def test_a_non_retroactive_table_counts_as_it_was_when_the_row_came() -> None:
    engine = make()
    query = engine.submit(JOINED)
    assert (query.kind, query.update_pattern) == ("relation", "weakest")
    upsert(engine, (1, "a"))
    push(engine, "s", (1, 10, 1000), (2, 20, 1000))
    upsert(engine, (1, "b"), (2, "c"))
    assert held(query) == [(10, "a")], "nothing of before is touched"
    push(engine, "s", (1, 11, 2000))
    delete(engine, 1)
    assert held(query) == [(10, "a"), (11, "b")]
    engine.advance(11_000)
    assert signed(query) == [(2, 1, 1000, (10, "a")), (4, 1, 2000, (11, "b")), (6, -1, 11_000, (10, "a"))]


def test_with_two_streams_the_last_row_says_how_the_table_was() -> None:
    engine = make()
    engine.create_stream("u", {"k": "int", "w": "int", "ts": "timestamp"}, time="ts")
    query = engine.submit("SELECT s.v, t.name, u.w FROM s [RANGE 1 MINUTE], t, u [RANGE 1 MINUTE] WHERE s.k = t.k AND t.k = u.k")
    upsert(engine, (1, "t1"))
    push(engine, "s", (1, 1, 1000))
    upsert(engine, (1, "t2"))
    push(engine, "u", (1, 2, 2000))
    upsert(engine, (1, "t3"))
    push(engine, "s", (1, 3, 3000))
    assert held(query) == [(1, "t2", 2), (3, "t3", 2)]
    assert query.update_pattern == "weak"
    engine.advance(61_000)
    assert signed(query, 6) == [(7, -1, 61_000, (1, "t2", 2))]


def test_a_lagging_row_meets_the_table_of_its_commit() -> None:
    engine = make()
    engine.create_stream("ahead", STREAM, time="ts")
    query = engine.submit(JOINED)
    upsert(engine, (1, "a"))
    push(engine, "ahead", (1, 0, 5000))
    upsert(engine, (1, "b"))
    push(engine, "s", (1, 10, 2000))
    assert signed(query) == [(4, 1, 5000, (10, "b"))], "it takes effect at the clock, and ends by its own time"
    engine.advance(12_000)
    assert held(query) == []


# -- retroactive ---------------------------------------------------------------------------------------------------------


def test_a_retroactive_table_sends_signed_changes_for_live_rows() -> None:
    engine = make(retroactive=True)
    query = engine.submit(JOINED)
    push(engine, "s", (1, 10, 1000), (1, 11, 5000))
    upsert(engine, (1, "a"))
    engine.advance(11_000)
    upsert(engine, (1, "b"))
    delete(engine, 1)
    engine.advance(15_000)
    assert query.update_pattern == "strict" and held(query) == []
    assert sorted(signed(query)) == [
        (2, 1, 5000, (10, "a")),
        (2, 1, 5000, (11, "a")),
        (3, -1, 11_000, (10, "a")),
        (4, -1, 11_000, (11, "a")),
        (4, 1, 11_000, (11, "b")),
        (5, -1, 11_000, (11, "b")),
    ], "what the table took back does not end again"


def test_an_upsert_of_what_is_there_changes_nothing() -> None:
    engine = make(retroactive=True)
    query = engine.submit(JOINED)
    upsert(engine, (1, "a"))
    push(engine, "s", (1, 10, 1000))
    upsert(engine, (1, "a"))
    assert signed(query) == [(2, 1, 1000, (10, "a"))] and held(query) == [(10, "a")]


def test_a_key_that_goes_and_comes_back_within_one_instant_is_shown_by_each_commit() -> None:
    engine = make(retroactive=True)
    query = engine.submit(JOINED)
    upsert(engine, (1, "a"))
    push(engine, "s", (1, 10, 1000))
    delete(engine, 1)
    assert held(query) == []
    upsert(engine, (1, "a"))
    assert signed(query, 2) == [(3, -1, 1000, (10, "a")), (4, 1, 1000, (10, "a"))]
    delete(engine, 1)
    push(engine, "s", (1, 11, 1000))
    assert held(query) == [], "a version that was there and is gone is seen by no later row"


def test_a_retroactive_change_finds_a_frozen_table_as_it_was_for_the_rows() -> None:
    engine = make(retroactive=True)
    engine.create_table("fixed", TABLE, key="k")
    query = engine.submit(
        "SELECT s.v, t.name, f.name AS fixed FROM fixed f, s [RANGE 9 SECONDS], t WHERE s.k = t.k AND s.k = f.k"
    )
    upsert(engine, (1, "f1"), table="fixed")
    push(engine, "s", (1, 10, 1000))
    upsert(engine, (1, "f2"), table="fixed")
    upsert(engine, (1, "a"))
    assert signed(query) == [(4, 1, 1000, (10, "a", "f1"))]


def test_a_table_change_takes_effect_at_the_clock_of_each_timeline() -> None:
    engine = make(retroactive=True)
    engine.create_stream("o", STREAM, time="ts", timeline="other")
    queries = [engine.submit(JOINED), engine.submit(JOINED.replace("s.", "o.").replace("s [", "o ["))]
    push(engine, "s", (1, 10, 1000))
    push(engine, "o", (1, 20, 7000))
    upsert(engine, (1, "a"))
    assert [signed(query) for query in queries] == [[(3, 1, 1000, (10, "a"))], [(3, 1, 7000, (20, "a"))]]


# -- without a window ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retroactive", [False, True])
def test_without_a_window_each_row_counts_once_with_the_table_as_it_was(retroactive: bool) -> None:
    engine = make(retroactive)
    query = engine.submit("SELECT s.v, t.name FROM s, t WHERE s.k = t.k")
    push(engine, "s", (1, 0, 0))
    upsert(engine, (1, "a"))
    push(engine, "s", (1, 10, 1000))
    upsert(engine, (1, "b"))
    push(engine, "s", (1, 11, 2000))
    delete(engine, 1)
    engine.advance(10**9)
    assert (query.kind, query.update_pattern) == ("stream", "monotonic")
    assert signed(query) == [(3, 1, 1000, (10, "a")), (5, 1, 2000, (11, "b"))]
    assert held(query) == [(10, "a"), (11, "b")]


def test_the_newest_results_are_told_by_row_and_version() -> None:
    engine = make()
    query = engine.submit("SELECT s.v, t.name FROM s, t")
    upsert(engine, (2, "first"), (1, "second"))
    push(engine, "s", *((0, v, 5) for v in range(1500)))
    found = held_unsorted(query)
    assert len(found) == 1000 and found[:3] == [(1000, "first"), (1000, "second"), (1001, "first")]
    upsert(engine, (1, "third"))
    push(engine, "s", (0, 7, 5))
    assert held_unsorted(query)[-2:] == [(7, "first"), (7, "third")]


# -- tables alone --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retroactive", [False, True])
def test_a_query_over_a_table_alone_is_a_relation_and_its_submit_a_commit(retroactive: bool) -> None:
    engine = Engine()
    engine.create_table("t", TABLE, key="k", retroactive=retroactive)
    upsert(engine, (1, "a"), (2, "b"), (3, "c"))
    query = engine.submit("SELECT name FROM t WHERE k > 1")
    assert signed(query) == [(2, 1, 0, ("b",)), (2, 1, 0, ("c",))], "time 0 while timeline main has no clock"
    engine.advance(40)
    upsert(engine, (2, "d"), (1, "x"))
    delete(engine, 3)
    assert signed(query, 2) == [(4, -1, 40, ("b",)), (4, 1, 40, ("d",)), (5, -1, 40, ("c",))]
    assert (held(query), query.kind, query.update_pattern) == ([("d",)], "relation", "strict")


def test_a_table_joins_itself_and_another_table() -> None:
    engine = make()
    engine.create_table("u", TABLE, key="k", retroactive=True)
    pairs = engine.submit("SELECT a.name, b.name AS other FROM t a, t b WHERE a.k = b.k")
    both = engine.submit("SELECT t.name, u.name AS other FROM t, u WHERE t.k = u.k")
    upsert(engine, (1, "t1"))
    upsert(engine, (1, "u1"), (2, "u2"), table="u")
    assert (held(pairs), held(both)) == ([("t1", "t1")], [("t1", "u1")])
    upsert(engine, (1, "t2"))
    assert signed(pairs, 4) == [(5, -1, 0, ("t1", "t1")), (5, 1, 0, ("t2", "t2"))]
    assert signed(both, 4) == [(5, -1, 0, ("t1", "u1")), (5, 1, 0, ("t2", "u1"))]


def test_conditions_of_every_kind_reach_rows_from_before_the_submit() -> None:
    engine = make(retroactive=True)
    calls: list[str] = []

    def short(name: str) -> bool:
        calls.append(name)
        return len(name) < 4

    engine.register("short", short, returns="bool")
    upsert(engine, (1, "abc"), (2, "abcde"), (3, "xyz"))
    like = engine.submit("SELECT name FROM t WHERE name LIKE 'ab%' AND k < 3")
    function = engine.submit("SELECT name FROM t WHERE short(name)")
    either = engine.submit("SELECT name FROM t WHERE short(name) AND (k = 3 OR name LIKE '%e')")
    assert [held(q) for q in (like, function, either)] == [[("abc",), ("abcde",)], [("abc",), ("xyz",)], [("xyz",)]]
    assert sorted(calls) == ["abc", "abcde", "xyz"], "once a version, whoever asks and however often"
    upsert(engine, (2, "ab"), (4, "wxyz"))
    assert [held(q) for q in (like, function)] == [[("ab",), ("abc",)], [("ab",), ("abc",), ("xyz",)]]
    for query in (like, function, either):
        query.cancel()
        engine.check()
    other = engine.submit("SELECT name FROM t WHERE name LIKE '%z'")
    assert held(other) == [("wxyz",), ("xyz",)], "a number of a module that went serves again"


# -- pause, cancel, drop -------------------------------------------------------------------------------------------------


def test_a_paused_query_over_tables_takes_back_what_has_changed() -> None:
    engine = make()
    query = engine.submit("SELECT k, name FROM t")
    upsert(engine, (1, "a"), (2, "b"))
    query.pause()
    upsert(engine, (2, "c"), (3, "d"))
    assert held(query) == [(1, "a"), (2, "b")]
    query.resume()
    assert signed(query, 3) == [(4, -1, 0, (2, "b")), (4, 1, 0, (2, "c")), (4, 1, 0, (3, "d"))]
    assert held(query) == [(1, "a"), (2, "c"), (3, "d")]


def test_a_paused_join_resumes_as_if_new_and_its_old_changes_stay_readable() -> None:
    engine = make()
    query = engine.submit(JOINED + " AND t.name LIKE 'a%'")
    upsert(engine, (1, "a1"))
    push(engine, "s", (1, 10, 1000))
    query.pause()
    upsert(engine, (1, "a2"))
    push(engine, "s", (1, 11, 2000))
    query.resume()
    push(engine, "s", (1, 12, 3000))
    assert held(query) == [(12, "a2")]
    assert signed(query) == [(2, 1, 1000, (10, "a1")), (5, -1, 2000, (10, "a1")), (6, 1, 3000, (12, "a2"))]


def test_a_table_in_use_is_not_dropped_and_cancelling_leaves_nothing() -> None:
    engine = make(retroactive=True)
    push(engine, "s", (1, 10, 1000))
    before = engine.stats()["tables"]["t"]["bytes"]
    texts = [JOINED, "SELECT name FROM t WHERE name LIKE '%a'", "SELECT s.v, t.name FROM s, t WHERE s.v < t.k"]
    queries = [engine.submit(text, name=f"reader{n}") for n, text in enumerate(texts)]
    with pytest.raises(InUseError) as error:
        engine.drop("T")
    assert error.value.detail == "queries: reader0, reader1, reader2" and error.value.hint == "cancel them first"
    queries[0].pause()
    for query in queries:
        query.cancel()
        engine.check()
    assert engine.stats()["tables"]["t"]["bytes"] == before
    engine.drop("t")
    assert not engine.tables
    engine.create_stream("t", STREAM, time="ts")


# -- memory --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def soon_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are given up after few changes."""
    make_small(monkeypatch, {"MIN_FORGOTTEN"})


@pytest.mark.parametrize("text", [JOINED, "SELECT k, name FROM t", "SELECT s.v, t.name FROM s, t WHERE s.k = t.k", None])
@pytest.mark.parametrize("retroactive", [False, True])
@pytest.mark.slow
def test_endless_upserts_keep_bytes_bounded(text: str | None, retroactive: bool, soon_forgotten: None) -> None:
    engine = make(retroactive, log_rows=200)
    query = None if text is None else engine.submit(text)
    engine.upsert("t", {"k": range(1000, 1100), "name": ["stays"] * 100})
    most = []
    for n in range(10_000):
        engine.upsert("t", {"k": [n % 7], "name": [f"n{n % 50}"]})
        if not n % 50:
            engine.push("s", {"k": [n % 7], "v": [n], "ts": [n * 100]})
        if not n % 1000:
            most.append(sum(engine.stats()["tables"]["t"]["bytes"].values()))
            assert engine.stats()["tables"]["t"]["versions"] < 1200
    engine.check()
    assert max(most[2:]) <= 2 * max(most[:2])
    assert engine.stats()["tables"]["t"]["rows"] == 107
    if query is not None and text == JOINED:
        # row n came just after change n; the last change of its key (n modulo 7) is what a retroactive table shows now
        shown = {n: f"n{max(m for m in range(9990, 10_000) if m % 7 == n % 7) % 50}" for n in (9900, 9950)}
        assert {v: name for v, name in held(query) if v >= 9900} == (shown if retroactive else {9900: "n0", 9950: "n0"})


def test_a_row_keeps_its_version_for_as_long_as_its_window_lasts(soon_forgotten: None) -> None:
    engine = make(log_rows=100)
    query = engine.submit(JOINED)
    upsert(engine, (1, "old"))
    push(engine, "s", (1, 10, 1000))
    for n in range(2000):
        engine.upsert("t", {"k": [1], "name": [f"n{n}"]})
    assert held(query) == [(10, "old")] and engine.stats()["tables"]["t"]["versions"] > 2000
    since = engine.stats()["seq"]
    engine.advance(11_000)
    assert signed(query, since) == [(since + 1, -1, 11_000, (10, "old"))]
    for n in range(200):
        engine.upsert("t", {"k": [1], "name": [f"n{n}"]})
    engine.check()
    assert engine.stats()["tables"]["t"]["versions"] < 400


# -- looking inside ------------------------------------------------------------------------------------------------------


def test_explain_and_stats_know_tables() -> None:
    engine = make(retroactive=True)
    engine.create_table("n", TABLE, key="k")
    upsert(engine, (1, "a"))
    text = "SELECT s.v FROM s [RANGE 9 SECONDS], t, n WHERE s.k = t.k AND s.k = n.k AND t.name = 'a'"
    found = engine.explain(text)
    assert found["streams"] == ["s"] and found["windows"] == ["[RANGE 9 SECONDS]"] and found["timeline"] == "main"
    assert {name: words.split(":")[0] for name, words in found["tables"].items()} == {
        "t": "as it is",
        "n": "as it was when the last of the result's stream rows came",
    }
    assert found["modules"] == ["filter:t.name", "stem:s.k", "table:t.k", "table:n.k"]
    assert [(edge["from"], edge["update_pattern"], edge["ends_known"]) for edge in found["edges"]] == [
        ("s", "weakest", True),
        ("t", "strict", False),
        ("n", "monotonic", True),
        ("join", "strict", False),
    ]
    engine.submit(text, name="q")
    assert engine.stats()["modules"]["filter:t.name"]["predicates"] == 1
    assert engine.explain("q")["kind"] == "relation" and engine.explain("SELECT v FROM s, t")["kind"] == "stream"


def test_complete_since_counts_the_streams_alone() -> None:
    engine = make()
    push(engine, "s", (1, 1, 1000))
    for text, since in ((JOINED, 11.0), ("SELECT v FROM s, t", 1.0), ("SELECT name FROM t", 1.0)):
        found = engine.submit(text).complete_since
        assert found is not None and found.timestamp() == since
    assert engine.submit("SELECT v FROM s [RANGE UNBOUNDED], t").complete_since is None


def test_a_null_key_names_its_row_and_column() -> None:
    engine = make()
    with pytest.raises(RowError) as error:
        engine.upsert("t", [{"k": 1}, {"name": "x"}])
    assert (error.value.code, error.value.row, error.value.column) == ("null_key", 1, "k")


def test_a_function_that_waits_for_a_partner_in_joins_does_not_wait_for_a_query_with_a_table() -> None:
    engine = make(policy="greedy")
    engine.create_stream("other", STREAM, time="ts")
    engine.register("odd", lambda v: v % 2 == 1, returns="bool", cost=1000)
    engine.submit("SELECT s.v FROM s [RANGE 1 HOUR], other [RANGE 1 HOUR] WHERE s.k = other.k AND odd(s.v)")
    engine.push("other", {"k": [999], "v": [0], "ts": [0]})
    deferral = engine._catalog.sources["s"].deferral
    for n in range(40):
        engine.push("s", {"k": np.arange(100) if n % 20 else np.full(100, 999), "v": np.arange(100), "ts": np.full(100, n)})
    assert deferral._until, "the policy has put the function behind the probe"
    upsert(engine, (1, "one"), (2, "two"))
    query = engine.submit("SELECT s.v, t.name FROM s [RANGE 1 HOUR], t WHERE s.k = t.k AND odd(s.v)")
    push(engine, "s", (1, 1, 50), (1, 2, 50), (2, 3, 50))
    assert held(query) == [(1, "one"), (3, "two")]
    query.cancel()
    assert deferral.n_readers == 0
