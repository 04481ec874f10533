"""A hypothesis state machine over the engine: random steps, compared with the model and DuckDB after each.

What is compared is in `tests/reference/harness.py`; the machine only chooses the steps, so that hypothesis can shrink
them. Sizes and depths are drawn directly and shrink; values come from a drawn seed and do not. A failure prints the run
as engine calls.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.reference.driver import subject
from tests.reference.harness import Harness
from tests.reference.script import Script, Step, as_python
from tests.reference.seeds import amount
from tests.reference.steps import POLICIES, StepMaker, random_streams

SEEDS = st.integers(0, 2**32 - 1)


class FiltersMachine(RuleBasedStateMachine):
    """Select-project-filter queries over two timelines and a stream without time, under any policy and batch size."""

    harness: Harness
    maker: StepMaker
    script: Script

    @initialize(seed=SEEDS, policy=st.sampled_from(POLICIES), batch_rows=st.integers(1, 8192) | st.integers(1, 8))
    def begin(self, seed: int, policy: str, batch_rows: int) -> None:
        rng = random.Random(seed)
        streams = random_streams(rng)
        self.script = Script(streams, policy, batch_rows)
        self.maker = StepMaker(rng, streams)
        self.harness = Harness(self.script, subject)
        self._do(self.maker.submit(0))

    def _do(self, step: Step) -> None:
        self.script.steps.append(step)
        try:
            self.harness.do(step)
        except Exception as error:
            error.add_note(as_python(self.script))
            raise

    def _made_by(self, seed: int) -> StepMaker:
        self.maker.rng = random.Random(seed)
        return self.maker

    @rule(seed=SEEDS, n_rows=st.integers(0, 8) | st.integers(0, 300))
    def push(self, seed: int, n_rows: int) -> None:
        self._do(self._made_by(seed).push(n_rows, many=False))

    @rule(seed=SEEDS, n_rows=st.integers(0, 8) | st.integers(0, 100))
    def push_many(self, seed: int, n_rows: int) -> None:
        self._do(self._made_by(seed).push(n_rows, many=True))

    @rule(seed=SEEDS)
    def advance(self, seed: int) -> None:
        self._do(self._made_by(seed).advance())

    @rule(seed=SEEDS)
    def tick(self, seed: int) -> None:
        self._do(self._made_by(seed).tick())

    @precondition(lambda self: len(self.maker.states) < 8)
    @rule(seed=SEEDS, depth=st.integers(0, 3))
    def submit(self, seed: int, depth: int) -> None:
        self._do(self._made_by(seed).submit(depth))

    @precondition(lambda self: len(self.maker.states) < 8)
    @rule(seed=SEEDS, n_queries=st.integers(1, 150))
    def crowd(self, seed: int, n_queries: int) -> None:
        self._do(self._made_by(seed).crowd(n_queries))

    @precondition(lambda self: len(self.maker.states) > 7)
    @rule(seed=SEEDS)
    def leave(self, seed: int) -> None:
        self._do(self._made_by(seed).leave())

    @precondition(lambda self: "running" in self.maker.states.values())
    @rule(seed=SEEDS)
    def pause(self, seed: int) -> None:
        self._do(self._made_by(seed).act(["pause"]))

    @precondition(lambda self: "paused" in self.maker.states.values())
    @rule(seed=SEEDS)
    def resume(self, seed: int) -> None:
        self._do(self._made_by(seed).act(["resume"]))

    @precondition(lambda self: len(self.maker.states) > 2)
    @rule(seed=SEEDS)
    def cancel(self, seed: int) -> None:
        self._do(self._made_by(seed).act(["cancel"]))

    def teardown(self) -> None:
        if hasattr(self, "harness"):
            self.harness.close()


def _run(max_examples: int, steps: int, derandomize: bool) -> None:
    run_state_machine_as_test(
        FiltersMachine,
        settings=settings(
            max_examples=max_examples,
            stateful_step_count=steps,
            derandomize=derandomize,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
def test_the_engine_equals_the_model_and_duckdb_after_every_step() -> None:
    _run(max_examples=amount(20, long=30), steps=25, derandomize=True)


@pytest.mark.long
def test_the_engine_equals_the_model_and_duckdb_in_many_long_runs() -> None:
    _run(max_examples=amount(15, long=150), steps=50, derandomize=False)
