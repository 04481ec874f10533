"""Each operator does every case of its table on some input, and no other on any."""

from __future__ import annotations

from collections import Counter

import pytest

from experiments.papers import EXPIRY, Pipeline
from experiments.papers.machine.messages import MessageKind
from experiments.papers.machine.node import PlanNode
from tests.reference.window_plans import PLANS, random_feeds, sources
from windows import patterns

#: kind -> the plan of the table in which it does all it can
OPERATORS = {
    "select": "select",
    "project": "project",
    "union": "union",
    "join": "join",
    "table join": "table join",
    "distinct": "distinct",
    "delta-star": "delta-star of weak",
    "minus": "minus of weak",
    "intersect": "intersect",
    "group-by": "group-by",
}
PAPER = {
    "distinct": {"+->+", "-->+", "-->-"},
    "delta-star": {"+->+", "-->+", "-->-"},
    "intersect": {"+->+", "-->+", "-->-"},
    "minus": {"+->+", "+->-", "-->+", "-->-"},
    "group-by": {"+->+", "+->-", "-->+", "-->-"},
}


def _cases(plan: PlanNode, kind: str, expiry: str, seed: int) -> Counter[str]:
    feeds = random_feeds(plan, seed)
    pipeline = Pipeline(plan, expiry)
    for source in sources(plan):
        pipeline.feed(source, feeds[source.name])
    pipeline.run(80)
    return sum((op.counters.cases for op in pipeline.operators.values() if op.kind == kind), Counter())


@pytest.mark.parametrize("kind", OPERATORS)
def test_the_cases_of_an_operator_occur_and_no_other(kind: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(8):
        seen += _cases(PLANS[OPERATORS[kind]](), kind, "negative", seed)
    assert set(seen) == PAPER.get(kind, {"+->+", "-->-"})
    rule = next(op.rule for op in Pipeline(PLANS[OPERATORS[kind]](), "negative").operators.values() if op.kind == kind)
    assert set(seen) == set(patterns.OPERATORS[rule].cases)


@pytest.mark.parametrize("expiry", EXPIRY)
def test_premature_ends_travel_under_every_strategy(expiry: str) -> None:
    """From the minus through a join, a distinct and a select, each premature end as it is."""
    for name in ("join of minus", "minus of minus", "distinct of keyed", "table join of keyed", "group-by"):
        received: Counter[MessageKind] = Counter()
        for seed in range(4):
            plan = PLANS[name]()
            feeds = random_feeds(plan, seed)
            pipeline = Pipeline(plan, expiry)
            for source in sources(plan):
                pipeline.feed(source, feeds[source.name])
            pipeline.run(80)
            received += pipeline.operators["recipient"].counters.received
        assert received[MessageKind.PREMATURE] > 0
        if expiry in ("input", "direct", "update-pattern"):
            assert received[MessageKind.NEGATIVE] == received[MessageKind.JOIN_MESSAGE] == 0
