"""User functions of joins, called before a probe or after it as the policy decides."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import Engine

SQL = (
    "SELECT q.price FROM quotes [RANGE 100 SECONDS] q, articles [RANGE 100 SECONDS] a "
    "WHERE q.symbol = a.symbol AND picky(q.price)"
)
FUNCTION_FIRST, STEM_FIRST = "fixed:function:picky#1,stem:articles.symbol", "fixed:stem:articles.symbol,function:picky#1"


def make(policy: str) -> tuple[Engine, list[float]]:
    engine = Engine(policy=policy)
    engine.create_stream("quotes", {"symbol": "int", "price": "float", "ts": "timestamp"}, time="ts")
    engine.create_stream("articles", {"symbol": "int", "ts": "timestamp"}, time="ts")
    calls: list[float] = []

    def picky(price: float) -> bool:
        calls.append(price)
        return price > 3

    engine.register("picky", picky, returns="bool", cost=500.0)
    return engine, calls


def push_quotes(engine: Engine, ms: int, symbols: list[int], prices: list[float]) -> None:
    engine.push("quotes", {"symbol": symbols, "price": prices, "ts": [ms] * len(symbols)})


def meet_once(engine: Engine) -> None:
    """A first quote meets an article."""
    engine.push("articles", {"symbol": [7], "ts": [1000]})
    push_quotes(engine, 1000, [7], [1.0])


def answer(engine: Engine) -> list[Any]:
    return sorted(engine.answer("q")["price"].to_pylist())


def test_a_deferred_function_is_called_for_rows_that_met_a_partner() -> None:
    engine, calls = make(STEM_FIRST)
    engine.submit(SQL, name="q")
    meet_once(engine)
    calls.clear()
    push_quotes(engine, 2000, [7, 8, 9], [4.0, 5.0, 6.0])
    assert calls == [4.0] and answer(engine) == [4.0]
    engine.push("articles", {"symbol": [9, 9, 9], "ts": [3000] * 3})
    assert calls == [4.0, 6.0], "called when a partner comes, and once however many there are"
    assert answer(engine) == [4.0, 6.0, 6.0, 6.0]
    engine.check()


def test_a_function_that_comes_first_is_called_for_every_row() -> None:
    engine, calls = make(FUNCTION_FIRST)
    engine.submit(SQL, name="q")
    meet_once(engine)
    calls.clear()
    push_quotes(engine, 2000, [7, 8, 9], [4.0, 5.0, 6.0])
    assert sorted(calls) == [4.0, 5.0, 6.0] and answer(engine) == [4.0]


def test_a_function_that_a_query_over_one_stream_asks_for_is_never_deferred() -> None:
    engine, calls = make(STEM_FIRST)
    engine.submit(SQL, name="q")
    meet_once(engine)
    engine.submit("SELECT price FROM quotes [RANGE 1 HOUR] WHERE picky(price)", name="one")
    calls.clear()
    push_quotes(engine, 2000, [7, 8], [4.0, 5.0])
    assert sorted(calls) == [4.0, 5.0]
    assert sorted(engine.answer("one")["price"].to_pylist()) == [4.0, 5.0] and answer(engine) == [4.0]


def test_rows_that_another_condition_refuses_are_not_tried() -> None:
    engine, calls = make(STEM_FIRST)
    engine.submit(SQL + " AND q.price < 10", name="q")
    meet_once(engine)
    calls.clear()
    push_quotes(engine, 2000, [7, 7], [4.0, 50.0])
    assert calls == [4.0] and answer(engine) == [4.0]


@pytest.mark.parametrize("policy", ["auto", "greedy", "lottery", "backpressure", "random", STEM_FIRST, FUNCTION_FIRST])
def test_the_answer_does_not_depend_on_who_decides(policy: str) -> None:
    engine, calls = make(policy)
    engine.submit(SQL, name="q")
    heard = 0

    def listen(commit: Any) -> None:
        nonlocal heard
        heard += (1 if commit.added else -1) * len(commit.row_lists()[2])

    engine.on_commit(listen)
    for k in range(40):
        push_quotes(engine, 1000 + k, [k % 5, k % 3], [float(k % 7), float(k % 11)])
        if k % 4 == 0:
            engine.push("articles", {"symbol": [k % 5], "ts": [1000 + k]})
    expected = sum(
        price > 3 and symbol == article % 5
        for k in range(40)
        for symbol, price in ((k % 5, k % 7), (k % 3, k % 11))
        for article in range(0, 40, 4)
    )
    assert len(answer(engine)) == expected == heard
    assert len(calls) <= 80, "no row is tried twice"


def test_a_dear_function_waits_when_few_rows_find_a_partner() -> None:
    engine, calls = make("auto")
    engine.submit(SQL, name="q")
    engine.push("articles", {"symbol": [0], "ts": [1000]})
    for k in range(60):
        push_quotes(engine, 1000 + k, list(range(10)), [5.0] * 10)
    assert 60 <= len(calls) < 200, "of 600 rows one in ten has a partner; the others are tried only while nothing is known"


def test_a_dear_function_comes_first_when_all_rows_find_a_partner() -> None:
    engine, calls = make("auto")
    engine.submit(SQL, name="q")
    engine.push("articles", {"symbol": list(range(10)), "ts": [1000] * 10})
    for k in range(60):
        push_quotes(engine, 1000 + k, list(range(10)), [1.0] * 10)
    assert len(calls) == 600
    probed = engine.stats()["modules"]["stem:articles.symbol"]["rows_in"]
    assert probed < 300, "what the function refuses does not probe"
