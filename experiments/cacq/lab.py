"""Day and night in a real building: does routing follow the light?

The Intel lab's readings, in the order in which they came. Five queries look for places that are lit though they are cool and
damp, each with constants of its own:

    light > 200   AND   humidity > 36   AND   temperature < 24

At night nearly nothing is lit, so the light decides; by day nearly everything is, and humidity or temperature decide. Regret is
the number of filters visited as a multiple of what the best fixed order of those hours visits on the same rows. `night` and
`day` are the orders that are best at 2 and at 12 o'clock of the first day, kept for all days.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from eddy import Engine
from experiments.bench.base.driver import visited
from experiments.cacq.orders import Condition, best_order, visits_of
from experiments.drawing import COLOURS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, distinct, where

FILE = "intel_lab.parquet"
COLUMNS = ("light", "humidity", "temperature")
POLICIES = ("auto", "lottery", "random", "night", "day")
BATCH_ROWS = 64
BUCKET_HOURS = 2
#: Days that are read: quick takes the first two.
DAYS = {True: 2, False: 5}
_HOUR = 3_600_000_000
_FAR = 1e9

QUERIES: list[Condition] = [
    {"light": 200.0 + k, "humidity": 36.0 + k / 10, "temperature": (-_FAR, 24.0 - k / 10)} for k in range(5)
]
Batch = Mapping[str, np.ndarray]


def sql(query: Condition) -> str:
    def text(name: str, bound: float | tuple[float, float]) -> str:
        return f"{name} < {bound[1]}" if isinstance(bound, tuple) else f"{name} > {bound}"

    return "SELECT moteid FROM readings WHERE " + " AND ".join(text(name, bound) for name, bound in query.items())


def buckets(folder: Path, n_days: int) -> Iterator[tuple[float, Batch]]:
    """(hours since the first midnight, rows) of each bucket; missing values are NaN."""
    table = pq.read_table(folder / FILE, columns=["ts", "moteid", *COLUMNS])
    times = table["ts"].cast("int64").to_numpy()
    first = times[0] // (24 * _HOUR) * 24 * _HOUR
    edges = np.searchsorted(times, first + np.arange(0, 24 * n_days + 1, BUCKET_HOURS) * _HOUR)
    columns = {name: table[name].to_numpy().astype(float) for name in COLUMNS} | {"moteid": table["moteid"].to_numpy()}
    for k, (start, stop) in enumerate(zip(edges[:-1], edges[1:])):
        if stop > start:
            yield float(k * BUCKET_HOURS), {name: values[start:stop] for name, values in columns.items()}


def _at(found: Sequence[tuple[float, Batch]], hour: int) -> tuple[str, ...]:
    """The best order at an hour of the first day."""
    batch = next(batch for at, batch in found if at == hour)
    return best_order(batch, QUERIES, COLUMNS)


def _step(policy: str, setting: Setting) -> list[Row]:
    assert setting.data is not None, "checked before it is run"
    found = list(buckets(setting.data, DAYS[setting.quick]))
    order = _at(found, 2 if policy == "night" else 12)
    name = "fixed:" + ",".join(f"filter:{column}" for column in order) if policy in ("night", "day") else policy
    engine = Engine(policy=name, batch_rows=BATCH_ROWS, seed=setting.seed)
    engine.create_stream("readings", {"moteid": "int", **dict.fromkeys(COLUMNS, "float")})
    for query in QUERIES:
        engine.submit(sql(query))

    rows: list[Row] = []
    for hour, batch in found:
        before, counted = visited(engine, "readings")
        for at in range(0, len(batch["moteid"]), BATCH_ROWS):
            part = {name: values[at : at + BATCH_ROWS] for name, values in batch.items()}
            # NaN is what the reader makes of a missing value; the engine has NULL for it
            engine.push("readings", {name: _nulls(values) for name, values in part.items()})
        now, counted_now = visited(engine, "readings")
        best = best_order(batch, QUERIES, COLUMNS)
        least = visits_of(batch, QUERIES, best)
        visits = (now - before) / (counted_now - counted)
        rows.append(
            {"policy": policy, "hour": hour, "rows": len(batch["moteid"]), "visits_per_row": visits, "best_per_row": least,
             "regret": visits / least, "best_order": " ".join(best), "batch_rows": BATCH_ROWS, "queries": len(QUERIES),
             "seed": setting.seed}
        )  # fmt: skip
    return rows


def _nulls(values: np.ndarray) -> list[float | None] | np.ndarray:
    if values.dtype.kind != "f" or not np.isnan(values).any():
        return values
    return [None if np.isnan(value) else value for value in values.tolist()]


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_step, policy, setting) for policy in POLICIES]


def regret_over_hours(rows: Sequence[Row], policy: str) -> float:
    """Visits over all hours against those of the best order of each."""
    found = where(rows, policy=policy)
    weights = [float(row["rows"]) for row in found]
    return float(
        np.average([float(row["visits_per_row"]) for row in found], weights=weights)
        / np.average([float(row["best_per_row"]) for row in found], weights=weights)
    )


def judge(rows: Sequence[Row]) -> Verdict:
    found = {policy: regret_over_hours(rows, policy) for policy in POLICIES}
    firsts = {str(row["best_order"]).split()[0] for row in where(rows, policy="auto")}
    worst = max(float(row["regret"]) for policy in ("night", "day") for row in where(rows, policy=policy))
    return Verdict(
        (
            Check.at_least("filters that are the best first one at some hour", len(firsts), 2),
            Check.at_least("a kept order in its worst hours", worst, 1.25),
            Check.at_most("auto: regret over all hours", found["auto"], 1.1),
            Check.at_most("lottery: regret over all hours", found["lottery"], 1.25),
            Check.at_most("auto against the better of the kept orders", found["auto"] / min(found["night"], found["day"]), 1.05),
        ),
        "Over all hours: "
        + ", ".join(f"{policy} {value:.3f}" for policy, value in found.items())
        + ". auto looks at samples every 509 "
        f"batches once it knows a stream: with {BATCH_ROWS} rows each that is some four hours of readings, so it is "
        "late at dawn and dusk.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.add_subplot()
    labels = {"night": "order that is best at night, kept", "day": "order that is best by day, kept"}
    for k, policy in enumerate(distinct(rows, "policy")):
        found = where(rows, policy=policy)
        hours = [float(row["hour"]) + BUCKET_HOURS / 2 for row in found]
        label = labels.get(str(policy), str(policy))
        axes.plot(hours, [float(row["regret"]) for row in found], color=COLOURS[k], label=label)
    last = max(float(row["hour"]) for row in rows) + BUCKET_HOURS
    for day in range(int(last // 24) + 1):
        for start, stop in ((0, 6), (19, 24)):
            axes.axvspan(24 * day + start, min(24 * day + stop, last), color="black", alpha=0.07, linewidth=0)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xlim(0, last)
    axes.set_xticks(np.arange(0, last + 1, 12))
    axes.set_xlabel("hours since midnight of 4 March 2004 (shaded: night)")
    axes.set_ylabel("visits, as a multiple of the best order's")
    axes.legend(loc="center left", fontsize=9, bbox_to_anchor=(1.0, 0.5))


EXPERIMENT = Experiment(
    name="lab",
    question="Day and night in a real building: does routing follow the light?",
    figure="CACQ, introduction: the selectivity of light changes between working hours and night; on the Intel lab's readings",
    expected="the best order is another one by day than at night, and what adapts is near the best at all hours",
    parameters=(
        Parameter("rows", f"{FILE}: real readings of the Intel Berkeley lab, 5 days, quick 2"),
        Parameter("queries", "five of the form light > 200 AND humidity > 36 AND temperature < 24, constants a little apart"),
        Parameter("rows a route", str(BATCH_ROWS)),
    ),
    columns={
        "policy": "routing policy, or an order that is kept", "hour": "hours since the first midnight",
        "rows": "readings in these hours",
        "visits_per_row": "filters that a row visited on average",
        "best_per_row": "the same for the best fixed order of these hours",
        "regret": "the first as a multiple of the second", "best_order": "that order", "batch_rows": "rows that one route serves",
        "queries": "number of queries", "seed": "of the policy",
    },
    steps=steps, judge=judge, draw=draw,
    caption="How many times as many filters are visited as by the best order of those hours; 1 is best. An order that "
    "is kept pays every day or every night.",
    by="counts; auto also weighs measured costs",
    files=(FILE,),
    size=(10.0, 4.5),
)  # fmt: skip
