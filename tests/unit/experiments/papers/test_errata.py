"""The errata of semantics.md: each printed form, kept here alone, gives wrong answers where ours are right."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from experiments.papers import (
    Pipeline,
    QueuedDeltaStar,
    QueuedDistinct,
    QueuedGroupBy,
    QueuedJoin,
    QueuedMinus,
    QueuedProject,
    Retraction,
    RowAggregate,
    TimedRow,
    TimedSource,
)
from experiments.papers.buffers import Element, ListBuffer, Values
from experiments.papers.machine import queue as queue_module
from experiments.papers.machine.messages import COVERED_BY_FLAG, MessageKind, QueueMessage
from experiments.papers.machine.node import PlanNode
from lineage.errors import EddyError
from tests.reference.window_plans import Feed, answer_at, random_feeds, sources
from windows.spec import WindowSpec


def _wrong(make: Callable[[], PlanNode], expiry: str, n_histories: int = 40, feeds: dict[str, Feed] | None = None) -> int:
    """How many histories give a wrong answer at some instant."""
    wrong = 0
    for seed in range(n_histories):
        plan = make()
        fed = feeds or random_feeds(plan, seed, n_rows=20, span_us=25)
        pipeline = Pipeline(plan, expiry)
        for source in sources(plan):
            pipeline.feed(source, fed[source.name])
        for at in range(40):
            pipeline.run(at)
            pipeline.settle()
            if Counter(pipeline.answer) != answer_at(pipeline.recipient, fed, at):
                wrong += 1
                break
    return wrong


def _first_column(node: PlanNode) -> PlanNode:
    return QueuedProject(node, lambda row: (row[0],))


def _a() -> PlanNode:
    return _first_column(TimedSource("a", WindowSpec.range(8)))


def _b() -> PlanNode:
    return _first_column(TimedSource("b", WindowSpec.range(6)))


def _weak(name: str = "a") -> PlanNode:
    return _first_column(TimedSource(name, WindowSpec.range(12), has_end=True))


class YoungestDeltaStar(QueuedDeltaStar):
    """U 5.3.1: a duplicate is the youngest of its value and replaces what the auxiliary state had."""

    def _begin(self, element: Element, port: int) -> None:
        if self._output.find(element.values):
            self._auxiliary[element.values] = element
        else:
            super()._begin(element, port)


def test_delta_star_keeps_the_duplicate_with_the_latest_end_not_the_youngest() -> None:
    assert _wrong(lambda: YoungestDeltaStar(_weak()), "update-pattern") > 10
    assert _wrong(lambda: QueuedDeltaStar(_weak()), "update-pattern") == 0
    # over rows that end as they came the youngest is the one with the latest end
    assert _wrong(lambda: YoungestDeltaStar(_a()), "update-pattern") == 0


class DecrementingMinus(QueuedMinus):
    """U 2.1: the end of a left row takes it out of the state and decrements its count."""

    def _end(self, element: Element, port: int) -> None:
        if port == 1:
            super()._end(element, port)
        elif element.id in self._output.get(element.values, {}):
            self._hide(self._output[element.values][element.id])


@pytest.mark.parametrize("expiry", ["negative", "update-pattern"])
def test_the_end_of_a_left_row_that_is_not_shown_takes_another_one_back(expiry: str) -> None:
    assert _wrong(lambda: DecrementingMinus(_weak(), _b()), expiry) > 5
    assert _wrong(lambda: QueuedMinus(_weak(), _b()), expiry) == 0


class AlgorithmTwo(QueuedMinus):
    """N Algorithm 2, step by step, with step 14 corrected: H_S and H_R are the states, O_S the output."""

    def _begin(self, element: Element, port: int) -> None:
        self.states[port].insert(element)
        n, m = self._counts(element.values)
        if port == 0 and n > m:  # steps 16 to 20
            self._show(element)
        elif port == 1 and n >= m:  # steps 21 to 26
            self._hide(next(iter(self._output[element.values].values())))

    def _end(self, element: Element, port: int) -> None:
        n, m = self._counts(element.values)
        shown = self._output.get(element.values, {})
        if port == 1:
            if n > m:  # steps 10 to 15
                self._show(self._retrieved(element.values))
        elif element.id in shown:  # step 9
            self._hide(shown[element.id])
        elif n >= m:  # steps 5 to 8
            self._hide(next(iter(shown.values())))

    def _counts(self, values: Values) -> tuple[int, int]:
        """Their frequencies, F_S and F_R."""
        left, right = (len(state.find(values)) for state in self.states)
        return left, right

    def _show(self, row: Element) -> None:
        self._output.setdefault(row.values, {})[row.id] = self._emit(row.starting(self.clock))

    def _retrieved(self, values: Values) -> Element:
        shown = self._output.get(values, {})
        return next(row for row in self.states[0].find(values) if row.id not in shown)


class AnyRowMinus(AlgorithmTwo):
    """N Algorithm 2, step 14: retrieve a row with the same value, which may be in the output already."""

    def _retrieved(self, values: Values) -> Element:
        return self.states[0].find(values)[0]


def _apart(seed: int) -> dict[str, Feed]:
    """Rows and ends of the two inputs at different times: the paper's steps know one event at a time."""
    rng = random.Random(seed)
    times = {name: sorted(rng.sample(range(k, 26, 2), 11)) for k, name in enumerate("ab")}
    return {name: [TimedRow(time, (rng.choice([1, 1, 2]), 0)) for time in found] for name, found in times.items()}


def test_a_row_that_enters_the_difference_is_one_that_is_not_shown() -> None:
    def wrong(make: type[QueuedMinus]) -> int:
        return sum(_wrong(lambda: make(_a(), _b()), "negative", 1, _apart(seed)) for seed in range(40))

    assert wrong(AnyRowMinus) > 5
    assert wrong(AlgorithmTwo) == wrong(QueuedMinus) == 0
    assert _wrong(lambda: QueuedMinus(_a(), _b()), "negative") == 0


class FirstRowGroupBy(QueuedGroupBy):
    """N Algorithm 3, step 14 as indented: only the row that makes a group is added to H."""

    def _begin(self, element: Element, port: int) -> None:
        group = self._group(element.values)
        if not self._rows.find(group):
            self._rows.insert(element)
        self._show(group)


def test_every_row_enters_its_group() -> None:
    count = [RowAggregate("COUNT")]
    assert _wrong(lambda: FirstRowGroupBy(_a(), [0], count), "negative") == 40
    assert _wrong(lambda: QueuedGroupBy(_a(), [0], count), "negative") == 0


def test_a_flag_speaks_for_scheduled_ends_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """N 7: all negative tuples in the output queue are purged."""

    def plan() -> PlanNode:
        return QueuedDistinct(QueuedMinus(_a(), _b()))

    assert _wrong(plan, "piggyback") == 0
    monkeypatch.setattr(queue_module, "COVERED_BY_FLAG", COVERED_BY_FLAG | {MessageKind.PREMATURE})
    assert _wrong(plan, "piggyback") > 10


class MessageJoin(QueuedJoin):
    """N 6.1: any end that comes is passed on as a join message with the row's Ets."""

    def _end(self, element: Element, port: int) -> None:
        if self.references[port].pop(element.id, 0):
            self._send(QueueMessage(MessageKind.JOIN_MESSAGE, self.clock, self._due_us, end=element.end))


def test_a_premature_end_is_not_a_join_message() -> None:
    """Two rows with one scheduled end, of which one is retracted: the message ends the results of both."""

    def plan(join: type[QueuedJoin]) -> Callable[[], PlanNode]:
        keyed = TimedSource("a", WindowSpec.unbounded(), key=(1,), has_end=True)
        return lambda: join(keyed, TimedSource("b", WindowSpec.range(90)), [0], [0])

    feeds: dict[str, Feed] = {
        "a": [TimedRow(1, (1, "k"), 30), TimedRow(2, (1, "l"), 30), Retraction(10, ("k",))],
        "b": [TimedRow(3, (1, 0))],
    }
    for strategy in ("negative+message", "piggyback"):
        assert _wrong(plan(QueuedJoin), strategy, 1, feeds) == 0
        assert _wrong(plan(MessageJoin), strategy, 1, feeds) == 1


class StartMessageJoin(QueuedJoin):
    """N Figure 7: the message of the row of T1 carries T1."""

    def _end(self, element: Element, port: int) -> None:
        if self.references[port].pop(element.id, 0):
            self._send(QueueMessage(MessageKind.JOIN_MESSAGE, self.clock, self._due_us, end=element.start))


def test_a_join_message_carries_the_end_of_its_row() -> None:
    def plan(join: type[QueuedJoin]) -> Callable[[], PlanNode]:
        return lambda: join(TimedSource("a", WindowSpec.range(5)), TimedSource("b", WindowSpec.range(5)), [0], [0])

    assert _wrong(plan(StartMessageJoin), "negative+message") == 40
    assert _wrong(plan(QueuedJoin), "negative+message") == 0


def test_the_difference_without_duplicates_is_not_distinct_over_minus() -> None:
    """N 5.3. Two on the left and one on the right: minus leaves one, EXCEPT none."""
    feeds: dict[str, Feed] = {"a": [TimedRow(1, (1, 0)), TimedRow(2, (1, 0))], "b": [TimedRow(3, (1, 0))]}
    answers = []
    for make in (lambda: QueuedMinus(_a(), _b(), duplicates=False), lambda: QueuedDistinct(QueuedMinus(_a(), _b()))):
        plan = make()
        pipeline = Pipeline(plan, "negative")
        for source in sources(plan):
            pipeline.feed(source, feeds[source.name])
        pipeline.run(4)
        answers.append(pipeline.answer)
    assert answers == [[], [(1,)]]


def _query_5(form: str) -> PlanNode:
    a, b, c = (TimedSource(name, WindowSpec.range(30)) for name in "abc")
    keys = [_first_column(source) for source in (a, b)]
    match form:
        case "pushed down":
            return QueuedJoin(QueuedMinus(*keys), _first_column(c), [0], [0])
        case "pulled up, as printed":
            return QueuedMinus(_first_column(QueuedJoin(keys[0], _first_column(c), [0], [0])), keys[1])
        case _:
            again = _first_column(c)
            return QueuedMinus(QueuedJoin(keys[0], _first_column(c), [0], [0]), QueuedJoin(keys[1], again, [0], [0]))


def _answer_of(plan: PlanNode, feeds: dict[str, Feed]) -> Counter[Values]:
    pipeline = Pipeline(plan, "update-pattern")
    for source in sources(plan):
        pipeline.feed(source, feeds[source.name])
    pipeline.run(20)
    pipeline.settle()
    return Counter((row[0],) for row in pipeline.answer)


def _feed(*values: int) -> Feed:
    return [TimedRow(k, (value, 0)) for k, value in enumerate(values)]


def test_the_two_plans_of_query_5_differ_where_values_come_more_than_once() -> None:
    """U Figure 6: (A - B) join C against (A join C) - B; the right one is (A join C) - (B join C)."""
    twice: dict[str, Feed] = {"a": _feed(1, 1), "b": _feed(1), "c": _feed(1, 1)}
    assert _answer_of(_query_5("pushed down"), twice) == {(1,): 2}
    assert _answer_of(_query_5("pulled up, as printed"), twice) == {(1,): 3}
    assert _answer_of(_query_5("pulled up"), twice) == {(1,): 2}
    once: dict[str, Feed] = {"a": _feed(1, 2, 3), "b": _feed(2, 4), "c": _feed(1, 2)}
    assert [_answer_of(_query_5(form), once) for form in ("pushed down", "pulled up, as printed", "pulled up")] == [{(1,): 1}] * 3


class CarelessDeltaStar(QueuedDeltaStar):
    """U rule 4: group-by output is weak, so delta-star may stand above; a result that is replaced ends like any other."""

    def receive(self, message: QueueMessage, port: int) -> list[QueueMessage]:
        return super(QueuedDeltaStar, self).receive(message, port)


class TrustingProject(QueuedProject):
    """An edge that passes for weak, as group-by's output does in the paper."""

    @property
    def ends_known(self) -> bool:
        return True


def test_delta_star_may_not_stand_above_group_by() -> None:
    def counts(project: type[QueuedProject]) -> PlanNode:
        return project(QueuedGroupBy(_a(), [0], [RowAggregate("COUNT")]), lambda row: (row[1],))

    assert _wrong(lambda: CarelessDeltaStar(counts(TrustingProject)), "update-pattern") > 20
    assert _wrong(lambda: QueuedDistinct(counts(QueuedProject)), "update-pattern") == 0
    with pytest.raises(EddyError) as caught:
        Pipeline(QueuedDeltaStar(counts(QueuedProject)), "update-pattern")
    assert caught.value.code == "bad_plan"


class StartOrderedBuffer(ListBuffer):
    """G, LExp: tuples in order of start; the loop ends at the first that is not over."""

    def _take(self, upto: int) -> list[Element]:
        taken = []
        while self._list and self._list[0].end <= upto:
            taken.append(self._list.pop(0))
        return taken


class StartOrderedDistinct(QueuedDistinct):
    def _open_states(self) -> None:
        super()._open_states()
        self._output = StartOrderedBuffer()
        self.states = (self._rows, self._output)


class TakingBackDistinct(QueuedDistinct):
    """G, RemoveExpiredTuples lines 8 and 11: a negative for every result that ends, though its positive said when."""

    def _emit_end(self, element: Element) -> None:
        self._send(QueueMessage(MessageKind.NEGATIVE, self.clock, self._due_us, element))


def _distinct_of_g(rows: Sequence[TimedRow | Retraction], removes: str, at: int) -> set[object]:
    """G 3.4, `RemoveExpiredTuples` and the main procedure: the values of DL at an instant. A row is (value, key).

    `removes`: which tuple lines 4, 5, 8, 10 and 11 of the procedure name, the printed `t` or `t_exp`.
    """
    by_key: dict[object, TimedRow] = {}  # HPK
    buckets: dict[object, list[TimedRow]] = {}  # HDST
    expiring: list[TimedRow] = []  # LExp, by end
    shown: list[TimedRow] = []  # DL

    def leave(row: TimedRow, named: TimedRow | None) -> None:
        """`row` leaves its bucket; the tuple that the lines name leaves the other collections."""
        bucket = buckets.get(row.values[0], [])
        if named in expiring:
            expiring.remove(named)
        if named is not None and by_key.get(named.values[1]) is named:
            del by_key[named.values[1]]
        if row in bucket:
            bucket.remove(row)
        if named in shown:
            shown.remove(named)
            if bucket:
                shown.append(bucket[0])
        if not bucket:
            buckets.pop(row.values[0], None)

    def remove_expired(time: int, arriving: TimedRow | None) -> None:
        # with the printed form t_exp is never taken out of LExp: it is passed over, or the loop would not end
        for row in [row for row in sorted(expiring, key=lambda row: row.end_us) if row.end_us <= time]:
            if row in buckets.get(row.values[0], []):
                leave(row, row if removes == "t_exp" else arriving)

    for item in rows:
        if item.time_us > at:
            break
        positive = item if isinstance(item, TimedRow) else None
        remove_expired(item.time_us, positive)
        if positive is not None and positive.values[1] not in by_key:
            by_key[positive.values[1]] = positive
            expiring.append(positive)
            buckets.setdefault(positive.values[0], []).append(positive)
            if len(buckets[positive.values[0]]) == 1:
                shown.append(positive)
        elif isinstance(item, Retraction) and item.key[0] in by_key:
            leave(by_key[item.key[0]], by_key[item.key[0]])
    remove_expired(at, None)
    return {row.values[0] for row in shown}


def test_the_tuple_that_leaves_is_the_one_that_expired_not_the_one_that_comes() -> None:
    """G, RemoveExpiredTuples: lines 4, 5, 8, 10 and 11 print `t`. Then what expired stays, and its key is taken for ever."""
    wrong = dict.fromkeys(("t", "t_exp"), 0)
    for seed in range(40):
        rng = random.Random(seed)
        feed: list[TimedRow | Retraction] = []
        ends: dict[int, int] = {}
        for time in range(1, 30):
            key = rng.randrange(5)
            if ends.get(key, 0) > time:
                if rng.random() < 0.5:
                    feed.append(Retraction(time, (key,)))
                    ends[key] = time
            else:
                ends[key] = time + rng.randrange(1, 9)
                feed.append(TimedRow(time, (rng.randrange(3), key), ends[key]))
        source = TimedSource("s", WindowSpec.unbounded(), key=(1,), has_end=True)
        pipeline = Pipeline(QueuedDistinct(_first_column(source)), "update-pattern")
        pipeline.feed(source, feed)
        for form in wrong:
            wrong[form] += any(_distinct_of_g(feed, form, at) != _alive(feed, at) for at in range(36))
        for at in range(36):
            pipeline.run(at)
            pipeline.settle()
            assert {value for (value,) in pipeline.answer} == _alive(feed, at)
    assert wrong["t"] == 40 and wrong["t_exp"] == 0


def _alive(feed: Sequence[TimedRow | Retraction], at: int) -> set[object]:
    """The values of the rows that are there."""
    retracted = [(item.time_us, item.key[0]) for item in feed if isinstance(item, Retraction)]
    return {
        row.values[0]
        for row in feed
        if isinstance(row, TimedRow)
        and row.time_us
        <= at
        < min([row.end_us, *(time for time, key in retracted if key == row.values[1] and time > row.time_us)])
    }


def test_expired_rows_are_found_in_order_of_their_ends() -> None:
    # the output runs ahead of its reader, which finds ends by itself: a second distinct above shows what was missed
    assert _wrong(lambda: QueuedDistinct(_first_column(StartOrderedDistinct(_weak()))), "direct") > 5
    assert _wrong(lambda: QueuedDistinct(_first_column(QueuedDistinct(_weak()))), "direct") == 0


def test_no_negative_is_sent_for_an_end_that_the_positive_carried() -> None:
    sent = {}
    for make in (QueuedDistinct, TakingBackDistinct):
        plan = make(_weak())
        (source,) = sources(plan)
        pipeline = Pipeline(plan, "direct")
        pipeline.feed(source, [TimedRow(t, (t % 3, 0), t + 5) for t in range(20)])
        pipeline.run(40)
        pipeline.settle()
        sent[make] = pipeline.operators["distinct"].counters.emitted[MessageKind.NEGATIVE]
        assert pipeline.answer == []
    assert sent[QueuedDistinct] == 0 and sent[TakingBackDistinct] > 0


class StrictlyBeforeBuffer(ListBuffer):
    """N 4.1: tuples with Ets less than T expire."""

    def _take(self, upto: int) -> list[Element]:
        return super()._take(upto - 1)


def test_a_row_is_over_at_its_end_and_not_after_it() -> None:
    source = TimedSource("s", WindowSpec.range(5))
    pipeline = Pipeline(source, "input")
    pipeline.feed(source, [TimedRow(0, (1,))])
    pipeline.run(4)
    pipeline.settle()
    assert pipeline.answer == [(1,)]
    pipeline.run(5)
    pipeline.settle()
    assert pipeline.answer == []
    due = {}
    for make in (StrictlyBeforeBuffer, ListBuffer):
        buffer = make()
        buffer.insert(Element(1, (1,), 0, 5))
        due[make] = len(buffer.take_due(5))
    assert due == {StrictlyBeforeBuffer: 0, ListBuffer: 1}


class OldestLeavesMinus(QueuedMinus):
    """U 2.1: the oldest result leaves, and the youngest row that is not shown enters."""

    def _balance(self, values: Values) -> None:
        left, right = ([row for row in state.find(values) if row.end > self.clock] for state in self.states)
        wanted = max(0, len(left) - len(right))
        shown = self._output.get(values, {})
        while len(shown) > wanted:
            self._hide(min(shown.values(), key=lambda row: (row.end > self.clock, row.start, row.number)))
        for row in sorted(left, key=lambda row: (row.start, row.number), reverse=True):
            if len(shown) < wanted and row.id not in shown:
                result = self._emit(row.starting(self.clock))
                shown = self._output.setdefault(values, {})
                shown[row.id] = result._replace(start=row.start, number=row.number)


def test_keeping_the_oldest_takes_back_less_than_half_of_what_the_papers_rule_does() -> None:
    premature = {}
    for make in (QueuedMinus, OldestLeavesMinus):
        rng = random.Random(1)
        a, b = (TimedSource(name, WindowSpec.range(100)) for name in "ab")
        pipeline = Pipeline(make(a, b), "update-pattern")
        for source in (a, b):
            pipeline.feed(source, [TimedRow(time, (rng.randrange(10),)) for time in range(2000)])
        pipeline.run(2500)
        premature[make] = pipeline.operators["minus"].counters.emitted[MessageKind.PREMATURE]
    assert 0 < premature[QueuedMinus] < 0.5 * premature[OldestLeavesMinus]
    assert _wrong(lambda: OldestLeavesMinus(_a(), _b()), "update-pattern", 10) == 0
