"""Seeded runs of the driver: seeds that failed once, then fixed ones, then many more under `slow`."""

from __future__ import annotations

import pytest

from tests.reference.driver import replay, run, subject
from tests.reference.limits import make_small
from tests.reference.script import as_python
from tests.reference.seeds import kept_seeds, seeds
from tests.reference.steps import POLICIES, make_script


@pytest.mark.parametrize(("kept", "n_steps"), kept_seeds("model"))
def test_a_seed_that_failed_once_passes(kept: int, n_steps: int) -> None:
    run(kept, n_steps, subject)


@pytest.mark.parametrize("seed", seeds(range(20), 8))
def test_a_fixed_seed_passes(seed: int) -> None:
    run(seed, 40, subject)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_030), 4))
def test_one_of_many_seeds_passes(seed: int) -> None:
    run(seed, 80, subject)


@pytest.mark.parametrize("seed", seeds(range(100, 108), 4))
def test_a_seed_passes_when_every_limit_is_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    run(seed, 40, subject)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(2_000, 2_025), 2))
def test_one_of_many_seeds_passes_when_every_limit_is_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    run(seed, 60, subject)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch_rows", [1, 4096])
def test_the_same_script_passes_under_every_policy_and_batch_size(policy: str, batch_rows: int) -> None:
    script = make_script(7, 30)
    replay(type(script)(script.streams, policy, batch_rows, script.steps), subject, use_duckdb=False)


def test_a_seed_always_gives_the_same_script() -> None:
    assert as_python(make_script(3, 30)) == as_python(make_script(3, 30))
    assert as_python(make_script(3, 30)) != as_python(make_script(4, 30))
