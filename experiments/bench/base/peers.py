"""The alternatives of a user: the same filters by polars, numpy and plain Python, row lists out.

Rows per CPU-second of the process with one thread, on batches of 4,096 and 65,536 rows; the engine's figure is at its own
batch size. We aim to be ahead from 16 queries up and five times ahead from 128 up.
"""

from __future__ import annotations

import importlib.util
import operator
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.workloads import Batch, Workload

# polars reads this when first imported: one core each
os.environ.setdefault("POLARS_MAX_THREADS", "1")

ROWS = (4096, 65_536)
#: (row, query) pairs a batch of the Python loop tests.
_PYTHON_PAIRS = 400_000
_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}

RowListsOf = Callable[[Batch], list[Any]]


def numpy_lists(workload: Workload) -> RowListsOf:
    """A loop of comparisons, one query after the other."""

    def run(batch: Batch) -> list[Any]:
        n_rows = len(next(iter(batch.values())))
        found: list[Any] = []
        for query in workload.queries:
            keep: Any = None
            for c in query:
                true = _OPS[c.op](batch[c.column], c.constant)
                keep = true if keep is None else np.logical_and(keep, true, out=keep)
            found.append(np.arange(n_rows) if keep is None else np.flatnonzero(keep))
        return found

    return run


def python_lists(workload: Workload) -> RowListsOf:
    """A loop over rows and rules."""
    names = list(workload.columns)
    rules = [[(names.index(c.column), _OPS[c.op], c.constant) for c in query] for query in workload.queries]

    def run(batch: Batch) -> list[Any]:
        found: list[Any] = [[] for _ in rules]
        for i, row in enumerate(zip(*(batch[name].tolist() for name in names))):
            for rows, rule in zip(found, rules):
                for column, test, constant in rule:
                    if not test(row[column], constant):
                        break
                else:
                    rows.append(i)
        return found

    return run


def is_installed(module: str) -> bool:
    """Whether a peer is there: they come with the tools of development only."""
    return importlib.util.find_spec(module) is not None


def polars_lists(workload: Workload) -> RowListsOf | None:
    """One collect of all filters; None when polars is not installed."""
    if not is_installed("polars"):
        return None
    import polars

    wanted = []
    for q, query in enumerate(workload.queries):
        keep = polars.lit(True)
        for c in query:
            keep = keep & _OPS[c.op](polars.col(c.column), c.constant)
        if not query:
            keep = polars.col(next(iter(workload.columns))).is_not_null()
        wanted.append(polars.arg_where(keep).implode().alias(str(q)))

    def run(batch: Batch) -> list[Any]:
        found = polars.DataFrame(batch).lazy().select(wanted).collect()
        return [found[str(q)][0] for q in range(len(wanted))]

    return run


def _seconds_per_row(run: RowListsOf, batches: list[Batch], seconds: float) -> float:
    clock = time.process_time
    run(batches[0])
    found: list[float] = []
    until = time.perf_counter() + seconds
    while len(found) < 3 or time.perf_counter() < until:
        batch = batches[(len(found) + 1) % len(batches)]
        start = clock()
        run(batch)
        found.append((clock() - start) / len(next(iter(batch.values()))))
    return float(np.median(found))


def _joined(batches: list[Batch], n_rows: int) -> list[Batch]:
    """The same rows in batches of about `n_rows`."""
    whole = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    n_whole = len(next(iter(whole.values())))
    size = min(n_rows, n_whole)
    return [
        {name: values[start : start + size] for name, values in whole.items()} for start in range(0, n_whole - size + 1, size)
    ]


def peers_of(engine: Line, workload: Workload, seconds: float) -> list[Line]:
    """A line for every peer and batch size, compared with the engine's line on the same workload."""
    contestants: dict[str, RowListsOf | None] = {
        "polars": polars_lists(workload),
        "numpy": numpy_lists(workload),
        "python": python_lists(workload),
    }
    aim = 5.0 if workload.n_queries >= 128 else 1.0 if workload.n_queries >= 16 else None
    lines = []
    for name, run in contestants.items():
        work = f"{workload.n_queries:,} queries, {name}"
        if run is None:
            lines.append(Line(engine.case, f"{work} is not installed", {}))
            continue
        # a Python loop does not care, and would take minutes
        for n_rows in ROWS if name != "python" else (max(16, _PYTHON_PAIRS // workload.n_queries),):
            per_row = _seconds_per_row(run, _joined(workload.batches, n_rows), seconds / 2)
            ahead = per_row * engine.measures["rows_per_s"].value
            measures = {"rows_per_s": Measure(1 / per_row, "/s"), "engine_ahead": Measure(ahead, "x")}
            setting: dict[str, int | str] = {"queries": workload.n_queries, "rows": n_rows, "peer": name}
            bar = None if aim is None else Bar.at_least(ahead, aim, "x")
            lines.append(Line(engine.case, f"{work}, {n_rows:,} rows", measures, bar, setting))
    return lines
