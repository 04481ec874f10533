"""Random joins under adversarial routing: always the worst legal module, or any at all, batch by batch."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from eddy.routing.base import Ledger
from tests.reference.driver import replay, subject
from tests.reference.stream_joins import make_stream_join_script


class Worst:
    """Visits first what clears least for its cost, and what it knows least of; the opposite of greedy."""

    name, learns, per_row, serves = "worst", True, True, 1

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        gain = ledger.cleared_rate[ready] / np.maximum(ledger.cost_ns[ready], 0.1)
        return ready[np.argsort(gain, kind="stable")]

    def visited(self, ledger: Ledger, modules: np.ndarray, rows_in: np.ndarray, rows_out: np.ndarray) -> None:
        pass


class Fickle(Worst):
    """Another order with every batch, from a seed."""

    name = "fickle"

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        order = ready.tolist()
        self._random.shuffle(order)
        return np.array(order, np.int32)


def engine_with(policy: Any) -> Any:
    """Makes engines that route by a policy of ours."""

    def make(**options: Any) -> Any:
        engine = subject(**options)
        engine._eddy.policy = engine._committer.joiner._policy = policy
        return engine

    return make


@pytest.mark.parametrize("seed", range(200, 206))
def test_joins_are_exact_when_the_worst_module_comes_first(seed: int) -> None:
    script = make_stream_join_script(seed, 30)
    assert script.steps
    replay(script, engine_with(Worst()), use_duckdb=False)


@pytest.mark.parametrize("seed", range(300, 306))
def test_joins_are_exact_when_the_route_changes_with_every_batch(seed: int) -> None:
    script = make_stream_join_script(seed, 30)
    assert script.steps
    replay(script, engine_with(Fickle(seed)), use_duckdb=False)
