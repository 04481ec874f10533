"""The eddy against NiagaraCQ's plans when the selections are user functions, over the number of articles a quote.

A function thinks for 100 to 500 microseconds before it says whether it wants a quote, and no index can look into it. PullUp,
which has to join first to join once, calls it for every match; the eddy calls it for each quote at most once and knows the
answer for all its matches. Calls are counted as well as CPU time. Half of the symbols are never in the news; the eddy does not
call for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from experiments.bench.base.timing import take_turns
from experiments.bench.joins.join_driver import JoinDriver
from experiments.bench.joins.join_peers import FUNCTION_KEYS as SYMBOLS
from experiments.bench.joins.join_peers import FUNCTION_ROWS as BATCH_ROWS
from experiments.bench.joins.join_peers import FUNCTIONS, Thinking, thinking_baselines, thinking_workload
from experiments.bench.joins.join_workload import JoinWorkload
from experiments.bench.joins.race import filled, take_turn
from experiments.bench.joins.selections import picky_functions
from experiments.drawing import Figure, draw_lines, powers_of_two
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, slope, where

ARTICLES = {True: (1, 2, 4, 8, 16), False: (1, 2, 4, 8, 16, 32)}
SECONDS = {True: 1.0, False: 4.0}
PLANS = ("eddy", "PushDown", "PullUp")


def contestants_of(workload: JoinWorkload) -> Thinking:
    """Contestants with full windows, each with functions of its own, whose calls are counted from now on."""
    own = picky_functions(workload)
    found: Thinking = {"eddy": (JoinDriver(workload, functions=own), own), **thinking_baselines(workload)}
    for contestant, functions in found.values():
        filled(contestant)
        for function in functions:
            function.n_calls = 0
    return found


def calls_per_quote(articles: int, n_turns: int, seed: int) -> dict[str, float]:
    """Calls of the functions for each quote, without thinking: the same on every machine."""
    contestants = contestants_of(thinking_workload(articles, seed))
    for contestant, _ in contestants.values():
        for number in range(n_turns):
            take_turn(contestant, number)
    return {name: sum(f.n_calls for f in functions) / (n_turns * BATCH_ROWS) for name, (_, functions) in contestants.items()}


def _measure(articles: int, setting: Setting) -> list[Row]:
    calls = calls_per_quote(articles, 64, setting.seed)
    contestants = contestants_of(thinking_workload(articles, setting.seed))
    for _, functions in contestants.values():
        for function in functions:
            function.thinks = True
    turns = {name: partial(take_turn, one) for name, (one, _) in contestants.items()}
    rounds = take_turns(turns, 2, SECONDS[setting.quick])
    return [
        {"plan": plan, "articles": articles, "functions": FUNCTIONS, "symbols": SYMBOLS, "batch_rows": BATCH_ROWS,
         "seed": setting.seed, "calls_per_quote": calls[plan], "us_per_quote": 1e6 * rounds.median(plan) / BATCH_ROWS}
        for plan in PLANS
    ]  # fmt: skip


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_measure, n, setting) for n in ARTICLES[setting.quick]]


def judge(rows: Sequence[Row]) -> Verdict:
    checks = []
    for name, what in (("calls_per_quote", "calls"), ("us_per_quote", "CPU time")):
        found = {plan: where(rows, plan=plan) for plan in PLANS}
        slopes = {plan: slope(column(found[plan], "articles"), column(found[plan], name)) for plan in PLANS}
        checks += [
            Check.within(f"eddy: {what} a quote against articles, slope of logarithms", slopes["eddy"], -0.25, 0.25),
            Check.within(f"PullUp: {what} a quote against articles, slope of logarithms", slopes["PullUp"], 0.8, 1.2),
            Check.at_least(
                f"{what} of PullUp against the eddy at the most articles",
                float(found["PullUp"][-1][name]) / float(found["eddy"][-1][name]), 4.0,
            ),
        ]  # fmt: skip
    return Verdict(
        tuple(checks),
        f"PushDown calls all {FUNCTIONS} functions for every quote; the eddy waits until a quote has an article, and "
        "half of the symbols never have one.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    for axes, name, title in zip(
        figure.subplots(1, 2),
        ("calls_per_quote", "us_per_quote"),
        ("calls of functions a quote", "CPU time a quote, microseconds"),
    ):
        draw_lines(axes, rows, "plan", {plan: plan for plan in PLANS}, "articles", name)
        powers_of_two(axes, column(where(rows, plan="eddy"), "articles"))
        axes.set_yscale("log", base=10)
        axes.set_xlabel("articles a quote")
        axes.set_title(title, fontsize=10)
        axes.legend()


EXPERIMENT = Experiment(
    name="functions",
    question="The eddy against NiagaraCQ's plans when selections are slow user functions",
    figure="CACQ, performance study: articles per quote against time to complete, user functions",
    expected="the eddy's time is flat; PullUp's grows as the articles do",
    parameters=(
        Parameter("functions", f"{FUNCTIONS} queries, each a function that spins 100 to 500 us"),
        Parameter("articles a quote", f"1 to {ARTICLES[False][-1]}, quick {ARTICLES[True][-1]}"),
        Parameter("symbols", f"{SYMBOLS}, half of them never in the news"),
        Parameter("rows a push", str(BATCH_ROWS)),
    ),
    columns={
        "plan": "eddy, PushDown or PullUp", "articles": "articles a quote in the window", "functions": "number of queries",
        "symbols": "number of symbols", "batch_rows": "rows a push", "seed": "of rows and constants",
        "calls_per_quote": "calls of functions for a quote, counted", "us_per_quote": "CPU microseconds for a quote",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Left: how often functions are called for a quote. Right: the CPU time that this takes. The more articles "
    "a quote has, the more often PullUp asks the same question again.",
    size=(10.0, 4.5),
)  # fmt: skip
