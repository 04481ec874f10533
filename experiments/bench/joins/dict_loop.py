"""The join as one would write it in plain Python: dicts of deques by symbol, one row after the other.

Any number of streams and of window lengths. Queries are kept in the order of their constants, so that those of a price are a
slice; the old rows of a symbol leave when a row with it comes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import product

import numpy as np

from experiments.bench.base.workloads import Batch
from experiments.bench.joins.join_workload import TIMES, JoinWorkload
from experiments.bench.joins.matches import Pairs

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
        self._one_window = workload.one_window
        self._longest = workload.window_us
        self._stored: list[defaultdict[int, deque[Entry]]] = [defaultdict(deque) for _ in range(workload.n_streams)]
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
        appends = [found[q].append for q, _ in self._wanting]
        own, row = self._stored[stream], self._rows[stream]
        # what comes and goes within a push is not shown
        last = times[-1]
        oldest = last - self._longest
        for symbol, time, price in zip(symbols, times, prices):
            entry = (time, row, price)
            row += 1
            choices: list[Sequence[Entry]] = []
            for stored in self._stored:
                if stored is own:
                    choices.append((entry,))
                    continue
                rows = stored[symbol]
                while rows and rows[0][0] <= oldest:
                    rows.popleft()
                choices.append(rows)
            mine = own[symbol]
            while mine and mine[0][0] <= oldest:
                mine.popleft()
            if time <= oldest:
                continue
            mine.append(entry)
            for match in product(*choices):
                n_wanting = bisect_left(self._constants, match[0][2])
                if self._one_window:
                    for append in appends[:n_wanting]:
                        append(match)
                    continue
                age = last - min(match)[0]
                for q, window in self._wanting[:n_wanting]:
                    if age < window:
                        found[q].append(match)
        self._rows[stream] = row
        return found

    def push_into(self, pairs: Pairs) -> None:
        """The next push, its results collected."""
        found = [(q, *(entry[1] for entry in match)) for q, matches in enumerate(self.push()) for match in matches]
        pairs.add(*np.array(found, np.int64).reshape(-1, 1 + self.workload.n_streams).T)
