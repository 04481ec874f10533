"""Each operator does every case that its table lists on some input, and no other on any: the operators, event by event.

The table is that of the semantics, of operators whose results are rows of their inputs. Operators over counts (EXCEPT, INTERSECT,
UNION and DISTINCT over rows that may end early) number copies of values instead: where the paper's operator hands a value over
from a row that ends to another (-->+), theirs shows the same copy before and after, and `explain` lists `COUNTED_CASES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from eddy.base.compile import ensure
from filters.expressions.expression import ColumnRef, FunctionCall, Literal
from lineage.elements import FOREVER
from lineage.schema import Type
from tests.unit.windows.came_and_went import Cases, Watched, one_at_a_time
from tests.unit.windows.histories import Value, commits, compare, random_history
from tests.unit.windows.operators.test_join import joined, same
from tests.unit.windows.operators.test_set_operation import EXPIRIES
from tests.unit.windows.operators.test_window_operators import deltas, random_rows
from windows import patterns
from windows.aggregates.aggregate import AggregateKind, AggregateSpec
from windows.delta import SCHEDULED, Delta, empty
from windows.operators.distinct import DeltaStar, distinct
from windows.operators.group_by import GroupByOperator
from windows.operators.intersect import IntersectStar
from windows.operators.join import JoinOperator, JoinStep, KeyPair, PairJoin
from windows.operators.operator import Child, InputState, Operator
from windows.operators.relation_merge import RelationMerge
from windows.operators.select import SelectOperator
from windows.operators.set_operation import KINDS, SetOperator
from windows.operators.slide import SlideOperator
from windows.operators.to_stream import AnswerStream, ChangeStream
from windows.operators.union import UnionAll
from windows.operators.window import WindowOperator
from windows.spec import WindowSpec
from windows.state.due import Buffer, Calendar, Unscheduled
from windows.state.rows import LiveRows

ensure()

TYPES = (Type.INT, Type.INT)
X, Y = (ColumnRef(Type.INT, name, k) for k, name in enumerate("xy"))
ABOVE = FunctionCall(Type.BOOL, ">", (X, Literal(Type.INT, 1)))
#: shows groups when they come and when they go, and not all between
NOT_TWO = FunctionCall(Type.BOOL, "<>", (Y, Literal(Type.INT, 2)))
COUNT, SUM = AggregateSpec(AggregateKind.COUNT, None, Type.INT), AggregateSpec(AggregateKind.SUM, 1, Type.INT)
MakeBuffer = Callable[[], Buffer]

#: Those that count copies where the table speaks of rows (decision 21).
COUNTING = {"distinct", "intersect", "intersect all"}


class Having(Operator):
    """Groups of which some are shown; what comes is what the groups do."""

    def __init__(self, groups: GroupByOperator) -> None:
        self.groups, self._select = groups, SelectOperator(NOT_TWO, [X, Y], sends_ends=True)
        self.types, self.sends_ends = self._select.types, True

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        return self._select.process(inputs, upto)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        return self._select.answer(children, now)

    @property
    def bytes(self) -> int:
        return self.groups.bytes

    def check(self) -> None:
        self.groups.check()


def rows(buffer: MakeBuffer) -> LiveRows:
    return LiveRows(buffer())


def sets(kind: str, all: bool) -> Callable[[MakeBuffer, bool], Operator]:
    return lambda buffer, sends: SetOperator(KINDS[kind, all], TYPES, [rows(buffer) for _ in range(2)])


def three(buffer: MakeBuffer, sends: bool) -> Operator:
    steps = [JoinStep((KeyPair.of_columns((TYPES, TYPES), 0, 0),)), JoinStep((KeyPair.of_columns((TYPES, TYPES), 1, 1),), None)]
    return JoinOperator([TYPES] * 3, steps, lambda _: rows(buffer), lambda: LiveRows(Calendar()))


def merged(buffer: MakeBuffer, sends: bool) -> Operator:
    """A merge of which the first input decides, as it does while no point says otherwise."""
    operator = RelationMerge(TYPES, 2)
    operator.stand([0, 0], [InputState.CHANGES] * 2)
    operator.process([empty(TYPES)] * 2, -(2**62))
    return operator


#: name -> (its row in the table, inputs, how it is made of a kind of buffer and of whether its inputs send ends)
OPERATORS: dict[str, tuple[str, int, Callable[[MakeBuffer, bool], Operator]]] = {
    "select": ("select", 1, lambda buffer, sends: SelectOperator(ABOVE, [X], sends_ends=sends)),
    "project": ("select", 1, lambda buffer, sends: SelectOperator(None, [Y], sends_ends=sends)),
    "join": (
        "join",
        2,
        lambda buffer, sends: PairJoin(
            (TYPES, TYPES), [KeyPair.of_columns((TYPES, TYPES), 0, 0)], None, [rows(buffer) for _ in range(2)]
        ),
    ),
    "join of three": ("join", 3, three),
    "union all": ("union", 2, lambda buffer, sends: UnionAll(TYPES, sends_ends=sends)),
    "union": ("union", 2, sets("union", False)),
    "distinct": ("distinct", 1, lambda buffer, sends: distinct(TYPES, rows(buffer))),
    "except": ("except", 2, sets("except", False)),
    "except all": ("except", 2, sets("except", True)),
    "intersect": ("intersect", 2, sets("intersect", False)),
    "intersect all": ("intersect", 2, sets("intersect", True)),
    "group-by": ("group-by", 1, lambda buffer, sends: GroupByOperator(TYPES, 1, [COUNT, SUM], rows(buffer))),
    "scalar aggregates": ("group-by", 1, lambda buffer, sends: GroupByOperator(TYPES, 0, [COUNT, SUM], rows(buffer))),
    "having": ("select", 1, lambda buffer, sends: Having(GroupByOperator(TYPES, 1, [COUNT], rows(buffer)))),
    "lmerge": ("lmerge", 2, merged),
    "istream": ("istream", 1, lambda buffer, sends: ChangeStream(1, TYPES, rows(buffer))),
    "dstream": ("dstream", 1, lambda buffer, sends: ChangeStream(-1, TYPES, rows(buffer))),
    "rstream": ("rstream", 1, lambda buffer, sends: AnswerStream(TYPES, rows(buffer))),
}


def draw(rng: Any) -> Value:
    return (rng.choice([None, 1, 2, 3]), rng.choice([5, 6]))


def cases_of(name: str, expiry: str, seed: int, cut: int | None) -> Cases:
    """What an operator does with a random history, one row an event."""
    _, n_edges, make = OPERATORS[name]
    buffer, shape = EXPIRIES[expiry]
    history = random_history(seed, n_edges=n_edges, types=TYPES, values=draw, n_arrivals=30, **shape)
    history.arrivals = one_at_a_time(history.arrivals)
    operator = make(buffer, history.sends_ends)
    below = isinstance(operator, Having)
    watched = Watched([below or history.sends_ends] * n_edges, operator.sends_ends)
    if name == "scalar aggregates":
        # its row is there before anything comes
        operator.process([empty(TYPES)], -(2**62))
    for inputs, upto in commits(history, cut):
        given = [operator.groups.process(inputs, upto)] if isinstance(operator, Having) else inputs
        watched.read(given, operator.process(given, upto), upto)
    return watched.cases(by_instant=isinstance(operator, AnswerStream))


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_does_the_cases_of_its_table_and_no_other(name: str, expiry: str) -> None:
    listed = set(patterns.COUNTED_CASES if name in COUNTING else patterns.OPERATORS[OPERATORS[name][0]].cases)
    seen: set[str] = set()
    for seed in range(6):
        cases = cases_of(name, expiry, seed, [None, seed][seed % 2])
        assert cases.unlisted(listed) == []
        seen |= cases.certain
    assert seen == listed


def test_every_row_of_the_table_has_an_operator_here_or_is_one_of_the_eddy() -> None:
    """Joins with tables are blocks: `tests/unit/eddy/test_cases.py`."""
    tables = {"join with a frozen table", "join with a live table"}
    assert {rule for rule, _, _ in OPERATORS.values()} | tables == set(patterns.OPERATORS)


#: Operators that keep ends by value: name -> (inputs, how it is made)
STARS: dict[str, tuple[int, Callable[[], Operator]]] = {
    "distinct": (1, lambda: DeltaStar(TYPES, Calendar())),
    "intersect": (2, lambda: IntersectStar(TYPES, Calendar(), Calendar())),
}


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize("name", STARS)
def test_what_keeps_ends_by_value_hands_values_over_when_rows_end(name: str, cut: int | None) -> None:
    n_edges, make = STARS[name]
    listed, seen = patterns.OPERATORS[name].cases, set[str]()
    for seed in range(6):
        history = random_history(seed, n_edges=n_edges, types=TYPES, values=draw, known=1.0, premature=0.0)
        history.arrivals = one_at_a_time(history.arrivals)
        operator, watched = make(), Watched([False] * n_edges, False)
        for inputs, upto in commits(history, cut):
            watched.read(inputs, operator.process(inputs, upto), upto)
        cases = watched.cases()
        assert cases.unlisted(listed) == []
        seen |= cases.certain
    assert seen == set(listed)


SPECS = [
    WindowSpec.range(12),
    WindowSpec.now(),
    WindowSpec.newest(2),
    WindowSpec.newest(3, width_us=6),
    WindowSpec.newest(2, [0]),
    WindowSpec.newest(1, [0, 1], 15),
]


@pytest.mark.parametrize("sends_ends", [False, True])
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_window_that_counts_rows_ends_one_by_another_and_others_by_the_clock_alone(spec: WindowSpec, sends_ends: bool) -> None:
    """What comes are the rows of a stream; what the clock ends counts as a - that came."""
    operator = WindowOperator((Type.INT, Type.STRING), spec, sends_ends=sends_ends)
    seen = set()
    for part, upto in deltas(came := random_rows(3), 3):
        watched = operator.process([part], upto)
        seen |= {"+->+"} if len(watched.plus) else set()
        arrivals = {(start, rank) for start, rank, _, _ in came}
        for time, rank in zip(watched.minus.times.tolist(), watched.minus.ranks.tolist(), strict=True):
            assert rank == SCHEDULED or (time, rank) in arrivals
            seen.add("-->-" if rank == SCHEDULED else "+->-")
        seen |= {"-->-"} if not sends_ends and (watched.plus.ends < FOREVER).any() else set()
    assert seen == set(patterns.window_cases(spec))


@pytest.mark.parametrize("bounds", [False, True])
def test_a_slide_shows_rows_that_came_and_ends_them_by_the_clock(bounds: bool) -> None:
    operator = SlideOperator((Type.INT, Type.STRING), 7, 3, bounds=bounds)
    watched = Watched([], False)
    came: set[int] = set()
    for part, upto in deltas(random_rows(3), 3):
        came.update(part.plus.ids.tolist())
        found = operator.process([part], upto)
        assert came.issuperset(found.plus.ids.tolist()), "+->+: what is shown has come"
        watched.read([], found, upto)
    went = [(rank, sign) for _, rank, sign, _ in watched.output.events]
    assert set(went) == {(SCHEDULED, 1), (SCHEDULED, -1)}, "-->-: nothing that comes ends anything"
    assert watched.output.premature == 0
    assert patterns.window_cases(WindowSpec.sliding(7, 3)) == ("+->+", "-->-")


# -- Operators on top of each other: the deltas of one are what the next one expects -----------------------------------


ensure()

INT = (Type.INT,)
Bag = Counter[Value]


class Stack(Operator):
    """`top(middle(bottom(a, b), c))`."""

    def __init__(self, bottom: Operator, middle: Operator, top: Operator) -> None:
        self.types, self.sends_ends = top.types, top.sends_ends
        self._layers = (bottom, middle, top)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        bottom, middle, top = self._layers
        return top.process([middle.process([bottom.process(inputs[:2], upto), inputs[2]], upto)], upto)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        return self._layers[-1].answer(children, now)

    @property
    def bytes(self) -> int:
        return sum(layer.bytes for layer in self._layers)

    def check(self) -> None:
        for layer in self._layers:
            layer.check()


def meets(row: Value) -> bool:
    return same(row[0], row[1])


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_distinct_over_a_join_over_a_minus(expiry: str) -> None:
    buffer, shape = EXPIRIES[expiry]

    def meaning(bags: list[Bag]) -> Bag:
        return Counter(set(+joined(meets)([bags[0] - bags[1], bags[2]])))

    for seed in range(8):
        between = [LiveRows(Unscheduled()), LiveRows(buffer())]
        stack = Stack(
            SetOperator(KINDS["except", True], INT, [LiveRows(buffer()) for _ in range(2)]),
            PairJoin((INT, INT), [KeyPair.of_columns((INT, INT), 0, 0)], None, between, sends_ends=expiry == "sent"),
            distinct((*INT, *INT), LiveRows(Unscheduled() if expiry == "sent" else Calendar())),
        )
        empty = stack.bytes
        compare(stack, random_history(seed, n_edges=3, **shape), [None, seed][seed % 2], meaning)
        assert stack.bytes == empty


def test_minus_over_a_join_over_distinct_with_hand_overs() -> None:
    """Below, two ends a value: values are handed over from row to row at the instant one ends."""

    class Below(Operator):
        types = INT

        def __init__(self) -> None:
            self._stars = [DeltaStar(INT, Calendar()) for _ in range(2)]
            self._join = PairJoin(
                (INT, INT), [KeyPair.of_columns((INT, INT), 0, 0)], None, [LiveRows(Calendar(), by_id=False) for _ in range(2)]
            )
            self._minus = SetOperator(KINDS["except", True], (*INT, *INT), [LiveRows(Calendar()) for _ in range(2)])
            self.types, self.sends_ends = (*INT, *INT), True

        def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
            stars = [star.process([delta], upto) for star, delta in zip(self._stars, inputs)]
            return self._minus.process([self._join.process(stars, upto), self._pairs(inputs[2])], upto)

        def _pairs(self, delta: Delta) -> Delta:
            return Delta(replace(delta.plus, columns=delta.plus.columns * 2), delta.minus)

        def answer(self, children: Sequence[Child], now: int) -> Delta:
            return self._minus.answer(children, now)

        @property
        def bytes(self) -> int:
            return self._minus.bytes

        def check(self) -> None:
            for layer in (*self._stars, self._join, self._minus):
                layer.check()

    def meaning(bags: list[Bag]) -> Bag:
        both = joined(meets)([Counter(set(+bags[0])), Counter(set(+bags[1]))])
        return both - Counter({row * 2: n for row, n in bags[2].items()})

    for seed in range(8):
        compare(Below(), random_history(seed, n_edges=3, known=1.0, premature=0.0, n_arrivals=60), seed, meaning)
