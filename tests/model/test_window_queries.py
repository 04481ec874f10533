"""Random trees of operators: the engine, the model of the whole language and DuckDB after every step."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import partial

import pytest

from eddy import Engine
from tests.reference.limits import make_small
from tests.reference.operators import ToStream
from tests.reference.script import Advance
from tests.reference.seeds import seeds
from tests.reference.tree_sql import as_sql
from tests.reference.window_harness import replay, run, sample
from tests.reference.window_script import Open, Step, WindowScript
from tests.reference.window_steps import (
    EXPIRIES,
    POLICIES,
    cut,
    make_long_script,
    make_window_script,
    ordered_rows,
    random_sources,
    tree_maker,
)


@pytest.mark.parametrize("seed", seeds(range(40), 12))
def test_a_seed_passes(seed: int) -> None:
    run(seed, 25, Engine, use_duckdb=seed % 4 == 0)


@pytest.mark.parametrize("seed", range(100, 112))
def test_a_seed_without_keys_and_ends_passes(seed: int) -> None:
    run(seed, 25, Engine, plain=True)


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("emit", ["commit", "event"])
@pytest.mark.parametrize("batch_rows", [1, 7, 4096])
@pytest.mark.slow
def test_a_script_passes_under_every_strategy_emission_and_batch_size(expiry: str, emit: str, batch_rows: int) -> None:
    script = make_window_script(3, 25, expiry=expiry, batch_rows=batch_rows)
    steps = [replace(step, emit=emit, expiry=None) if isinstance(step, Open) else step for step in script.steps]
    assert sum(isinstance(step, Open) for step in steps) >= 3
    replay(replace(script, steps=steps), Engine)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_script_passes_under_every_policy(policy: str) -> None:
    script = make_window_script(5, 25, policy=policy)
    assert replay(script, Engine).model.events


@pytest.mark.parametrize("seed", range(200, 208))
def test_a_seed_passes_when_every_limit_is_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    run(seed, 25, Engine)


def all_windowed(seed: int) -> int:
    """The first seed from one on in whose script every stream has a window: without one an answer is what the log holds."""
    for found in range(seed, seed + 100):
        trees = [tree for step in make_window_script(found, 25).steps if (tree := getattr(step, "tree", None)) is not None]
        if not any(re.search(r"\bs\d+ AS ", as_sql(tree)) for tree in trees):
            return found
    raise AssertionError("every script has a stream without a window")


@pytest.mark.parametrize("seed", range(300, 1100, 100))
def test_a_seed_passes_when_the_log_holds_hardly_a_byte(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, {"PAGE_ROWS", "_SETTLE_EVERY", "_SLACK_ROWS", "UNREAD_BYTES"})
    run(all_windowed(seed), 25, partial(Engine, log_bytes=1 + seed // 100 % 3 * 400))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("largest", [1, 3, 40])
def test_any_cutting_of_the_same_rows_into_commits_emits_what_the_model_emits(seed: int, largest: int) -> None:
    """What the model emits does not depend on the cutting (`test_window_oracle.py`), so neither does what the engine emits."""
    rng = random.Random(seed)
    drawn, tables = random_sources(rng, plain=True)
    streams = [replace(stream, lateness_us=0) for stream in drawn]
    maker = tree_maker(rng, streams, tables)
    trees = [ToStream(rng.choice(["istream", "dstream"]), maker.relation(rng.choice([1, 2]))) for _ in range(4)]
    rows = ordered_rows(rng, streams, 40)
    steps: list[Step] = [Open(label, tree) for label, tree in enumerate(trees)]
    steps += [*cut(rng, rows, largest), Advance(rows[-1][1]["ts"] + 100_000, "main")]
    assert replay(WindowScript(streams, tables, steps=steps), Engine).model.events


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_a_longer_run_has_duckdb_s_answers_at_samples(seed: int) -> None:
    assert sample(make_long_script(seed, 60), Engine, 6) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50, 53))
def test_a_longer_run_has_the_models_answers_after_every_step(seed: int) -> None:
    script = make_long_script(seed, 10)
    assert len(replay(script, Engine).model.events) > 300


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(61, 66), 1))
def test_a_much_longer_run_has_the_models_answers_after_every_step(seed: int) -> None:
    script = make_long_script(seed, 16)
    assert len(replay(script, Engine).model.events) > 500


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_040), 8))
def test_one_of_many_seeds_passes(seed: int) -> None:
    run(seed, 50, Engine, use_duckdb=seed % 8 == 0)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(100, 115), 1))
def test_a_much_longer_run_has_duckdb_s_answers_at_samples(seed: int) -> None:
    assert sample(make_long_script(seed, 400), Engine, 20) > 0
