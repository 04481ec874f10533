"""Bytes that idle queries cost: filter queries by the query, and a group-by that runs for long while nobody reads it.

Filter queries: Python objects and arrays, by tracemalloc. The queries have few different texts, so that the cache of parsed texts
weighs nothing; a push of 64 rows before and after builds what is built lazily. The queries' handles are counted: the engine
keeps them too.

Group-by: 24 groups in a window of a minute at 100 rows a second, by what the engine says that it holds, rows and log included,
and by tracemalloc, which counts whole pages of rows.
"""

from __future__ import annotations

import gc
import tracemalloc
from functools import partial

import numpy as np

from eddy import Engine
from experiments.bench.base import workloads
from experiments.bench.base.driver import EngineDriver
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step

COUNTS = (8192,)
ROWS = 64
SHAPES = 64
#: Bar, in bytes.
BAR = 2048.0

GROUPS = 24
#: Pushes, and rows of each: 45 minutes, and as many pushes as there are in 4.5 minutes of single rows.
PUSHES = ((2700, 100), (27_000, 1))
#: Bytes of a group-by that nobody reads.
GROUP_BY_BAR = 1e6


def bytes_per_query(n_queries: int, floats: bool) -> float:
    workload = workloads.filters(n_queries, ROWS, floats=floats, n_batches=2, n_shapes=SHAPES)
    driver = EngineDriver(workload, load=False)
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
    setting = {"queries": n_queries, "constants": "float" if floats else "int"}
    return [
        Line("idle", f"{n_queries:,} queries, {kind}", {"a_query": Measure(found, "B")}, Bar.at_most(found, BAR, "B"), setting)
    ]


def group_by_bytes(n_pushes: int, n_rows: int) -> tuple[int, int]:
    """Bytes of the engine after so many pushes, by its own account and by tracemalloc."""
    engine = Engine()
    engine.create_stream("s", {"k": "int", "v": "float", "ts": "timestamp"}, time="ts")
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        engine.submit("SELECT k, COUNT(*) AS n, AVG(v) AS mean FROM s [RANGE 1 MINUTE] GROUP BY k")
        rng = np.random.default_rng(0)
        for push in range(n_pushes):
            numbers = np.arange(push * n_rows, (push + 1) * n_rows)
            engine.push("s", {"k": numbers % GROUPS, "v": rng.random(n_rows), "ts": numbers * 10})
        gc.collect()
        traced = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    log = engine.stats()["timelines"]["main"]["log"]["bytes"]
    return int(engine.totals()["bytes"] + log), traced


def _run_group_by(n_pushes: int, n_rows: int) -> list[Line]:
    held, traced = group_by_bytes(n_pushes, n_rows)
    measures = {"held": Measure(held, "B"), "traced": Measure(traced, "B")}
    setting = {"groups": GROUPS, "pushes": n_pushes, "rows": n_rows}
    name = f"group-by nobody reads, {GROUPS} groups, {n_pushes:,} pushes of {n_rows}"
    return [Line("idle", name, measures, Bar.at_most(held, GROUP_BY_BAR, "B"), setting)]


def steps(options: Options) -> list[Step]:
    filters: list[Step] = [partial(_run, n, floats) for n in options.counts(COUNTS) for floats in (False, True)]
    return filters + [partial(_run_group_by, n_pushes, n_rows) for n_pushes, n_rows in PUSHES]
