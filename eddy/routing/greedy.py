"""Greedy: the module that clears most query bits per nanosecond comes first.

With thousands of queries nearly every row is returned by every module, so counting rows says little; query bits cleared per unit
of cost save work. The bits a filter clears are known from samples that try all filters on the same rows and then on the rows that
the best one left, and so on (A-Greedy), so the order is conditional and does not depend on the routes taken; the bits a predicate
module clears are known from the rows that visit it, because trying it would cost.
"""

from __future__ import annotations

import numpy as np

from eddy.routing.base import Ledger

#: Batches between two looks at the statistics.
REFRESH = 256


class GreedyPolicy:
    learns = True
    per_row = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.serves = 1

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        ledger.n_routes += 1
        # while little is known, look again soon
        self.serves = min(REFRESH, 1 << min(ledger.n_routes, 8))
        gain = ledger.cleared_rate[ready] / np.maximum(ledger.cost_ns[ready], 0.1)
        return ready[np.argsort(-gain, kind="stable")]

    def visited(self, ledger: Ledger, modules: np.ndarray, rows_in: np.ndarray, rows_out: np.ndarray) -> None:
        pass
