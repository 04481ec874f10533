"""The join of windows, event by event, against the join of bags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import windows.operators.join
from eddy.base.compile import ensure
from filters.expressions.expression import ColumnRef, Expression, FunctionCall, UserCall, UserFunction
from filters.values.vector import Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from tests.unit.windows.histories import History, Value, compare, random_history
from tests.unit.windows.operators.test_set_operation import EXPIRIES
from windows.delta import Delta, Plus, empty, no_minus
from windows.operators.join import JoinOperator, JoinStep, KeyPair, PairJoin, paired
from windows.state.due import Buffer, Calendar, Unscheduled
from windows.state.rows import LiveRows

ensure()

Bag = Counter[Value]
TYPES = (Type.INT, Type.INT)
BELOW = FunctionCall(Type.BOOL, "<", (ColumnRef(Type.INT, "a", 1), ColumnRef(Type.INT, "b", 3)))


def draw(rng: Any) -> Value:
    return (rng.choice([None, 1, 2, 3]), rng.choice([None, 5, 6]))


def history(seed: int, n_edges: int = 2, **shape: Any) -> History:
    return random_history(seed, n_edges=n_edges, types=TYPES, values=draw, **shape)


def joined(meets: Callable[..., bool]) -> Callable[[list[Bag]], Bag]:
    """Combinations of rows of all bags that meet, each with the product of the multiplicities."""

    def function(bags: list[Bag]) -> Bag:
        found: Bag = Counter({(): 1})
        for bag in bags:
            found = Counter({(*left, *right): n * m for left, n in found.items() for right, m in bag.items()})
        return Counter({row: n for row, n in found.items() if meets(row)})

    return function


def same(a: Any, b: Any) -> bool:
    return a is not None and a == b


@pytest.mark.parametrize("sends_ends", [False, True])
@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("condition", [None, BELOW])
def test_after_every_event_rows_of_equal_keys_that_meet_the_condition_are_joined(
    expiry: str, condition: Expression | None, sends_ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows.operators.join, "PART_PAIRS", 3)
    buffer, shape = EXPIRIES[expiry]

    def meets(row: Value) -> bool:
        return same(row[0], row[2]) and (condition is None or (None not in (row[1], row[3]) and row[1] < row[3]))

    for seed in range(6):
        rows = [LiveRows(buffer()) for _ in range(2)]
        join = PairJoin((TYPES, TYPES), [KeyPair.of_columns((TYPES, TYPES), 0, 0)], condition, rows, sends_ends=sends_ends)
        empty_bytes = join.bytes
        compare(join, history(seed, **shape), [None, seed][seed % 2], joined(meets))
        assert join.bytes == empty_bytes and join.stats()["keys"] == 0


@pytest.mark.parametrize("cut", [None, 3])
def test_no_key_is_a_cross_product_and_two_keys_both_count(cut: int | None) -> None:
    for seed in range(4):
        for pairs, meets in (
            ([], lambda row: True),
            (
                [KeyPair.of_columns((TYPES, TYPES), 0, 0), KeyPair.of_columns((TYPES, TYPES), 1, 1)],
                lambda row: same(row[0], row[2]) and same(row[1], row[3]),
            ),
        ):
            join = PairJoin((TYPES, TYPES), pairs, None, [LiveRows(Calendar()) for _ in range(2)])
            compare(join, history(seed, n_arrivals=25), cut, joined(meets))


@pytest.mark.parametrize("sends_ends", [False, True])
def test_three_inputs_are_a_cascade(sends_ends: bool) -> None:
    steps = [JoinStep((KeyPair.of_columns((TYPES, TYPES), 0, 0),)), JoinStep((KeyPair.of_columns((TYPES, TYPES), 1, 1),), None)]
    between: type[Buffer] = Unscheduled if sends_ends else Calendar
    for seed in range(8):
        join = JoinOperator(
            [TYPES] * 3, steps, lambda _: LiveRows(Calendar()), lambda: LiveRows(between()), sends_ends=sends_ends
        )

        def meets(row: Value) -> bool:
            return same(row[0], row[2]) and same(row[1], row[5])

        compare(join, history(seed, n_edges=3, n_arrivals=25), seed, joined(meets))


def test_where_no_end_is_premature_a_join_sends_none_and_says_when_its_rows_end() -> None:
    join = PairJoin(
        (TYPES, TYPES), [KeyPair.of_columns((TYPES, TYPES), 0, 0)], None, [LiveRows(Calendar(), by_id=False) for _ in range(2)]
    )
    _, output = compare(join, history(1, known=1.0, premature=0.0), 1, joined(lambda row: same(row[0], row[2])))
    assert output.premature == output.dropped == 0 and len(output.states) > 10


def test_a_condition_with_a_user_function_is_computed_once_for_a_pair() -> None:
    calls = []

    def fn(a: int | None) -> bool:
        calls.append(a)
        return len(calls) % 2 == 0

    function = UserFunction("odd", fn, Type.BOOL, 1.0)
    condition = UserCall(Type.BOOL, function, (ColumnRef(Type.INT, "a", 0),))
    join = PairJoin(
        (TYPES, TYPES),
        [KeyPair.of_columns((TYPES, TYPES), 0, 0)],
        condition,
        [LiveRows(Unscheduled()) for _ in range(2)],
        sends_ends=True,
    )
    rows = [one_row(7), one_row(7)]
    join.process(rows, 5)
    assert len(calls) == 1
    assert len(join.process([empty(TYPES), empty(TYPES)], 9)) == 0 and len(calls) == 1


def one_row(key: int, type: Type = Type.INT, value: Any = 0) -> Delta:
    numbers = np.array([1])
    columns = [Vector.constant(type, key, 1), Vector.constant(Type.INT, value, 1)]
    return Delta(Plus(numbers, np.array([5]), np.array([0]), np.array([FOREVER]), columns), no_minus())


@pytest.mark.parametrize(
    ("left", "right", "meet"),
    [(2**53, 2.0**53, True), (2**53 + 1, 2.0**53, False), (2**63 - 1, 2.0**63, False), (-0, -0.0, True)],
)
def test_an_int_meets_a_float_iff_they_are_the_same_number(left: int, right: float, meet: bool) -> None:
    types = ((Type.INT, Type.INT), (Type.FLOAT, Type.INT))
    join = PairJoin(types, [KeyPair.of_columns(types, 0, 0)], None, [LiveRows(Calendar()) for _ in range(2)])
    found = join.process([one_row(left), one_row(right, Type.FLOAT)], 5)  # type: ignore[arg-type]  # a float key
    assert len(found.plus) == meet


def test_pairs_have_a_number_each() -> None:
    left, right = np.divmod(np.arange(10_000), 100)
    assert sorted(paired(left, right).tolist()) == list(range(10_000))
