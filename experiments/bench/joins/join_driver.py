"""The engine under test with join queries, driven by its public API only (contract 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eddy import Engine
from experiments.bench.joins.join_workload import STREAMS, TIMES, JoinWorkload, sql
from experiments.bench.joins.matches import Pairs
from experiments.bench.joins.selections import Picky


class JoinDriver:
    """An engine loaded with a join workload's queries, and a listener that takes the row lists of matches as they arise.

    Matches that leave are not asked for, as the bare kernel has none, and so not searched for. Without `lists` the listener only
    looks how many results there are. With `functions` these stand for the conditions `price > c`.
    """

    def __init__(self, workload: JoinWorkload, *, lists: bool = True, functions: Sequence[Picky] | None = None) -> None:
        self.workload = workload
        self.engine = Engine(seed=0)
        self.n_pushes = 0
        #: results so far, and (result, query) pairs of those that arose
        self.n_results = 0
        self.n_pairs = 0
        self._lists = lists
        self._collected: Pairs | None = None
        #: query id -> position in the workload
        self._positions: dict[Any, int] = {}
        for stream in range(workload.n_streams):
            self.engine.create_stream(STREAMS[stream], workload.columns(stream), time=TIMES[stream])
        for q, query in enumerate(workload.queries):
            if functions is None:
                submitted = self.engine.submit(sql(workload, query), params={"c": query.constant})
            else:
                self.engine.register(f"picky_{q}", functions[q], returns="bool", cost=300.0)
                submitted = self.engine.submit(sql(workload, query, f"picky_{q}(s.price)"))
            self._positions[submitted.id] = q
        self.engine.on_commit(self._take)

    def push(self) -> None:
        """The next push of the workload."""
        stream, batch = self.workload.push(self.n_pushes)
        self.n_pushes += 1
        self.engine.push(STREAMS[stream], batch)

    def push_into(self, pairs: Pairs) -> None:
        """The next push, its results collected."""
        self._collected = pairs
        self.push()
        self._collected = None

    def _take(self, commit: Any) -> None:
        if not commit.added:
            return
        self.n_results += commit.n_rows
        if not self._lists:
            return
        queries, offsets, results = commit.row_lists()
        self.n_pairs += len(results)
        if self._collected is not None and len(results):
            positions = np.array([self._positions[q] for q in queries.tolist()], np.int64)
            of_pair = np.repeat(positions, np.diff(offsets))
            times = [np.asarray(commit.columns[name].cast("int64")) for name in TIMES[: self.workload.n_streams]]
            self._collected.add(of_pair, *(self.workload.row_numbers(column[results]) for column in times))

    def state_bytes(self) -> float:
        """Bytes a stored row, of the stores and indexes of all streams; the filters' tables do not grow with the rows."""
        streams = [self.engine.stats()["streams"][name] for name in STREAMS[: self.workload.n_streams]]
        found = sum(size for stream in streams for name, size in stream["bytes"].items() if name != "filters")
        return float(found / sum(stream["held"] for stream in streams))
