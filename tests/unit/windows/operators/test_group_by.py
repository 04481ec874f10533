"""GROUP BY, event by event, against aggregates computed anew from the rows that are there."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.values.vector import Vector
from lineage.schema import Type
from tests.unit.windows.histories import Bags, Value, commits, compare, plain, random_history
from windows.aggregates.aggregate import AggregateKind, AggregateSpec
from windows.delta import Delta, Plus, no_minus
from windows.operators.group_by import GroupByOperator
from windows.state.due import Buffer, Calendar, Fifo, Scan, Unscheduled
from windows.state.rows import LiveRows

ensure()

INT, FLOAT, STRING, BOOL, TIMESTAMP = Type.INT, Type.FLOAT, Type.STRING, Type.BOOL, Type.TIMESTAMP

#: A row is (its number, key, int, float, text, bool, time); histories compare bags, and the number keeps the order of coming.
TYPES = (STRING, INT, INT, FLOAT, STRING, BOOL, TIMESTAMP)
KEY, NUMBER, X, F, S, B, T = range(7)

EXPIRIES: dict[str, tuple[Callable[[], Buffer], dict[str, Any]]] = {
    "calendar": (Calendar, {}),
    "scan": (Scan, {}),
    "fifo": (Fifo, {"in_order": True}),
    "sent": (Unscheduled, {"sends_ends": True}),
    "unknown": (Unscheduled, {"known": 0.0}),
}

OF_INT = [
    AggregateKind.SUM,
    AggregateKind.AVG,
    AggregateKind.MIN,
    AggregateKind.MAX,
    AggregateKind.STDDEV,
    AggregateKind.VARIANCE,
    AggregateKind.MEDIAN,
    AggregateKind.FIRST,
    AggregateKind.LAST,
    AggregateKind.COUNT,
]
OF_ANY = [
    AggregateKind.MIN,
    AggregateKind.MAX,
    AggregateKind.MEDIAN,
    AggregateKind.FIRST,
    AggregateKind.LAST,
    AggregateKind.COUNT,
]


def type_of(kind: AggregateKind, type: Type) -> Type:
    if kind is AggregateKind.COUNT:
        return INT
    if kind in (AggregateKind.AVG, AggregateKind.STDDEV, AggregateKind.VARIANCE) or (
        kind is AggregateKind.MEDIAN and type is INT
    ):
        return FLOAT
    return type


def aggregate(kind: AggregateKind, argument: int | None, filter: int | None = None, distinct: bool = False) -> AggregateSpec:
    return AggregateSpec(kind, argument, INT if argument is None else type_of(kind, TYPES[argument]), distinct, filter)


AGGREGATES = [
    aggregate(AggregateKind.COUNT, None),
    aggregate(AggregateKind.COUNT, None, B),
    *(aggregate(kind, argument) for argument in (X, F) for kind in OF_INT),
    *(aggregate(kind, argument) for argument in (S, B, T) for kind in OF_ANY),
    *(aggregate(AggregateKind.COUNT, argument, distinct=True) for argument in (X, F, S)),
    *(aggregate(kind, F, B) for kind in OF_INT),
    aggregate(AggregateKind.COUNT, S, B, distinct=True),
    aggregate(AggregateKind.MAX, S, B),
]


def draw_rows() -> Callable[[random.Random], Value]:
    numbers = iter(range(10**9))
    ints = [None, 0, 1, -1, 5, 2**31, 2**63 - 1, -(2**63), 2**62]
    floats = [None, 0.0, -0.0, 1.5, -2.25, 1e-8, 1e12, 1e300, -1e300, 0.1, math.nan, math.inf, -math.inf, 5e-324]

    def draw(rng: random.Random) -> Value:
        return (
            rng.choice([None, "a", "b"]), next(numbers), rng.choice(ints), rng.choice(floats),
            rng.choice([None, "", "x", "y", "yy", "é"]), rng.choice([None, True, False]),
            rng.choice([None, -3, -2, 0, 1, 10**15]),
        )  # fmt: skip

    return draw


def order(cell: Any) -> Any:
    """NaN is above all numbers; `plain` has made it a text."""
    return (1, 0) if cell == "NaN" else (0, cell)


def exact_sum(values: Sequence[Any]) -> float:
    if "NaN" in values or (math.inf in values and -math.inf in values):
        return math.nan
    if math.inf in values or -math.inf in values:
        return math.inf if math.inf in values else -math.inf
    return nearest(sum(map(Fraction, values), Fraction(0)))


def nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def quotient(value: Fraction, divisor: float) -> float:
    total = nearest(value)
    return nearest(value / 2**64) / divisor * 2.0**64 if math.isinf(total) else total / divisor


def spread(values: Sequence[Any]) -> float | None:
    """The sample variance: an exact numerator, rounded, over n * (n - 1)."""
    n = len(values)
    if n < 2:
        return None
    if any(value in ("NaN", math.inf, -math.inf) for value in values):
        return math.nan
    exact = [Fraction(float(value)) for value in values]
    return quotient(n * sum(value * value for value in exact) - sum(exact) ** 2, float(n) * float(n - 1))


def median(type: Type, values: list[Any]) -> Any:
    values = sorted(values, key=order) if type is FLOAT else sorted(values)
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    if type in (STRING, BOOL):
        return low
    if type is TIMESTAMP:
        total = low + high
        return total // 2 + (total % 2 if total >= 0 else 0)
    if "NaN" in (low, high):
        return math.nan
    return float(low) if low == high else float(low) * 0.5 + float(high) * 0.5


def compute(wanted: AggregateSpec, rows: list[Value]) -> Any:
    """One aggregate over rows in the order they came, by its definition."""
    if wanted.filter is not None:
        rows = [row for row in rows if row[wanted.filter] is True]
    if wanted.argument is None:
        return len(rows)
    every = [row[wanted.argument] for row in rows]
    if wanted.kind in (AggregateKind.FIRST, AggregateKind.LAST):
        return every[0 if wanted.kind is AggregateKind.FIRST else -1] if every else None
    values = [value for value in every if value is not None]
    if wanted.kind is AggregateKind.COUNT:
        return len(set(values)) if wanted.distinct else len(values)
    if not values:
        return None
    type = TYPES[wanted.argument]
    match wanted.kind:
        case AggregateKind.SUM if type is INT:
            total = sum(values)
            return total if -(2**63) <= total < 2**63 else None
        case AggregateKind.SUM:
            return exact_sum(values)
        case AggregateKind.AVG:
            special = exact_sum([value for value in values if value in ("NaN", math.inf, -math.inf)])
            return special if special != 0 else quotient(sum(map(Fraction, values), Fraction(0)), float(len(values)))
        case AggregateKind.MIN:
            return min(values, key=order) if type is FLOAT else min(values)
        case AggregateKind.MAX:
            return max(values, key=order) if type is FLOAT else max(values)
        case AggregateKind.VARIANCE:
            return spread(values)
        case AggregateKind.STDDEV:
            variance = spread(values)
            return None if variance is None else math.sqrt(variance)
    return median(type, values)


def grouped(bag: Counter[Value], n_keys: int, aggregates: Sequence[AggregateSpec]) -> Counter[Value]:
    """The answer over a bag of rows."""
    groups: dict[Value, list[Value]] = defaultdict(list)
    if n_keys == 0:
        groups[()] = []
    for row in sorted(bag, key=lambda row: row[NUMBER]):
        groups[row[:n_keys]].append(row)
    return Counter(
        (*key, *(plain(compute(wanted, rows)) for wanted in aggregates)) for key, rows in groups.items()
    )  # fmt: skip


def run(seed: int, n_keys: int, aggregates: Sequence[AggregateSpec], expiry: str = "calendar", **shape: Any) -> GroupByOperator:
    buffer, served = EXPIRIES[expiry]
    history = random_history(seed, types=TYPES, values=draw_rows(), **served, **shape)
    operator = GroupByOperator(TYPES, n_keys, aggregates, LiveRows(buffer()))
    start = history.arrivals[0][0]

    def meaning(bags: list[Counter[Value]]) -> Counter[Value]:
        return grouped(+bags[0], n_keys, aggregates)

    _, output = compare(operator, history, [None, seed, seed + 100][seed % 3], meaning, since=(start, -1))
    assert output.dropped == 0
    return operator


def windowed(values: Vector, kinds: Sequence[AggregateKind], width: int, n: int) -> Iterator[tuple[int, Delta, GroupByOperator]]:
    """One group over a window of the newest `width` values, `n` a commit: how many have come, and the net change."""
    aggregates = [AggregateSpec(kind, 0, type_of(kind, values.type)) for kind in kinds]
    operator = GroupByOperator([values.type], 0, aggregates, LiveRows(Fifo(), by_id=False), per_event=False)
    for start in range(0, len(values), n):
        times = np.arange(start, min(start + n, len(values)))
        plus = Plus(times, times, np.zeros(len(times), np.int64), times + width, [values.take(times)])
        yield int(times[-1]) + 1, operator.process([Delta(plus, no_minus())], int(times[-1])), operator


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("n_keys", [0, 1])
def test_after_every_event_each_group_has_the_aggregates_of_its_rows(expiry: str, n_keys: int) -> None:
    empty = GroupByOperator(TYPES, n_keys, AGGREGATES, LiveRows(EXPIRIES[expiry][0]())).bytes
    for seed in range(9):
        operator = run(seed, n_keys, AGGREGATES, expiry)
        assert operator.bytes == empty and operator.stats()["rows"] == 0


@pytest.mark.parametrize("wanted", AGGREGATES, ids=lambda wanted: f"{wanted.kind.value}-{wanted.argument}-{wanted.filter}")
def test_each_aggregate_alone(wanted: AggregateSpec) -> None:
    for seed in range(4):
        run(100 + seed, 1, [wanted], n_arrivals=60)


def test_groups_alone_are_the_different_keys() -> None:
    for seed in range(6):
        run(seed, 1, [])


def test_only_the_net_change_of_a_commit_travels_where_that_is_all_that_counts() -> None:
    for seed in range(12):
        history = random_history(seed, types=TYPES, values=draw_rows(), n_arrivals=60)
        operator = GroupByOperator(TYPES, 1, AGGREGATES, LiveRows(Calendar()), per_event=False)
        inputs, output = Bags(False), Bags(True)
        for (delta,), upto in commits(history, seed):
            found = operator.process([delta], upto)
            operator.check()
            inputs.read(delta, upto)
            output.read(found, upto)
            assert +output.bag() == grouped(+inputs.bag(), 1, AGGREGATES)
            for part in (found.plus, found.minus):
                assert len(set(part.ids.tolist())) == len(part), "a group changes once"


@pytest.mark.parametrize("shape", ["rising", "falling", "sawtooth", "random", "equal"])
def test_extremes_and_medians_of_long_windows(shape: str) -> None:
    n, width = 6000, 1500
    ramp = np.arange(n)
    values = {
        "rising": ramp, "falling": -ramp, "sawtooth": ramp % 700, "equal": np.zeros(n, np.int64),
        "random": np.random.default_rng(3).integers(-1000, 1000, n),
    }[shape]  # fmt: skip
    shown = (0, 0, 0.0)
    for come, found, _ in windowed(Vector(INT, values), [AggregateKind.MIN, AggregateKind.MAX, AggregateKind.MEDIAN], width, 370):
        if len(found.plus):
            shown = tuple(column.cell(len(found.plus) - 1) for column in found.plus.columns)
        live = values[max(0, come - width) : come]
        assert shown == (live.min(), live.max(), np.median(live))


def test_texts_that_no_row_has_any_more_are_forgotten() -> None:
    n, width = 9000, 60
    texts = [f"text {k * 7919 % 9001}" for k in range(n)]
    shown: tuple[Any, ...] = ()
    sizes = []
    for come, found, operator in windowed(
        Vector.of_strings(texts), [AggregateKind.MIN, AggregateKind.MAX, AggregateKind.MEDIAN, AggregateKind.LAST], width, 45
    ):
        if len(found.plus):
            shown = tuple(column.cell(len(found.plus) - 1) for column in found.plus.columns)
        live = sorted(texts[max(0, come - width) : come])
        assert shown == (live[0], live[-1], live[(len(live) - 1) // 2], texts[come - 1])
        (answer,) = zip(*(column.to_pylist() for column in operator.answer([], come).plus.columns))
        assert answer == shown
        sizes.append(operator.bytes)
    assert sizes[-1] < 1.5 * max(sizes[: len(sizes) // 3])


def test_a_sum_of_ints_beyond_64_bits_is_null_and_counted() -> None:
    values = Vector(INT, np.array([2**63 - 1, 1, -1, -(2**63), -(2**63)]))
    found, errors = [], []
    for _, delta, operator in windowed(values, [AggregateKind.SUM, AggregateKind.AVG], 2, 1):
        found.append(tuple(column.cell(0) for column in delta.plus.columns))
        errors.append(operator.stats()["errors"])
    assert [total for total, _ in found] == [2**63 - 1, None, 0, None, None]
    assert [mean for _, mean in found] == [float(2**63), 2.0**62, 0.0, (-(2**63) - 1) / 2, -(2.0**63)]
    assert errors == [0, 1, 1, 2, 3]


def test_a_group_that_comes_again_has_the_id_that_is_free_then() -> None:
    types, aggregates = [STRING, INT], [AggregateSpec(AggregateKind.SUM, 1, INT)]
    operator = GroupByOperator(types, 1, aggregates, LiveRows(Calendar()))
    signs: list[list[tuple[int, str, int]]] = []
    for time, key in [(0, "a"), (5, "a"), (10, "b")]:
        columns = [Vector.of_strings([key]), Vector(INT, np.array([time]))]
        plus = Plus(np.array([time]), np.array([time]), np.array([0]), np.array([time + 5]), columns)
        found = operator.process([Delta(plus, no_minus())], time)
        signs.append([(int(id), str(key), int(t)) for id, key, t in zip(
            found.plus.ids, found.plus.columns[0].to_pylist(), found.plus.times)])  # fmt: skip
        assert found.minus.times.tolist() == ([] if time == 0 else [time])
    assert signs == [[(0, "a", 0)], [(0, "a", 5)], [(1, "b", 10)]]
