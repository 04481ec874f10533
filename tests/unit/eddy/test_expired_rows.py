"""Rows that expired: over, when they came, in every window of the queries on their stream."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from eddy import Engine
from tests.reference.reloading import reloaded

SECOND = 1000


def make(*streams: str, **options: Any) -> Engine:
    engine = Engine()
    for name in streams:
        engine.create_stream(name, {"v": "int", "ts": "timestamp"}, time="ts", **options)
    return engine


def push(engine: Engine, stream: str, *seconds: float) -> int:
    """How many of the rows with these times expired."""
    return engine.push(stream, {"v": [1] * len(seconds), "ts": [round(s * SECOND) for s in seconds]}).expired


def test_a_row_expired_if_its_time_and_the_widest_window_are_not_after_the_clock() -> None:
    engine = make("a", "b")
    engine.submit("SELECT v FROM b [RANGE 10 SECONDS]", name="narrow")
    engine.submit("SELECT v FROM b [RANGE 60 SECONDS] WHERE v > 5", name="wide")
    assert push(engine, "a", 1000) == 0
    assert push(engine, "b", 1, 939.999, 940, 940.001) == 3
    assert engine.stats()["streams"]["b"]["expired"] == 3 and engine.stats()["streams"]["a"]["expired"] == 0
    engine.cancel("wide")
    assert push(engine, "b", 990, 990.001) == 1
    assert engine.totals()["streams"]["b"]["expired"] == 4


def test_what_a_push_itself_takes_past_its_rows_is_no_expiry() -> None:
    engine = make("a", "b")
    engine.submit("SELECT v FROM a [RANGE 1 SECOND]")
    assert push(engine, "a", 1, 100, 10_000) == 0, "each was alive at its time"
    found = engine.push_many({"a": {"ts": [20_000_000]}, "b": {"ts": [30_000_000]}})
    assert found["a"].expired == found["b"].expired == 0
    found = engine.push_many({"b": {"ts": [40_000_000]}, "a": {"ts": [20_000_001]}})
    assert found["a"].expired == 1, "judged by the clock before the call"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v FROM b",
        "SELECT v FROM b [RANGE UNBOUNDED]",
        "SELECT v FROM b [ROWS 5]",
        "SELECT v, COUNT(*) AS n FROM b [RANGE UNBOUNDED] GROUP BY v",
    ],
)
def test_where_the_clock_ends_no_life_no_row_expires(sql: str) -> None:
    engine = make("a", "b")
    push(engine, "a", 1000)
    assert push(engine, "b", 1) == 0, "nobody asks"
    engine.submit("SELECT v FROM b [RANGE 1 SECOND]", name="short")
    assert push(engine, "b", 2) == 1
    engine.submit(sql, name="endless")
    assert push(engine, "b", 3) == 0
    engine.pause("endless")
    assert push(engine, "b", 4) == 1, "a paused query sees nothing"


@pytest.mark.parametrize(
    ("sql", "width"),
    [
        ("SELECT v FROM b [NOW]", 0.000001),
        ("SELECT v FROM b [ROWS 5 RANGE 30 SECONDS]", 30),
        ("SELECT COUNT(*) AS n FROM b [RANGE 30 SECONDS]", 30),
        ("SELECT v, COUNT(*) AS n FROM TUMBLE(b, 30 SECONDS) GROUP BY v", 30),
        ("SELECT COUNT(*) AS n FROM b [RANGE 30 SECONDS SLIDE 20 SECONDS]", 30),
        ("SELECT b.v FROM b [RANGE 30 SECONDS], a [RANGE 99 SECONDS] WHERE a.v = b.v", 30),
        ("SELECT DISTINCT v FROM b [RANGE 30 SECONDS] UNION SELECT v FROM a [RANGE 99 SECONDS]", 30),
    ],
)
def test_every_form_of_query_has_its_width(sql: str, width: float) -> None:
    engine = make("a", "b")
    engine.submit(sql)
    push(engine, "a", 1000)
    at = 1_000_000_000 - round(width * 1_000_000)
    times = np.array([at, at + 1], "datetime64[us]")
    assert engine.push("b", {"v": [1, 1], "ts": times}).expired == 1


def test_a_late_row_is_judged_by_the_time_it_gets_and_a_dropped_one_is_not() -> None:
    engine = make("b")
    engine.submit("SELECT v FROM b [RANGE 10 SECONDS]")
    push(engine, "b", 1000)
    found = engine.push("b", {"ts": [1 * SECOND]})
    assert (found.late, found.expired) == (1, 0), "it counts at the front, which is the clock"
    engine.create_stream("drops", {"ts": "timestamp"}, time="ts", late="drop")
    engine.submit("SELECT ts FROM drops [RANGE 10 SECONDS]")
    engine.push("drops", {"ts": [500 * SECOND]})
    found = engine.push("drops", {"ts": [1 * SECOND, 600 * SECOND]})
    assert (found.accepted, found.late, found.expired) == (1, 1, 1)


def test_a_saved_engine_goes_on_counting() -> None:
    engine = make("a", "b")
    engine.submit("SELECT v FROM b [RANGE 10 SECONDS]")
    push(engine, "a", 1000)
    push(engine, "b", 1, 2)
    other = reloaded(engine)
    assert push(other, "b", 3) == 1 and other.stats()["streams"]["b"]["expired"] == 3


@pytest.mark.parametrize("seed", range(6))
def test_expired_rows_are_those_that_no_window_ever_holds(seed: int) -> None:
    """A row expired iff no query over a window ever shows it, where every commit takes one row and nothing is late."""
    chance = random.Random(seed)
    engine = make("a", "b", late="drop")
    widths = {f"q{k}": chance.randrange(1, 40) for k in range(3)}
    for name, width in widths.items():
        engine.submit(f"SELECT v FROM b [RANGE {width} SECONDS]", name=name)
    clock = 0
    for n in range(60):
        if chance.random() < 0.2 and len(widths) > 1:
            engine.cancel(name := chance.choice(list(widths)))
            del widths[name]
        clock += chance.randrange(12)
        push(engine, "a", clock)
        found = engine.push("b", {"v": [n], "ts": [max(clock - chance.randrange(50), 0) * SECOND]})
        if found.accepted:
            seen = any(n in engine.answer(name).column("v").to_pylist() for name in widths)
            assert found.expired == (not seen), (n, widths)
