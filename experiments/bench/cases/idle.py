"""Bytes an idle filter query costs, Python objects and arrays, by tracemalloc.

The queries have few different texts, so that the cache of parsed texts weighs nothing; a push of 64 rows before and after
builds what is built lazily. The queries' handles are counted: the engine keeps them too.
"""

from __future__ import annotations

import gc
import tracemalloc
from functools import partial

from experiments.bench import workloads
from experiments.bench.driver import Driver
from experiments.bench.options import Options, Step
from experiments.bench.report import Bar, Line, Measure

COUNTS = (8192,)
ROWS = 64
SHAPES = 64
#: Bytes, design 12.
BAR = 2048.0


def bytes_per_query(n_queries: int, floats: bool) -> float:
    workload = workloads.filters(n_queries, ROWS, floats=floats, n_batches=2, n_shapes=SHAPES)
    driver = Driver(workload, load=False)
    driver.push(0)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [driver.submit(query) for query in workload.queries]
        driver.push(1)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    finally:
        tracemalloc.stop()


def _run(n_queries: int, floats: bool) -> list[Line]:
    found = bytes_per_query(n_queries, floats)
    kind = "distinct float constants" if floats else "int constants"
    setting: dict[str, int | str] = {"queries": n_queries, "constants": "float" if floats else "int"}
    return [
        Line("idle", f"{n_queries:,} queries, {kind}", {"a_query": Measure(found, "B")}, Bar.at_most(found, BAR, "B"), setting)
    ]


def steps(options: Options) -> list[Step]:
    return [partial(_run, n, floats) for n in options.counts(COUNTS) for floats in (False, True)]
