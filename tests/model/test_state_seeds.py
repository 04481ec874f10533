"""Random scripts of every kind on an engine that is dumped and loaded again between calls: after every step as the models."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eddy import Engine
from tests.model.test_replanning import rotating
from tests.model.test_shared_groups import Pair
from tests.reference import driver, window_harness
from tests.reference.frozen_steps import make_frozen_script
from tests.reference.history_steps import make_history_script
from tests.reference.join_steps import POLICIES
from tests.reference.keyed_steps import make_keyed_script
from tests.reference.limits import make_small, settle_always
from tests.reference.reloading import ReloadedEngine, Reloading
from tests.reference.row_steps import make_row_script
from tests.reference.script import Script, with_events, without_functions
from tests.reference.seeds import seeds
from tests.reference.steps import make_script
from tests.reference.stream_joins import make_stream_join_script, make_table_script
from tests.reference.window_script import Open, WindowScript
from tests.reference.window_steps import EXPIRIES, make_window_script

MAKERS: dict[str, Callable[[int, int], Script]] = {
    "filters": make_script,
    "history": make_history_script,
    "rows": make_row_script,
    "joins": make_stream_join_script,
    "tables": make_table_script,
    "keyed": make_keyed_script,
}


def replay(script: Script, seed: int, make: Callable[..., Engine] = Engine) -> int:
    """Run a script without functions of the user, which no state holds; how often its engine was loaded."""
    reloading = Reloading(seed, make)
    driver.replay(without_functions(script), reloading, use_duckdb=False)
    return reloading.n_reloads


def replay_trees(script: WindowScript, seed: int, make: Callable[..., Engine] = Engine) -> int:
    reloading = Reloading(seed, make)
    window_harness.replay(script, reloading)
    return reloading.n_reloads


def replay_pair(pair: Pair, seed: int) -> int:
    """Queries that share their aggregates, and those with operators of their own in an engine that stays."""
    reloaded = ReloadedEngine(pair.engines[0], random.Random(seed), 0.1)
    engines: list[Any] = [reloaded, pair.engines[1]]
    pair.engines = engines
    if seed % 2:
        pair.listen()
    for _ in range(45):
        pair.step()
        pair.compare()
    reloaded.check()
    pair.compare_changes()
    return reloaded.n_reloads


@pytest.mark.parametrize("seed", seeds(range(5_000, 5_005), 3))
@pytest.mark.parametrize("kind", MAKERS)
def test_a_seed_passes_on_an_engine_that_is_loaded_between_calls(kind: str, seed: int) -> None:
    script = MAKERS[kind](seed, 30)
    assert replay(with_events(script) if seed % 2 else script, seed) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_a_seed_passes_when_every_limit_is_small(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    script = MAKERS[kind](5_100, 40)
    assert replay(script, 1) > 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_joins_pass_under_every_policy(policy: str) -> None:
    script = replace(make_stream_join_script(5_200, 30), policy=policy, batch_rows=7)
    assert replay(script, 2) > 0


@pytest.mark.parametrize("seed", range(5_300, 5_303))
def test_joins_pass_when_the_log_holds_hardly_a_commit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    settle_always(monkeypatch)
    script = make_table_script(seed, 30, windows_only=True)
    assert replay(script, seed, functools.partial(Engine, log_rows=1 + seed % 3, log_bytes=1 + seed % 2 * 1000)) > 0


@pytest.mark.parametrize("seed", seeds(range(5_400, 5_415), 3))
def test_trees_of_operators_pass(seed: int) -> None:
    assert replay_trees(make_window_script(seed, 25, expiry=EXPIRIES[seed % len(EXPIRIES)]), seed) > 0


@pytest.mark.parametrize("seed", range(5_500, 5_505))
def test_trees_beside_tables_pass(seed: int) -> None:
    assert replay_trees(make_frozen_script(seed, 25), seed) > 0


@pytest.mark.parametrize("seed", seeds(range(5_600, 5_604), 2))
def test_trees_pass_when_every_commit_is_followed_by_another_plan(seed: int) -> None:
    script = make_window_script(seed, 20)
    steps = [replace(step, expiry=None) if isinstance(step, Open) else step for step in script.steps]
    assert replay_trees(replace(script, steps=steps), seed, rotating) > 0


@pytest.mark.parametrize("seed", range(5_700, 5_705))
def test_shared_aggregates_pass(seed: int) -> None:
    pair = Pair(seed)
    assert replay_pair(pair, seed) > 0 and pair.n_shared > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(6_000, 6_005), 1))
@pytest.mark.parametrize("kind", MAKERS)
def test_one_of_many_seeds_passes(kind: str, seed: int) -> None:
    script = MAKERS[kind](seed, 60)
    assert replay(with_events(script) if seed % 2 else script, seed) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(6_100, 6_110), 2))
def test_one_of_many_seeds_of_trees_passes(seed: int) -> None:
    assert replay_trees(make_window_script(seed, 50) if seed % 3 else make_frozen_script(seed, 40), seed) > 0
