"""The engine under test, driven by its public API only (contract 2).

One stream without a time column, one query per workload query, one listener that takes the row lists of every commit as
an application would: no Python object per row or query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from eddy import Engine
from experiments.bench.base.bare import RowLists
from experiments.bench.base.workloads import STREAM, Batch, Query, Workload, sql


class EngineDriver:
    """An engine loaded with a workload's queries."""

    def __init__(
        self, workload: Workload, *, policy: str = "auto", batch_rows: int = 4096, load: bool = True, seed: int = 0
    ) -> None:
        self.engine = Engine(policy=policy, batch_rows=batch_rows, seed=seed)
        self.engine.create_stream(STREAM, workload.columns)
        self.workload = workload
        #: query id -> position in the workload
        self.positions: dict[Any, int] = {}
        self.n_pairs = 0
        #: copies of the parts of each commit; only kept while not None
        self._kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None
        self._n_kept_rows = 0
        if load:
            for i, query in enumerate(workload.queries):
                self.positions[self.submit(query).id] = i
        self.engine.on_commit(self._take)

    def submit(self, query: Query) -> Any:
        text, params = sql(query)
        return self.engine.submit(text, params=params)

    def _take(self, commit: Any) -> None:
        lists = commit.row_lists()
        self.n_pairs += len(lists[2])
        if self._kept is not None:
            queries, offsets, rows = lists
            # lists count the rows of their part: shift them by the parts before
            self._kept.append((np.array(queries), np.array(offsets), rows + self._n_kept_rows))
            self._n_kept_rows += len(commit.time)

    def push(self, i: int) -> None:
        """Push the i-th batch of the workload."""
        self.engine.push(STREAM, self.workload.batches[i])

    def lists_of(self, batch: Batch) -> RowLists:
        """Push a batch and return a copy of its row lists: positions of queries, rows counted from the batch's first."""
        self._kept, self._n_kept_rows = [], 0
        self.engine.push(STREAM, batch)
        parts, self._kept = self._kept, None
        positions = [np.array([self.positions[q] for q in queries.tolist()], np.int64) for queries, _, _ in parts]
        pair_query = np.concatenate([np.repeat(of, np.diff(offsets)) for of, (_, offsets, _) in zip(positions, parts)])
        pair_row = np.concatenate([rows for _, _, rows in parts])
        order = np.argsort(pair_query, kind="stable")
        counts = np.bincount(pair_query, minlength=1)
        found = np.flatnonzero(counts)
        return RowLists(found, np.concatenate([[0], np.cumsum(counts[found])]), pair_row[order])

    def routing(self) -> Mapping[str, float]:
        """Nanoseconds spent choosing routes (`ns`) and in commits (`total_ns`) so far."""
        found: Mapping[str, float] = self.engine.stats()["routing"]
        return found

    def routing_share(self, before: Mapping[str, float]) -> float:
        """Share of the commits' time spent choosing routes since `before`."""
        now = self.routing()
        return (now["ns"] - before["ns"]) / max(now["total_ns"] - before["total_ns"], 1)

    def visits_per_row(self, draw: Callable[[], Batch], n_batches: int) -> float:
        """Filters that a row visits on average, after a third of the batches went by to learn from."""
        visits, counted = 0, 0
        for i in range(n_batches):
            if i == n_batches // 3:
                visits, counted = visited(self.engine, STREAM)
            self.engine.push(STREAM, draw())
        visits_now, counted_now = visited(self.engine, STREAM)
        return (visits_now - visits) / (counted_now - counted)


def visited(engine: Engine, stream: str) -> tuple[int, int]:
    """Visits of all modules of an engine so far, and the rows of the stream whose visits were counted."""
    stats = engine.stats()
    return sum(module["rows_in"] for module in stats["modules"].values()), stats["streams"][stream]["counted"]


def assert_same(engine: RowLists, bare: RowLists) -> None:
    """Both gave the same rows to the same queries."""
    assert np.array_equal(engine.queries, bare.queries), "other queries have rows"
    assert np.array_equal(engine.offsets, bare.offsets), "queries have other numbers of rows"
    assert np.array_equal(engine.rows, bare.rows), "queries have other rows"
