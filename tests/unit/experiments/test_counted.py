"""The experiments that count, for real at a small size: the same on every machine."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.bench.base import workloads
from experiments.cacq import functions, news, routing, tickets
from experiments.cacq.orders import best_order, visits_of


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
