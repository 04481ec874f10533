"""The price and the quality of routing.

Price: share of the commits' time spent choosing routes, at 4096 and 512 rows a push. Quality: visits of rows to filters
under CACQ's five nested queries (a > 90; a > 90 and b > 70; ...), as a multiple of the best fixed order's, after the
policy has had a third of the batches to learn. Visits are counted where rows are routed one by one: all rows under the
paper's policies, samples of large batches under `auto`.
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from experiments.bench.base import workloads
from experiments.bench.base.driver import EngineDriver
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.base.timing import take_turns
from experiments.bench.base.workloads import DOMAIN

COUNTS = (128, 1024)
#: Bars: share of the time by rows a push.
SHARE_BARS = {4096: 0.01, 512: 0.05}
#: Bar: visits of the lottery as a multiple of the best fixed order's.
VISITS_BAR = 1.25
#: Pushes before the share is measured: samples come often at first.
WARM_UP = 400
#: Rows a push -> pushes.
BATCHES = {64: 1500, 4096: 1500}


def _share(n_queries: int, n_rows: int, options: Options) -> list[Line]:
    workload = workloads.filters(n_queries, n_rows)
    driver = EngineDriver(workload)
    for i in range(WARM_UP):
        driver.push(i % len(workload.batches))
    before = driver.routing()
    take_turns({"engine": driver.push}, len(workload.batches), options.seconds / 2)
    share = driver.routing_share(before)
    bar = Bar.at_most(share, SHARE_BARS[n_rows], "%")
    work = f"share of time, {n_rows:,} rows, {n_queries:,} queries"
    return [Line("routing", work, {"share": Measure(share, "%")}, bar, {"queries": n_queries, "rows": n_rows})]


def module_of(names: list[str], column: str) -> str:
    """The name of the module that filters a column."""
    return next(name for name in names if re.split(r"\W+", name.strip())[-1] == column)


def visits_per_row(policy: str, n_rows: int, n_batches: int) -> float:
    """Filters a row visits on average in the last two thirds of the batches. `fixed` is the best order."""
    workload, thresholds = workloads.nested()
    if policy == "fixed":
        names = list(EngineDriver(workload).engine.stats()["modules"])
        policy = "fixed:" + ",".join(module_of(names, column) for column in thresholds)
    driver = EngineDriver(workload, policy=policy, batch_rows=n_rows)
    rng = np.random.default_rng(1)
    return driver.visits_per_row(lambda: {column: rng.integers(0, DOMAIN, n_rows) for column in thresholds}, n_batches)


def _visits(n_rows: int, n_batches: int) -> list[Line]:
    best = visits_per_row("fixed", n_rows, n_batches)
    lines = []
    for policy in ("fixed", "lottery", "auto", "random"):
        found = best if policy == "fixed" else visits_per_row(policy, n_rows, n_batches)
        measures = {"visits_per_row": Measure(found, ""), "times_best": Measure(found / best, "x")}
        bar = Bar.at_most(found / best, VISITS_BAR, "x") if policy == "lottery" else None
        work = f"five nested queries, {n_rows:,} rows, {'best order' if policy == 'fixed' else policy}"
        lines.append(Line("routing", work, measures, bar, {"rows": n_rows, "policy": policy}))
    return lines


def steps(options: Options) -> list[Step]:
    found: list[Step] = [partial(_share, n, rows, options) for n in options.counts(COUNTS) for rows in SHARE_BARS]
    return found + [partial(_visits, rows, n_batches) for rows, n_batches in BATCHES.items()]
