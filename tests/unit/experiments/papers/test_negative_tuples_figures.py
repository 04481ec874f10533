"""The examples of the negative-tuples paper, figure by figure. Times are the paper's T0, T1, ..; service takes none."""

from __future__ import annotations

import pytest

from experiments.papers import (
    KeyedTable,
    Pipeline,
    QueuedDistinct,
    QueuedGroupBy,
    QueuedJoin,
    QueuedMinus,
    QueuedSelect,
    QueuedTableJoin,
    RowAggregate,
    ServiceTimes,
    TimedRow,
    TimedSource,
)
from experiments.papers.machine.messages import MessageKind
from tests.unit.experiments.papers.listening import Heard, listen, plain
from windows.spec import WindowSpec

FAVOURITES = (4, 5)
#: 4 5 . 4 5 of favourite items by T4, then 2 and 1 of others, a 5 at T7, a 1, and 4 again at T10
SALES = [(0, 4), (1, 5), (2, 1), (3, 4), (4, 5), (5, 2), (6, 1), (7, 5), (8, 1), (10, 4)]


def _count_favourites(expiry: str) -> tuple[TimedSource, Pipeline]:
    """Q1, the join of Figure 2a (Figure 4a prints another condition by mistake)."""
    sales = TimedSource("sales", WindowSpec.range(5))
    items = KeyedTable([0], [(item,) for item in FAVOURITES])
    pipeline = Pipeline(QueuedGroupBy(QueuedTableJoin(sales, items, [0]), [], [RowAggregate("COUNT")]), expiry)
    pipeline.feed(sales, [TimedRow(time, (item,)) for time, item in SALES])
    return sales, pipeline


def _answers(pipeline: Pipeline, upto: int) -> list[object]:
    found = []
    for time in range(upto + 1):
        pipeline.run(time)
        ((count,),) = pipeline.answer
        found.append(count)
    return found


def test_figure_2_the_input_triggered_answer_stays_wrong_until_a_row_passes_the_join() -> None:
    _, pipeline = _count_favourites("input")
    #     T0 T1 T2 T3 T4 | T5 T6 | T7
    assert _answers(pipeline, 7) == [1, 2, 2, 3, 4, 4, 4, 3]


def test_figure_4_negative_tuples_give_the_right_answer_at_every_time() -> None:
    _, pipeline = _count_favourites("negative")
    assert _answers(pipeline, 9) == [1, 2, 2, 3, 4, 3, 2, 3, 2, 1]


def test_figure_4a_as_printed_counts_other_rows() -> None:
    """`Price > 4` instead of the join: the 4s do not count, and the answer is not that of Figure 4b at any time from T0 to T8."""
    sales = TimedSource("sales", WindowSpec.range(5))
    printed = Pipeline(QueuedGroupBy(QueuedSelect(sales, lambda row: row[0] > 4), [], [RowAggregate("COUNT")]), "negative")
    printed.feed(sales, [TimedRow(time, (item,)) for time, item in SALES])
    _, right = _count_favourites("negative")
    assert _answers(printed, 8) == [0, 1, 1, 1, 2, 2, 1, 2, 2]
    assert _answers(right, 8) == [1, 2, 2, 3, 4, 3, 2, 3, 2]


@pytest.mark.parametrize("expiry", ["negative", "input", "direct"])
def test_figure_5_another_row_takes_the_place_of_the_one_that_stood_for_its_value(expiry: str) -> None:
    source = TimedSource("s1", WindowSpec.range(6))
    pipeline = Pipeline(QueuedDistinct(source), expiry)
    heard = listen(pipeline, "distinct")
    pipeline.feed(source, [TimedRow(t, (v,)) for t, v in [(1, 1), (3, 4), (4, 1), (5, 5), (6, 4)]])
    for time, right in [(5, {1, 4, 5}), (7, {1, 4, 5}), (9, {1, 4, 5}), (10, {4, 5}), (12, set())]:
        pipeline.run(time)
        pipeline.settle()
        assert {value for (value,) in pipeline.answer} == right
    sent = [(1, "+", (1,)), (3, "+", (4,)), (5, "+", (5,)), (7, "-", (1,)), (7, "+", (1,)), (9, "-", (4,)), (9, "+", (4,))]
    sent += [(10, "-", (1,)), (11, "-", (5,)), (12, "-", (4,))]
    assert plain(heard) == (sent if expiry == "negative" else [message for message in sent if message[1] == "+"])


@pytest.mark.parametrize("expiry", ["negative", "direct"])
def test_figure_6_minus_takes_results_back_and_shows_rows_later(expiry: str) -> None:
    s, r = TimedSource("s", WindowSpec.range(6)), TimedSource("r", WindowSpec.range(6))
    pipeline = Pipeline(QueuedMinus(s, r), expiry)
    heard = listen(pipeline, "minus")
    pipeline.feed(s, [TimedRow(t, (v,)) for t, v in [(3, 2), (4, 1), (5, 3), (7, 5)]])
    pipeline.feed(r, [TimedRow(t, (v,)) for t, v in [(2, 5), (6, 1)]])
    pipeline.run(5)
    assert plain(heard) == [(3, "+", (2,)), (4, "+", (1,)), (5, "+", (3,))]
    heard.clear()
    pipeline.run(6)
    assert plain(heard) == [(6, "!", (1,))]
    heard.clear()
    pipeline.run(7)
    assert plain(heard) == []
    pipeline.run(8)
    pipeline.settle()
    assert plain(heard) == [(8, "+", (5,))]
    assert sorted(pipeline.answer) == [(2,), (3,), (5,)]


def _maximum_price(expiry: str) -> tuple[Pipeline, list[Heard], list[Heard]]:
    """Q2 of Figure 7: a 6 in S1 at T1, and three in S2 that join it."""
    s1, s2 = TimedSource("s1", WindowSpec.range(5)), TimedSource("s2", WindowSpec.range(5))
    pipeline = Pipeline(QueuedGroupBy(QueuedJoin(s1, s2, [0], [0]), [], [RowAggregate("MAX", 3)]), expiry)
    joined, maximum = listen(pipeline, "join"), listen(pipeline, "group-by")
    pipeline.feed(s1, [TimedRow(1, (6, 10))])
    pipeline.feed(s2, [TimedRow(2, (6, 30)), TimedRow(3, (6, 50)), TimedRow(4, (6, 40))])
    pipeline.run(5)
    assert pipeline.answer == [(50,)]
    joined.clear()
    maximum.clear()
    pipeline.run(6)
    return pipeline, joined, maximum


def test_figure_7b_a_negative_joins_again_and_gives_three() -> None:
    pipeline, joined, maximum = _maximum_price("negative")
    assert [message.sign for message in joined] == ["-", "-", "-"]
    assert pipeline.operators["join"].counters.probes_of_ends == 3
    assert pipeline.answer == [(None,)]


def test_figure_7c_one_join_message_ends_all_rows_with_its_end() -> None:
    pipeline, joined, maximum = _maximum_price("negative+message")
    assert plain(joined) == [(6, "m", ())]
    assert pipeline.operators["join"].counters.probes_of_ends == 0
    # the operator above produces a new output for each row it expires
    assert [message.sign for message in maximum].count("+") == 3
    assert pipeline.answer == [(None,)]
    assert pipeline.operators["group-by"].counters.negative_ratio == 1 / 3


def test_figure_8_only_the_row_that_ends_first_sends_a_message() -> None:
    s1, s2 = TimedSource("s1", WindowSpec.range(5)), TimedSource("s2", WindowSpec.range(5))
    pipeline = Pipeline(QueuedJoin(s1, s2, [0], [0]), "negative+message")
    joined = listen(pipeline, "join")
    pipeline.feed(s1, [TimedRow(1, (7,))])
    pipeline.feed(s2, [TimedRow(3, (7,)), TimedRow(4, (9,))])
    pipeline.run(5)
    references = pipeline.operators["join"].references
    assert references[0] == {("s1", 1): 1} and not references[1]
    pipeline.run(20)
    assert plain(joined) == [(3, "+", (7, 7)), (6, "m", ())]
    assert not references[0] and not references[1]


def test_the_joined_tuples_table_sends_messages_for_rows_that_joined() -> None:
    _, pipeline = _count_favourites("negative+message")
    joined = listen(pipeline, "table join")
    pipeline.run(11)
    favourites = [time + 5 for time, item in SALES if item in FAVOURITES and time + 5 <= 11]
    assert [message.time for message in joined if message.sign == "m"] == favourites
    assert not any(message.sign == "-" for message in joined)


def test_figure_9_ends_travel_at_once_while_rows_are_scarce() -> None:
    _, pipeline = _count_favourites("piggyback")
    joined = listen(pipeline, "table join")
    # right at every time: an end waits for nothing
    assert _answers(pipeline, 9) == [1, 2, 2, 3, 4, 3, 2, 3, 2, 1]
    assert [message.time for message in joined if message.sign == "m"] == [9]
    # at T5 to T8 a row comes in the instant of an end: the end rides on it, as on 4+ at T10
    assert [(m.time, m.sign) for m in joined if m.flag] == [(5, "0"), (6, "0"), (7, "+"), (8, "0")]


def test_figure_9_a_row_drops_the_end_that_waits_before_it() -> None:
    """The count is busy when 4- and then 4+ come: it reads only 4+, with a flag, and ends the old 4 itself."""
    sales = TimedSource("sales", WindowSpec.range(50))
    service = {"group-by": ServiceTimes(4)}
    items = KeyedTable([0], [(4,), (5,)])
    pipeline = Pipeline(
        QueuedGroupBy(QueuedTableJoin(sales, items, [0]), [], [RowAggregate("COUNT")]), "piggyback", service=service
    )
    counted = listen(pipeline, "group-by")
    pipeline.feed(sales, [TimedRow(50, (4,)), TimedRow(98, (5,)), TimedRow(101, (4,))])
    pipeline.run(99)
    counted.clear()
    # at 100 the join message of the first 4 waits behind the 5, which is counted from 98 to 102; at 101 a 4 comes
    pipeline.run(100)
    assert pipeline.waiting("group-by") == 1
    pipeline.run(101)
    assert pipeline.waiting("group-by") == 1
    assert pipeline.operators["group-by"].counters.purged == 1
    pipeline.run(110)
    assert pipeline.answer == [(2,)]
    assert [(m.time, m.sign, m.values) for m in counted] == [
        (100, "!", (2,)),
        (100, "+", (1,)),
        (101, "!", (1,)),
        (101, "+", (2,)),
    ]
    assert all(message.flag for message in counted)
    received = pipeline.operators["group-by"].counters.received
    assert received[MessageKind.JOIN_MESSAGE] == 0 and received[MessageKind.POSITIVE] == 3


def test_a_flag_whose_row_is_filtered_out_goes_on_as_a_null_message() -> None:
    sales = TimedSource("sales", WindowSpec.range(50))
    service = {"table join": ServiceTimes(4)}
    pipeline = Pipeline(QueuedTableJoin(sales, KeyedTable([0], [(4,)]), [0]), "piggyback", service=service)
    joined = listen(pipeline, "table join")
    pipeline.feed(sales, [TimedRow(50, (4,)), TimedRow(99, (9,)), TimedRow(101, (9,))])
    pipeline.run(98)
    joined.clear()
    pipeline.run(110)
    # at 100 the end of the 4 waits behind a 9; the 9 of 101 takes its place and passes the time on
    assert joined == [Heard(101, "0", (), True)]
    assert pipeline.answer == []


def test_scheduled_ends_travel_under_negative_tuples_and_never_under_the_input_triggered_approach() -> None:
    """N 5 prints "explicit negative tuple (e.g., the ITA)": it is the NTA that has them."""
    for expiry, n_negatives in (("input", 0), ("negative", 4)):
        source = TimedSource("s", WindowSpec.range(5))
        pipeline = Pipeline(QueuedDistinct(source), expiry)
        heard = listen(pipeline, "distinct")
        pipeline.feed(source, [TimedRow(t, (t,)) for t in range(4)])
        pipeline.run(30)
        assert sum(message.sign == "-" for message in heard) == n_negatives
