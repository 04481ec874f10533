"""Clocks: contestants that take turns over rotating batches, and the spread of single calls.

Throughput is thread CPU time, the median over rounds; a round is one contestant's turn over a few batches, and the next
round goes on with the batches after. Ratios are medians of the ratios within a round: both parts saw the same machine.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

#: CPU seconds a contestant's turn may take before its round is cut to fewer batches.
_TURN = 0.2
_MIN_ROUNDS = 5
_BETWEEN = 500


@dataclass(frozen=True, slots=True)
class Rounds:
    """CPU seconds per batch of every contestant in every round."""

    seconds: Mapping[str, np.ndarray]

    def median(self, name: str) -> float:
        return float(np.median(self.seconds[name]))

    def fastest(self, prefix: str) -> str:
        """The contestant with that prefix and the smallest median."""
        return min((name for name in self.seconds if name.startswith(prefix)), key=self.median)

    def ratio(self, name: str, other: str) -> float:
        """How many times the time of `name` that of `other` is."""
        return float(np.median(self.seconds[other] / self.seconds[name]))


def take_turns(contestants: Mapping[str, Callable[[int], object]], n_batches: int, seconds: float) -> Rounds:
    """Call every contestant with batch numbers for about `seconds` in all, and at least five rounds."""
    clock = time.thread_time
    slowest = 0.0
    for run in contestants.values():
        run(0)
        start = clock()
        run(1 % n_batches)
        slowest = max(slowest, clock() - start)
    turn = max(1, min(n_batches, int(_TURN / max(slowest, 1e-9))))
    found: dict[str, list[float]] = {name: [] for name in contestants}
    gc.collect()
    at = 0
    until = time.perf_counter() + seconds
    while min(map(len, found.values())) < _MIN_ROUNDS or time.perf_counter() < until:
        for name, run in contestants.items():
            start = clock()
            for i in range(at, at + turn):
                run(i % n_batches)
            found[name].append((clock() - start) / turn)
        at += turn
    return Rounds({name: np.array(values) for name, values in found.items()})


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and 99th percentile, in microseconds."""

    median_us: float
    p99_us: float


def spread(seconds: list[float]) -> Spread:
    return Spread(float(np.median(seconds)) * 1e6, float(np.percentile(seconds, 99)) * 1e6)


def time_calls(run: Callable[[int], object], n_calls: int, seconds: float, between: Callable[[], object]) -> Spread:
    """Wall time of single calls; stops after `n_calls` or `seconds`, whichever comes first, but not before 50.

    Every `_BETWEEN` calls `between` is called, outside the clock.
    """
    clock = time.perf_counter
    found: list[float] = []
    gc.collect()
    for i in range(16):
        run(i)
    until = clock() + seconds
    for i in range(n_calls):
        start = clock()
        run(i)
        end = clock()
        found.append(end - start)
        if not i % _BETWEEN:
            between()
            for k in range(8):
                run(i + k)  # what `between` drove out of the caches comes back
        if end > until and len(found) >= 50:
            break
    return spread(found)
