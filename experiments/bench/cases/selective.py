"""`id = c AND x BETWEEN lo AND hi` on 10,000 ids: few rows match few queries, so no bit matrix should be touched."""

from __future__ import annotations

from functools import partial

from experiments.bench.base import workloads
from experiments.bench.base.bare import Candidates
from experiments.bench.base.lines import Line
from experiments.bench.base.options import Options, Step
from experiments.bench.cases.throughput import measure

COUNTS = (1024, 8192)
#: Bar: share of the bare kernels' speed.
BARS = {8192: 0.60}


def _run(n_queries: int, options: Options) -> list[Line]:
    workload = workloads.selective(n_queries, options.rows)
    bare = Candidates(workload, options.rows)
    return [measure("selective", f"{n_queries:,} queries", workload, bare, BARS.get(n_queries), options)]


def steps(options: Options) -> list[Step]:
    return [partial(_run, n, options) for n in options.counts(COUNTS)]
