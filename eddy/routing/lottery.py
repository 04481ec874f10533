"""Lotteries: a module's chance to be visited next is its share of tickets.

The paper's scheme (CACQ, routing policies; semantics 31): a module earns as many tickets as it applies predicates for each row it
takes, and pays as many for each row it returns, results included; tickets fade per row, not per batch, and never fall
below a floor, so a module that was useless keeps being tried.

    tickets <- max(FLOOR, tickets * FADE ** rows_in + predicates * (rows_in - rows_out))

`random` holds no tickets, `backpressure` divides them by the measured cost of a row, so that of two modules equally
selective the quicker one comes first.
"""

from __future__ import annotations

import numpy as np

from eddy.routing.base import Ledger
from lineage.kernels import kernel

#: Tickets after one row taken: half is forgotten in some 700 rows.
FADE = 0.999
#: Below this no module falls, so that each is still tried.
FLOOR = 1.0


@kernel("void(float64[::1], int32[::1], uint64[::1], int32[::1])")
def draw_route(weights: np.ndarray, ready: np.ndarray, state: np.ndarray, route: np.ndarray) -> None:
    """Draw the ready modules one after the other, each with chance weight / weights left (splitmix64 generator)."""
    n = len(ready)
    total = 0.0
    for k in range(n):
        route[k] = ready[k]
        total += weights[ready[k]]
    for k in range(n - 1):
        state[0] += np.uint64(0x9E3779B97F4A7C15)
        z = state[0]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        left = np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0) * total
        pick = k
        while pick < n - 1:
            left -= weights[route[pick]]
            if left < 0:
                break
            pick += 1
        chosen = route[pick]
        while pick > k:
            route[pick] = route[pick - 1]
            pick -= 1
        route[k] = chosen
        total -= weights[chosen]


class _Draws:
    """A seeded generator of routes."""

    def __init__(self, seed: int) -> None:
        self._state = np.array([seed & (2**64 - 1)], np.uint64)
        self._route = np.zeros(0, np.int32)

    def draw(self, weights: np.ndarray, ready: np.ndarray) -> np.ndarray:
        if len(self._route) != len(ready):
            self._route = np.zeros(len(ready), np.int32)
        draw_route(weights, ready, self._state, self._route)
        return self._route


class RandomPolicy:
    """Every order is equally likely."""

    name = "random"
    learns = False
    per_row = True
    serves = 1

    def __init__(self, seed: int) -> None:
        self._draws = _Draws(seed)

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        return self._draws.draw(np.ones(len(ledger.names)), ready)

    def visited(self, ledger: Ledger, modules: np.ndarray, rows_in: np.ndarray, rows_out: np.ndarray) -> None:
        pass


class LotteryPolicy:
    """The paper's tickets."""

    name = "lottery"
    learns = True
    per_row = True
    serves = 1

    def __init__(self, seed: int) -> None:
        self._draws = _Draws(seed)

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        return self._draws.draw(ledger.tickets, ready)

    def visited(self, ledger: Ledger, modules: np.ndarray, rows_in: np.ndarray, rows_out: np.ndarray) -> None:
        earned = ledger.predicates[modules] * (rows_in - rows_out)
        ledger.tickets[modules] = np.maximum(FLOOR, ledger.tickets[modules] * FADE**rows_in + earned)


class BackpressurePolicy(LotteryPolicy):
    """Tickets weighed by cost. Modules here run to completion and have no queue; one that had would divide by its fill."""

    name = "backpressure"

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        return self._draws.draw(ledger.tickets / np.maximum(ledger.cost_ns, 1.0), ready)
