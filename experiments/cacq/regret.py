"""What does a policy cost when the world changes: selectivities shift, then the query set does?

    phase 1   five queries that compare all five columns; a refuses 90 % of the rows, b 70, c 50, d 30, e 10
    phase 2   the same queries, but the values shift: now a refuses 10 %, b 30, .. and e 90
    phase 3   the values of phase 1, but other queries: e > 90; e > 90 AND d > 70; .. the paper's nested ones the other way round

Regret is the number of filters visited, as a multiple of what the best fixed order of the phase visits on the same rows (found
by trying all 120). `static` is the best order of phase 1, which a query optimiser would have kept. Visits are counted; `auto` and
`backpressure` also weigh what they have measured that filters cost, so theirs differ a little from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from eddy import Engine
from experiments.bench.base.driver import visited
from experiments.cacq.orders import Condition, best_order, visits_of
from experiments.drawing import COLOURS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, distinct, where

FILTERS = "abcde"
THRESHOLDS = (90, 70, 50, 30, 10)
POLICIES = {
    "auto": "auto", "lottery": "lottery", "backpressure": "backpressure", "random": "random",
    "static": "fixed:" + ",".join(f"filter:{name}" for name in FILTERS),
}  # fmt: skip
BATCH_ROWS = 64
#: Rows of a phase, and of one point of the picture.
PHASE_ROWS = {True: 65_536, False: 262_144}
POINTS = 32
SEEDS = {True: 3, False: 10}
#: Regret at which a policy has found its way again.
RECOVERED = 1.5
ADAPTIVE = ("auto", "lottery", "backpressure")

Batch = Mapping[str, np.ndarray]


def alike() -> list[Condition]:
    """Five queries that compare all columns, each by its own constants a little apart."""
    return [{name: bound + k / 100 for name, bound in zip(FILTERS, THRESHOLDS)} for k in range(5)]


def nested() -> list[Condition]:
    """Five nested queries, the last column first."""
    return [dict(zip(FILTERS[::-1][: k + 1], THRESHOLDS)) for k in range(5)]


def batch_of(phase: int, rng: np.random.Generator) -> Batch:
    """Rows of a phase: in the second, every column refuses what its mirror image refused in the first."""
    if phase != 2:
        return {name: rng.uniform(0, 100, BATCH_ROWS) for name in FILTERS}
    lows = [bound - refused for bound, refused in zip(THRESHOLDS, THRESHOLDS[::-1])]
    return {name: rng.uniform(low, low + 100, BATCH_ROWS) for name, low in zip(FILTERS, lows)}


def _submit(engine: Engine, queries: Sequence[Condition], name: str) -> list[str]:
    for k, query in enumerate(queries):
        condition = " AND ".join(f"{column} > {value}" for column, value in query.items())
        engine.submit(f"SELECT a FROM s WHERE {condition}", name=f"{name}{k}")
    return [f"{name}{k}" for k in range(len(queries))]


def run(policy: str, phase_rows: int, seed: int) -> list[tuple[int, int, float, float]]:
    """(phase, row, visits a row, visits a row of the best fixed order) for each point."""
    engine = Engine(policy=POLICIES[policy], batch_rows=BATCH_ROWS, seed=seed)
    engine.create_stream("s", dict.fromkeys(FILTERS, "float"))
    rng = np.random.default_rng(seed)
    point_rows = phase_rows // POINTS
    found = []
    queries = alike()
    names = _submit(engine, queries, "first")

    for phase in (1, 2, 3):
        if phase == 3:
            queries = nested()
            # newcomers first: a filter that nobody needs would be forgotten
            _submit(engine, queries, "second")
            for name in names:
                engine.cancel(name)
        # known from rows of its own, so that it owes nothing to chance
        order = best_order(_joined([batch_of(phase, np.random.default_rng([seed, n])) for n in range(64)]), queries, FILTERS)
        for point in range(POINTS):
            batches = [batch_of(phase, rng) for _ in range(point_rows // BATCH_ROWS)]
            visits, counted = visited(engine, "s")
            for batch in batches:
                engine.push("s", batch)
            now, counted_now = visited(engine, "s")
            best = visits_of(_joined(batches), queries, order)
            row = (phase - 1) * phase_rows + (point + 1) * point_rows
            found.append((phase, row, (now - visits) / (counted_now - counted), best))
    return found


def _joined(batches: Sequence[Batch]) -> Batch:
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def _step(policy: str, setting: Setting) -> list[Row]:
    phase_rows, n_seeds = PHASE_ROWS[setting.quick], SEEDS[setting.quick]
    runs = [run(policy, phase_rows, seed) for seed in range(setting.seed, setting.seed + n_seeds)]
    rows: list[Row] = []
    for points in zip(*runs):
        phase, row, _, _ = points[0]
        visits, best = (float(np.mean([point[k] for point in points])) for k in (2, 3))
        rows.append(
            {"policy": policy, "phase": phase, "row": row, "visits_per_row": visits, "best_per_row": best,
             "regret": visits / best,
             "batch_rows": BATCH_ROWS, "phase_rows": phase_rows, "queries": 5, "seed": setting.seed, "seeds": n_seeds}
        )  # fmt: skip
    return rows


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_step, policy, setting) for policy in POLICIES]


def regret_of(rows: Sequence[Row], policy: str, phase: int | None = None) -> float:
    """Visits of a policy against those of the best orders, over a phase or all."""
    found = where(rows, policy=policy) if phase is None else where(rows, policy=policy, phase=phase)
    return sum(float(r["visits_per_row"]) for r in found) / sum(float(r["best_per_row"]) for r in found)


def rows_to_recover(rows: Sequence[Row], policy: str, phase: int, bar: float) -> float:
    """Rows of a phase after which the regret stays within a bar; infinity if it never does."""
    found = where(rows, policy=policy, phase=phase)
    start = float(found[0]["phase_rows"]) * (phase - 1)
    late = [float(row["row"]) - start for row in found if float(row["regret"]) > bar]
    end = float(found[-1]["row"]) - start
    return 0.0 if not late else float("inf") if late[-1] == end else late[-1]


def judge(rows: Sequence[Row]) -> Verdict:
    overall = {policy: regret_of(rows, str(policy)) for policy in distinct(rows, "policy")}
    static = max(regret_of(rows, "static", 2), regret_of(rows, "static", 3))
    checks = [
        Check.at_most("static keeps the best order of phase 1: its regret there", regret_of(rows, "static", 1), 1.05),
        Check.at_least("static when the world has changed, the worse phase", static, 1.5),
        *(Check.at_most(f"{policy}: regret over all phases", overall[policy], 1.4) for policy in ADAPTIVE),
        Check.at_least("random: regret over all phases", overall["random"], 1.5),
    ]
    phase_rows = float(rows[0]["phase_rows"])
    for policy in ADAPTIVE:
        slowest = max(rows_to_recover(rows, policy, phase, RECOVERED) for phase in (2, 3))
        checks.append(
            Check.at_most(f"{policy}: rows after a shift until its regret stays below {RECOVERED:g}", slowest, phase_rows * 0.75)
        )
    return Verdict(
        tuple(checks),
        "auto looks at samples every 509 batches once it knows the stream, which saves time where nothing changes and "
        "costs rows where something does; the lottery forgets half of its tickets in some 700 rows and follows "
        "sooner, but keeps trying bad orders.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.add_subplot()
    for k, policy in enumerate(distinct(rows, "policy")):
        found = where(rows, policy=policy)
        label = "static: best order of phase 1" if policy == "static" else str(policy)
        axes.plot(
            [float(row["row"]) / 1000 for row in found], [float(row["regret"]) for row in found], color=COLOURS[k], label=label
        )
    phase_rows = float(rows[0]["phase_rows"]) / 1000
    for phase, text in enumerate(("five queries, all columns", "the values have shifted", "the queries have changed")):
        if phase:
            axes.axvline(phase * phase_rows, color="black", linewidth=0.8, linestyle=":")
        axes.annotate(text, ((phase + 0.5) * phase_rows, 1.0), xycoords=("data", "axes fraction"), xytext=(0, -12),
                      textcoords="offset points", ha="center", fontsize=9)  # fmt: skip
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_ylim(bottom=0.9, top=1.12 * max(float(row["regret"]) for row in rows))
    axes.set_xlabel("rows, thousands")
    axes.set_ylabel("visits, as a multiple of the best fixed order's")
    axes.legend(loc="center left", fontsize=9, bbox_to_anchor=(1.0, 0.5))


EXPERIMENT = Experiment(
    name="regret",
    question="What does each policy cost when selectivities and queries shift?",
    figure="CACQ, adapting to changing workloads; regret: visits against those of the best fixed order",
    expected="what adapts comes back to the best order after each shift; a fixed order does not",
    parameters=(
        Parameter("queries", "five over all columns, thresholds 90, 70, 50, 30, 10; in phase 3 five nested ones"),
        Parameter("phase", f"{PHASE_ROWS[False]:,} rows, quick {PHASE_ROWS[True]:,}"),
        Parameter("rows a route", str(BATCH_ROWS)),
        Parameter("seeds", f"{SEEDS[False]}, quick {SEEDS[True]}; the mean is shown"),
    ),
    columns={
        "policy": "routing policy", "phase": "1 to 3", "row": "rows so far",
        "visits_per_row": "filters that a row visited on average",
        "best_per_row": "the same for the best fixed order of the phase", "regret": "the first as a multiple of the second",
        "batch_rows": "rows that one route serves", "phase_rows": "rows of a phase", "queries": "number of queries",
        "seed": "the first", "seeds": "how many",
    },
    steps=steps, judge=judge, draw=draw,
    caption="How many times as many filters are visited as by the best fixed order of the moment; 1 is best. At the "
    "dotted lines first the values of the rows change, then the queries.",
    by="counts; auto and backpressure also weigh measured costs",
    size=(10.0, 4.5),
)  # fmt: skip
