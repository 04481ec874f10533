"""Windowed group-by of many queries that differ in a threshold on one attribute, 4096 rows a push, a window of 100,000 rows.

    read           a listener takes the row lists of every commit: all cells that changed, of all queries
    unread         nobody reads: only the sums are kept, and the log of the first few queries
    against one    how many times slower a row is than with one query, both with row lists
    kernels        speed of the shared sums alone with the list of changed cells (`experiments/bench/base/group_by_kernels.py`)
    with --peers   polars: a rolling sum and count a query, over the window and the new rows of each push

`SELECT g, COUNT(*), SUM(x) FROM s [RANGE w] WHERE a < c GROUP BY g`. Before anything is timed the answers of some queries equal
those of a numpy twin over the rows of the window.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from eddy import Engine
from eddy.matching.commit import Commit
from experiments.bench.base.group_by_kernels import Shared
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.base.peers import is_installed
from experiments.bench.base.timing import take_turns

COUNTS = (1, 16, 128, 1024, 8192)
GROUPS = (1, 100, 1000)
#: Bar: speed with `MANY` queries against one, at `BAR_GROUPS` groups.
BAR = 1 / 8
MANY = 1024
BAR_GROUPS = 100
WINDOW = 100_000
#: Batches prepared in advance, more than the window holds.
N_BATCHES = 64

TEXT = f"SELECT g, COUNT(*) AS n, SUM(x) AS total FROM s [RANGE {WINDOW // 1000} MILLISECONDS] WHERE a < :c GROUP BY g"


class GroupByDriver:
    """An engine with N queries and a full window; a row a microsecond."""

    def __init__(self, n_queries: int, n_groups: int, n_rows: int, *, read: bool) -> None:
        rng = np.random.default_rng(1)
        self.engine = Engine()
        self.engine.create_stream("s", {"g": "int", "a": "float", "x": "float", "ts": "timestamp[us]"}, time="ts")
        self._constants = rng.uniform(0, 100, n_queries)
        began = time.thread_time()
        self._queries = [self.engine.submit(TEXT, params={"c": float(c)}) for c in self._constants]
        #: seconds of one submit
        self.submit_seconds = (time.thread_time() - began) / n_queries
        self._rows = n_rows
        shape = (N_BATCHES, n_rows)
        self.groups, self.values = rng.integers(0, n_groups, shape), rng.random(shape) * 100
        self.attributes = rng.uniform(0, 100, shape)
        self._clock = 0
        if read:
            self.engine.on_commit(self._listen)
        for batch in range(WINDOW // n_rows + 2):
            self.push(batch)

    def _listen(self, commit: Commit) -> None:
        commit.row_lists()

    def push(self, batch: int) -> None:
        k = batch % N_BATCHES
        times = np.arange(self._clock, self._clock + self._rows)
        self._clock += self._rows
        self.engine.push("s", {"g": self.groups[k], "a": self.attributes[k], "x": self.values[k], "ts": times})

    def check(self) -> None:
        """Some answers equal those over the window's rows; the pushes went through the batches in order, from the first."""
        n_pushes = self._clock // self._rows
        last = [k % N_BATCHES for k in range(max(0, n_pushes - WINDOW // self._rows - 2), n_pushes)]
        groups, attributes, values = (
            np.concatenate(each[last])[-WINDOW:] for each in (self.groups, self.attributes, self.values)
        )  # fmt: skip
        for query, constant in list(zip(self._queries, self._constants, strict=True))[:: max(1, len(self._queries) // 4)]:
            counted = attributes < constant
            counts = np.bincount(groups[counted])
            sums = np.bincount(groups[counted], values[counted])
            found = {row["g"]: (row["n"], row["total"]) for row in query.answer().to_pylist()}
            expected = {int(g): (int(counts[g]), float(sums[g])) for g in np.flatnonzero(counts)}
            assert found.keys() == expected.keys(), "the groups of the window"
            for group, (n, total) in expected.items():
                assert found[group][0] == n and abs(found[group][1] - total) <= 1e-9 * total, "count and sum of a group"


def _line(n_queries: int, n_groups: int, options: Options) -> list[Line]:
    drivers = {
        "read": GroupByDriver(n_queries, n_groups, options.rows, read=True),
        "unread": GroupByDriver(n_queries, n_groups, options.rows, read=False),
        "one": GroupByDriver(1, n_groups, options.rows, read=True),
    }  # fmt: skip
    for driver in drivers.values():
        driver.check()
    contestants: dict[str, Callable[[int], object]] = {name: driver.push for name, driver in drivers.items()}
    contestants["kernels"] = Shared(n_queries, n_groups=n_groups, rows=options.rows).run
    rounds = take_turns(contestants, N_BATCHES, options.seconds)
    against_one = rounds.ratio("read", "one")
    measures = {
        "rows_per_s": Measure(options.rows / rounds.median("read"), "/s"),
        "unread_rows_per_s": Measure(options.rows / rounds.median("unread"), "/s"),
        "kernel_rows_per_s": Measure(options.rows / rounds.median("kernels"), "/s"),
        "against_one": Measure(against_one, "%"),
        "submit": Measure(drivers["read"].submit_seconds * 1e6, "us"),
    }
    if options.peers and is_installed("polars"):
        measures["polars_rows_per_s"] = Measure(_polars(n_queries, drivers["one"], options.rows), "/s")
    judged = (n_queries, n_groups) == (MANY, BAR_GROUPS)
    setting = {"queries": n_queries, "groups": n_groups, "window": WINDOW}
    work = f"group-by, {n_queries:,} queries, {n_groups:,} groups"
    return [Line("group-by", work, measures, Bar.at_least(against_one, BAR, "%") if judged else None, setting)]


def _polars(n_queries: int, driver: GroupByDriver, n_rows: int) -> float:
    """Rows a second of polars: for each query and push, the groups of the window's rows that satisfy it."""
    import polars

    batches = WINDOW // n_rows
    columns = (np.concatenate(each[:batches]) for each in (driver.groups, driver.attributes, driver.values))
    frame = polars.DataFrame(dict(zip("gax", columns, strict=True)))
    asked = min(n_queries, 16)
    found = []
    for _ in range(3):
        began = time.process_time()
        plans = [
            frame.lazy().filter(polars.col("a") < 100 * (k + 1) / (asked + 1)).group_by("g").agg(polars.len(), polars.sum("x"))
            for k in range(asked)
        ]  # fmt: skip
        polars.collect_all(plans)
        found.append(time.process_time() - began)
    return n_rows / (float(np.median(found)) * n_queries / asked)


def steps(options: Options) -> list[Step]:
    shapes = [(n, groups) for groups in GROUPS for n in options.counts(COUNTS)]
    return [partial(_line, n, groups, options) for n, groups in shapes]
