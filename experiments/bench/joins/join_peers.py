"""The engine against a Python loop and NiagaraCQ's plans, with constants and with user functions for conditions.

Constants: rows/s of each. Functions that think 100 to 500 us: CPU time and calls a quote, by the number of articles a quote; half
of the symbols are never in the news. PushDown calls them for each quote and query, whatever the articles; PullUp for each match
and query; the engine once for each quote and query, and not before an article came. Quotes and articles come in turn, so a
quote meets its articles before and after it: twice `articles` matches a quote on average.
"""

from __future__ import annotations

from functools import partial

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.timing import take_turns
from experiments.bench.joins.dict_loop import DictLoop
from experiments.bench.joins.join_driver import JoinDriver
from experiments.bench.joins.join_workload import JoinWorkload, stocks_and_articles
from experiments.bench.joins.niagara_plans import PullUp, PushDown
from experiments.bench.joins.race import Contestant, filled, race, rows_of_turn, take_turn
from experiments.bench.joins.selections import Constants, Functions, Picky, picky_functions
from experiments.bench.joins.stem import PART

#: Queries that are functions, rows a push and symbols: so few that a turn ends within a second.
FUNCTIONS = 4
FUNCTION_ROWS = 8
FUNCTION_KEYS = 16

Thinking = dict[str, tuple[Contestant, list[Picky]]]


def plans(workload: JoinWorkload) -> dict[str, Contestant]:
    """NiagaraCQ's plans, windows full."""
    constants = workload.constants
    return {
        "PushDown": filled(PushDown(workload, Constants(constants, workload.n_rows))),
        "PullUp": filled(PullUp(workload, Constants(constants, PART))),
    }


def compare(contestants: dict[str, Contestant], seconds: float) -> list[Line]:
    """A line for each contestant; how far ahead the first one is."""
    first = next(iter(contestants))
    workload = contestants[first].workload
    rounds = race(contestants, seconds)
    # ahead of all that a user may pick from 16 queries up, five times from 128 up
    aim = 5.0 if workload.n_queries >= 128 else 1.0 if workload.n_queries >= 16 else None
    lines = []
    for name in contestants:
        measures = {"rows_per_s": Measure(rows_of_turn(workload) / rounds.median(name), "/s")}
        bar = None
        if name != first:
            ahead = rounds.ratio(first, name)
            measures[f"{first}_ahead"] = Measure(ahead, "x")
            bar = Bar.at_least(ahead, aim, "x") if name == "python loop" and aim is not None else None
        setting: dict[str, int | str] = {"queries": workload.n_queries, "peer": name}
        lines.append(Line("join", f"{workload.n_queries:,} queries, {name}", measures, bar, setting))
    return lines


def constants_lines(n_queries: int, n_rows: int, seconds: float) -> list[Line]:
    workload = stocks_and_articles(n_queries, n_rows=n_rows)
    engine, loop = filled(JoinDriver(workload)), filled(DictLoop(workload))
    return compare({"engine": engine, "python loop": loop, **plans(workload)}, seconds)


def thinking_workload(articles: int, seed: int = 9) -> JoinWorkload:
    return stocks_and_articles(
        FUNCTIONS, n_rows=FUNCTION_ROWS, n_keys=FUNCTION_KEYS, window_rows=FUNCTION_KEYS * articles, quiet=True, seed=seed
    )


def thinking_baselines(workload: JoinWorkload) -> Thinking:
    """NiagaraCQ's plans with the functions of each."""
    below, above = picky_functions(workload), picky_functions(workload)
    return {
        "PushDown": (PushDown(workload, Functions(below)), below),
        "PullUp": (PullUp(workload, Functions(above)), above),
    }


def compare_thinking(articles: int, contestants: Thinking, seconds: float) -> list[Line]:
    """Time and calls a quote of each contestant; functions think from the moment the windows are full."""
    n_turns = dict.fromkeys(contestants, 0)

    def turn(name: str, number: int) -> None:
        n_turns[name] += 1
        take_turn(contestants[name][0], number)

    for contestant, functions in contestants.values():
        filled(contestant)
        for function in functions:
            function.thinks, function.n_calls = True, 0
    rounds = take_turns({name: partial(turn, name) for name in contestants}, 2, seconds)
    lines = []
    for name, (contestant, functions) in contestants.items():
        n_quotes = contestant.workload.n_rows
        calls = sum(function.n_calls for function in functions) / (n_turns[name] * n_quotes)
        measures = {"a_quote": Measure(rounds.median(name) / n_quotes * 1e6, "us"), "calls_a_quote": Measure(calls, "")}
        work = f"{len(functions)} functions, {articles} articles a quote, {name}"
        lines.append(Line("join", work, measures, None, {"queries": len(functions), "articles": articles, "peer": name}))
    return lines


def functions_lines(articles: int, seconds: float) -> list[Line]:
    workload = thinking_workload(articles)
    functions = picky_functions(workload)
    engine: Thinking = {"engine": (JoinDriver(workload, functions=functions), functions)}
    return compare_thinking(articles, {**engine, **thinking_baselines(workload)}, seconds)
