"""Why a row is or is not part of a match of a join."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import Engine
from tests.unit.eddy.digest import digest


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    for name in ("quotes", "articles", "ratings"):
        engine.create_stream(name, {"symbol": "string", "price": "float", "ts": "timestamp"}, time="ts")
    return engine


def row(ms: int, symbol: str = "A", price: float = 1.0) -> dict[str, Any]:
    return {"symbol": symbol, "price": price, "ts": ms}


def submit(engine: Engine, where: str = "", name: str = "q") -> None:
    engine.submit(
        "SELECT q.price FROM quotes [RANGE 10 SECONDS] q, articles [RANGE 5 SECONDS] a, ratings [RANGE 1 MINUTE] r "
        f"WHERE q.symbol = a.symbol AND a.symbol = r.symbol {where}",
        name=name,
    )


def test_a_row_waits_for_the_first_input_without_a_partner(engine: Engine) -> None:
    submit(engine)
    engine.push("quotes", [row(1000)])
    assert engine.trace("quotes", 0)["waiting"]["q"]["partner"] == "articles"
    engine.push("articles", [row(1000)])
    found = engine.trace("quotes", 0)
    assert (found["matched"], found["refused"], found["waiting"]["q"]["partner"]) == ([], {}, "ratings")
    engine.push("ratings", [row(2000)])
    found = engine.trace("quotes", 0)
    assert (found["matched"], found["refused"], found["waiting"]) == (["q"], {}, {})


def test_a_partner_of_another_key_is_none(engine: Engine) -> None:
    submit(engine)
    engine.push("quotes", [row(1000)])
    engine.push("articles", [row(1000, "B")])
    assert engine.trace("quotes", 0)["waiting"]["q"]["partner"] == "articles"
    assert engine.trace("articles", 0)["waiting"]["q"]["partner"] == "quotes"


def test_a_partner_that_had_left_is_none(engine: Engine) -> None:
    engine.submit(
        "SELECT q.price FROM quotes [RANGE 10 SECONDS] q, articles [RANGE 5 SECONDS] a WHERE q.symbol = a.symbol", name="q"
    )
    engine.push("articles", [row(1000)])
    engine.push("quotes", [row(6000), row(6500)])
    assert engine.trace("quotes", 0)["waiting"]["q"] == {"partner": None, "reason": "no partners whose lives overlap"}


def test_a_row_that_its_own_condition_refuses_says_which(engine: Engine) -> None:
    submit(engine, "AND q.price > 3 AND a.price > 5")
    engine.push("quotes", [row(1000, price=2.0)])
    found = engine.trace("quotes", 0)
    assert found["refused"]["q"]["values"] == {"price": 2.0} and not found["waiting"]
    assert engine.trace("articles", row(1000, price=2.0))["refused"]["q"]["values"] == {"price": 2.0}


def test_a_condition_over_two_inputs_leaves_a_row_waiting(engine: Engine) -> None:
    submit(engine, "AND q.price + a.price > 10")
    engine.push("quotes", [row(1000, price=2.0)])
    engine.push("articles", [row(1000, price=3.0)])
    assert engine.trace("quotes", 0)["waiting"]["q"]["partner"] == "articles"


def test_a_row_that_is_not_pushed_finds_the_partners_it_would(engine: Engine) -> None:
    submit(engine)
    engine.push("articles", [row(1000)])
    engine.push("ratings", [row(1000)])
    assert engine.trace("quotes", row(2000))["matched"] == ["q"]
    before = digest(engine)
    assert engine.trace("quotes", row(2000, "new"))["waiting"]["q"]["partner"] == "articles"
    assert engine.trace("quotes", row(7000))["waiting"]["q"]["partner"] is None, "the article has left by then"
    assert digest(engine) == before


def test_a_self_join_is_judged_at_each_input(engine: Engine) -> None:
    engine.submit(
        "SELECT x.price FROM quotes [RANGE 10 SECONDS] x, quotes [RANGE 10 SECONDS] y "
        "WHERE x.symbol = y.symbol AND x.price > 5 AND y.price < 5",
        name="q",
    )
    engine.push("quotes", [row(1000, price=7.0)])
    assert engine.trace("quotes", 0)["waiting"]["q"]["partner"] == "quotes#2"
    assert engine.trace("quotes", row(1000, price=2.0))["matched"] == ["q"]
    engine.push("quotes", [row(1000, price=2.0)])
    assert engine.trace("quotes", 0)["matched"] == engine.trace("quotes", 1)["matched"] == ["q"]


# -- tables ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", ["[RANGE 10 SECONDS]", "[ROWS 5]", "[RANGE UNBOUNDED]", ""])
def test_a_row_waits_for_a_row_of_a_frozen_table_as_it_was(engine: Engine, window: str) -> None:
    engine.create_table("names", {"symbol": "string", "name": "string"}, key="symbol")
    engine.submit(
        f"SELECT q.price, n.name FROM quotes {window} q, names n WHERE q.symbol = n.symbol AND n.name <> 'no'", name="q"
    )
    engine.push("quotes", [row(1000)])
    engine.upsert("names", {"symbol": ["A"], "name": ["yes"]})
    engine.push("quotes", [row(1000), row(1000, "B")])
    engine.upsert("names", {"symbol": ["A"], "name": ["no"]})
    reason = "no row of names as it was when the row came joins what is there"
    assert engine.trace("quotes", 0)["waiting"] == {"q": {"partner": "names", "reason": reason}}, "the name came later"
    assert engine.trace("quotes", 1)["matched"] == ["q"], "what it is now does not matter"
    assert engine.trace("quotes", 2)["waiting"]["q"]["partner"] == "names"
    reason = "no row of names as it is joins what is there"
    assert engine.trace("quotes", row(1000))["waiting"]["q"] == {"partner": "names", "reason": reason}
    engine.upsert("names", {"symbol": ["A"], "name": ["yes"]})
    before = digest(engine)
    assert engine.trace("quotes", row(1000))["matched"] == ["q"]
    assert digest(engine) == before


def test_a_row_waits_for_a_row_of_a_live_table_as_it_is(engine: Engine) -> None:
    engine.create_table("names", {"symbol": "string", "name": "string"}, key="symbol", retroactive=True)
    engine.submit(
        "SELECT q.price, n.name FROM quotes [RANGE 10 SECONDS] q, names n WHERE q.symbol = n.symbol AND q.price > 0", name="q"
    )
    engine.push("quotes", [row(1000), row(1000, price=-1.0)])
    assert engine.trace("quotes", 0)["waiting"]["q"]["partner"] == "names"
    engine.upsert("names", {"symbol": ["A"], "name": ["a"]})
    found = engine.trace("quotes", 0)
    assert (found["matched"], found["waiting"]) == (["q"], {})
    assert engine.trace("quotes", 1)["refused"]["q"]["values"] == {"price": -1.0}
    engine.delete("names", ["A"])
    assert engine.trace("quotes", 0)["waiting"]["q"]["reason"] == "no row of names as it is joins what is there"


def test_with_a_stream_and_a_table_the_first_without_a_partner_is_named(engine: Engine) -> None:
    engine.create_table("names", {"symbol": "string", "name": "string"}, key="symbol")
    engine.submit(
        "SELECT q.price FROM quotes [RANGE 10 SECONDS] q, articles [RANGE 5 SECONDS] a, names n "
        "WHERE q.symbol = a.symbol AND a.symbol = n.symbol",
        name="q",
    )
    engine.push("quotes", [row(1000)])
    assert engine.trace("quotes", 0)["waiting"]["q"]["partner"] == "articles"
    engine.push("articles", [row(1000)])
    assert engine.trace("quotes", 0)["waiting"]["q"]["partner"] == "names"
    engine.upsert("names", {"symbol": ["A"], "name": ["a"]})
    assert engine.trace("quotes", 0)["waiting"]["q"]["partner"] == "names", "it came after both rows"
    assert engine.trace("articles", row(2000))["matched"] == ["q"]
    engine.push("articles", [row(2000)])
    assert engine.trace("quotes", 0)["matched"] == ["q"] and engine.trace("articles", 0)["waiting"]["q"]["partner"] == "names"
