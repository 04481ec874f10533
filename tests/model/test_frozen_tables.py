"""Random trees of operators beside tables that change: the engine and the model of the whole language after every step."""

from __future__ import annotations

import pytest

from eddy import Engine
from tests.reference.frozen_steps import make_frozen_script
from tests.reference.seeds import seeds
from tests.reference.window_harness import replay


@pytest.mark.parametrize("seed", seeds(range(30), 10))
def test_a_seed_passes(seed: int) -> None:
    assert replay(make_frozen_script(seed, 25), Engine).model.events


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_030), 6))
def test_one_of_many_seeds_passes(seed: int) -> None:
    assert replay(make_frozen_script(seed, 50), Engine).model.events
