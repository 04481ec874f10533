"""The harness of the whole language on the model itself: what is right passes, and what is wrong is noticed."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.reference.changes import Change
from tests.reference.comparison import Mismatch
from tests.reference.contents import Arrived
from tests.reference.script import Push
from tests.reference.values import Value
from tests.reference.window_harness import replay, sample, shrink
from tests.reference.window_model import WindowModel
from tests.reference.window_script import Open, as_python
from tests.reference.window_steps import make_long_script, make_window_script
from tests.reference.window_twin import WindowTwin, WindowTwinQuery


@pytest.mark.parametrize("seed", range(12))
def test_the_model_passes_for_an_engine(seed: int) -> None:
    harness = replay(make_window_script(seed, 25), WindowTwin, use_duckdb=seed % 4 == 0, exact_times=True)
    assert harness.model.events


@pytest.mark.parametrize("seed", range(4))
def test_the_model_passes_for_an_engine_at_samples_of_a_longer_run(seed: int) -> None:
    assert sample(make_long_script(seed, 12), WindowTwin, 3) >= 20


class NothingRetracted(WindowModel):
    def _end(self, row: Arrived | None) -> None:
        """Rows live on."""


class NotNet(WindowModel):
    """emit="commit" tells every event."""

    def changes_of(self, number: int, steps: list[tuple[float, Counter[Value]]]) -> list[Change]:
        query = self.queries[number]
        self.queries[number] = replace(query, emit="event")
        try:
            return super().changes_of(number, steps)
        finally:
            self.queries[number] = query


class AllAtTheEnd(WindowModel):
    """emit="event" tells the time of the commit."""

    def changes_of(self, number: int, steps: list[tuple[float, Counter[Value]]]) -> list[Change]:
        return [replace(change, time=int(self.now)) for change in super().changes_of(number, steps)]


class OneTooFew(WindowTwin):
    def answer(self, query: WindowTwinQuery) -> pa.Table:
        return super().answer(query)[:3]


class ForgottenChanges(WindowTwin):
    def changes(self, query: WindowTwinQuery, since: Any) -> list[Any]:
        return super().changes(query, since)[:2]


FAULTS: dict[str, Callable[..., Any]] = {
    "nothing is retracted": functools.partial(WindowTwin, NothingRetracted),
    "changes do not net": functools.partial(WindowTwin, NotNet),
    "changes at wrong times": functools.partial(WindowTwin, AllAtTheEnd),
    "rows missing in an answer": OneTooFew,
    "changes forgotten": ForgottenChanges,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(name: str) -> None:
    with pytest.raises(Mismatch):
        for seed in range(30):
            replay(make_window_script(seed, 25), FAULTS[name])


def test_rows_missing_in_an_answer_are_noticed_at_samples_of_a_longer_run() -> None:
    with pytest.raises(Mismatch):
        for seed in range(4):
            sample(make_long_script(seed, 12), OneTooFew, 3)


def test_a_failing_script_is_made_small() -> None:
    script = make_window_script(0, 25)
    small = shrink(script, OneTooFew, budget=150)
    assert len(small.steps) <= 4
    assert sum(isinstance(step, Open) for step in small.steps) == 1 and any(isinstance(step, Push) for step in small.steps)
    with pytest.raises(Mismatch):
        replay(small, OneTooFew)


def test_a_script_can_be_written_as_calls() -> None:
    text = as_python(make_window_script(3, 30))
    assert text == as_python(make_window_script(3, 30)) != as_python(make_window_script(4, 30))
    assert "engine.submit(" in text and "engine.push" in text
