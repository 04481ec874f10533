"""Outcomes kept by text are those that computing row by row gives, whatever texts come and go."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eddy import Engine
from filters.expressions import text_outcomes
from filters.expressions.evaluate import true_rows
from filters.expressions.expression import Expression
from filters.expressions.text_outcomes import TextOutcomes
from filters.values.vector import Frame

TEXTS = ["", "a", "ab", "b%", "aXb", "ü", "it's", None, "xaab", "AB"]
CONDITIONS = ["s LIKE '%b%'", "s LIKE '_a%'", "NOT s LIKE '%a_'", "LENGTH(s) + 1 > LENGTH(TRIM(s))", "s LIKE '%!%' ESCAPE '!'"]


def answers(monkeypatch: pytest.MonkeyPatch, seed: int, by_text: bool) -> list[object]:
    """The answers of queries after each of some pushes."""
    rng = random.Random(seed)
    with monkeypatch.context() as patch:
        if not by_text:
            patch.setattr(TextOutcomes, "rows", lambda self, frame: None)
        engine = Engine(seed=seed)
        engine.create_stream("r", {"s": "string", "n": "int", "ts": "timestamp"}, time="ts")
        queries = [engine.submit(f"SELECT s, n FROM r [RANGE 3 SECONDS] WHERE {text} AND n <> 3") for text in CONDITIONS]
        found: list[object] = []
        for at in range(20):
            n = rng.choice([1, 5, 400])
            texts = [rng.choice(TEXTS) or (None if rng.random() < 0.5 else f"{rng.randint(0, 99)}b") for _ in range(n)]
            engine.push("r", {"s": texts, "n": [rng.randint(0, 4) for _ in range(n)], "ts": [at * 1000] * n})
            engine.check()
            found += [query.answer().to_pydict() for query in queries]
        return found


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_the_same_by_text_and_by_row(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(monkeypatch, seed, True) == answers(monkeypatch, seed, False)


def test_a_condition_that_fails_for_a_text_counts_once_a_row() -> None:
    engine = Engine()
    engine.create_stream("r", {"s": "string", "n": "int"})
    query = engine.submit("SELECT s FROM r WHERE n > 0 AND CAST(s AS int) > 1 AND n < 9")
    for _ in range(2):
        engine.push("r", {"s": ["a", "2", "a"], "n": [1, 1, 1]})
    assert engine.stats()["queries"][query.name]["errors"] == 4 and len(query.answer()) == 2


def test_a_text_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.create_stream("r", {"s": "string"})
    query = engine.submit("SELECT s FROM r WHERE s LIKE '%b%'")
    tried: list[int] = []

    def counted(expression: Expression, frame: Frame) -> np.ndarray:
        tried.append(frame.n_rows)
        return true_rows(expression, frame)

    monkeypatch.setattr(text_outcomes, "true_rows", counted)
    for _ in range(3):
        engine.push("r", {"s": ["a", "b", "ab", None] * 100})
    assert sum(tried) == 4 and len(query.answer()) == 600


def test_many_texts_are_computed_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_outcomes, "MAX_TEXTS", 3)
    engine = Engine()
    engine.create_stream("r", {"s": "string"})
    query = engine.submit("SELECT s FROM r WHERE s LIKE '%1%'")
    engine.push("r", {"s": [f"t{n}" for n in range(100)]})
    assert len(query.answer()) == 19
