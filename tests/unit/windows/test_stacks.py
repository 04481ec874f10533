"""Operators on top of each other: the deltas of one are what the next one expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from eddy.base.compile import ensure
from lineage.schema import Type
from tests.unit.windows.histories import Value, compare, random_history
from tests.unit.windows.operators.test_join import joined, same
from tests.unit.windows.operators.test_set_operation import EXPIRIES
from windows.delta import Delta
from windows.operators.distinct import DeltaStar, distinct
from windows.operators.join import KeyPair, PairJoin
from windows.operators.operator import Child, Operator
from windows.operators.set_operation import KINDS, SetOperator
from windows.state.due import Calendar, Unscheduled
from windows.state.rows import LiveRows

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
