"""The verdicts of CACQ's experiments on rows made up to have the shape, and on rows made up to lack it. No engine, no clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from experiments import compare
from experiments.bench.base import workloads
from experiments.cacq import (
    EXPERIMENTS,
    functions,
    lab,
    news,
    niagara,
    queries,
    regret,
    routing,
    sources,
    tickets,
    width,
)  # fmt: skip
from experiments.cacq.orders import best_order, visits_of
from experiments.experiment import Check, Row, Verdict, slope

Judge = Callable[[Sequence[Row]], Verdict]


def routing_rows(**changed: float) -> list[Row]:
    visits = {"optimal": 1.156, "greedy": 1.16, "lottery": 1.3, "backpressure": 1.3, "random": 2.6, "worst": 5.0} | changed
    return [
        {"policy": policy, "batch_rows": batch_rows, "seed": seed, "visits_per_row": value}
        for policy, value in visits.items() for batch_rows in (1, 64) for seed in (1, 2)
    ]  # fmt: skip


def ticket_rows(final: dict[str, dict[str, float]], begins: float = 0.01, settles: int = 1024) -> list[Row]:
    """Two stages: the first filter alone, then all of them, the newcomers at `begins` until `settles` rows have gone by."""
    rows: list[Row] = []
    for workload, shares in final.items():
        first = next(iter(shares))
        for at in range(0, 8193, 512):
            common: Row = {"workload": workload, "stage_row": at, "stage_rows": 8192}
            rows.append(common | {"stage": 1, "filter": first, "share": 1.0})
            rows += [
                common | {"stage": 2, "filter": name, "share": share if at >= settles or name == first else begins}
                for name, share in shares.items()
            ]
    return rows


TICKETS = {
    "selectivity": {"a": 0.04, "b": 0.12, "c": 0.2, "d": 0.28, "e": 0.36},
    "predicates": {"a": 0.3, "b": 0.25, "c": 0.2, "d": 0.15, "e": 0.1},
    "both": {"a": 0.5, "b": 0.25, "c": 0.15, "d": 0.1},
    "apart": {"a": 0.2, "b": 0.2, "c": 0.2, "d": 0.2, "e": 0.2},
}


def width_rows(rates: Sequence[float], flat: float = 1.0, wrong: float = 1.0) -> list[Row]:
    rows: list[Row] = []
    for bits, rate in zip((64, 256, 1024, 4096), rates):
        rows.append({"part": "speed", "width": bits, "batch_rows": 128, "rows_per_s": rate})
        rows.append({"part": "speed", "width": bits, "batch_rows": 4096, "rows_per_s": 10 if bits < 4096 else 10 / flat})
    for n in (1, 16, 1024):
        rows.append(
            {"part": "storage", "queries": n, "predicted_bytes": 76.0 * wrong, "accounted_bytes": 76.0,
             "predicted_filters": 100.0,
             "accounted_filters": 100.0}
        )  # fmt: skip
    return rows


def query_rows(shared: Sequence[float], separate: Sequence[float]) -> list[Row]:
    found: list[Row] = []
    for eddies, outputs in (("shared", shared), ("separate", separate)):
        for n, out in zip((1, 4, 16, 64, 256), outputs):
            found.append({"eddies": eddies, "queries": n, "pairs_per_row": n / 4, "out_per_s": out, "in_per_s": 4 * out / n})
    return found


def source_rows(rates: Sequence[float]) -> list[Row]:
    return [{"sources": n, "in_per_s": rate} for n, rate in zip((1, 2, 4, 8, 16), rates)]


def niagara_rows(up: float = 1.2, down: float = 1.0, eddy: float = 0.1) -> list[Row]:
    found: list[Row] = []
    for n in (1, 16, 64, 256):
        ns = {"eddy": 50 * n**eddy, "PushDown": 60 * n**down, "PullUp": 50 * n**eddy * up}
        found += [{"plan": plan, "queries": n, "ns_per_row": t, "times_eddy": t / ns["eddy"]} for plan, t in ns.items()]
    return found


def function_rows(eddy: float = 0.0, up: float = 1.0) -> list[Row]:
    return [
        {"plan": plan, "articles": n, "calls_per_quote": 2.0 * n**power, "us_per_quote": 600.0 * n**power}
        for n in (1, 2, 4, 8, 16) for plan, power in (("eddy", eddy), ("PushDown", 0.0), ("PullUp", up))
    ]  # fmt: skip


def regret_rows(after: float = 1.2, static: float = 2.5) -> list[Row]:
    """`after`: what those that adapt settle at in phases 2 and 3, after a quarter of the phase."""
    rows: list[Row] = []
    for policy in ("auto", "lottery", "backpressure", "random", "static"):
        for phase in (1, 2, 3):
            for point in range(1, 9):
                settled = {"random": 1.7, "static": 1.0 if phase == 1 else static}.get(policy, 1.1 if phase == 1 else after)
                value = 1.8 if policy in regret.ADAPTIVE and phase > 1 and point <= 1 else settled
                row = (phase - 1) * 800 + point * 100
                rows.append(
                    {"policy": policy, "phase": phase, "row": row, "visits_per_row": value, "best_per_row": 1.0, "regret": value,
                     "phase_rows": 800}
                )  # fmt: skip
    return rows


def lab_rows(auto: float = 1.02, orders: Sequence[str] = ("light humidity", "humidity light")) -> list[Row]:
    values = {"auto": (auto, auto), "lottery": (1.1, 1.1), "random": (1.4, 1.4), "night": (1.0, 1.6), "day": (1.6, 1.0)}
    return [
        {"policy": policy, "hour": 2.0 * k, "rows": 100, "visits_per_row": value, "best_per_row": 1.0, "regret": value,
         "best_order": orders[k % len(orders)]}
        for policy, pair in values.items() for k, value in enumerate(pair)
    ]  # fmt: skip


def news_rows(eddy: float = 2.8, up: float = 20.0) -> list[Row]:
    return [{"matches_per_bar": up / 3, "eddy_calls_per_bar": eddy, "pull_up_calls_per_bar": up} for _ in range(3)]


def compare_rows(*results: int) -> list[Row]:
    return [{"policy": f"p{k}", "results": n, "ns_per_row": 10.0 + k, "visits_per_row": 1.0} for k, n in enumerate(results)]


GOOD: dict[str, tuple[Judge, list[Row]]] = {
    "routing": (routing.judge, routing_rows()),
    "tickets": (tickets.judge, ticket_rows(TICKETS)),
    "width": (width.judge, width_rows((10, 6, 4, 3))),
    "queries": (queries.judge, query_rows((10, 20, 40, 80, 90), (10, 10, 10))),
    "sources": (sources.judge, source_rows((10, 9, 9, 10, 9))),
    "niagara": (niagara.judge, niagara_rows()),
    "functions": (functions.judge, function_rows()),
    "regret": (regret.judge, regret_rows()),
    "lab": (lab.judge, lab_rows()),
    "news": (news.judge, news_rows()),
    "compare": (compare.judge, compare_rows(7, 7, 7)),
}


@pytest.mark.parametrize("name", GOOD)
def test_rows_of_the_expected_shape_hold(name: str) -> None:
    judge, rows = GOOD[name]
    assert judge(rows).holds, [check for check in judge(rows).checks if not check.holds]


def test_every_experiment_has_such_rows() -> None:
    assert set(GOOD) == {*EXPERIMENTS, "compare"}


_FALLEN = {"a": 0.36, "b": 0.28, "c": 0.2, "d": 0.12, "e": 0.04}


@pytest.mark.parametrize(
    ("judge", "rows", "missed"),
    [
        (routing.judge, routing_rows(lottery=1.5), "under lottery"),
        (routing.judge, routing_rows(greedy=1.4), "greedy"),
        (routing.judge, routing_rows(random=2.0), "random"),
        (routing.judge, routing_rows(worst=4.5), "worst order"),
        (routing.judge, routing_rows(lottery=1.15), "above the best"),
        (tickets.judge, ticket_rows(TICKETS | {"selectivity": _FALLEN}), "order of selectivity"),
        (tickets.judge, ticket_rows(TICKETS | {"predicates": TICKETS["selectivity"]}), "order of predicates"),
        (tickets.judge, ticket_rows(TICKETS | {"both": {"a": 0.5, "b": 0.1, "c": 0.25, "d": 0.15}}), "predicates among equals"),
        (tickets.judge, ticket_rows(TICKETS, begins=0.08), "begins with"),
        (tickets.judge, ticket_rows(TICKETS, settles=6144), "rows until"),
        (width.judge, width_rows((10, 9.9, 9.8, 9.7)), "narrowest"),
        (width.judge, width_rows((10, 9.5, 7.5, 0.1)), "lost a bit"),
        (width.judge, width_rows((10, 6, 4, 3), flat=2), "query by query"),
        (width.judge, width_rows((10, 6, 4, 3), wrong=1.1), "prediction"),
        (queries.judge, query_rows((10, 12, 14, 15, 15), (10, 10, 10)), "largest output"),
        (queries.judge, query_rows((40, 30, 20, 10, 10), (10, 10, 10)), "near its largest"),
        (queries.judge, query_rows((10, 20, 40, 80, 160), (1, 4, 16)), "slope"),
        (sources.judge, source_rows((10, 9, 8, 7, 6)), "the least"),
        (sources.judge, source_rows((10, 9, 8.5, 7.8, 7.2)), "slope"),
        (niagara.judge, niagara_rows(up=0.8), "with one query"),
        (niagara.judge, niagara_rows(down=0.2), "slope of PushDown"),
        (niagara.judge, niagara_rows(eddy=1.0), "above the eddy's"),
        (functions.judge, function_rows(eddy=0.5), "eddy: calls"),
        (functions.judge, function_rows(up=0.2), "PullUp: calls"),
        (regret.judge, regret_rows(after=1.6), "until its regret"),
        (regret.judge, regret_rows(static=1.1), "when the world has changed"),
        (lab.judge, lab_rows(auto=1.3), "auto"),
        (lab.judge, lab_rows(orders=("light",)), "best first"),
        (news.judge, news_rows(eddy=4.0), "of the eddy"),
        (news.judge, news_rows(up=4.0), "PullUp against"),
        (compare.judge, compare_rows(7, 8), "differ"),
    ],
)  # fmt: skip
def test_rows_of_another_shape_do_not(judge: Judge, rows: list[Row], missed: str) -> None:
    verdict = judge(rows)
    assert not verdict.holds
    assert any(missed in check.claim for check in verdict.checks if not check.holds), verdict.checks


def test_bars_hold_at_their_edge() -> None:
    assert Check.at_most("x", 1.0, 1.0).holds and not Check.at_most("x", 1.01, 1.0).holds
    assert Check.at_least("x", 1.0, 1.0).holds and not Check.at_least("x", 0.99, 1.0).holds
    assert Check.within("x", 1.0, 1.0, 2.0).holds and not Check.within("x", 2.01, 1.0, 2.0).holds


def test_a_slope_is_the_power_of_growth() -> None:
    assert slope([1, 2, 4, 8], [3, 12, 48, 192]) == pytest.approx(2.0)
    assert slope([1, 10], [5, 5]) == 0.0


# -- The experiments that count, for real at a small size: the same on every machine -----------------------------------


def test_the_best_order_of_the_nested_queries_visits_what_arithmetic_says() -> None:
    assert routing.visits(routing.POLICIES["optimal"], 64, 30_000, 1) == pytest.approx(routing.BEST, rel=0.02)


def test_the_lottery_lies_between_the_best_order_and_random() -> None:
    best, lottery, random, worst = (
        routing.visits(routing.POLICIES[name], 64, 20_000, 2) for name in ("optimal", "lottery", "random", "worst")
    )
    assert best < lottery <= 1.45 < random < worst == 5.0


@pytest.mark.parametrize("order", ["abcde", "edcba", "cabed"])
def test_arithmetic_counts_the_visits_that_the_engine_makes(order: str) -> None:
    _, thresholds = workloads.nested()
    names = list(thresholds)
    conditions = [dict(list(thresholds.items())[: k + 1]) for k in range(5)]
    # the rows that `visits` pushes and counts
    rng = np.random.default_rng(3)
    batches = [{name: rng.uniform(0, 100, 64) for name in names} for _ in range(90)][30:]
    rows = {name: np.concatenate([batch[name] for batch in batches]) for name in names}
    policy = "fixed:" + ",".join(f"filter:{name}" for name in order)
    assert routing.visits(policy, 64, 90 * 64, 3) == pytest.approx(visits_of(rows, conditions, order), abs=1e-12)


def test_the_best_order_is_found_among_all() -> None:
    rng = np.random.default_rng(1)
    rows = {name: rng.uniform(0, 100, 5000) for name in "abc"}
    queries = [{"a": 10.0, "b": 90.0, "c": 50.0}]
    assert best_order(rows, queries, "abc") == ("b", "c", "a")


def test_missing_values_pass_no_comparison() -> None:
    rows = {"a": np.array([np.nan, 5.0]), "b": np.array([1.0, 1.0])}
    assert visits_of(rows, [{"a": 0.0, "b": 0.0}], "ab") == 1.5
    assert visits_of(rows, [{"a": (0.0, 10.0), "b": 0.0}], "ab") == 1.5


def test_a_new_filter_begins_with_a_small_share_and_selectivity_decides_in_the_end() -> None:
    looks = 4096 // 512 + 1
    found = tickets.shares("selectivity", 4096, 512, 1)
    assert len(found) == 5 * looks
    assert found[looks]["b"] < 0.05 and found[4 * looks]["e"] < 0.05
    # the second stage has two filters, which refuse 10 and 30 % of the rows
    assert found[2 * looks - 1]["b"] > 2 * found[2 * looks - 1]["a"]
    assert sum(found[-1].values()) == pytest.approx(1.0)


def test_predicates_decide_among_filters_of_one_selectivity() -> None:
    last = np.mean([list(tickets.shares("predicates", 4096, 4096, seed)[-1].values()) for seed in range(12)], axis=0)
    assert last[0] > last[4]


@pytest.mark.slow
def test_the_eddy_calls_a_function_as_often_whatever_the_articles_and_pull_up_more() -> None:
    few, many = functions.calls_per_quote(1, 32, 1), functions.calls_per_quote(8, 32, 1)
    assert many["eddy"] <= functions.FUNCTIONS and many["eddy"] == pytest.approx(few["eddy"], rel=0.25)
    assert few["PushDown"] == many["PushDown"] == functions.FUNCTIONS
    assert many["PullUp"] > 5 * few["PullUp"]


def test_a_bar_is_asked_about_once_however_many_posts_it_meets() -> None:
    hour = 3_600_000_000
    bars = {"at": np.arange(10) * hour, "symbol": np.array(["AAPL"] * 10), "volume": np.full(10, 2_000_000)}
    posts = {"at": np.arange(100) * hour // 10, "symbol": np.array(["AAPL"] * 100)}
    assert news.calls_of(bars, posts) <= 10 * news.FUNCTIONS
    # each bar meets the posts less than six hours before and after it, as far as there are
    assert news.matches_of(bars, posts) == sum(abs(b - p) < news.WINDOW_HOURS * hour for b in bars["at"] for p in posts["at"])
