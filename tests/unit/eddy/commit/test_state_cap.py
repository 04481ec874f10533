"""An engine holds no more than it may: what would take it past its cap is refused, and nothing else happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddy import EddyError, Engine, GoneError, LimitError
from tests.unit.eddy.digest import digest

MIB = 1 << 20


def make_engine(state_bytes: int) -> Engine:
    engine = Engine(state_bytes=state_bytes, log_rows=1)
    engine.create_stream("ticks", {"symbol": "int", "price": "float", "ts": "timestamp"}, time="ts")
    return engine


def rows(first_ms: int, n: int) -> dict[str, np.ndarray]:
    return {"symbol": np.arange(n) % 7, "price": np.arange(n) / 2, "ts": first_ms + np.arange(n)}


def push_until_refused(engine: Engine, n: int = 1000) -> tuple[int, LimitError]:
    """Pushes that were taken, and what refused the next one."""
    for number in range(1000):
        try:
            engine.push("ticks", rows(number * n, n))
        except LimitError:
            before = digest(engine)
            with pytest.raises(LimitError) as again:
                engine.push("ticks", rows(number * n, n))
            assert digest(engine) == before, "a refused push changes nothing"
            return number, again.value
    raise AssertionError("nothing was refused")


def test_rows_that_would_pass_the_cap_are_refused() -> None:
    engine = make_engine(2 * MIB)
    engine.submit("SELECT price FROM ticks [RANGE 1 DAY] WHERE price > 3")
    taken, error = push_until_refused(engine)
    assert error.code == "state_full" and "2,097,152" in error.fact and "advance" in str(error.hint)
    assert 10_000 < taken * 1000 < 2 * MIB / 32
    assert engine.stats()["bytes"] < 2.2 * MIB
    engine.check()


def test_rows_are_taken_again_when_old_ones_have_left() -> None:
    engine = make_engine(2 * MIB)
    query = engine.submit("SELECT price FROM ticks [RANGE 1 HOUR] WHERE price > 3")
    taken, _ = push_until_refused(engine)
    end_ms = taken * 1000 + 3_600_000
    engine.advance(end_ms)
    assert len(query.answer()) == 0
    engine.push("ticks", rows(end_ms, 1000))
    assert len(query.answer()) == 993


def test_the_log_is_given_up_only_where_that_makes_room() -> None:
    engine = Engine(state_bytes=2 * MIB)
    engine.create_stream("ticks", {"symbol": "int", "price": "float", "ts": "timestamp"}, time="ts")
    query = engine.submit("SELECT price FROM ticks [RANGE 1 SECOND] WHERE price > 3")
    engine.push("ticks", rows(0, 6000))
    engine.push("ticks", rows(6000, 6000))
    before = digest(engine)
    with pytest.raises(LimitError) as error:
        engine.push("ticks", rows(40_000, 100_000))
    assert error.value.code == "state_full" and digest(engine) == before, "a refused push changes nothing"
    assert len(list(query.changes(since=0))) == 1000
    engine.push("ticks", rows(40_000, 26_000))
    assert len(query.answer()) == 1000 and engine.stats()["bytes"] < 2 * MIB
    with pytest.raises(GoneError):
        list(query.changes(since=1))


def test_an_index_counts_too() -> None:
    alone, joined = make_engine(2 * MIB), make_engine(2 * MIB)
    alone.submit("SELECT price FROM ticks [RANGE 1 DAY]")
    joined.submit("SELECT a.price FROM ticks [RANGE 1 DAY] a, ticks [RANGE 1 DAY] b WHERE a.price = b.price")
    assert push_until_refused(joined)[0] < push_until_refused(alone)[0]


def test_a_query_is_refused_when_the_engine_is_full() -> None:
    engine = make_engine(1 * MIB)
    engine.submit("SELECT price FROM ticks [RANGE 1 DAY]")
    push_until_refused(engine, 100)
    with pytest.raises(LimitError) as error:
        for low in range(1000):
            engine.submit("SELECT price FROM ticks WHERE price > :low", params={"low": low})
    assert error.value.code == "state_full"


def test_a_cap_is_a_whole_number() -> None:
    for wrong in (0, 5, True, "1", 1.5e9):
        with pytest.raises(Exception) as error:
            Engine(state_bytes=wrong)  # type: ignore[arg-type]  # that is the mistake
        assert getattr(error.value, "code", None) == "bad_option"


@pytest.mark.parametrize("wrong", [{"state_bytes": -5}, {"max_ahead": "soon"}, {"log_bytes": 0}])
def test_a_call_with_a_limit_that_is_none_sets_none_of_its_limits(wrong: dict[str, Any]) -> None:
    engine = make_engine(2 * MIB)
    with pytest.raises(EddyError):
        engine.limit(**{"log_rows": 7, "max_ahead": 1, "state_bytes": 64 * MIB, **wrong})
    engine.push("ticks", {"symbol": [1], "ts": ["2999-01-01"]})  # no time is too far ahead
    _, error = push_until_refused(engine, 1 << 17)
    assert "2,097,152" in error.fact


def test_a_lower_limit_holds_from_the_next_rows_on() -> None:
    engine = make_engine(64 * MIB)
    engine.submit("SELECT price FROM ticks [RANGE 1 HOUR]")
    engine.push("ticks", rows(0, 1000))
    engine.limit(state_bytes=2 * MIB)
    taken, _ = push_until_refused(engine)
    assert taken < 100 and engine.totals()["bytes"] <= 2 * MIB


def test_rows_of_a_table_are_counted_and_refused_too() -> None:
    engine = Engine(state_bytes=2 * MIB, log_rows=1)
    engine.create_table("places", {"k": "int", "x": "float"}, key="k")
    for first in range(0, 10**6, 1000):
        try:
            engine.upsert("places", {"k": np.arange(first, first + 1000), "x": np.zeros(1000)})
        except LimitError as error:
            assert error.code == "state_full" and "1000 rows of places" in error.fact
            break
    assert 5000 <= engine.stats()["tables"]["places"]["rows"] == first < 60_000
    engine.delete("places", np.arange(first))
    assert engine.upsert("places", {"k": np.arange(1000), "x": np.zeros(1000)}).inserted == 1000, "deleted rows make room"
    engine.check()
