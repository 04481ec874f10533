"""How do many queries fare in one shared eddy, against an eddy for each?

Random queries over one stream of five columns: each column is compared with probability 0.5, by one of < <= > >=. Rows come as
fast as they are taken. Output is counted in (row, query) pairs, all of them listed.

Both do the same work on the same rows, and deliver the same number of pairs. An eddy for each query has its cost anew for every
query, so its output never grows; the shared one finds a row's region once for all queries, until listing the pairs is all that
it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from experiments.bench.base import workloads
from experiments.bench.base.driver import EngineDriver
from experiments.bench.base.timing import take_turns
from experiments.bench.base.workloads import Workload
from experiments.drawing import Figure, draw_lines, powers_of_two
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, slope, where

SHARED = {True: (1, 4, 16, 64, 256, 1024, 4096), False: (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536)}
SEPARATE = {True: (1, 4, 16, 64), False: (1, 4, 16, 64, 256)}
SECONDS = {True: 0.6, False: 2.0}
#: From this many queries on a push has fewer rows, so that one does not take seconds.
MANY = 4096


def rows_of(n_queries: int) -> int:
    return 4096 if n_queries <= MANY else 512


def _measure(kind: str, n_queries: int, setting: Setting) -> list[Row]:
    n_rows = rows_of(n_queries)
    workload = workloads.filters(n_queries, n_rows, floats=True, seed=setting.seed)
    drivers = [EngineDriver(workload)]
    if kind == "separate":
        drivers = [EngineDriver(Workload(workload.columns, [query], workload.batches)) for query in workload.queries]

    def push(i: int) -> None:
        for driver in drivers:
            driver.push(i)

    seconds = take_turns({kind: push}, len(workload.batches), SECONDS[setting.quick]).median(kind)
    before = sum(driver.n_pairs for driver in drivers)
    for i in range(len(workload.batches)):
        push(i)
    pairs = (sum(driver.n_pairs for driver in drivers) - before) / len(workload.batches)
    return [
        {"eddies": kind, "queries": n_queries, "batch_rows": n_rows, "seed": setting.seed, "pairs_per_row": pairs / n_rows,
         "in_per_s": n_rows / seconds, "out_per_s": pairs / seconds}
    ]  # fmt: skip


def steps(setting: Setting) -> Sequence[Step]:
    counts = {"shared": SHARED[setting.quick], "separate": SEPARATE[setting.quick]}
    return [partial(_measure, kind, n, setting) for kind, numbers in counts.items() for n in numbers]


def _peak(rows: Sequence[Row]) -> tuple[float, float]:
    """The largest output, and the fewest queries that reach 90 % of it."""
    most = max(column(rows, "out_per_s"))
    return most, min(float(row["queries"]) for row in rows if float(row["out_per_s"]) >= 0.9 * most)


def judge(rows: Sequence[Row]) -> Verdict:
    shared, separate = where(rows, eddies="shared"), where(rows, eddies="separate")
    most, at = _peak(shared)
    other, other_at = _peak(separate)
    both = [(a, b) for a in shared for b in separate if a["queries"] == b["queries"]]
    same = max(abs(float(a["pairs_per_row"]) / float(b["pairs_per_row"]) - 1) for a, b in both)
    many = [row for row in separate if float(row["queries"]) >= 4]
    falls = slope(column(many, "queries"), column(many, "in_per_s"))
    return Verdict(
        (
            Check.at_least("largest output, shared against an eddy for each query", most / other, 2.0),
            Check.at_least("queries at which the output is near its largest, shared against separate", at / other_at, 4.0),
            Check.at_most("input of separate eddies against queries, slope of logarithms", falls, -0.8),
            Check.at_most("both deliver the same (row, query) pairs: largest difference", same, 1e-9),
        ),
        f"The shared eddy is near its largest output from {at:,.0f} queries on, separate ones from {other_at:,.0f}. An "
        "eddy for each query does all its work anew: its output never grows.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    panels = figure.subplots(1, 2)
    for axes, name, title in zip(panels, ("out_per_s", "in_per_s"), ("output: (row, query) pairs/s", "input: rows/s")):
        labels = {"shared": "one shared eddy", "separate": "an eddy for each query"}
        draw_lines(axes, rows, "eddies", labels, "queries", name)
        powers_of_two(axes, column(where(rows, eddies="shared"), "queries"))
        axes.set_yscale("log")
        axes.set_xlabel("queries")
        axes.set_title(f"{title}, CPU time", fontsize=10)
        axes.legend(loc="best", fontsize=9)


EXPERIMENT = Experiment(
    name="queries",
    question="How do many queries fare in one shared eddy, against an eddy for each?",
    figure="CACQ, performance without joins: tuples output against number of queries",
    expected="the output of the shared eddy peaks later, and at least twice as high",
    parameters=(
        Parameter("queries", "random: each of five columns with probability 0.5, one of < <= > >=", ours=False),
        Parameter("constants", "floats, uniform in [0, 100)"),
        Parameter("number of queries", f"1 to {SHARED[False][-1]:,} shared, to {SEPARATE[False][-1]} separate; quick "
                  f"{SHARED[True][-1]:,} and {SEPARATE[True][-1]}"),
        Parameter("rows a push", f"4,096; 512 above {MANY:,} queries"),
        Parameter("source", "as fast as rows are taken"),
    ),
    columns={
        "eddies": "shared: one for all; separate: one for each query", "queries": "number of queries",
        "batch_rows": "rows a push",
        "seed": "of rows and queries", "pairs_per_row": "queries that a row satisfies on average",
        "in_per_s": "rows a CPU second", "out_per_s": "(row, query) pairs a CPU second",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Left: what is delivered in a second of CPU time. One eddy for all queries delivers more with every query "
    "until listing is all it does; an eddy for each never delivers more than one alone. Right: the rows that "
    "this takes in.",
    size=(10.0, 4.5),
)  # fmt: skip
