"""How many filters does a row visit under each routing policy, on the paper's five nested queries?

    a > 90      a > 90 AND b > 70      ... AND c > 50      ... AND d > 30      ... AND e > 10

Values are uniform in [0, 100), so the best order a, b, c, d, e visits 1 + .1 + .1 * .3 + .1 * .3 * .5 + .1 * .3 * .5 * .7 =
1.1555 filters a row. The worst order visits all five. Visits are counted, no time is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.bench.base import workloads
from experiments.bench.base.driver import EngineDriver
from experiments.bench.base.workloads import DOMAIN
from experiments.drawing import COLOURS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, one, where

BEST = 1.1555
#: Name in the CSV -> policy of the engine.
POLICIES = {
    "optimal": "fixed:filter:a,filter:b,filter:c,filter:d,filter:e",
    "greedy": "greedy",
    "lottery": "lottery",
    "backpressure": "backpressure",
    "random": "random",
    "worst": "fixed:filter:e,filter:d,filter:c,filter:b,filter:a",
}
#: Rows that one route serves: 1 is the paper's eddy.
BATCHES = (1, 64)
SEEDS = 5
ROWS = {True: 20_000, False: 200_000}


def visits(policy: str, batch_rows: int, n_rows: int, seed: int) -> float:
    """Filters a row visits on average, after a third of the rows went by to learn from."""
    workload, thresholds = workloads.nested()
    workload = workloads.Workload(dict.fromkeys(workload.columns, "float"), workload.queries, [])
    driver = EngineDriver(workload, policy=policy, batch_rows=batch_rows, seed=seed)
    rng = np.random.default_rng(seed)
    return driver.visits_per_row(
        lambda: {name: rng.uniform(0, DOMAIN, batch_rows) for name in thresholds}, n_rows // batch_rows
    )  # fmt: skip


def _step(name: str, batch_rows: int, setting: Setting) -> list[Row]:
    n_rows = ROWS[setting.quick]
    return [
        {"policy": name, "batch_rows": batch_rows, "queries": 5, "rows": n_rows, "seed": seed,
         "visits_per_row": visits(POLICIES[name], batch_rows, n_rows, seed)}
        for seed in range(setting.seed, setting.seed + SEEDS)
    ]  # fmt: skip


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_step, name, batch_rows, setting) for batch_rows in BATCHES for name in POLICIES]


def means(rows: Sequence[Row]) -> list[Row]:
    """One row a policy and batch size, the mean over seeds."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        found.setdefault((str(row["policy"]), int(row["batch_rows"])), []).append(float(row["visits_per_row"]))
    return [{"policy": p, "batch_rows": b, "visits_per_row": float(np.mean(values))} for (p, b), values in found.items()]


def judge(rows: Sequence[Row]) -> Verdict:
    mean = means(rows)
    checks = []
    for batch_rows in sorted({int(row["batch_rows"]) for row in mean}):
        at = {name: one(mean, "visits_per_row", policy=name, batch_rows=batch_rows) for name in POLICIES}
        suffix = f", {batch_rows} row{'s' * (batch_rows > 1)} a route"
        checks += [
            Check.within(f"the best order visits what arithmetic says{suffix}", at["optimal"] / BEST, 0.98, 1.02),
            Check.within(f"greedy against the best order{suffix}", at["greedy"] / at["optimal"], 0.98, 1.10),
            Check(
                f"lottery is above the best order{suffix}",
                at["lottery"] / at["optimal"],
                "above 1",
                at["lottery"] > at["optimal"],
            ),
            Check.at_most(f"filters a row under lottery{suffix}", at["lottery"], 1.45),
            Check.at_least(f"random against lottery{suffix}", at["random"] / at["lottery"], 1.7),
            Check.within(f"filters a row under random{suffix}", at["random"], 2.5, 2.75),
            Check.within(f"filters a row in the worst order{suffix}", at["worst"], 4.99, 5.0),
        ]
    return Verdict(tuple(checks))


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.add_subplot()
    mean = means(rows)
    names = list(POLICIES)
    sizes = sorted({int(row["batch_rows"]) for row in mean})
    for k, batch_rows in enumerate(sizes):
        found = where(mean, batch_rows=batch_rows)
        values = [one(found, "visits_per_row", policy=name) for name in names]
        places = np.arange(len(names)) + (k - (len(sizes) - 1) / 2) * 0.38
        label = "a route for every row, as in the paper" if batch_rows == 1 else f"a route for {batch_rows} rows"
        bars = axes.bar(places, values, 0.36, color=COLOURS[k], label=label)
        axes.bar_label(bars, fmt="%.2f", padding=2)
    axes.axhline(BEST, color="black", linewidth=1, linestyle=":", label=f"the least that any order reaches, {BEST:.2f}")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("filters visited a row (fewer is better)")
    axes.set_ylim(0, 5.6)
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper left")


EXPERIMENT = Experiment(
    name="routing",
    question="How many filters does a row visit under each routing policy?",
    figure="CACQ, routing policies: comparison of routing schemes, five fixed queries",
    expected="optimal 1.16, tickets close to it, random more than twice as many, the worst order all five",
    parameters=(
        Parameter("queries", "a > 90; and b > 70; and c > 50; and d > 30; and e > 10"),
        Parameter("values", "uniform in [0, 100)"),
        Parameter("rows", f"{ROWS[False]:,} a policy, quick {ROWS[True]:,}; the paper ran for a minute"),
        Parameter("rows a route", "1 as in the paper, and 64", ours=False),
        Parameter("seeds", f"{SEEDS}, the mean is shown"),
    ),
    columns={
        "policy": "routing policy", "batch_rows": "rows that one route serves", "queries": "number of queries",
        "rows": "rows pushed; the last two thirds count", "seed": "of rows and policy",
        "visits_per_row": "filters that a row visited on average",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Each bar is the number of filters that an average row visits before its fate is known for all five "
    "queries. The dotted line is the least that any order of filters can reach.",
    by="counts; greedy and backpressure also weigh measured costs",
)  # fmt: skip
