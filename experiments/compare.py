"""`eddy experiment compare`: routing policies on somebody's own data and queries.

An engine for each policy takes the same dataset, slice by slice in turn, with the same queries. Results never depend on the
policy, which is checked; what differs is the CPU time of a row and the filters it visits. Where batches are large, `auto` and
`greedy` count visits on samples only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eddy import Engine
from eddy.routing import make
from experiments.drawing import COLOURS
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column
from pipeline.dataset import Dataset
from pipeline.merged import MergedSlices
from pipeline.targets import EngineTarget
from queries.rules import Rule, read_rules

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class RoutedEngine:
    """An engine that routes by one policy."""

    def __init__(self, policy: str, dataset: Dataset, rules: Sequence[Rule], seed: int) -> None:
        self.policy = policy
        self.engine = Engine(policy=policy, seed=seed)
        self.target = EngineTarget(self.engine, dataset)
        for rule in rules:
            self.engine.submit(**rule.definition)
        self.seconds = 0.0

    def facts(self) -> Row:
        """Return the figures of the run."""
        stats = self.engine.stats()
        visits = sum(module["visits"] for module in stats["modules"].values())
        counted = sum(stream["counted"] for stream in stats["streams"].values())
        rows = sum(stream["rows"] for stream in stats["streams"].values())
        return {
            "policy": self.policy, "rows": rows, "queries": len(stats["queries"]),
            "results": sum(query["results"] for query in stats["queries"].values()),
            "ns_per_row": 1e9 * self.seconds / max(rows, 1), "visits_per_row": visits / counted if counted else 0.0,
            "counted_rows": counted,
        }  # fmt: skip


def measure(dataset: Dataset, rules: Sequence[Rule], policies: Sequence[str], seed: int) -> list[Row]:
    """A row for each policy."""
    contestants = [RoutedEngine(policy, dataset, rules, seed) for policy in policies]
    for slice_ in MergedSlices(dataset):
        for contestant in contestants:
            began = time.thread_time()
            contestant.target.take(slice_)
            contestant.seconds += time.thread_time() - began
    return [contestant.facts() | {"seed": seed} for contestant in contestants]


def comparison(data: Path, queries: Path, policies: Sequence[str], seed: int) -> Experiment:
    """The experiment; raises if the data, the queries or a policy cannot be used."""
    dataset = Dataset.open(data)
    rules = read_rules(queries, {"tags": []})
    for policy in policies:
        make(policy, seed)
    return described(partial(measure, dataset, rules, policies, seed), f"{data}, {queries}")


def judge(rows: Sequence[Row]) -> Verdict:
    results = column(rows, "results")
    first = min(rows, key=lambda row: float(row["ns_per_row"]))
    slowest = max(column(rows, "ns_per_row")) / float(first["ns_per_row"])
    return Verdict(
        (Check.at_most("results that differ between policies", max(results) - min(results), 0),),
        f"{first['policy']} takes least CPU time a row; the slowest takes {slowest:.2f} times as long.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    names = [str(row["policy"]) if len(str(row["policy"])) < 16 else f"{str(row['policy'])[:14]}.." for row in rows]
    for k, (axes, name, title) in enumerate(
        zip(figure.subplots(1, 2), ("ns_per_row", "visits_per_row"), ("CPU time a row, ns", "modules visited a row, as counted"))
    ):
        bars = axes.barh(range(len(rows)), column(rows, name), color=COLOURS[k])
        axes.bar_label(bars, fmt="%.3g", padding=3)
        axes.set_yticks(range(len(rows)), names)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.grid(axis="y", visible=False)
        axes.set_title(title, fontsize=10)


def described(step: Step | None = None, given: str = "as given") -> Experiment:
    """The experiment; without a step it can be judged and shown, not run."""

    def steps(setting: Setting) -> Sequence[Step]:
        assert step is not None, "compare is run by its own command"
        return [step]

    return Experiment(
        name="compare",
        question="Which routing policy suits these data and queries?",
        figure="data and queries from outside the paper",
        expected="the same results under every policy",
        parameters=(Parameter("data and queries", given),),
        columns={
            "policy": "routing policy", "rows": "rows of all streams", "queries": "number of queries",
            "results": "of all queries",
            "ns_per_row": "CPU nanoseconds a row", "visits_per_row": "modules that a counted row visited on average",
            "counted_rows": "rows whose visits were counted", "seed": "of the policies",
        },
        steps=steps,
        judge=judge,
        draw=draw,
        caption="Left: CPU time of a row. Right: filters and other modules that a row visits; where batches are large "
        "some policies count them on samples only.",
        by="counts, and CPU time",
    )  # fmt: skip
