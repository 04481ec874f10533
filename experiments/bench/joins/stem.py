"""Both sides of a symmetric hash join of stocks and articles over one window, with nothing around it.

One hash table has the newest row of every symbol for both sides, links lead to the older ones, expiry is a lower bound that
moves. A row costs one look-up for its build and its probe, a match one step of its chain.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.bench.base.workloads import Batch
from experiments.bench.joins import kernels
from experiments.bench.joins.join_workload import TIMES, JoinWorkload

#: Most matches of a part: their bitmaps stay in cache.
PART = 4096


def ring_rows(workload: JoinWorkload) -> int:
    """Places of a ring: the rows of a window, a push more because rows come in bursts, and the push being built."""
    return 1 << (workload.window_rows + 2 * workload.n_rows - 1).bit_length()


def table_places(workload: JoinWorkload) -> int:
    """Places of a hash table of symbols, a quarter to a half of them taken."""
    return 1 << (2 * workload.n_keys).bit_length()


def make_walk(n_rows: int) -> kernels.Walk:
    """Buffers for up to `n_rows` probing rows, and parts of `PART` matches."""
    found, lows, rows, heads = (np.zeros(n, np.int32) for n in (n_rows, n_rows, n_rows + 1, n_rows + 1))
    own, other = (np.empty(PART, np.int32) for _ in range(2))
    return kernels.Walk(found, lows, np.zeros(3, np.int64), rows, heads, own, other)


class SymmetricStem:
    """Takes pushes of stocks and articles in turn."""

    def __init__(self, workload: JoinWorkload) -> None:
        assert workload.n_streams == 2 and workload.one_window, "two streams, one window"
        self._window_us = workload.window_us
        self._table = np.full((table_places(workload), 2), -1, np.int64)
        self._heads = self._table.view(np.int32)
        n_ring = ring_rows(workload)
        self._links = np.full((2, n_ring), -1, np.int32)
        #: times of the stored rows, rings
        self.times = np.zeros((2, n_ring), np.int64)
        #: rows taken of each stream
        self.ends = [0, 0]
        #: oldest position of each stream that the last probe could reach
        self._lows = [0, 0]
        self._walk = make_walk(workload.n_rows)

    def matches(self, side: int, batch: Batch) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Build a push, then give its matches in parts: positions of stocks and of articles, until the next part."""
        w = self._walk
        times = batch[TIMES[side]]
        first, other = self.ends[side], 1 - side
        kernels.build_and_find(
            batch["symbol"], times, side, first, self._table, self._heads, self._links[side], self.times[side], w.found
        )
        self.ends[side] += len(times)
        self._lows[other] = kernels.find_lows(
            times, self._window_us, self.times[other], self._lows[other], self.ends[other], w.lows
        )
        w.progress[:] = -1
        while w.progress[2]:
            n = kernels.walk(w.found, w.lows, self._links[other], first, w)
            if n:
                yield (w.own[:n], w.other[:n]) if side == 0 else (w.other[:n], w.own[:n])
