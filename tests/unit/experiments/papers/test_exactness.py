"""Settled answers are those of a recomputation, at every instant, for every plan and strategy."""

from __future__ import annotations

from collections import Counter

import pytest

from experiments.papers import EXPIRY, Maintenance, Pipeline, ServiceTimes
from experiments.papers.machine.messages import MessageKind
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.strategy import Trigger
from tests.reference.seeds import seeds
from tests.reference.window_plans import PLANS, answer_at, random_feeds, sources
from windows import patterns

#: strategy, maintenance
WAYS = [(expiry, Maintenance()) for expiry in EXPIRY] + [
    ("update-pattern", Maintenance(lazy_interval_us=4, partitions=2, adapts=False, shares=False)),
    ("update-pattern", Maintenance(frequent_premature=True)),
    ("direct", Maintenance(idle_interval_us=3, lazy_interval_us=5)),
    ("update-pattern", Maintenance(eager_interval_us=6, lazy_interval_us=4)),
]


def _compare(name: str, expiry: str, maintenance: Maintenance, seed: int, step_us: int) -> None:
    """Compare at instants so far apart; operators do nothing but what their table says."""
    plan = PLANS[name]()
    feeds = random_feeds(plan, seed)
    pipeline = Pipeline(plan, expiry, maintenance=maintenance)
    for source in sources(plan):
        pipeline.feed(source, feeds[source.name])
    told = all(op.mode.trigger is Trigger.MESSAGE for op in pipeline.operators.values())
    for at in range(0, 62, step_us):
        pipeline.run(at)
        # where all ends are told nobody need look for one
        if not told:
            pipeline.settle()
        assert pipeline.idle
        pipeline.check()
        assert Counter(pipeline.answer) == answer_at(pipeline.recipient, feeds, at), (name, expiry, seed, at)
    for op in pipeline.operators.values():
        assert set(op.counters.cases) <= set(patterns.OPERATORS[op.rule].cases), (op.name, op.counters.cases)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize(
    "way",
    [
        # how state is kept within a strategy is left to the whole check
        pytest.param(way, id=f"{way[0]}{k}", marks=[pytest.mark.slow] if way[1] != Maintenance() else [])
        for k, way in enumerate(WAYS)
    ],
)
def test_answers_are_those_of_a_recomputation_at_every_instant(name: str, way: tuple[str, Maintenance]) -> None:
    _compare(name, *way, seed=1, step_us=1)
    _compare(name, *way, seed=2, step_us=7)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS, ids=[f"{expiry}{k}" for k, (expiry, _) in enumerate(WAYS)])
def test_many_histories_give_the_answers_of_a_recomputation(way: tuple[str, Maintenance]) -> None:
    for name in PLANS:
        for seed in seeds(range(3, 13), 2):
            _compare(name, *way, seed=seed, step_us=1 + seed % 4)


#: packet, processors, service
LOADS = [(1, None, ServiceTimes(2)), (3, 1, ServiceTimes(1)), (2, 2, ServiceTimes(1, 1, 1))]


def _compare_late(name: str, expiry: str, load: tuple[int, int | None, ServiceTimes], seed: int) -> None:
    """Messages wait while rows come; what is alive when all has been worked off is exact."""
    packet, processors, service = load
    plan = PLANS[name]()
    feeds = random_feeds(plan, seed, n_rows=20)
    pipeline = Pipeline(plan, expiry, service=service, packet=packet, processors=processors)
    for source in sources(plan):
        pipeline.feed(source, feeds[source.name])
    for at in (7, 13, 22, 31, 39, 45, 70, 500):
        pipeline.run(at)
        if at > 20:
            pipeline.settle()
            assert Counter(pipeline.answer) == answer_at(pipeline.recipient, feeds, at), (name, expiry, seed, at)
        pipeline.check()


@pytest.mark.parametrize("expiry", EXPIRY)
def test_what_was_late_is_made_up_for_when_the_queues_are_empty(expiry: str) -> None:
    for k, name in enumerate(PLANS):
        _compare_late(name, expiry, LOADS[k % len(LOADS)], seed=0)


@pytest.mark.long
@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("expiry", EXPIRY)
def test_many_histories_are_made_up_for(expiry: str, load: tuple[int, int | None, ServiceTimes]) -> None:
    for name in PLANS:
        for seed in seeds(range(1, 7), 2):
            _compare_late(name, expiry, load, seed)


#: strategies under which readers, or some of them, find scheduled ends by themselves
COMPRESSED = [
    ("input", Maintenance()), ("direct", Maintenance()), ("update-pattern", Maintenance()),
    ("update-pattern", Maintenance(frequent_premature=True)),
]  # fmt: skip


def _compare_compressed(name: str, expiry: str, maintenance: Maintenance, packet: int, seed: int) -> tuple[int, int]:
    """What the operators received with and without compression; both answers are exact."""
    n_received = []
    for compresses in (False, True):
        plan = PLANS[name]()
        feeds = random_feeds(plan, seed)
        pipeline = Pipeline(
            plan, expiry, maintenance=maintenance, packet=packet, service=ServiceTimes(2), compresses=compresses
        )  # fmt: skip
        for source in sources(plan):
            pipeline.feed(source, feeds[source.name])
        for at in (7, 13, 22, 31, 39, 45, 70, 500):
            pipeline.run(at)
            pipeline.settle()
            pipeline.check()
            assert Counter(pipeline.answer) == answer_at(pipeline.recipient, feeds, at), (name, expiry, seed, at, compresses)
        n_received.append(sum(op.counters.n_received for op in pipeline.operators.values()))
    return n_received[0], n_received[1]


@pytest.mark.parametrize("way", COMPRESSED, ids=["input", "direct", "update-pattern", "negative above negation"])
@pytest.mark.slow
def test_compressed_streams_give_the_same_answers_in_fewer_messages(way: tuple[str, Maintenance]) -> None:
    plain, compressed = 0, 0
    for name in PLANS:
        for packet, seed in ((2, 0), (5, 3), (7, 1)):
            of_plain, of_compressed = _compare_compressed(name, *way, packet, seed)
            assert of_compressed <= of_plain, name
            plain, compressed = plain + of_plain, compressed + of_compressed
    assert compressed < 0.99 * plain


# -- Each operator does every case of its table on some input, and no other on any -------------------------------------


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
