"""The eddy against NiagaraCQ's two plans, over the number of queries.

    SELECT .. FROM stocks, articles WHERE stocks.symbol = articles.symbol AND stocks.price > :c

PushDown selects below and joins once for every query; PullUp joins once and selects above
(`experiments/bench/joins/niagara_plans.py`, compiled code like the engine's own). Every quote has about one article, all
quotes are wanted by some query, and all three deliver the joined rows of each query. The contestants take turns on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from experiments.bench.joins.join_driver import JoinDriver
from experiments.bench.joins.join_peers import plans
from experiments.bench.joins.join_workload import stocks_and_articles
from experiments.bench.joins.race import filled, race, rows_of_turn
from experiments.drawing import Figure, draw_lines, powers_of_two
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, slope, where

COUNTS = {True: (1, 4, 16, 64, 256), False: (1, 4, 16, 64, 256, 1024)}
SYMBOLS = 10_000
WINDOW_ROWS = 10_000
BATCH_ROWS = 4096
SECONDS = {True: 1.5, False: 4.0}
PLANS = ("eddy", "PushDown", "PullUp")
#: From here on there are many queries.
MANY = 16


def _measure(n_queries: int, setting: Setting) -> list[Row]:
    workload = stocks_and_articles(
        n_queries, n_rows=BATCH_ROWS, n_keys=SYMBOLS, window_rows=WINDOW_ROWS, seed=setting.seed
    )  # fmt: skip
    rounds = race({"eddy": filled(JoinDriver(workload)), **plans(workload)}, SECONDS[setting.quick])
    rows = rows_of_turn(workload)
    return [
        {"plan": plan, "queries": n_queries, "symbols": SYMBOLS, "window_rows": WINDOW_ROWS, "batch_rows": BATCH_ROWS,
         "seed": setting.seed, "ns_per_row": 1e9 * rounds.median(plan) / rows, "times_eddy": rounds.ratio("eddy", plan)}
        for plan in PLANS
    ]  # fmt: skip


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_measure, n, setting) for n in COUNTS[setting.quick]]


def judge(rows: Sequence[Row]) -> Verdict:
    many = [row for row in rows if float(row["queries"]) >= MANY]
    down, up = where(many, plan="PushDown"), where(many, plan="PullUp")
    slopes = {
        plan: slope(column(where(many, plan=plan), "queries"), column(where(many, plan=plan), "ns_per_row")) for plan in PLANS
    }
    few = where(rows, plan="PullUp", queries=1)
    return Verdict(
        (
            Check.at_least("time of PullUp against the eddy with one query", min(column(few, "times_eddy")), 1.0),
            Check.at_least(
                f"time of PushDown against the eddy, the least from {MANY} queries on", min(column(down, "times_eddy")), 1.0
            ),
            Check.at_least("slope of PushDown's time against queries", slopes["PushDown"], 0.5),
            Check.at_least("slope of PushDown's time above the eddy's", slopes["PushDown"] - slopes["eddy"], 0.1),
            Check.at_least(
                f"time of PullUp against the eddy, the least from {MANY} queries on", min(column(up, "times_eddy")), 0.5
            ),
        ),
        "The paper found the eddy ahead of PullUp with few queries and a little behind with many; here it is the "
        "other way round. PullUp is a bare compiled join, the eddy a whole engine: with few queries its cost a push "
        "(checking rows, storing them, the log) weighs most. With many queries PullUp copies a joined row for each "
        "that wants it, where the eddy lists row numbers.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.add_subplot()
    draw_lines(axes, rows, "plan", {plan: plan for plan in PLANS}, "queries", "ns_per_row")
    powers_of_two(axes, column(where(rows, plan="eddy"), "queries"))
    axes.set_yscale("log")
    axes.set_xlabel("queries")
    axes.set_ylabel("CPU time a row, ns (less is better)")
    axes.legend()


EXPERIMENT = Experiment(
    name="niagara",
    question="The eddy against NiagaraCQ's static plans: how does time grow with the queries?",
    figure="CACQ, performance study: number of queries against time to complete, normal selections",
    expected="PushDown, which joins once a query, is slowest; the eddy is ahead of PullUp, the better plan, with few "
    "queries and keeps up with it with many, without an optimiser",
    parameters=(
        Parameter("query", "stocks joined with articles by symbol, price above a constant", ours=False),
        Parameter("articles a quote", "one on average", ours=False),
        Parameter("prices", "uniform in (0, 100]; the union of the queries takes every quote"),
        Parameter("queries", f"1 to {COUNTS[False][-1]:,}, quick {COUNTS[True][-1]}"),
        Parameter("symbols, window", f"{SYMBOLS:,} symbols, {WINDOW_ROWS:,} rows a side"),
    ),
    columns={
        "plan": "eddy, PushDown or PullUp", "queries": "number of queries", "symbols": "number of symbols",
        "window_rows": "rows a side that the window holds", "batch_rows": "rows a push", "seed": "of rows and queries",
        "ns_per_row": "CPU nanoseconds a row", "times_eddy": "as a multiple of the eddy's, the median over turns",
    },
    steps=steps, judge=judge, draw=draw,
    caption="CPU time that a row takes, quotes and articles together, on logarithmic axes: a line that rises as "
    "steeply as the queries do does every query's work anew.",
)  # fmt: skip
