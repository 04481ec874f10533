"""Filters with windows whose + and - are both delivered, as row lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from eddy import Engine
from experiments.bench.windows.window_workload import COLUMNS, GAP_US, STREAM, RotatingRows, WindowSetting

_WINDOW = 10_000


class FilterDriver:
    """N queries `v < c` over windows of `n_lengths` lengths."""

    n_batches = 16

    def __init__(self, n_queries: int, n_lengths: int, n_rows: int) -> None:
        self.engine = Engine(seed=0)
        self.engine.create_stream(STREAM, COLUMNS, time="ts")
        widths = WindowSetting("distinct", n_window=_WINDOW, n_lengths=n_lengths).windows()
        constants = np.random.default_rng(1).integers(1, 100, n_queries)
        for k, constant in enumerate(constants.tolist()):
            window = f"[RANGE {widths[k % n_lengths] * GAP_US} MICROSECONDS]"
            self.engine.submit(f"SELECT k, v FROM s {window} WHERE v < {constant}", emit="event")
        self._rows = RotatingRows(WindowSetting("distinct", n_rows=n_rows, n_batches=self.n_batches))
        #: (row, query) pairs delivered, by sign
        self.n_pairs = {1: 0, -1: 0}
        self.n_pushes = 0
        self.engine.on_commit(self._take)
        for _ in range(-(-_WINDOW // n_rows) + 1):
            self.push(0)
        self.n_pairs, self.n_pushes = {1: 0, -1: 0}, 0

    def _take(self, part: Any) -> None:
        _, _, rows = part.row_lists()
        self.n_pairs[1 if part.added else -1] += len(rows)

    def push(self, number: int) -> None:
        """The next batch, whatever the number."""
        self.engine.push(STREAM, self._rows.next())
        self.n_pushes += 1

    def pairs_a_push(self) -> float:
        return sum(self.n_pairs.values()) / self.n_pushes
