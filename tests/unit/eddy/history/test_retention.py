"""How far back the log reaches: bounds in bytes, and what is kept of aggregates and streams whose changes nobody reads."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddy import EddyError, Engine, GoneError, Query
from eddy.base.result_log import UNREAD_BYTES
from eddy.history.retention import bytes_kept
from eddy.operators.tree_query import TreeQuery
from tests.reference.reloading import reloaded, state_bytes

MB = 1_000_000
AGGREGATES = {
    "shared": "SELECT k, COUNT(*) AS n, AVG(v) AS mean FROM s [RANGE 1 MINUTE] GROUP BY k",
    "its own": "SELECT k, COUNT(*) AS n, LAST(v) AS last FROM s [RANGE 1 MINUTE] GROUP BY k",
    "of events": "SELECT k, LAST(w) AS w FROM (SELECT k, v + 1 AS w FROM s [RANGE 1 MINUTE]) AS a GROUP BY k HAVING COUNT(*) > 0",
    "tumble": "SELECT k, window_end, COUNT(*) AS n FROM TUMBLE(s, 1 MINUTE) GROUP BY k, window_end",
    "slide": "SELECT window_end, SUM(v) AS total FROM s [RANGE 1 MINUTE SLIDE 5 SECONDS] GROUP BY window_end",
    "rows": "SELECT k, MAX(v) AS top FROM s [PARTITION BY k ROWS 100] GROUP BY k",
    "join": "SELECT a.k, COUNT(*) AS n FROM s [RANGE 1 SECOND] AS a, s [RANGE 1 SECOND] AS b WHERE a.k = b.k GROUP BY a.k",
    "distinct": "SELECT DISTINCT n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k) AS a",
    "union": "SELECT COUNT(*) AS n FROM s [RANGE 1 MINUTE] UNION ALL SELECT MAX(v) AS n FROM s [RANGE 1 SECOND] WHERE k = 1",
}
#: Queries whose changes are logged whether anybody reads them or not.
LOGGED = {
    "filter": "SELECT k, v FROM s [RANGE 1 SECOND] WHERE v > 50",
    "stream": "SELECT k, v FROM s WHERE v > 50",
    "row count": "SELECT k, v FROM s [ROWS 50]",
    "row count by key": "SELECT k, v FROM s [PARTITION BY k ROWS 5 RANGE 1 SECOND]",
    "join": "SELECT a.v, b.v AS w FROM s [RANGE 100 MILLISECONDS] AS a, s [RANGE 200 MILLISECONDS] AS b WHERE a.k = b.k",
    "distinct": "SELECT DISTINCT k, v FROM s [RANGE 1 SECOND]",
    "except": "SELECT k, v FROM s [RANGE 2 SECONDS] EXCEPT ALL SELECT k, v FROM s [RANGE 1 SECOND]",
    "slide": "SELECT * FROM s [RANGE 1 SECOND SLIDE 500 MILLISECONDS]",
    "istream": "ISTREAM (SELECT k, v FROM s [RANGE 1 SECOND] WHERE v > 50)",
    "texts": "SELECT DISTINCT name || ' and another' AS name FROM s [RANGE 1 SECOND]",
    "read aggregate": "SELECT k, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY k",
}


def make_engine(**options: Any) -> Engine:
    engine = Engine(**options)
    engine.create_stream("s", {"k": "int", "v": "int", "ts": "timestamp"}, time="ts")
    return engine


def feed(engine: Engine, first: int, last: int, step: int, names: bool = False) -> None:
    """Rows first..last at 100 a second, in pushes of `step` rows, of 24 keys."""
    for at in range(first, last, step):
        n = np.arange(at, min(at + step, last))
        columns: dict[str, Any] = {"k": n % 24, "v": n * 2654435761 // 4096 % 100, "ts": n * 10}
        if names:
            columns["name"] = [f"name {k}" for k in (n % 3100).tolist()]
        engine.push("s", columns)


def held(engine: Engine, query: Query) -> int:
    """What the engine says that it holds for its only query: of its own, its log included, with others, and of commits."""
    shown = engine.stats(query)
    return int(shown["own_bytes"] + shown["shared_bytes"]) + log_bytes(engine) - logged_by(query)


def logged_by(query: Query) -> int:
    assert isinstance(query, TreeQuery)
    return query.log.held_bytes


def log_bytes(engine: Engine) -> int:
    return int(engine.stats()["timelines"]["main"]["log"]["bytes"])


def dumped(engine: Engine) -> int:
    return sum(map(len, state_bytes(engine)))


# ---- who is not read


@pytest.mark.parametrize("step", [100, 1])
@pytest.mark.slow
def test_an_idle_group_by_of_24_groups_holds_less_than_a_megabyte_after_45_minutes(step: int) -> None:
    engine = make_engine()
    query = engine.submit(AGGREGATES["shared"])
    n_rows = 2700 * step if step > 1 else 27_000
    feed(engine, 0, n_rows, step)
    assert held(engine, query) < MB and engine.totals()["bytes"] < MB and dumped(engine) < MB
    assert len(query.answer()) == 24 and sum(query.answer()["n"].to_pylist()) == 6000
    engine.check()


def test_an_idle_group_by_takes_no_more_memory_the_longer_it_runs() -> None:
    engine = make_engine()
    engine.submit(AGGREGATES["shared"])
    feed(engine, 0, 40_000, 100)
    tracemalloc.start()
    try:
        feed(engine, 40_000, 50_000, 100)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        feed(engine, 50_000, 90_000, 50)
        gc.collect()
        # two pages of rows more or less
        assert tracemalloc.get_traced_memory()[0] - before < 1.1 * MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", AGGREGATES)
def test_of_an_aggregate_that_nobody_reads_no_log_is_kept(kind: str) -> None:
    engine = make_engine()
    query = engine.submit(AGGREGATES[kind])
    feed(engine, 0, 30_000, 60)
    stats = engine.stats()
    assert log_bytes(engine) < UNREAD_BYTES and stats["streams"]["s"]["held"] < 17_000
    answer = query.answer()
    engine.check()
    whole = make_engine()
    other = whole.submit(AGGREGATES[kind])
    other.changes(since="now")
    feed(whole, 0, 30_000, 60)
    assert answer.equals(other.answer())


@pytest.mark.parametrize("kind", ["shared", "its own"])
def test_an_aggregate_is_logged_from_its_first_reader_on(kind: str) -> None:
    engine = make_engine()
    query = engine.submit(AGGREGATES[kind])
    feed(engine, 0, 20_000, 100)
    before = engine.seq
    with pytest.raises(GoneError):
        query.changes(since=before - 1)
    assert not list(query.changes(since=0))
    signs = {tuple(row.values()): 1 for row in query.answer().to_pylist()}
    cursor = query.changes(since=before)
    feed(engine, 20_000, 60_000, 400)
    for change in cursor:
        row = tuple(change.row.values())
        signs[row] = signs.get(row, 0) + change.sign
    assert {row: n for row, n in signs.items() if n} == {tuple(row.values()): 1 for row in query.answer().to_pylist()}
    assert len(list(query.changes(since=before))) > 100, "it is not given up again"


def test_a_small_log_is_there_for_a_late_reader() -> None:
    engine = make_engine()
    queries = [engine.submit(AGGREGATES[kind]) for kind in ("shared", "its own")]
    feed(engine, 0, 40, 4)
    for query in queries:
        assert len(list(query.changes(since=0))) > 40


def test_what_was_given_up_goes_on_with_a_reader_over_pause_resume_and_replace() -> None:
    engine = make_engine()
    query = engine.submit(AGGREGATES["its own"])
    feed(engine, 0, 20_000, 100)
    query.pause()
    assert not list(query.changes(since=0))
    query.resume()
    feed(engine, 20_000, 20_100, 10)
    engine.replace(query, AGGREGATES["its own"].replace("1 MINUTE", "2 MINUTES"))
    feed(engine, 20_100, 20_200, 10)
    seqs = {change.seq for change in query.changes(since=0)}
    # the resume, ten pushes, the replace and ten more
    assert len(seqs) >= 21
    engine.check()


def test_rows_stay_for_the_log_while_a_plain_query_reads_the_stream_and_go_with_it() -> None:
    engine = make_engine()
    engine.submit(AGGREGATES["its own"].replace("1 MINUTE", "1 SECOND"))
    plain = engine.submit(LOGGED["filter"])
    feed(engine, 0, 40_000, 100)
    assert engine.stats()["streams"]["s"]["held"] == 40_000
    assert len({change.seq for change in plain.changes(since=0)}) == 400
    plain.cancel()
    feed(engine, 40_000, 50_000, 100)
    assert engine.stats()["streams"]["s"]["held"] < 10_000
    later = engine.submit(LOGGED["filter"], history="window")
    assert len(later.answer()) > 10
    engine.check()


# ---- bytes


def both(kind: str, bound: int) -> list[tuple[Engine, Query]]:
    """An engine with a small log and one with all of it."""
    found = []
    for log_bytes in (bound, 1 << 30):
        engine = Engine(log_bytes=log_bytes)
        engine.create_stream("s", {"k": "int", "v": "int", "name": "string", "ts": "timestamp"}, time="ts")
        query = engine.submit(LOGGED[kind])
        query.changes(since="now")
        found.append((engine, query))
    return found


@pytest.mark.parametrize("kind", LOGGED)
def test_the_log_holds_its_bytes_and_one_commit_and_the_answer_is_the_same(kind: str) -> None:
    bound = 100_000
    (small, query), (whole, same) = both(kind, bound)
    most = largest = 0
    for at in range(0, 6000, 60):
        kept = log_bytes(whole)
        for engine in (small, whole):
            feed(engine, at, at + 60, 60, names=True)
        largest = max(largest, log_bytes(whole) - kept)
        most = max(most, log_bytes(small))
    assert bound / 2 < most <= bound * 9 / 8 + largest < log_bytes(whole)
    if kind != "stream":
        assert query.answer().equals(same.answer())
    with pytest.raises(GoneError) as caught:
        query.changes(since=1)
    lost = int(str(caught.value.detail).split()[-1])
    assert lost < small.seq - 1
    assert query.changes(since=lost).arrow().equals(same.changes(since=lost).arrow())
    small.check()


def test_a_reader_that_is_far_behind_pins_nothing_and_is_told() -> None:
    engine = make_engine(log_bytes=50_000)
    cursor = engine.submit(LOGGED["filter"]).changes(since="now")
    feed(engine, 0, 20_000, 100)
    assert log_bytes(engine) < 60_000
    with pytest.raises(GoneError):
        next(iter(cursor))


def test_the_newest_commit_can_be_read_whole_however_large_and_goes_with_the_next() -> None:
    engine = make_engine(log_bytes=20_000)
    query = engine.submit(LOGGED["stream"])
    feed(engine, 0, 100, 10)
    feed(engine, 100, 50_100, 50_000)
    assert len(query.changes(since=engine.seq - 1).arrow()) > 10_000
    assert log_bytes(engine) > 50_000 * 24
    feed(engine, 50_100, 50_110, 10)
    assert log_bytes(engine) < 20_000 and engine.stats()["streams"]["s"]["held"] < 400
    with pytest.raises(GoneError):
        query.changes(since=engine.seq - 2)
    assert len(query.changes(since=engine.seq - 1).arrow()) < 10


def test_rows_that_left_a_window_long_after_they_came_count_as_well() -> None:
    engine = make_engine(log_bytes=100_000)
    engine.submit("SELECT v FROM s [RANGE 10 MINUTES]")
    feed(engine, 0, 50_000, 50_000)
    assert log_bytes(engine) < 1000, "windows hold the rows"
    engine.advance(500_000 + 600_000)
    assert log_bytes(engine) > 50_000 * 24, "the newest commit ended them"
    engine.advance(500_000 + 600_001)
    assert log_bytes(engine) < 1000 and engine.stats()["streams"]["s"]["held"] == 0


@pytest.mark.parametrize("kind", LOGGED)
def test_the_bytes_are_the_same_after_a_dump(kind: str) -> None:
    (engine, query), _ = both(kind, 60_000)
    feed(engine, 0, 2500, 50, names=True)
    loaded = reloaded(engine)
    for at in range(2500, 4000, 50):
        for each in (engine, loaded):
            feed(each, at, at + 50, 50, names=True)
        assert log_bytes(engine) == log_bytes(loaded)
    name = query.name
    assert engine.changes(name, since=0).arrow().equals(loaded.changes(name, since=0).arrow())


def test_an_unread_log_is_given_up_at_the_same_commit_after_a_dump() -> None:
    engine = make_engine()
    name = engine.submit(AGGREGATES["its own"]).name
    feed(engine, 0, 500, 50)
    loaded = reloaded(engine)
    given_up = []
    for each in (engine, loaded):
        timeline = each._catalog.timelines["main"]
        at = 500
        while timeline.log.changes.logs:
            feed(each, at, at + 10, 10)
            at += 10
            assert timeline.log.changes.bytes <= UNREAD_BYTES and at < 20_000
        given_up.append((at, each.seq))
        assert bytes_kept(timeline) < UNREAD_BYTES
    assert given_up[0] == given_up[1]
    assert loaded.answer(name).equals(engine.answer(name))


def test_a_log_that_is_cut_back_by_a_new_limit_says_so() -> None:
    engine = make_engine()
    query = engine.submit(LOGGED["stream"])
    feed(engine, 0, 5000, 10)
    assert query.changes(since=1).arrow().num_rows > 2000
    engine.limit(state_bytes=1 << 30, max_ahead=None, log_rows=1000, log_bytes=10_000)
    engine.advance(50_000)
    with pytest.raises(GoneError):
        query.changes(since=1)
    assert log_bytes(engine) <= 10_000
    with pytest.raises(EddyError):
        engine.limit(state_bytes=1 << 30, max_ahead=None, log_rows=0, log_bytes=10_000)
    assert log_bytes(engine) <= 10_000


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "1 MB", None, 1 << 51])
def test_log_bytes_is_a_whole_number_in_bounds(wrong: Any) -> None:
    with pytest.raises(EddyError) as caught:
        Engine(log_bytes=wrong)
    assert caught.value.code == "bad_option" and "log_bytes" in caught.value.fact


def test_cancelled_and_paused_queries_leave_no_bytes_behind() -> None:
    engine = make_engine()
    queries = [engine.submit(LOGGED[kind]) for kind in ("distinct", "istream", "slide")]
    feed(engine, 0, 3000, 50)
    changes = engine._catalog.timelines["main"].log.changes
    assert len(changes.logs) > 3, "of each query, and of each template"
    assert changes.bytes == sum(size for log in changes.logs for _, size in log.sizes()) > 0
    queries[0].pause()
    feed(engine, 3000, 4000, 50)
    for query in queries:
        query.cancel()
    assert changes.bytes == 0 and not changes.logs


def test_texts_are_counted() -> None:
    engine = make_engine()
    engine.create_stream("t", {"name": "string", "ts": "timestamp"}, time="ts")
    query = engine.submit("SELECT DISTINCT name FROM t [RANGE 1 SECOND]")
    query.changes(since="now")
    engine.push("t", {"name": ["x" * 10_000, None, "y" * 5000], "ts": [0, 0, 0]})
    assert 15_000 < logged_by(query) < 17_000
    assert isinstance(query.changes(since=0).arrow(), pa.Table)
