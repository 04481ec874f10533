"""EXCEPT, INTERSECT, UNION and DISTINCT, event by event, against bags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.values.vector import Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from tests.unit.windows.histories import Value, compare, random_history
from windows.delta import Delta, Plus, empty, no_minus
from windows.operators.distinct import DeltaStar, distinct
from windows.operators.intersect import IntersectStar
from windows.operators.set_operation import KINDS, SetOperator
from windows.operators.union import UnionAll
from windows.state.due import Buffer, Calendar, Fifo, Scan, Unscheduled
from windows.state.rows import LiveRows

ensure()

Bag = Counter[Value]

MEANINGS: dict[tuple[str, bool], Callable[[int, int], int]] = {
    ("union", False): lambda n, m: int(n + m > 0),
    ("except", True): lambda n, m: max(0, n - m),
    ("except", False): lambda n, m: int(n > 0 and m == 0),
    ("intersect", True): min,
    ("intersect", False): lambda n, m: int(n > 0 and m > 0),
}

#: A buffer, and what the histories it can serve look like.
EXPIRIES: dict[str, tuple[Callable[[], Buffer], dict[str, Any]]] = {
    "calendar": (Calendar, {}),
    "scan": (Scan, {}),
    "fifo": (Fifo, {"in_order": True}),
    "sent": (Unscheduled, {"sends_ends": True}),
    "unknown": (Unscheduled, {"known": 0.0}),
}


def by_value(meaning: Callable[[int, int], int]) -> Callable[[list[Bag]], Bag]:
    return lambda bags: Counter({value: meaning(bags[0][value], bags[1][value]) for value in {**bags[0], **bags[1]}})


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("kind", KINDS)
def test_after_every_event_the_output_has_the_copies_that_the_counts_say(kind: tuple[str, bool], expiry: str) -> None:
    buffer, shape = EXPIRIES[expiry]
    empty = SetOperator(KINDS[kind], [Type.INT], [LiveRows(buffer()) for _ in range(2)]).bytes
    for seed in range(12):
        operator = SetOperator(KINDS[kind], [Type.INT], [LiveRows(buffer()) for _ in range(2)])
        history = random_history(seed, n_edges=2, **shape)
        compare(operator, history, [None, seed, seed + 100][seed % 3], by_value(MEANINGS[kind]))
        assert operator.bytes == empty and operator.stats()["values"] == 0


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_distinct_shows_each_value_once_while_a_row_has_it(expiry: str) -> None:
    buffer, shape = EXPIRIES[expiry]
    for seed in range(12):
        operator = distinct([Type.INT], LiveRows(buffer()))
        compare(operator, random_history(seed, **shape), seed, lambda bags: Counter(set(+bags[0])))


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_the_copies_of_one_input_are_counted_with_nothing_on_the_right(expiry: str) -> None:
    """How a running query is read by who asks when its rows came (decision 14)."""
    buffer, shape = EXPIRIES[expiry]
    for seed in range(6):
        operator = SetOperator(KINDS["except", True], [Type.INT], [LiveRows(buffer())])
        compare(operator, random_history(seed, **shape), seed, lambda bags: +bags[0])


@pytest.mark.parametrize("buffer", [Calendar, Scan])
@pytest.mark.parametrize("cut", [None, 1, 2])
def test_delta_star_shows_each_value_once_and_says_when_it_ends(buffer: Callable[[], Buffer], cut: int | None) -> None:
    for seed in range(20):
        operator = DeltaStar([Type.INT], buffer())
        history = random_history(seed, known=1.0, premature=0.0, n_arrivals=60)
        _, output = compare(operator, history, cut, lambda bags: Counter(set(+bags[0])))
        assert output.premature == output.dropped == 0
        assert operator.bytes == DeltaStar([Type.INT], buffer()).bytes


@pytest.mark.parametrize("buffer", [Calendar, Scan])
@pytest.mark.parametrize("cut", [None, 1, 2])
def test_intersect_star_shows_what_both_sides_have_and_says_when_it_ends(buffer: Callable[[], Buffer], cut: int | None) -> None:
    for seed in range(20):
        operator = IntersectStar([Type.INT], buffer(), buffer())
        history = random_history(seed, n_edges=2, known=1.0, premature=0.0, n_arrivals=60)
        _, output = compare(operator, history, cut, by_value(MEANINGS["intersect", False]))
        assert output.premature == output.dropped == 0
        assert operator.bytes == IntersectStar([Type.INT], buffer(), buffer()).bytes


def test_intersect_star_holds_what_never_ends() -> None:
    """The left side stays: a value is shown each time that the right has it, also up to for ever."""
    operator = IntersectStar([Type.INT], Calendar(), Calendar())

    def came(clock: int, end: int, *values: int) -> Delta:
        n, column = len(values), Vector(Type.INT, np.array(values, np.int64))
        return Delta(Plus(np.arange(n), np.full(n, clock), np.zeros(n, np.int64), np.full(n, end), [column]), no_minus())

    shown = []
    for clock, left, right in [
        (0, came(0, FOREVER, 1, 2), came(0, 10, 1)),
        (20, came(20, 25), came(20, 30, 1, 3)),
        (40, came(40, 45), came(40, FOREVER, 2)),
    ]:  # fmt: skip
        plus = operator.process([left, right], clock).plus
        operator.check()
        shown += list(zip(plus.times.tolist(), plus.ends.tolist(), plus.columns[0].values.tolist(), strict=True))
    assert shown == [(0, 10, 1), (20, 30, 1), (40, FOREVER, 2)]
    assert operator.stats()["values"] == 2, "what came on the right alone is let go"


def test_delta_star_needs_no_row_by_id() -> None:
    """Where nothing is premature, an input without a table of ids serves as well."""
    for seed in range(5):
        operator = distinct([Type.INT], LiveRows(Calendar(), by_id=False))
        compare(operator, random_history(seed, known=1.0, premature=0.0), seed, lambda bags: Counter(set(+bags[0])))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_union_all_has_the_rows_of_all_inputs(n: int) -> None:
    for seed in range(8):
        history = random_history(seed, n_edges=n)
        compare(UnionAll([Type.INT]), history, seed, lambda bags: sum(bags, Counter()))


def test_strings_and_floats_are_values_by_what_they_say() -> None:
    types = (Type.STRING, Type.FLOAT)

    def draw(rng: Any) -> Value:
        return (rng.choice([None, "a", "b"]), rng.choice([None, 0.0, -0.0, float("nan")]))

    for seed in range(8):
        operator = SetOperator(KINDS["except", True], types, [LiveRows(Calendar()) for _ in range(2)])
        history = random_history(seed, n_edges=2, types=types, values=draw)
        compare(operator, history, seed, by_value(MEANINGS["except", True]))


def test_state_falls_back_after_a_rush_though_some_rows_stay() -> None:
    """Twenty thousand rows come and go while a few always live: nothing keeps the size of the rush."""
    operator = SetOperator(KINDS["except", True], [Type.INT], [LiveRows(Calendar()) for _ in range(2)])
    clock, sizes = 0, []
    for n, life in [(10, 50)] * 5 + [(20_000, 60)] + [(10, 50)] * 80:
        ids = np.arange(n) + 30_000 * (clock // 10)
        plus = Plus(ids, np.full(n, clock), np.zeros(n, np.int64), np.full(n, clock + life), [Vector(Type.INT, ids)])
        operator.process([Delta(plus, no_minus()), empty([Type.INT])], clock)
        operator.check()
        sizes.append(operator.bytes)
        clock += 10
    assert max(sizes) > 4_000_000 and sizes[-1] < 200_000


def test_a_minus_whose_last_results_all_end_at_once_lets_go_of_their_ids() -> None:
    """Nothing is shown any more, but the inputs still have rows."""
    operator = SetOperator(KINDS["except", True], [Type.INT], [LiveRows(Unscheduled()) for _ in range(2)])
    n = 5_000
    values = [Vector(Type.INT, np.arange(n))]

    def rows(at: int) -> Delta:
        ids = np.arange(n)
        return Delta(Plus(ids, np.full(n, at), np.zeros(n, np.int64), np.full(n, 2**62), values), no_minus())

    assert len(operator.process([rows(1), empty([Type.INT])], 1).plus) == n
    assert len(operator.process([empty([Type.INT]), rows(2)], 2).minus) == n
    operator.check()
