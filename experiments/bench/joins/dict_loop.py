"""The join as one would write it in plain Python: dicts of deques by symbol, one row after the other.

Any number of streams and of window lengths. Queries are kept in the order of their constants, so that those of a price are a
slice; rows leave when the longest window has passed them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import product

import numpy as np

from experiments.bench.joins.matches import Pairs
from experiments.bench.joins.workload import TIMES, JoinWorkload
from experiments.bench.workloads import Batch

#: (time, row number, price or 0)
Entry = tuple[int, int, float]


class DictLoop:
    """Takes the pushes of a workload one after the other."""

    def __init__(self, workload: JoinWorkload) -> None:
        self.workload = workload
        self.n_pushes = 0
        in_order = sorted(range(workload.n_queries), key=lambda q: workload.queries[q].constant)
        self._constants = [workload.queries[q].constant for q in in_order]
        self._wanting = [(q, workload.queries[q].window_us) for q in in_order]
        self._longest = workload.window_us
        self._stored: list[defaultdict[int, deque[Entry]]] = [defaultdict(deque) for _ in range(workload.n_streams)]
        #: (time, symbol) of the stored rows, oldest first
        self._ends: list[deque[tuple[int, int]]] = [deque() for _ in range(workload.n_streams)]
        self._rows = [0] * workload.n_streams

    def push(self) -> list[list[tuple[Entry, ...]]]:
        """The next push; the new matches of every query."""
        stream, batch = self.workload.push(self.n_pushes)
        self.n_pushes += 1
        return self.take(stream, batch)

    def take(self, stream: int, batch: Batch) -> list[list[tuple[Entry, ...]]]:
        """Rows of a stream, not older than any before; the new matches of every query."""
        found: list[list[tuple[Entry, ...]]] = [[] for _ in self._wanting]
        symbols, times = batch["symbol"].tolist(), batch[TIMES[stream]].tolist()
        prices = batch["price"].tolist() if stream == 0 else [0.0] * len(times)
        own, own_ends = self._stored[stream], self._ends[stream]
        row = self._rows[stream]
        for symbol, time, price in zip(symbols, times, prices):
            self._expire(time - self._longest)
            entry = (time, row, price)
            row += 1
            choices: list[Iterable[Entry]] = [stored.get(symbol, ()) for stored in self._stored]
            choices[stream] = (entry,)
            for match in product(*choices):
                age = time - min(match)[0]
                for q, window in self._wanting[: bisect_left(self._constants, match[0][2])]:
                    if age < window:
                        found[q].append(match)
            own[symbol].append(entry)
            own_ends.append((time, symbol))
        self._rows[stream] = row
        return found

    def _expire(self, oldest: int) -> None:
        for stored, ends in zip(self._stored, self._ends):
            while ends and ends[0][0] <= oldest:
                _, symbol = ends.popleft()
                rows = stored[symbol]
                rows.popleft()
                if not rows:
                    del stored[symbol]

    def push_into(self, pairs: Pairs) -> None:
        """The next push, its results collected."""
        found = [(q, *(entry[1] for entry in match)) for q, matches in enumerate(self.push()) for match in matches]
        pairs.add(*np.array(found, np.int64).reshape(-1, 1 + self.workload.n_streams).T)
