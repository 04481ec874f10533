"""Who holds the tickets while queries come: does a new filter find its place, and is that place the right one?

Five stages; at the beginning of each something new is asked, and one filter more is needed:

    selectivity   stage k submits a query over the first k filters, and those before it get the new comparison too; the filters
                  refuse 10, 30, 50, 70, 90 % of the rows, the last to come the most
    predicates    stage k submits 6 - k queries that compare the k-th filter alone; all refuse half of the rows
    both          four queries over a (refuses 90 %) and then b (50 %), one query over c (90 %) and then d (50 %)
    apart         stage k submits one query that compares the k-th filter alone, refusing 10 .. 90 %: not in the verdict

A filter earns tickets for rows that leave the eddy with it (semantics 31). Where every query has a filter of its own, as in
`apart`, every row has to visit all filters and only the last visited can take it out: no order is better than another, and
tickets show none. That is why the first workload lets its queries share their filters.

Time is counted in rows: the paper's seconds have no meaning here. Shares are means over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from eddy import Engine
from experiments.drawing import COLOURS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, where

FILTERS = "abcde"
BATCH_ROWS = 64
#: Rows between two looks at the tickets, and of a stage.
EVERY = 512
STAGE_ROWS = {True: 8_192, False: 32_768}
SEEDS = {True: 20, False: 50}
#: Rows within which a new filter has to have found its share, and how near to it.
SETTLED_ROWS = 4_096
NEAR = 0.1

Change = Callable[[Engine], None]


def _compare(thresholds: dict[str, float], also: str = "") -> str:
    return "SELECT a FROM s WHERE " + " AND ".join(f"{name} > {value}" for name, value in thresholds.items()) + also


def _selectivity() -> list[Change]:
    refused = dict(zip(FILTERS, (10.0, 30.0, 50.0, 70.0, 90.0)))

    def stage(k: int, engine: Engine) -> None:
        first = {name: refused[name] for name in FILTERS[: k + 1]}
        for number, query in enumerate(engine.queries.values()):
            engine.replace(query, _compare(first, f" AND a < {200 + number}"))
        # the bound that all rows are below tells the queries apart: else they would be one
        engine.submit(_compare(first, f" AND a < {200 + k}"))

    return [partial(stage, k) for k in range(5)]


def _predicates() -> list[Change]:
    def stage(k: int, engine: Engine) -> None:
        for i in range(5 - k):
            engine.submit(_compare({FILTERS[k]: 50 + i / 100}))

    return [partial(stage, k) for k in range(5)]


def _both() -> list[Change]:
    def ask(thresholds: dict[str, float], n_queries: int, engine: Engine) -> None:
        prefix = next(iter(thresholds))
        for i in range(n_queries):
            sql = _compare(thresholds, f" AND {prefix} < {200 + i}")
            if f"{prefix}{i}" in engine.queries:
                engine.replace(f"{prefix}{i}", sql)
            else:
                engine.submit(sql, name=f"{prefix}{i}")

    asked: list[tuple[dict[str, float], int]] = [
        ({"a": 90}, 4), ({"a": 90, "b": 50}, 4), ({"c": 90}, 1), ({"c": 90, "d": 50}, 1),
    ]  # fmt: skip
    return [partial(ask, thresholds, n) for thresholds, n in asked]


def _apart() -> list[Change]:
    def stage(k: int, engine: Engine) -> None:
        engine.submit(_compare({FILTERS[k]: (10, 30, 50, 70, 90)[k]}))

    return [partial(stage, k) for k in range(5)]


WORKLOADS: dict[str, Callable[[], list[Change]]] = {
    "selectivity": _selectivity,
    "predicates": _predicates,
    "both": _both,
    "apart": _apart,
}


def shares(workload: str, stage_rows: int, every: int, seed: int) -> list[dict[str, float]]:
    """The share of tickets of each filter that there is, at the beginning of each stage and then every so many rows."""
    engine = Engine(policy="lottery", batch_rows=BATCH_ROWS, seed=seed)
    engine.create_stream("s", dict.fromkeys(FILTERS, "float"))
    rng = np.random.default_rng(seed)
    found = []

    def look() -> None:
        tickets = {name.rpartition(".")[2]: module["tickets"] for name, module in engine.stats()["modules"].items()}
        total = sum(tickets.values())
        found.append({name: held / total for name, held in tickets.items()})

    for change in WORKLOADS[workload]():
        change(engine)
        look()
        for n in range(BATCH_ROWS, stage_rows + 1, BATCH_ROWS):
            engine.push("s", {name: rng.uniform(0, 100, BATCH_ROWS) for name in FILTERS})
            if n % every == 0:
                look()
    return found


def _step(workload: str, setting: Setting) -> list[Row]:
    stage_rows, n_seeds = STAGE_ROWS[setting.quick], SEEDS[setting.quick]
    looks = stage_rows // EVERY + 1
    runs = [shares(workload, stage_rows, EVERY, seed) for seed in range(setting.seed, setting.seed + n_seeds)]
    rows: list[Row] = []
    for n in range(len(runs[0])):
        stage, look = divmod(n, looks)
        for name in runs[0][n]:
            held = [run[n][name] for run in runs]
            rows.append(
                {"workload": workload, "stage": stage + 1, "filter": name, "stage_row": look * EVERY,
                 "row": stage * stage_rows + look * EVERY, "share": float(np.mean(held)), "deviation": float(np.std(held)),
                 "batch_rows": BATCH_ROWS, "stage_rows": stage_rows, "seed": setting.seed, "seeds": n_seeds}
            )  # fmt: skip
    return rows


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_step, workload, setting) for workload in WORKLOADS]


def settled_shares(rows: Sequence[Row], workload: str, stage: int) -> dict[str, float]:
    """The mean share of each filter in the second half of a stage."""
    found: dict[str, list[float]] = {}
    for row in where(rows, workload=workload, stage=stage):
        if float(row["stage_row"]) > float(row["stage_rows"]) / 2:
            found.setdefault(str(row["filter"]), []).append(float(row["share"]))
    return {name: float(np.mean(held)) for name, held in found.items()}


def rows_to_settle(rows: Sequence[Row], workload: str, stage: int, name: str) -> float:
    """Rows after which the share of a filter stays near its final share; infinity if it never does."""
    final = settled_shares(rows, workload, stage)[name]
    path = sorted((float(r["stage_row"]), float(r["share"])) for r in where(rows, workload=workload, stage=stage, filter=name))
    far = [at for at, share in path if abs(share - final) > NEAR]
    later = [at for at, _ in path if not far or at > far[-1]]
    return later[0] if later else float("inf")


def _newcomers(rows: Sequence[Row], workload: str) -> list[tuple[int, str]]:
    """(stage, filter) of every filter that comes to others."""
    seen: set[str] = set()
    found = []
    for stage in sorted({int(row["stage"]) for row in where(rows, workload=workload)}):
        names = {str(row["filter"]) for row in where(rows, workload=workload, stage=stage)}
        found += [(stage, name) for name in sorted(names - seen) if seen]
        seen |= names
    return found


def _order(claim: str, found: dict[str, float], pairs: str) -> Check:
    """Each pair of filters, written as in `ab cd`: the first has the larger share; the value is the least ratio."""
    least = min(found[pair[0]] / found[pair[1]] for pair in pairs.split())
    return Check(claim, least, "above 1", least > 1)


def judge(rows: Sequence[Row]) -> Verdict:
    checks = []
    for workload, claim, pairs in (
        ("selectivity", "shares are in the order of selectivity (least ratio of neighbours)", "ed dc cb ba"),
        ("predicates", "shares are in the order of predicates (least ratio of neighbours)", "ab bc cd de"),
        ("both", "selectivity counts among equals in predicates, and predicates among equals in selectivity", "ab cd ac bd"),
    ):
        last = max(int(row["stage"]) for row in where(rows, workload=workload))
        checks.append(_order(claim, settled_shares(rows, workload, last), pairs))
        newcomers = _newcomers(rows, workload)
        first = max(
            float(where(rows, workload=workload, stage=stage, filter=name, stage_row=0)[0]["share"]) for stage, name in newcomers
        )
        checks.append(Check.at_most(f"{workload}: the share that a new filter begins with", first, 0.05))
        slowest = max(rows_to_settle(rows, workload, stage, name) for stage, name in newcomers)
        checks.append(Check.at_most(f"{workload}: rows until a new filter has its share (+-{NEAR:g})", slowest, SETTLED_ROWS))
    apart = settled_shares(rows, "apart", max(int(row["stage"]) for row in where(rows, workload="apart")))
    note = (
        "Where every query has a filter of its own (lower right) no order saves a visit, and tickets show none: from "
        f"{min(apart.values()):.0%} to {max(apart.values()):.0%} though the filters refuse 10 to 90 % of the rows. A "
        "new filter holds one ticket, so that it is tried at all."
    )
    return Verdict(tuple(checks), note)


_TITLES = {
    "selectivity": "different selectivity, shared by all queries",
    "predicates": "same selectivity, 5 to 1 predicates",
    "both": "both: a, b in four queries, c, d in one",
    "apart": "one query a filter: no order is better",
}
_LABELS = {
    "selectivity": dict(zip(FILTERS, ("refuses 10 %", "30 %", "50 %", "70 %", "90 %"))),
    "predicates": dict(zip(FILTERS, ("5 predicates", "4", "3", "2", "1"))),
    "both": dict(zip(FILTERS, ("4 predicates, refuses 90 %", "4, 50 %", "1, 90 %", "1, 50 %"))),
    "apart": dict(zip(FILTERS, ("refuses 10 %", "30 %", "50 %", "70 %", "90 %"))),
}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    panels = figure.subplots(2, 2, sharey=True).flat
    for axes, workload in zip(panels, WORKLOADS):
        found = where(rows, workload=workload)
        for k, name in enumerate(FILTERS):
            path = where(found, filter=name)
            if not path:
                continue
            label = f"{name}: {_LABELS[workload][name]}"
            axes.plot(
                [float(r["row"]) / 1000 for r in path], [100 * float(r["share"]) for r in path], color=COLOURS[k], label=label
            )
        stage_rows = float(found[0]["stage_rows"]) / 1000
        for stage in range(1, max(int(row["stage"]) for row in found)):
            axes.axvline(stage * stage_rows, color="black", linewidth=0.8, linestyle=":")
        axes.set_title(_TITLES[workload], fontsize=10)
        axes.set_ylim(0, 105)
        axes.legend(fontsize=8, loc="upper right")
    figure.supxlabel("rows, thousands (dotted: queries come, and with them a filter)")
    figure.supylabel("share of the tickets, %")


EXPERIMENT = Experiment(
    name="tickets",
    question="Does a new filter find its place, and is it the right one?",
    figure="CACQ, adapting to changing workloads: share of tickets over time, three workloads",
    expected="a new filter begins with no share and soon settles; shares are in the order of selectivity, of predicates, of both",
    parameters=(
        Parameter("workloads", "different selectivity; same selectivity with 5 to 1 predicates; both", ours=False),
        Parameter("thresholds and texts", "as the module says"),
        Parameter("stage", f"{STAGE_ROWS[False]:,} rows, quick {STAGE_ROWS[True]:,}; the paper adds a query every few seconds"),
        Parameter("settled", f"within {NEAR:g} of the final share, after at most {SETTLED_ROWS:,} rows; the paper: some seconds"),
        Parameter("rows a route", str(BATCH_ROWS)),
        Parameter("seeds", f"{SEEDS[False]}, quick {SEEDS[True]}; the mean is shown"),
    ),
    columns={
        "workload": "selectivity, predicates, both or apart", "stage": "1 is the first", "filter": "the column it compares",
        "stage_row": "rows since the stage began", "row": "rows since the beginning", "share": "of all tickets, mean over seeds",
        "deviation": "standard deviation over seeds", "batch_rows": "rows that one route serves", "stage_rows": "rows of a stage",
        "seed": "the first", "seeds": "how many",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Each line is one filter's share of all tickets, which is its chance to be visited first. Dotted lines: "
    "new queries bring a new filter, whose line begins near zero. In the lower right no order of filters saves work, "
    "so the lines meet.",
    by="counts",
    size=(10.0, 7.0),
)  # fmt: skip
