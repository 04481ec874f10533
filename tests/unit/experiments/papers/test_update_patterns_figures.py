"""The examples of the update-patterns paper: what travels and what is kept under each strategy."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from experiments.papers import (
    Maintenance,
    Pipeline,
    QueuedDeltaStar,
    QueuedDistinct,
    QueuedGroupBy,
    QueuedJoin,
    QueuedMinus,
    QueuedProject,
    QueuedSelect,
    RowAggregate,
    ServiceTimes,
    TimedRow,
    TimedSource,
    distinct,
)
from experiments.papers.buffers import CalendarBuffer, FifoBuffer, GroupArray, HashBuffer, ListBuffer, SharedBuffer
from experiments.papers.machine.messages import ENDS, MessageKind
from tests.unit.experiments.papers.listening import listen, plain
from windows.spec import WindowSpec


def _window(name: str, width: int = 10) -> TimedSource:
    return TimedSource(name, WindowSpec.range(width))


def _rows(seed: int, n_rows: int, n_values: int) -> list[TimedRow]:
    rng = random.Random(seed)
    return [TimedRow(2 * k + seed, (rng.randrange(n_values), rng.randrange(100))) for k in range(n_rows)]


@pytest.mark.parametrize("make", [QueuedDistinct, QueuedDeltaStar])
def test_figure_2_a_newer_x_takes_the_place_of_the_one_that_expires(make: type[QueuedDistinct]) -> None:
    source = _window("s")
    pipeline = Pipeline(make(source), "update-pattern")
    heard = listen(pipeline, pipeline.recipient.inputs[0].name)
    pipeline.feed(source, [TimedRow(t, (v,)) for t, v in [(1, "x"), (3, "x"), (4, "y"), (6, "y")]])
    pipeline.run(10)
    pipeline.settle()
    assert plain(heard) == [(1, "+", ("x",)), (4, "+", ("y",))]
    pipeline.run(11)
    pipeline.settle()
    assert plain(heard)[2:] == [(11, "+", ("x",))]
    # y was sent before the newer x and ends after it: the order is not that of generation
    assert [row.end for row in pipeline.recipient.states[0]] == [14, 13]


@pytest.mark.parametrize(("expiry", "ends_into_result"), [("negative", 2), ("direct", 0), ("update-pattern", 0)])
def test_figures_3_and_4_a_negative_goes_through_the_whole_plan_and_the_direct_approach_sends_none(
    expiry: str, ends_into_result: int
) -> None:
    left, right = _window("left"), _window("right", 100)
    pipeline = Pipeline(
        QueuedJoin(QueuedSelect(left, lambda row: row[0] > 0), QueuedSelect(right, lambda row: True), [0], [0]), expiry
    )
    pipeline.feed(left, [TimedRow(1, (5,))])
    pipeline.feed(right, [TimedRow(2, (5,)), TimedRow(3, (5,))])
    pipeline.run(20)
    counters = {name: op.counters for name, op in pipeline.operators.items()}
    assert sum(counters["recipient"].received[kind] for kind in ENDS) == ends_into_result
    assert counters["select"].received[MessageKind.NEGATIVE] == (1 if expiry == "negative" else 0)
    pipeline.settle()
    assert pipeline.answer == []


def test_the_direct_approach_ends_rows_by_its_clock_when_nothing_comes() -> None:
    for expiry, left_over in (("input", 1), ("direct", 0)):
        source = _window("s")
        pipeline = Pipeline(QueuedDistinct(source), expiry, maintenance=Maintenance(idle_interval_us=4))
        pipeline.feed(source, [TimedRow(1, (1,))])
        pipeline.run(40)
        assert len(pipeline.answer) == left_over
    # at 4 after the last work, and every 4 after that: the end at 11 is found at 13
    assert pipeline.delays.largest_us == 2
    assert pipeline.operators["recipient"].counters.ticks > 0


def test_an_idle_operator_does_not_run_ahead_of_those_below_it() -> None:
    """U 2.3.2: rows up to 100 have come, the select has processed those up to 98; its reader's clock is not 100."""
    source = _window("s", 50)
    pipeline = Pipeline(
        QueuedDistinct(QueuedSelect(source, lambda row: True)),
        "direct",
        service={"select": ServiceTimes(30)},
        maintenance=Maintenance(idle_interval_us=5),
    )
    pipeline.feed(source, [TimedRow(0, (0,)), TimedRow(10, (1,)), TimedRow(20, (2,)), TimedRow(30, (3,))])
    pipeline.run(100)
    # the row of 30 leaves the select at 120: what ends by then must not be ended by a clock of 100
    assert pipeline.operators["distinct"].clock == 30
    pipeline.run(200)
    assert pipeline.operators["distinct"].clock > 120


def test_figure_5_a_result_that_came_later_ends_first() -> None:
    first, second = _window("w1"), _window("w2")
    join = QueuedJoin(first, second, [0], [0])
    pipeline = Pipeline(join, "update-pattern")
    pipeline.feed(first, [TimedRow(1, ("u",)), TimedRow(4, ("t",))])
    pipeline.feed(second, [TimedRow(5, ("t",)), TimedRow(6, ("u",))])
    pipeline.run(8)
    rows = sorted(pipeline.recipient.states[0], key=lambda row: row.start)
    assert [(row.values[0], row.end) for row in rows] == [("t", 14), ("u", 11)]
    assert join.pattern == "weak" and isinstance(pipeline.recipient.states[0], CalendarBuffer)


def test_states_are_kept_in_the_structure_of_their_pattern() -> None:
    a, b, c = _window("a"), _window("b"), _window("c")
    plan = QueuedJoin(QueuedMinus(QueuedJoin(a, b, [0], [0]), b), c, [0], [0])
    pipeline = Pipeline(plan, "update-pattern")
    inner, outer, minus = (pipeline.operators[name] for name in ("join", "join#2", "minus"))
    assert [type(state) for state in inner.states] == [FifoBuffer, FifoBuffer]
    assert [type(state) for state in minus.states] == [CalendarBuffer, FifoBuffer]
    assert [type(state) for state in outer.states] == [CalendarBuffer, FifoBuffer]
    groups = Pipeline(QueuedGroupBy(_window("a"), [0], [RowAggregate("COUNT")]), "update-pattern")
    assert isinstance(groups.recipient.states[0], GroupArray)
    for expiry, kind in (("direct", ListBuffer), ("input", ListBuffer), ("negative", HashBuffer), ("piggyback", CalendarBuffer)):
        pipeline = Pipeline(QueuedJoin(_window("a"), _window("b"), [0], [0]), expiry)
        assert all(type(state) is kind for state in pipeline.operators["join"].states)


def test_states_that_react_to_ends_are_ordered_by_end_and_lazy_ones_by_insertion() -> None:
    weak = TimedSource("a", WindowSpec.range(10), has_end=True)
    pipeline = Pipeline(QueuedJoin(QueuedDistinct(weak), weak, [0], [0]), "update-pattern", maintenance=Maintenance(shares=False))
    rows, output = pipeline.operators["distinct"].states
    assert (rows.by_end, output.by_end) == (False, True)
    assert pipeline.operators["join"].states[1].by_end is False


def test_lazy_maintenance_touches_less_and_keeps_more() -> None:
    kept, touched = {}, {}
    for lazy in (0, 40):
        a, b = (TimedSource(name, WindowSpec.range(80), has_end=True) for name in "ab")
        pipeline = Pipeline(QueuedJoin(a, b, [0], [0]), "update-pattern", maintenance=Maintenance(lazy_interval_us=lazy))
        pipeline.feed(a, _rows(0, 200, 20))
        pipeline.feed(b, _rows(1, 200, 20))
        pipeline.run(399)
        join = pipeline.operators["join"]
        kept[lazy], touched[lazy] = join.n_rows, join.touched
        pipeline.settle()
        assert pipeline.answer
    assert kept[40] > kept[0] and touched[40] < touched[0]


def test_the_eager_interval_bounds_how_late_a_state_reacts_to_ends() -> None:
    """U 6.1: how often states that must react to ends look for them; the paper has the time between two rows."""
    touched, late = {}, {}
    for interval in (0, 5, 40):
        source = _window("s", 80)
        maintenance = Maintenance(eager_interval_us=interval, idle_interval_us=1000)
        pipeline = Pipeline(QueuedGroupBy(source, [0], [RowAggregate("COUNT")]), "direct", maintenance=maintenance)
        pipeline.feed(source, _rows(0, 300, 6))
        pipeline.run(599)
        touched[interval] = pipeline.operators["group-by"].touched
        late[interval] = pipeline.delays.largest_us
        pipeline.settle()
        assert sum(count for _, count in pipeline.answer) == 40, "the window, once all ends are looked for"
    # rows come every 2: with each of them, at the latest one later than 5 after the last look, and so on
    assert late[0] == 0 and 0 < late[5] <= 2 * (5 + 2) and late[5] < late[40] <= 2 * (40 + 2)
    assert touched[40] < touched[5] < touched[0]


def test_query_4_keeps_the_results_of_distinct_once() -> None:
    """U Query 4: the output of delta-star is the input state of the join."""
    rows = {}
    for shares in (True, False):
        sides = [distinct(QueuedProject(_window(name, 60), lambda row: (row[0],))) for name in "ab"]
        sources = [node for side in sides for node in side.walk() if isinstance(node, TimedSource)]
        pipeline = Pipeline(QueuedJoin(*sides, [0], [0]), "update-pattern", maintenance=Maintenance(shares=shares))
        for seed, source in enumerate(sources):
            pipeline.feed(source, _rows(seed, 100, 12))
        pipeline.run(150)
        pipeline.settle()
        join = pipeline.operators["join"]
        assert all(isinstance(state, SharedBuffer) for state in join.states) == shares
        stars = sum(op.n_rows for name, op in pipeline.operators.items() if name.startswith("delta-star"))
        outputs = sum(len(op.output_state) for name, op in pipeline.operators.items() if name.startswith("delta-star"))
        rows[shares] = stars + sum(len(state) for state in join.states if not isinstance(state, SharedBuffer))
        assert outputs > 0 and Counter(pipeline.answer)
    assert rows[False] - rows[True] == outputs


def test_delta_star_keeps_two_rows_a_value_where_two_tables_keep_the_window() -> None:
    sizes = {}
    for make in (QueuedDistinct, QueuedDeltaStar):
        source = _window("s", 400)
        pipeline = Pipeline(make(QueuedProject(source, lambda row: (row[0],))), "update-pattern")
        pipeline.feed(source, _rows(0, 300, 5))
        pipeline.run(500)
        sizes[make] = pipeline.operators[make.kind].n_rows
    assert sizes[QueuedDeltaStar] <= 2 * 5
    assert sizes[QueuedDistinct] > 150


def test_update_patterns_touch_least() -> None:
    """Query 1, both sides alike: touched rows of all states, and messages, per strategy."""
    work = {}
    for expiry in ("negative", "direct", "update-pattern"):
        a, b = _window("a", 200), _window("b", 200)
        pipeline = Pipeline(QueuedJoin(a, b, [0], [0]), expiry, maintenance=Maintenance(lazy_interval_us=10))
        pipeline.feed(a, _rows(0, 400, 40))
        pipeline.feed(b, _rows(1, 400, 40))
        pipeline.run(800)
        operators = pipeline.operators.values()
        work[expiry] = sum(op.touched for op in operators), sum(op.counters.n_received for op in operators)
    assert work["update-pattern"][0] * 10 < work["direct"][0]
    assert work["update-pattern"][1] * 1.7 < work["negative"][1]


def test_with_frequent_premature_ends_what_is_above_the_negation_is_told_all_ends() -> None:
    """U 5.4.3: direct below negation, negative above it."""
    a, b, c = _window("a"), _window("b"), _window("c")
    plan = QueuedJoin(QueuedMinus(QueuedJoin(a, b, [0], [0]), QueuedJoin(b, c, [0], [0])), QueuedJoin(c, a, [0], [0]), [0], [0])
    pipeline = Pipeline(plan, "update-pattern", maintenance=Maintenance(frequent_premature=True))
    modes = {name: (op.mode.trigger.value, op.mode.sends_ends) for name, op in pipeline.operators.items()}
    assert modes["join"] == modes["join#2"] == ("clock", False)
    assert modes["minus"] == ("clock", True)
    assert modes["join#3"] == modes["join#4"] == modes["recipient"] == ("message", True)
    assert isinstance(pipeline.recipient.states[0], HashBuffer)
