"""How fast this machine is while a case runs whose bar is a time (decision 7).

The bars were set on a machine on which the bare filter kernel had 51 M rows/s at 128 queries. Such a case runs our bare kernel
beside its calls and shows by how much it is slower here and now: a remark for whoever reads the time, never part of a verdict.
"""

from __future__ import annotations

import time

import numpy as np

from experiments.bench.base import workloads
from experiments.bench.base.bare import Conjunctions

#: Rows per second of the bare kernel on the machine of the bars.
REFERENCE = 51e6
_ROWS = 4096
_QUERIES = 128


class Machine:
    """Measures the machine now and then; `slowness` is the median of these measurements."""

    def __init__(self) -> None:
        self._workload = workloads.filters(_QUERIES, _ROWS)
        self._layouts = list(Conjunctions(self._workload, _ROWS).layouts().values())
        self._seen: list[float] = []
        self._at = 0
        for _ in range(4):
            self.look()
        self._seen.clear()

    def look(self) -> None:
        """Run the bare kernel over a few batches."""
        batches = self._workload.batches
        best = np.inf
        for layout in self._layouts:
            start = time.thread_time()
            for k in range(8):
                layout(batches[(self._at + k) % len(batches)])
            best = min(best, (time.thread_time() - start) / 8)
        self._at += 8
        self._seen.append(best)

    @property
    def slowness(self) -> float:
        """How many times slower than the machine of the bars; 1 for a faster one."""
        return max(1.0, float(np.median(self._seen)) * REFERENCE / _ROWS)
