"""Submit and cancel while many queries run: the engine's part, with the text's parse cached, and what follows.

Each round submits a query, pushes 32 rows twice, cancels it and pushes twice again, in CPU time of the thread. What
the first push pays more than the second of the same rows is the part of the change that was put off, so the bar counts it in:

    whole = call + max(0, first push - second push)

Each query goes three rounds. The bar is for all of them; `undisturbed` is the least of the three, without what neighbours took.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from experiments.bench.base import workloads
from experiments.bench.base.driver import EngineDriver
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.machine import Machine
from experiments.bench.base.options import Options, Step
from experiments.bench.base.timing import spread
from experiments.bench.base.workloads import STREAM
from experiments.bench.cases.latency import pieces

COUNTS = (8192,)
ROWS = 32
CHANGES = 400
REPEATS = 3
#: Different texts: few enough that every parse is cached.
SHAPES = 64
#: Bar: microseconds at the 99th percentile for a submit and for a cancel.
BAR = 300.0


def measure_changes(n_queries: int, floats: bool, n_changes: int) -> list[Line]:
    """A line for submits and one for cancels."""
    workload = workloads.filters(n_queries, 4096, floats=floats, n_batches=4, n_shapes=SHAPES)
    driver = EngineDriver(workload)
    batches = pieces(workload.batches, ROWS)
    newcomers = workloads.filters(n_changes, 1, seed=11, floats=floats, n_batches=1, n_shapes=SHAPES).queries
    clock = time.thread_time
    machine = Machine()
    #: for each query, the seconds of its calls and what the first push after each pays more
    seen: dict[str, list[list[tuple[float, float]]]] = {"submit": [], "cancel": []}
    for i, query in enumerate(newcomers):
        if not i % 20:
            machine.look()
        rows = batches[i % len(batches)]
        text, params = workloads.sql(query)
        for rounds in seen.values():
            rounds.append([])
        for _ in range(REPEATS):
            submitted: Any = None
            for name, rounds in seen.items():
                start = clock()
                if name == "submit":
                    submitted = driver.engine.submit(text, params=params)
                else:
                    driver.engine.cancel(submitted)
                called = clock()
                driver.engine.push(STREAM, rows)
                first = clock()
                driver.engine.push(STREAM, rows)
                second = clock()
                rounds[-1].append((called - start, (first - called) - (second - first)))
    lines = []
    for name, rounds in seen.items():
        wholes = [[call + max(0.0, later) for call, later in found] for found in rounds]
        call = spread([call for found in rounds for call, _ in found])
        extra = spread([later for found in rounds for _, later in found])
        whole = spread([seconds for found in wholes for seconds in found])
        measures = {
            "median": Measure(call.median_us, "us"),
            "p99": Measure(call.p99_us, "us"),
            "next_push_pays": Measure(extra.median_us, "us"),
            "whole_p99": Measure(whole.p99_us, "us"),
            "undisturbed_p99": Measure(spread([min(found) for found in wholes]).p99_us, "us"),
            "machine": Measure(machine.slowness, "x"),
        }
        work = f"{name} at {n_queries:,} queries, {'float' if floats else 'int'} constants"
        setting = {"queries": n_queries, "constants": "float" if floats else "int"}
        lines.append(Line("churn", work, measures, Bar.at_most(whole.p99_us, BAR, "us"), setting))
    return lines


def steps(options: Options) -> list[Step]:
    return [partial(measure_changes, n, floats, CHANGES) for n in options.counts(COUNTS) for floats in (False, True)]
