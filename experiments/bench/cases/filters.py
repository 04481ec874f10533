"""Filters over five attributes, row lists out: shared constants (ints) and distinct ones (floats). See `workloads`."""

from __future__ import annotations

from functools import partial

from experiments.bench.base import workloads
from experiments.bench.base.bare import Conjunctions
from experiments.bench.base.lines import Line
from experiments.bench.base.options import Options, Step
from experiments.bench.base.peers import peers_of
from experiments.bench.cases.throughput import measure

#: 65,536 by `--queries`: loading them alone takes longer than the rest.
COUNTS = (1, 16, 128, 1024, 8192)
#: Bars: share of the bare kernels' speed by number of queries.
INT_BARS = {128: 0.45, 1024: 0.55, 8192: 0.65}
FLOAT_BARS = {128: 0.40, 1024: 0.40, 8192: 0.40}


def _run(n_queries: int, floats: bool, options: Options) -> list[Line]:
    workload = workloads.filters(n_queries, options.rows, floats=floats)
    bar = (FLOAT_BARS if floats else INT_BARS).get(n_queries)
    bare = Conjunctions(workload, options.rows)
    line = measure("floats" if floats else "filters", f"{n_queries:,} queries", workload, bare, bar, options)
    return [line, *peers_of(line, workload, options.seconds)] if options.peers else [line]


def ints(options: Options) -> list[Step]:
    return [partial(_run, n, False, options) for n in options.counts(COUNTS)]


def floats(options: Options) -> list[Step]:
    return [partial(_run, n, True, options) for n in options.counts(COUNTS)]
