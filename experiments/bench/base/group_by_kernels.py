"""`python -m experiments.bench.base.group_by_kernels`: group-by kernels alone, without an engine around them.

Shared: queries `SELECT g, count(*), sum(x) .. WHERE a < c GROUP BY g` with a constant each, a window of 100,000 rows, every query
with a reader; a commit is its arrivals, as many ends, and the list of all cells that changed. Own: one query's operator.
Rows/s count arrivals; each also ends.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from eddy.base.compile import ensure
from experiments.bench.base.timing import take_turns
from filters.values.vector import Array, Vector
from lineage.bits import words
from lineage.schema import Type
from windows.aggregates.aggregate import AggregateKind, AggregateSpec
from windows.delta import Delta, Plus, no_minus
from windows.operators.group_by import GroupByOperator
from windows.shared.aggregates import AttributeRanges, Listed, MovedRows, SharedAggregates, ValueColumn
from windows.state.due import Fifo
from windows.state.rows import LiveRows

WINDOW = 100_000
#: Batches prepared in advance, more than the window holds.
N_BATCHES = 64
SECONDS = 4.0

NO_NULLS = np.zeros(0, np.uint8)


class Shared:
    """N queries over one stream; `two_sided`: intervals instead of thresholds; `listed`: on the pair path."""

    def __init__(
        self, n_queries: int, *, n_groups: int = 100, rows: int = 4096, two_sided: bool = False, listed: bool = False,
        column: ValueColumn | None = None,
    ) -> None:  # fmt: skip
        rng = np.random.default_rng(1)
        self._rows, self._listed = rows, listed
        self._shared = SharedAggregates([column or ValueColumn(Type.FLOAT)])
        self._queries = np.arange(n_queries)
        # region ids come in the order of submits, not of constants
        cuts, self._ids = np.sort(rng.uniform(0, 100, n_queries)), rng.permutation(n_queries + 1)
        ranks = np.argsort(self._ids)
        low = np.zeros(n_queries, np.int64)
        high = np.arange(1, n_queries + 1)
        if two_sided:
            low = rng.integers(0, high)
        self._ranges = AttributeRanges(ranks, low, high)
        for query in range(n_queries):
            self._shared.add(query, 0, 0, listed=listed)
            self._shared.watch(np.array([query]), self._ranges)
        shape = (N_BATCHES, rows)
        self._groups = rng.integers(0, n_groups, shape)
        self._ranks = np.searchsorted(cuts, rng.uniform(0, 100, shape))
        self._values = (rng.random(shape) * 100).view(np.int64)
        self._live: deque[tuple[int, int]] = deque()
        self._position = 0
        #: cells that changed in the last commit, and (row, query) pairs of it
        self.changed = self.pairs = 0
        for batch in range(WINDOW // rows + 1):
            self.run(batch)

    def run(self, batch: int) -> None:
        """One commit."""
        parts = [(batch % N_BATCHES, self._position)]
        self._position += self._rows
        self._live.append(parts[0])
        if len(self._live) > max(1, WINDOW // self._rows):
            parts.append(self._live.popleft())
        numbers = [number for number, _ in parts]
        ranks = self._ranks[numbers].reshape(-1)
        positions = np.concatenate([np.arange(first, first + self._rows) for _, first in parts])
        rows = MovedRows(
            self._groups[numbers].reshape(-1), self._ids[ranks], positions, np.repeat([1, -1][: len(parts)], self._rows),
            [(self._values[numbers].reshape(-1), NO_NULLS)],
        )  # fmt: skip
        self._shared.apply(rows, self._ranges, self._bits(ranks) if self._listed else None)
        self._shared.settle(self._live[0][1])
        self.changed = len(self._shared.changes(self._ranges))

    def list_rows(self, batch: int) -> None:
        """Make the bits of a commit of listed queries, which an engine has anyway: this time is subtracted."""
        self._bits(self._ranks[[batch % N_BATCHES, 0]].reshape(-1))

    def _bits(self, ranks: Array) -> Listed:
        inside = (ranks >= self._ranges.low[:, None]) & (ranks < self._ranges.high[:, None])
        self.pairs = int(np.count_nonzero(inside))
        packed = np.zeros((len(self._queries), 8 * words(len(ranks))), np.uint8)
        packed[:, : (len(ranks) + 7) // 8] = np.packbits(inside, axis=1, bitorder="little")
        return Listed(self._queries, packed.view(np.uint64))


class Own:
    """One query's operator over all rows."""

    def __init__(self, kinds: list[AggregateKind], *, per_event: bool, rows: int = 4096) -> None:
        rng = np.random.default_rng(1)
        aggregates = [AggregateSpec(kind, 1, Type.FLOAT) for kind in kinds]
        self._operator = GroupByOperator(
            [Type.INT, Type.FLOAT], 1, aggregates, LiveRows(Fifo(), by_id=False), per_event=per_event
        )
        self._rows, self._clock = rows, 0
        self._groups, self._values = rng.integers(0, 100, (N_BATCHES, rows)), rng.random((N_BATCHES, rows)) * 100
        for batch in range(WINDOW // rows + 1):
            self.run(batch)

    def run(self, batch: int) -> None:
        times = np.arange(self._clock, self._clock + self._rows)
        self._clock += self._rows
        number = batch % N_BATCHES
        columns = [Vector(Type.INT, self._groups[number]), Vector(Type.FLOAT, self._values[number])]
        self._operator.process([Delta(Plus(times, times, times, times + WINDOW, columns), no_minus())], self._clock - 1)


def _shared() -> None:
    cases: dict[str, dict[str, Any]] = {
        "thresholds": {}, "intervals": {"two_sided": True}, "10 groups": {"n_groups": 10}, "256-row commits": {"rows": 256},
        "min, max": {"column": ValueColumn(Type.FLOAT, minimum=True, maximum=True)},
        "variance": {"column": ValueColumn(Type.FLOAT, variance=True)},
    }  # fmt: skip
    for name, options in cases.items():
        runs = {str(n): Shared(n, **options) for n in (1, 128, 1024)}
        rounds = take_turns({n: run.run for n, run in runs.items()}, N_BATCHES, SECONDS)
        rows = options.get("rows", 4096)
        speeds = ", ".join(f"N={n} {rows / rounds.median(n) / 1e6:.2f} M" for n in runs)
        print(f"region path, {name}: {speeds} rows/s; 1024 against 1: 1/{1 / rounds.ratio('1024', '1'):.1f};", end=" ")
        print(f"{runs['1024'].changed:,} cells a commit", flush=True)


def _pairs() -> None:
    for n in (128, 1024):
        run = Shared(n, listed=True)
        rounds = take_turns({"run": run.run, "bits": run.list_rows}, 8, 2.0)
        seconds = rounds.median("run") - rounds.median("bits")
        print(f"pair path, N={n}: {4096 / seconds / 1e6:.3f} M rows/s, {seconds / run.pairs * 1e9:.1f} ns a pair", flush=True)


def _own() -> None:
    for names in ("sum", "avg", "min max", "variance", "median", "first last"):
        kinds = [AggregateKind(name) for name in names.split()]
        net, events = Own(kinds, per_event=False), Own(kinds, per_event=True)
        rounds = take_turns({"net": net.run, "events": events.run}, N_BATCHES, 1.0)
        name = ", ".join(kind.value for kind in kinds)
        speeds = [f"{4096 / rounds.median(each) / 1e6:.2f} M" for each in ("net", "events")]
        print(f"own, {name}: {speeds[0]} rows/s net of each commit, {speeds[1]} at every event", flush=True)


def main() -> None:
    ensure()
    _shared()
    _pairs()
    _own()


if __name__ == "__main__":
    main()
