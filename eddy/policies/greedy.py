"""Greedy: the module that clears most query bits per nanosecond comes first.

With thousands of queries nearly every row is returned by every module, so counting rows says little; query bits cleared per
unit of cost is what saves work. Rates are moving averages over the rows that visited a module, so they are conditional
on what usually ran before it, as in A-Greedy. A route serves `REFRESH` batches; one route in `EXPLORE` is random and serves
one batch, so that a module's rates are also known for rows that nothing has thinned out.
"""

from __future__ import annotations

import numpy as np

from eddy.policies.base import Ledger
from eddy.policies.lottery import RandomPolicy

#: Batches between two looks at the statistics.
REFRESH = 64
#: One route in this many is random; it serves one batch.
EXPLORE = 3


class GreedyPolicy:
    learns = True
    per_row = False

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.serves = REFRESH
        self._explore = RandomPolicy(seed)
        #: routes given, per ledger
        self._count: dict[int, int] = {}

    def route(self, ledger: Ledger, ready: np.ndarray) -> np.ndarray:
        count = self._count[id(ledger)] = self._count.get(id(ledger), 0) + 1
        if count % EXPLORE == 0:
            self.serves = 1
            return self._explore.route(ledger, ready)
        # while little is known, look again soon
        self.serves = min(REFRESH, 1 << min(count, 6))
        gain = ledger.cleared_rate[ready] / np.maximum(ledger.cost_ns[ready], 0.1)
        return ready[np.argsort(-gain, kind="stable")]

    def visited(self, ledger: Ledger, module: int, rows_in: int, rows_out: int) -> None:
        pass
