"""What the papers promise of join messages and piggybacking, counted in virtual time on seeded input."""

from __future__ import annotations

import random

import pytest

from experiments.papers import (
    KeyedTable,
    Pipeline,
    QueuedGroupBy,
    QueuedJoin,
    QueuedTableJoin,
    RowAggregate,
    ServiceTimes,
    TimedRow,
    TimedSource,
)
from experiments.papers.machine.messages import MessageKind
from experiments.papers.machine.node import PlanNode
from windows.spec import WindowSpec

SECOND = 1_000_000
SERVICE = ServiceTimes(message_us=10_000)


def _items_and_bids(multiplicity: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """An item, then its bids."""
    items = [(50 * k, k) for k in range(120)]
    bids = [(50 * k + 1 + 7 * j, k) for k in range(120) for j in range(multiplicity)]
    return items, bids


def _many_to_many(multiplicity: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """As many rows of a key on each side, in any order."""
    rng = random.Random(3)
    sides = [
        sorted((50 * multiplicity * k + rng.randrange(900), k) for k in range(100 // multiplicity) for _ in range(multiplicity))
        for _ in range(2)
    ]
    return sides[0], sides[1]


@pytest.mark.parametrize("shape", [_items_and_bids, _many_to_many])
@pytest.mark.parametrize(("multiplicity", "bar"), [(1, 1 / 2), (2, 1 / 2), (3, 1 / 2), (4, 1 / 3), (5, 1 / 4)])
def test_join_messages_halve_the_work_of_an_end_and_quarter_it_where_rows_join_five(shape, multiplicity: int, bar: float) -> None:
    work, ratio, times = {}, {}, {}
    for expiry in ("negative", "negative+message"):
        a, b = (TimedSource(name, WindowSpec.range(1000)) for name in "ab")
        plan = QueuedGroupBy(QueuedJoin(a, b, [0], [0]), [], [RowAggregate("MAX", 2)])
        pipeline = Pipeline(plan, expiry, service=ServiceTimes(0, 1, 2))
        for source, rows in zip((a, b), shape(multiplicity)):
            pipeline.feed(source, [TimedRow(time, (key, time)) for time, key in rows])
        pipeline.run(10**7)
        join = pipeline.operators["join"].counters
        work[expiry] = (join.probes_of_ends + join.emitted_of_ends) / join.n_ends
        ratio[expiry] = pipeline.operators["group-by"].counters.negative_ratio
        times[expiry] = join.busy_us / join.n_received
    assert work["negative+message"] <= bar * work["negative"]
    # N Figure 13: fewer ends reach the next operator the more rows join, and a tuple takes less time in the join
    assert ratio["negative"] == 1.0
    assert ratio["negative+message"] <= (1.0 if multiplicity == 1 else 0.7)
    assert times["negative+message"] < 0.8 * times["negative"]


def _arrivals(rng: random.Random, rate: float, n_rows: int) -> list[int]:
    time, times = 0.0, []
    for _ in range(n_rows):
        time += rng.expovariate(rate) * SECOND
        times.append(int(time))
    return times


def _favourites(rate: float, selectivity: float, rng: random.Random) -> tuple[PlanNode, dict[TimedSource, list[TimedRow]]]:
    """Q1: a stream joined with a table, counted; so much of the stream joins."""
    sales = TimedSource("sales", WindowSpec.range(2 * SECOND))
    items = KeyedTable([0], [(item,) for item in range(int(1000 * selectivity))])
    rows = [TimedRow(time, (rng.randrange(1000),)) for time in _arrivals(rng, rate, 300)]
    return QueuedGroupBy(QueuedTableJoin(sales, items, [0]), [], [RowAggregate("COUNT")]), {sales: rows}


def _maximum(rate: float, output_rate: float, rng: random.Random) -> tuple[PlanNode, dict[TimedSource, list[TimedRow]]]:
    """Q2: two streams joined, the maximum; so many pairs a second (the axis of N Figure 11, see the errata)."""
    sides = [TimedSource(name, WindowSpec.range(2 * SECOND)) for name in "ab"]
    n_keys = max(1, int(2 * rate * rate * 2 / output_rate))
    rows = {
        side: [TimedRow(time, (rng.randrange(n_keys), rng.randrange(1000))) for time in _arrivals(rng, rate, 300)]
        for side in sides
    }
    return QueuedGroupBy(QueuedJoin(*sides, [0], [0]), [], [RowAggregate("MAX", 3)]), rows


def test_the_axis_of_figure_11_is_the_rate_of_the_join_not_the_printed_selectivity() -> None:
    """N 8.2.1 takes the product of two windows of 90 K rows for 8,100 K and 0.006 of it for the 48.6 K results of a window."""
    window = 50 * 60 * 30
    assert window * window == 1000 * 8_100_000, "the product is a thousand times the printed one"
    printed, seconds = 0.006, 60 * 30
    assert printed * 8_100_000 / seconds == pytest.approx(27) and printed * window * window / seconds == pytest.approx(27_000)
    # drawn by the rate of results the join has that rate, at any size of window
    for pairs in (9, 27, 45):
        plan, rows = _maximum(45, pairs, random.Random(2))
        pipeline = Pipeline(plan, "input")
        for source, fed in rows.items():
            pipeline.feed(source, fed)
        pipeline.run(last := max(fed[-1].time_us for fed in rows.values()))
        rate = pipeline.operators["join"].counters.emitted[MessageKind.POSITIVE] / (last / SECOND)
        assert rate == pytest.approx(pairs, rel=0.35)


def _average_delay(query, rate: float, passes: float, expiry: str, processors: int | None, service: ServiceTimes) -> Pipeline:
    plan, rows = query(rate, passes, random.Random(1))
    services = {node.kind: service for node in plan.walk() if not isinstance(node, TimedSource)}
    pipeline = Pipeline(plan, expiry, service=services, processors=processors)
    for source, fed in rows.items():
        pipeline.feed(source, fed)
    pipeline.run(max(fed[-1].time_us for fed in rows.values()))
    return pipeline


#: query, rows a second (each stream), selectivity or pairs a second
POINTS = [(_favourites, rate, selectivity) for rate in (10, 40, 60, 95) for selectivity in (0.05, 0.2, 0.6, 1.0)]
POINTS += [(_maximum, rate, pairs) for rate in (10, 25, 45) for pairs in (1, 10, 30, 60)]


@pytest.mark.parametrize(
    ("processors", "service"),
    [
        (None, ServiceTimes(10_000)),
        pytest.param(1, ServiceTimes(5_000), marks=pytest.mark.slow),
        pytest.param(None, ServiceTimes(5_000, 500, 500), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("query", "rate", "passes"), POINTS)
def test_piggybacking_follows_the_better_of_both_approaches(
    query, rate: float, passes: float, processors: int | None, service: ServiceTimes
) -> None:
    delay = {
        expiry: _average_delay(query, rate, passes, expiry, processors, service).delays.average_us
        for expiry in ("input", "negative", "piggyback")
    }
    assert delay["piggyback"] <= 1.1 * min(delay["input"], delay["negative"]) + service.message_us, delay


def test_the_input_triggered_answer_waits_for_rows_and_negative_tuples_wait_in_queues() -> None:
    """N Figures 10 to 12: which of them is late depends on how many rows pass."""

    def late(rate: float, passes: float, expiry: str) -> Pipeline:
        return _average_delay(_favourites, rate, passes, expiry, None, SERVICE)

    few = {expiry: late(40, 0.05, expiry).delays.average_us for expiry in ("input", "negative")}
    many = {expiry: late(60, 1.0, expiry).delays.average_us for expiry in ("input", "negative")}
    assert few["negative"] * 3 < few["input"]
    assert many["input"] * 3 < many["negative"]
    crowded, calm = late(60, 1.0, "negative"), late(60, 1.0, "input")
    assert crowded.occupancy.average(crowded.now_us) > 5 * calm.occupancy.average(calm.now_us)
    assert crowded.occupancy.largest > calm.occupancy.largest
    assert crowded.delays.largest_us >= crowded.delays.average_us


def test_piggybacking_processes_fewer_ends_the_more_rows_come() -> None:
    """N Figure 15: the ratio of negative to positive tuples into the operator above the join."""
    ratios = []
    for rate in (10, 40, 60, 95):
        pipeline = _average_delay(_favourites, rate, 1.0, "piggyback", None, SERVICE)
        ratios.append(pipeline.operators["group-by"].counters.negative_ratio)
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 0.8 and ratios[-1] < 0.1


def test_patience_bounds_how_long_an_end_waits_for_a_flag() -> None:
    delays = {}
    for patience in (0, 1000):
        plan, rows = _favourites(95, 1.0, random.Random(1))
        services = {name: ServiceTimes(5_000) for name in ("table join", "group-by")}
        pipeline = Pipeline(plan, "piggyback", service=services, processors=1, patience=patience)
        for source, fed in rows.items():
            pipeline.feed(source, fed)
        pipeline.run(6 * SECOND)
        delays[patience] = pipeline.delays.average_us
    assert delays[1000] < delays[0]
