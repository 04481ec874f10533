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
        #: per ledger: routes given, the modules its route was computed for, and that route
        self._routes: dict[int, tuple[int, int, bytes, np.ndarray]] = {}

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        key = ready.tobytes()
        count, version, modules, route = self._routes.get(id(ledger), (0, -1, b"", ready))
        if count % REFRESH == 0 or version != ledger.version or modules != key:
            gain = ledger.cleared_rate[ready] / np.maximum(ledger.cost_ns[ready], 0.1)
            route = ready[np.argsort(-gain, kind="stable")]
        self._routes[id(ledger)] = (count + 1, ledger.version, key, route)
        if count % EXPLORE == EXPLORE - 1:
            return self._explore.route(ledger, ready)
        return route

    def visited(self, ledger: Ledger, module: int, rows_in: int, rows_out: int) -> None:
        pass
