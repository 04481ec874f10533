"""Condition and columns over one input."""

from __future__ import annotations

from collections import Counter

from eddy.base.compile import ensure
from filters.expressions.expression import ColumnRef, FunctionCall, Literal
from lineage.schema import Type
from tests.unit.windows.histories import Value, commits, compare, random_history
from windows.operators.operator import Operator
from windows.operators.select import SelectOperator

ensure()

X = ColumnRef(Type.INT, "x", 0)
ABOVE = FunctionCall(Type.BOOL, ">", (X, Literal(Type.INT, 1)))
PLUS_ONE = FunctionCall(Type.INT, "+", (X, Literal(Type.INT, 1)))
INVERSE = FunctionCall(Type.FLOAT, "/", (Literal(Type.INT, 1), FunctionCall(Type.INT, "-", (X, Literal(Type.INT, 2)))))


def above(bag: Counter[Value]) -> Counter[Value]:
    return Counter({(value[0] + 1, value[0]): n for value, n in bag.items() if value[0] is not None and value[0] > 1})


def test_a_select_shows_the_columns_of_rows_that_meet_its_condition() -> None:
    for seed in range(8):
        for sends_ends in (False, True):
            operator = SelectOperator(ABOVE, [PLUS_ONE, X], sends_ends=sends_ends)
            compare(operator, random_history(seed, sends_ends=sends_ends), seed, lambda bags: above(bags[0]))


def test_a_select_passes_ids_and_ends_through() -> None:
    operator: Operator = SelectOperator(None, [X])
    for (delta,), upto in commits(random_history(3), 3):
        found = operator.process([delta], upto)
        assert found.minus is delta.minus and found.plus.ids is delta.plus.ids and found.plus.ends is delta.plus.ends


def test_what_cannot_be_computed_is_null_and_counted_once() -> None:
    operator = SelectOperator(None, [INVERSE])
    n_twos = 0
    for (delta,), upto in commits(random_history(1), None):
        n_twos += (delta.plus.columns[0].values == 2).sum()
        operator.process([delta], upto)
        operator.answer([lambda delta=delta: delta], upto)  # type: ignore[misc]  # the loop's own delta
    assert n_twos > 3 and operator.errors == n_twos
