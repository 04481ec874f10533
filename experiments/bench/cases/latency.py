"""Pushes of 1, 16, 256 and 4096 rows with a listener: wall time of single pushes, median and 99th percentile."""

from __future__ import annotations

from functools import partial

from experiments.bench.base import workloads
from experiments.bench.base.driver import EngineDriver
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.machine import Machine
from experiments.bench.base.options import Options, Step
from experiments.bench.base.timing import time_calls
from experiments.bench.base.workloads import STREAM, Batch

COUNTS = (128, 1024, 8192)
ROWS = (1, 16, 256, 4096)
#: Bars: microseconds of a push by (queries, rows).
BARS = {(128, 1): 25.0, (128, 16): 30.0}
_MAX_PIECES = 1024
_MAX_CALLS = 20_000


def pieces(batches: list[Batch], n_rows: int) -> list[Batch]:
    """Different batches of `n_rows` cut from larger ones."""
    found: list[Batch] = []
    for batch in batches:
        size = len(next(iter(batch.values())))
        for start in range(0, size - n_rows + 1, n_rows):
            found.append({name: values[start : start + n_rows].copy() for name, values in batch.items()})
            if len(found) == _MAX_PIECES:
                return found
    return found


def _run(n_queries: int, options: Options) -> list[Line]:
    workload = workloads.filters(n_queries, max(ROWS))
    driver = EngineDriver(workload)
    machine = Machine()
    lines = []
    for n_rows in ROWS:
        batches = pieces(workload.batches, n_rows)

        def push(i: int, batches: list[Batch] = batches) -> None:
            driver.engine.push(STREAM, batches[i % len(batches)])

        found = time_calls(push, _MAX_CALLS, options.seconds / 2, machine.look)
        bar = BARS.get((n_queries, n_rows))
        measures = {
            "median": Measure(found.median_us, "us"),
            "p99": Measure(found.p99_us, "us"),
            "rows_per_s": Measure(n_rows / found.median_us * 1e6, "/s"),
            "machine": Measure(machine.slowness, "x"),
        }
        work = f"{n_rows:,} rows, {n_queries:,} queries"
        verdict = None if bar is None else Bar.at_most(found.median_us, bar, "us")
        lines.append(Line("latency", work, measures, verdict, {"queries": n_queries, "rows": n_rows}))
    return lines


def steps(options: Options) -> list[Step]:
    return [partial(_run, n, options) for n in options.counts(COUNTS)]
