"""Greedy: the module that clears most query bits per nanosecond comes first.

With thousands of queries nearly every row is returned by every module, so counting rows says little; query bits cleared per
unit of cost is what saves work. Rates are moving averages over the rows that visited a module, so they are conditional
on what usually ran before it, as in A-Greedy. Now and then a random route is taken, so that a module's rates are also
known for rows that nothing has thinned out: one route in `EXPLORE`.
"""

from __future__ import annotations

import numpy as np

from eddy.policies.base import Ledger
from eddy.policies.lottery import RandomPolicy

#: One route in this many is random.
EXPLORE = 32
#: Routes between two sorts of the modules.
REFRESH = 16


class GreedyPolicy:
    learns = True
    per_row = False

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._explore = RandomPolicy(seed)
        self._count = 0
        #: per ledger: the ready modules it was computed for, and the route
        self._routes: dict[int, tuple[bytes, np.ndarray]] = {}

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        self._count += 1
        if self._count % EXPLORE == 0:
            return self._explore.route(ledger, ready)
        key = ready.tobytes()
        held = self._routes.get(id(ledger))
        if held is not None and held[0] == key and self._count % REFRESH:
            return held[1]
        gain = ledger.cleared_rate[ready] / np.maximum(ledger.cost_ns[ready], 0.1)
        route = ready[np.argsort(-gain, kind="stable")]
        self._routes[id(ledger)] = (key, route)
        return route

    def visited(self, ledger: Ledger, module: int, rows_in: int, rows_out: int) -> None:
        pass
