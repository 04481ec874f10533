"""Random joins of streams: the engine, the naive model and DuckDB after every step."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from eddy import Engine
from tests.reference.driver import replay, subject
from tests.reference.join_steps import POLICIES
from tests.reference.limits import make_small, settle_always
from tests.reference.lives import UNBOUNDED
from tests.reference.script import Replace, Submit
from tests.reference.seeds import seeds
from tests.reference.stream_joins import make_relation_join_script, make_stream_join_script


@pytest.mark.parametrize("seed", seeds(range(16), 5))
def test_a_seed_of_joins_passes(seed: int) -> None:
    script = make_stream_join_script(seed, 30)
    assert any(isinstance(step, Submit) for step in script.steps)
    replay(script, subject)


@pytest.mark.parametrize("seed", range(100, 108))
def test_a_seed_of_joins_passes_when_every_limit_is_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    script = make_stream_join_script(seed, 40)
    assert script.steps
    replay(script, subject, use_duckdb=False)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch_rows", [pytest.param(1, marks=pytest.mark.slow), 4096])
def test_a_script_of_joins_passes_under_every_policy_and_batch_size(policy: str, batch_rows: int) -> None:
    script = make_stream_join_script(3, 40)
    assert any(isinstance(step, Replace) for step in script.steps)
    replay(replace(script, policy=policy, batch_rows=batch_rows), subject, use_duckdb=False)


@pytest.mark.parametrize("seed", range(200, 208))
def test_a_seed_of_joins_passes_when_the_log_holds_hardly_a_commit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then rows are forgotten as soon as no window holds them."""
    settle_always(monkeypatch)
    script = make_relation_join_script(seed, 40)
    assert any(isinstance(step, Submit) for step in script.steps)
    replay(script, functools.partial(Engine, log_rows=1 + seed % 5, log_bytes=1 + seed % 3 * 200), use_duckdb=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_030), 3))
def test_a_longer_seed_of_joins_passes(seed: int) -> None:
    script = make_stream_join_script(seed, 80)
    assert sum(isinstance(step, Submit) for step in script.steps) >= 1
    replay(script, subject, use_duckdb=seed % 4 == 0)


def test_the_seeds_hold_joins_of_every_size_and_kind() -> None:
    sizes: dict[int, int] = {}
    selves = bands = histories = replaced = 0
    counted: dict[tuple[bool, bool], int] = {}
    for seed in range(40):
        for step in make_stream_join_script(seed, 30).steps:
            replaced += isinstance(step, Replace)
            if isinstance(step, Submit):
                histories += step.history == "window"
                sources = [item.source for item in step.spec.meaning.inputs]
                sizes[len(sources)] = sizes.get(len(sources), 0) + 1
                selves += len(set(sources)) < len(sources)
                bands += "BETWEEN" in step.spec.sql
                for item in step.spec.meaning.inputs:
                    if item.window is not None and item.window.rows is not None:
                        kind = (bool(item.window.partition), item.window.width < UNBOUNDED)
                        counted[kind] = counted.get(kind, 0) + 1
    assert set(sizes) >= {1, 2, 3, 4} and sizes[2] > 20 and sizes[3] > 5
    assert selves > 10 and bands > 3 and histories > 50 and replaced > 20
    assert len(counted) == 4 and min(counted.values()) > 10, "ROWS with and without PARTITION BY, with and without RANGE"
