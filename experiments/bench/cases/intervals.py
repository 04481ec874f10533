"""10,000 ranges of one price, as users of other engines ask for: bounds at random, and ranges .1 % wide.

Random bounds give a third of all (row, query) pairs; narrow ranges give ten queries a row.
"""

from __future__ import annotations

from functools import partial

from experiments.bench.base import workloads
from experiments.bench.base.bare import RangeQueries
from experiments.bench.base.lines import Line
from experiments.bench.base.options import Options, Step
from experiments.bench.cases.throughput import measure

COUNTS = (10_000,)
#: Width of the narrow ranges; values lie in [0, 100).
NARROW = 0.1


def _run(n_queries: int, width: float | None, options: Options) -> list[Line]:
    workload = workloads.intervals(n_queries, options.rows, width=width)
    work = f"{n_queries:,} {'random' if width is None else 'narrow'} ranges"
    return [measure("intervals", work, workload, RangeQueries(workload, options.rows, narrow=width is not None), None, options)]


def steps(options: Options) -> list[Step]:
    return [partial(_run, n, width, options) for n in options.counts(COUNTS) for width in (None, NARROW)]
