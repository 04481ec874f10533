"""Random scripts with history: `keep`, `submit(history="window")` and `replace` over single streams, after every step against the
naive model and DuckDB. Those over joins are in `test_stream_joins.py`.

A few mutants of the engine show that these scripts would notice.
"""

from __future__ import annotations

import importlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from tests.model.test_filters_machine import SEEDS, FiltersMachine
from tests.reference.driver import replay, subject
from tests.reference.harness import Harness
from tests.reference.history_steps import HistoryStepMaker, make_history_script, random_kept_streams, submits
from tests.reference.limits import make_small
from tests.reference.player import Player
from tests.reference.script import Act, Replace, Script, Submit
from tests.reference.seeds import amount, seeds
from tests.reference.steps import POLICIES
from tests.reference.stream_joins import make_stream_join_script


@pytest.mark.parametrize("seed", seeds(range(16), 5))
def test_a_seed_with_history_passes(seed: int) -> None:
    script = make_history_script(seed, 40)
    assert submits(script)
    replay(script, subject)


@pytest.mark.parametrize("seed", range(100, 108))
def test_a_seed_with_history_passes_when_every_limit_is_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    script = make_history_script(seed, 40)
    assert submits(script)
    replay(script, subject, use_duckdb=False)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch_rows", [1, 4096])
def test_a_script_with_history_passes_under_every_policy_and_batch_size(policy: str, batch_rows: int) -> None:
    script = make_history_script(7, 40)
    assert any(step.history == "window" for step in submits(script)) and any(isinstance(step, Replace) for step in script.steps)
    replay(type(script)(script.streams, policy, batch_rows, script.steps), subject, use_duckdb=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_030), 3))
def test_a_longer_seed_with_history_passes(seed: int) -> None:
    script = make_history_script(seed, 80)
    assert submits(script)
    replay(script, subject, use_duckdb=seed % 4 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(2_000, 2_015), 4))
def test_a_longer_seed_with_history_passes_when_every_limit_is_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    script = make_history_script(seed, 60)
    assert submits(script)
    replay(script, subject, use_duckdb=False)


def test_the_seeds_hold_every_kind_of_history() -> None:
    met: Counter[str] = Counter()
    for seed in range(30):
        script = make_history_script(seed, 40)
        met["keeps rows"] += any(stream.keep_us for stream in script.streams)
        player = Player(script)
        for step in script.steps:
            before = player.model.seq
            player.do(step)
            opened = player.model.seq > before
            signs = {change.sign for changes in player.model.commits.get(before + 1, {}).values() for change in changes}
            if isinstance(step, Submit):
                met[f"submit {step.history}"] += 1
                met["seen at once"] += opened and bool(signs)
                since = player.model.queries[player.numbers[step.label]].complete_since
                met["not whole"] += opened and bool(signs) and since is not None and since > max(player.model.T.values())
            if isinstance(step, Replace):
                met.update({"replaced": 1, "replaced with -": -1 in signs, "replaced with +": 1 in signs})
            if isinstance(step, Act) and step.verb == "resume":
                met.update({"resumed": 1, "resumed with +": 1 in signs})
    least = {
        "keeps rows": 10, "submit new": 40, "submit window": 80, "seen at once": 20, "not whole": 3, "replaced": 40,
        "replaced with -": 8, "replaced with +": 8, "resumed": 20, "resumed with +": 2,
    }  # fmt: skip
    assert all(met[kind] >= n for kind, n in least.items()), met


# -- a state machine -------------------------------------------------------------------------------------------------


class HistoryMachine(FiltersMachine):
    """The machine of `test_filters_machine.py` with streams that keep rows, history and replacement."""

    maker: HistoryStepMaker

    @initialize(seed=SEEDS, policy=st.sampled_from(POLICIES), batch_rows=st.integers(1, 8192) | st.integers(1, 8))
    def begin(self, seed: int, policy: str, batch_rows: int) -> None:
        rng = random.Random(seed)
        streams = random_kept_streams(rng)
        self.script = Script(streams, policy, batch_rows)
        self.maker = HistoryStepMaker(rng, streams)
        self.harness = Harness(self.script, subject)
        self._do(self.maker.submit(0))

    @precondition(lambda self: "running" in self.maker.states.values())
    @rule(seed=SEEDS)
    def replace(self, seed: int) -> None:
        self.maker.rng = random.Random(seed)
        self._do(self.maker.replace())


def _run(max_examples: int, steps: int, derandomize: bool) -> None:
    run_state_machine_as_test(
        HistoryMachine,
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
def test_the_engine_equals_the_model_and_duckdb_with_history_after_every_step() -> None:
    _run(max_examples=amount(8, long=20), steps=25, derandomize=True)


@pytest.mark.long
def test_the_engine_equals_the_model_and_duckdb_with_history_in_many_long_runs() -> None:
    _run(max_examples=amount(10, long=100), steps=50, derandomize=False)


# -- mutants of the engine -------------------------------------------------------------------------------------------

Patch = Callable[[pytest.MonkeyPatch], None]


def _nothing(name: str, attribute: str) -> Patch:
    """Leave out one step."""
    return lambda monkeypatch: monkeypatch.setattr(_found(name), attribute, lambda *args: None)


def _found(name: str) -> Any:
    module, _, kind = name.partition(":")
    found = importlib.import_module(module)
    return getattr(found, kind) if kind else found


def _stores_what_the_log_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_found("eddy.streams.stored:Stored"), "settle", lambda self, seq: self._source.store.watermark)


def _oldest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = importlib.import_module("eddy.history.recall").recall

    def without(source: Any, leg: Any, first: int) -> None:
        oldest = leg.window.oldest
        exact(source, leg, first)
        leg.window.oldest = oldest

    for user in ("eddy.lifecycle", "eddy.joins.join_query"):
        monkeypatch.setattr(_found(user), "recall", without)


def _complete_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = _found("eddy.reading.opening").complete_since

    def at_once(now: int, sources: Any, windows: Any, births: Any) -> int | None:
        return None if exact(now, sources, windows, births) is None else now

    monkeypatch.setattr(_found("eddy.lifecycle"), "complete_since", at_once)


MUTANTS: dict[str, tuple[Patch, Callable[[int, int], Script]]] = {
    "old rows keep the region ids they came with": (_nothing("eddy.history.recall", "_find_ids"), make_history_script),
    "old rows have no outcomes of new predicates": (_nothing("eddy.history.recall", "_find_outcomes"), make_history_script),
    "what the log holds counts as stored": (_stores_what_the_log_holds, make_history_script),
    "old rows do not leave": (_oldest_stays, make_history_script),
    "an answer is whole at once": (_complete_at_once, make_history_script),
    "outcomes of an expression that went are taken for those of another": (
        _nothing("stems.row_store:Outcomes", "drop"), make_history_script,
    ),
    "indexes do not know old rows": (_nothing("eddy.joins.walk:Walker", "recall"), make_stream_join_script),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("what", MUTANTS)
def test_the_scripts_notice_a_mutant_of_history(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, make = MUTANTS[what]
    patch(monkeypatch)
    noticed = None
    for seed in range(60):
        try:
            replay(make(seed, 40), subject, use_duckdb=False)
        except Exception as error:
            noticed = error
            break
    assert isinstance(noticed, AssertionError), f"{what}: {noticed!r}"
