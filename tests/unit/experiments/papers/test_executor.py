"""Plans, queues and virtual time."""

from __future__ import annotations

from collections import Counter

import pytest

from experiments.papers import (
    KeyedTable,
    Maintenance,
    OverwritingAggregate,
    Pipeline,
    QueuedDeltaStar,
    QueuedDistinct,
    QueuedGroupBy,
    QueuedJoin,
    QueuedMinus,
    QueuedSelect,
    QueuedTableJoin,
    QueuedUnion,
    Retraction,
    RowAggregate,
    ServiceTimes,
    TemporalAggregate,
    TimedRow,
    TimedSource,
    distinct,
)
from experiments.papers.buffers import Element
from experiments.papers.machine.messages import MessageKind, QueueMessage
from experiments.papers.machine.queue import Queue
from lineage.errors import EddyError
from tests.reference.window_plans import PLANS, random_feeds, sources
from windows.spec import WindowSpec


def _s(name: str = "s", width: int = 10, **options: object) -> TimedSource:
    return TimedSource(name, WindowSpec.range(width), **options)


def _message(kind: MessageKind, time: int) -> QueueMessage:
    return QueueMessage(
        kind, time, time, None if kind in (MessageKind.NULL, MessageKind.JOIN_MESSAGE) else Element(time, (), 0, time)
    )


def _waiting(queue: Queue) -> list[tuple[MessageKind, int, bool]]:
    found = []
    while len(queue):
        message, _ = queue.take()
        found.append((message.kind, message.time, message.flag))
    return found


def test_a_queue_drops_scheduled_ends_before_what_comes_and_keeps_premature_ones() -> None:
    queue = Queue(piggybacks=True)
    for kind, time in [
        (MessageKind.NEGATIVE, 1),
        (MessageKind.PREMATURE, 2),
        (MessageKind.JOIN_MESSAGE, 3),
        (MessageKind.NULL, 4),
        (MessageKind.POSITIVE, 5),
    ]:
        queue.put(_message(kind, time), 0)
    assert _waiting(queue) == [(MessageKind.PREMATURE, 2, True), (MessageKind.POSITIVE, 5, True)]
    assert queue.purged == 3


def test_a_queue_keeps_ends_that_are_due_after_what_comes() -> None:
    queue = Queue(piggybacks=True)
    queue.put(_message(MessageKind.NEGATIVE, 9), 0)
    # an input that lags: its row cannot speak for an end later than itself
    queue.put(_message(MessageKind.POSITIVE, 5), 1)
    assert _waiting(queue) == [(MessageKind.NEGATIVE, 9, False), (MessageKind.POSITIVE, 5, False)]


def test_without_piggybacking_nothing_is_dropped() -> None:
    queue = Queue(piggybacks=False)
    for kind, time in [(MessageKind.NEGATIVE, 1), (MessageKind.POSITIVE, 2)]:
        queue.put(_message(kind, time), 0)
    assert _waiting(queue) == [(MessageKind.NEGATIVE, 1, False), (MessageKind.POSITIVE, 2, False)]


def test_service_times_add_up_along_the_plan() -> None:
    source = _s(width=100)
    services = {"select": ServiceTimes(3), "distinct": ServiceTimes(4), "recipient": ServiceTimes(5)}
    pipeline = Pipeline(QueuedDistinct(QueuedSelect(source, lambda row: True)), "negative", service=services)
    pipeline.feed(source, [TimedRow(10, (1,))])
    pipeline.run(21)
    assert not pipeline.idle
    pipeline.run(22)
    assert pipeline.idle and pipeline.delays.largest_us == pipeline.delays.average_us == 12
    assert {name: op.counters.busy_us for name, op in pipeline.operators.items()} == {"select": 3, "distinct": 4, "recipient": 5}


def test_one_processor_serves_one_operator_at_a_time() -> None:
    finished = {}
    for processors in (None, 1):
        a, b = _s("a", 1000), _s("b", 1000)
        plan = QueuedUnion(QueuedSelect(a, lambda row: True), QueuedSelect(b, lambda row: True))
        pipeline = Pipeline(
            plan, "direct", service={"select": ServiceTimes(10), "select#2": ServiceTimes(10)}, processors=processors
        )
        for source in (a, b):
            pipeline.feed(source, [TimedRow(0, (source.name,))])
        pipeline.run(100)
        finished[processors] = pipeline.delays.largest_us
    assert finished == {None: 10, 1: 20}


def test_probes_and_sent_messages_take_their_time() -> None:
    a, b = _s("a", 1000), _s("b", 1000)
    pipeline = Pipeline(QueuedJoin(a, b, [0], [0]), "direct", service={"join": ServiceTimes(1, 10, 100)})
    pipeline.feed(a, [TimedRow(0, (1,)), TimedRow(1, (1,))])
    pipeline.feed(b, [TimedRow(2, (1,))])
    pipeline.run(10_000)
    # two looks that find nothing, then one at two rows that sends two
    assert pipeline.operators["join"].counters.busy_us == 2 * (1 + 10) + (1 + 20 + 200)
    assert (counters := pipeline.operators["join"].counters).busy_us / counters.n_received == pytest.approx(243 / 3)


def test_the_same_feed_gives_the_same_run() -> None:
    def run() -> tuple[object, ...]:
        plan = PLANS["minus over join over distinct"]()
        feeds = random_feeds(plan, 5)
        pipeline = Pipeline(plan, "piggyback", service=ServiceTimes(3, 1, 1), processors=2, packet=2)
        for source in sources(plan):
            pipeline.feed(source, feeds[source.name])
        pipeline.run(200)
        counters = [(name, op.counters) for name, op in pipeline.operators.items()]
        return pipeline.answer, pipeline.delays, counters

    assert run() == run()


def test_running_in_steps_is_running_at_once() -> None:
    found = []
    for stops in ([300], [*range(0, 300, 7), 300]):
        plan = PLANS["group-by of join"]()
        feeds = random_feeds(plan, 6)
        pipeline = Pipeline(plan, "negative", service=ServiceTimes(2))
        for source in sources(plan):
            pipeline.feed(source, feeds[source.name])
        for stop in stops:
            pipeline.run(stop)
        found.append((Counter(pipeline.answer), pipeline.delays, [op.counters for op in pipeline.operators.values()]))
    assert found[0] == found[1]


def test_a_change_of_a_table_counts_for_rows_that_come_after_it() -> None:
    """Ends come from what was joined, not from another probe."""
    for expiry in ("negative", "negative+message", "piggyback", "update-pattern"):
        source = _s(key=(1,))
        table = KeyedTable([0], [(1, "old")])
        pipeline = Pipeline(QueuedTableJoin(source, table, [0]), expiry)
        pipeline.feed(source, [TimedRow(0, (1, "k")), TimedRow(5, (1, "l")), Retraction(7, ("k",))])
        pipeline.run(2)
        table.delete((1,))
        table.insert((1, "new"))
        pipeline.run(6)
        assert sorted(pipeline.answer) == [(1, "k", 1, "old"), (1, "l", 1, "new")]
        pipeline.run(8)
        assert pipeline.answer == [(1, "l", 1, "new")]
        pipeline.run(16)
        pipeline.settle()
        assert pipeline.answer == []


def test_distinct_takes_the_form_that_its_input_allows() -> None:
    assert isinstance(distinct(_s()), QueuedDeltaStar)
    assert isinstance(distinct(QueuedJoin(_s("a"), _s("b"), [0], [0])), QueuedDeltaStar)
    assert isinstance(distinct(QueuedMinus(_s("a"), _s("b"))), QueuedDistinct)
    assert isinstance(distinct(QueuedGroupBy(_s(), [0], [RowAggregate("COUNT")])), QueuedDistinct)


def test_a_union_of_windows_of_different_lengths_is_weak() -> None:
    assert QueuedUnion(_s("a", 10), _s("b", 10)).pattern == "weakest"
    assert QueuedUnion(_s("a", 10), _s("b", 20)).pattern == "weak"


def _reused() -> object:
    plan = QueuedDistinct(_s())
    Pipeline(plan)
    return Pipeline(plan)


def _read_twice() -> object:
    both = QueuedDistinct(_s())
    return Pipeline(QueuedUnion(both, both))


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        (lambda: Pipeline(_s(), "auto"), "bad_option", '"auto"'),
        (lambda: Pipeline(_s(), packet=0), "bad_option", "packet"),
        (lambda: Pipeline(_s(), processors=0), "bad_option", "processors"),
        (lambda: Pipeline(QueuedDistinct(_s()), service={"join": ServiceTimes(1)}), "bad_option", '"join"'),
        (_reused, "conflict", "in a plan already"),
        (_read_twice, "bad_plan", "two readers"),
        (lambda: Pipeline(QueuedDeltaStar(QueuedMinus(_s("a"), _s("b")))), "bad_plan", "delta-star"),
        (lambda: Pipeline(TemporalAggregate(_s(key=(0,)), [], []), "direct"), "bad_plan", "temporal"),
        (lambda: Pipeline(TemporalAggregate(_s(), [], []), "negative"), "bad_option", "known ends"),
        (lambda: Pipeline(QueuedDistinct(OverwritingAggregate(_s(), [], [RowAggregate("COUNT")]))), "bad_plan", "overwriting"),
        (lambda: Maintenance(idle_interval_us=0), "bad_option", "out of range"),
        (lambda: RowAggregate("MODE", 0), "bad_option", "MODE"),
        (lambda: RowAggregate("SUM", 0, distinct=True), "bad_option", "SUM"),
        (lambda: RowAggregate("SUM"), "bad_option", "SUM"),
        (lambda: _s().feed([TimedRow(2, ()), TimedRow(1, ())]), "bad_rows", "older"),
        (lambda: _s().feed([Retraction(2, ())]), "bad_rows", "key"),
    ],
)
def test_what_would_be_wrong_is_refused(call, code: str, says: str) -> None:
    with pytest.raises(EddyError) as caught:
        call()
    assert caught.value.code == code
    assert says in caught.value.fact


def test_a_scalar_aggregate_has_a_result_from_the_start() -> None:
    pipeline = Pipeline(QueuedGroupBy(_s(), [], [RowAggregate("COUNT"), RowAggregate("SUM", 0)]), "direct", start_us=70)
    pipeline.run(70)
    assert pipeline.answer == [(0, None)]
    assert [row.start for row in pipeline.recipient.states[0]] == [70]


def test_a_row_older_than_the_pipeline_is_refused() -> None:
    source = _s()
    pipeline = Pipeline(source)
    pipeline.run(50)
    with pytest.raises(EddyError) as caught:
        pipeline.feed(source, [TimedRow(49, (1,))])
    assert caught.value.code == "bad_rows"


def test_sources_count_rows_that_never_live_and_unknown_keys() -> None:
    source = TimedSource("s", WindowSpec.range(10), key=(0,), has_end=True)
    pipeline = Pipeline(source, "negative")
    pipeline.feed(
        source, [TimedRow(1, (1,), 1), TimedRow(2, (2,)), Retraction(3, (2,)), Retraction(4, (2,)), Retraction(5, (9,))]
    )
    pipeline.run(6)
    assert source.dropped == 3 and pipeline.answer == []


def test_values_that_are_not_numbers_or_absent_are_equal_to_themselves() -> None:
    source = _s()
    pipeline = Pipeline(QueuedDistinct(source), "negative")
    pipeline.feed(source, [TimedRow(t, (value,)) for t, value in enumerate([float("nan"), float("nan"), None, None, 0.0, -0.0])])
    pipeline.run(6)
    assert len(pipeline.answer) == 3
    scalar = _s()
    pipeline = Pipeline(
        QueuedGroupBy(scalar, [], [RowAggregate("MAX", 0), RowAggregate("MIN", 0), RowAggregate("SUM", 0)]), "negative"
    )
    pipeline.feed(scalar, [TimedRow(0, (float("nan"),)), TimedRow(1, (2.5,)), TimedRow(2, (None,))])
    pipeline.run(3)
    ((greatest, least, total),) = pipeline.answer
    assert greatest != greatest and least == 2.5 and total != total
