"""Sums that never drift: equal to exact ones whatever comes and goes, for any floats."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.values.vector import Vector
from lineage.schema import Type
from windows.aggregates.aggregate import AggregateKind, AggregateSpec
from windows.aggregates.state import AggregateState
from windows.aggregates.steps import AggregateSteps
from windows.delta import Delta, Plus, no_minus
from windows.operators.group_by import GroupByOperator
from windows.state.due import Fifo
from windows.state.exact_sums import NO_BITS, ExactSums, Limbs, carry, measure
from windows.state.rows import LiveRows

ensure()

KINDS = [AggregateKind.SUM, AggregateKind.AVG, AggregateKind.VARIANCE]


class Sums:
    """SUM, AVG and VARIANCE of one group, value by value."""

    def __init__(self, values: np.ndarray) -> None:
        self._state = AggregateState([Type.FLOAT], [AggregateSpec(kind, 0, Type.FLOAT) for kind in KINDS])
        n = len(values)
        self._state.hold(16, max(16, n))
        self._state.enter(np.arange(n), np.zeros(n, np.int64), [Vector(Type.FLOAT, values)])

    def step(self, slots: list[int], signs: list[int]) -> list[list[Any]]:
        """SUM, AVG and VARIANCE after each step."""
        n = len(slots)
        steps = AggregateSteps(np.array(slots), np.array(signs), np.zeros(n, np.int64), np.arange(n), n)
        _, cells, nulls = self._state.walk(steps)
        values = cells.view(np.float64)
        return [[None if null else value for value, null in zip(row, flags)] for row, flags in zip(values.T, nulls.T)]


def as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def spread(values: list[float]) -> Fraction:
    exact = [Fraction(value) for value in values]
    n = len(exact)
    return (n * sum(value * value for value in exact) - sum(exact) ** 2) / (n * (n - 1))


@pytest.mark.parametrize("seed", range(40))
def test_a_sum_is_the_float_nearest_to_the_exact_one_after_every_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    width = int(rng.choice([1, 20, 300, 1070]))
    with np.errstate(over="ignore"):
        values = rng.standard_normal(n) * 2.0 ** rng.integers(-width, min(width, 1020) + 1, n)
    values[~np.isfinite(values)] = 5e-324
    if seed % 3 == 0:
        values[: n // 2] = -values[n - n // 2 :]
    sums = Sums(values)
    order = list(range(n))
    random.Random(seed).shuffle(order)
    found = sums.step([*range(n), *order], [1] * n + [-1] * n)
    live: list[int] = []
    for step, (total, mean, variance) in zip([*range(n), *order], found):
        live = [slot for slot in live if slot != step] if step in live else [*live, step]
        exact = sum((Fraction(values[slot]) for slot in live), Fraction(0))
        assert total == (as_float(exact) if live else None)
        if live and math.isfinite(as_float(exact)):
            assert mean == as_float(exact) / len(live)
        if len(live) > 1:
            expected = as_float(spread([values[slot] for slot in live]))
            assert variance == pytest.approx(expected, rel=1e-15, abs=1e-300)
    assert not live


def test_a_mean_is_finite_where_the_sum_is_not() -> None:
    sums = Sums(np.array([1.7e308, 1.7e308, -1.7e308]))
    (_, (total, mean, _), (back, _, _)) = sums.step([0, 1, 2], [1, 1, 1])
    assert total == math.inf and mean == pytest.approx(1.7e308, rel=1e-15) and back == 1.7e308


def test_nan_and_infinities_leave_again() -> None:
    sums = Sums(np.array([1.5, math.nan, math.inf, -math.inf, 2.5]))
    steps = [(0, 1), (2, 1), (3, 1), (2, -1), (1, 1), (3, -1), (1, -1), (4, 1)]
    found = [row[0] for row in sums.step([slot for slot, _ in steps], [sign for _, sign in steps])]
    assert found[0] == 1.5 and found[1] == math.inf and math.isnan(found[2]) and found[3] == -math.inf
    assert math.isnan(found[4]) and math.isnan(found[5]) and found[6:] == [1.5, 4.0]


def test_a_variance_does_not_cancel() -> None:
    """A million away from 0 and a thousandth apart: subtracting rounded squares would leave noise."""
    rng = np.random.default_rng(1)
    values = 1e9 + rng.random(1000) * 1e-3
    n = len(values)
    variance = Sums(values).step(list(range(n)), [1] * n)[-1][2]
    mean = math.fsum(values) / n
    two_pass = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    assert variance == pytest.approx(two_pass, rel=1e-9)
    equal = Sums(np.full(100, 0.1)).step(list(range(100)), [1] * 100)
    assert equal[-1][2] == 0.0


@pytest.mark.parametrize("n_commits", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_sums_do_not_drift_over_many_arrivals_and_ends(n_commits: int) -> None:
    """Magnitudes from 1e-8 to 1e12 mixed; in the slow run a million arrivals, and as many ends."""
    rng = np.random.default_rng(7)
    n, width = 1000, 3000
    rows = LiveRows(Fifo(), by_id=False)
    kinds = [
        AggregateSpec(AggregateKind.COUNT, None, Type.INT),
        *(AggregateSpec(kind, 0, Type.FLOAT) for kind in (AggregateKind.SUM, AggregateKind.AVG)),
    ]
    operator = GroupByOperator([Type.FLOAT], 0, kinds, rows, per_event=False)
    empty = operator.bytes
    window = np.zeros(0)
    for commit in range(n_commits):
        times = np.arange(commit * n, (commit + 1) * n)
        values = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-8, 12, n)
        plus = Plus(times, times, np.arange(n), times + width, [Vector(Type.FLOAT, values)])
        found = operator.process([Delta(plus, no_minus())], int(times[-1]))
        window = np.concatenate([window, values])[-width:]
        count, total, mean = (column.values[-1] for column in found.plus.columns)
        exact = math.fsum(window)
        assert (count, total, mean) == (len(window), exact, exact / len(window))
    none = Plus(*(np.zeros(0, np.int64) for _ in range(4)), [Vector(Type.FLOAT, np.zeros(0))])
    found = operator.process([Delta(none, no_minus())], int(times[-1]) + width)
    assert [column.to_pylist() for column in found.plus.columns] == [[0], [None], [None]]
    assert operator.bytes == empty


def test_limbs_cover_the_bits_of_the_values_and_no_more() -> None:
    bits = np.array(NO_BITS, np.int64)
    measure(np.array([1.0, 0.75, 1024.0, 0.0, math.nan, math.inf]).view(np.int64), bits)
    assert bits.tolist() == [-2, 10]
    limbs, squares = Limbs(), Limbs(2)
    assert limbs.cover(-2, 10) and (limbs.lowest, limbs.n) == (-1, 2)
    assert squares.cover(-2, 20) and (squares.lowest, squares.n) == (-1, 3)
    assert not limbs.cover(-32, 31) and not limbs.cover(*NO_BITS)


def test_carrying_leaves_the_sum_as_it_is() -> None:
    sums = ExactSums()
    sums.hold(16)
    sums.cover(0, 95)
    sums.words[0] = [-5, 1 << 40, 3]
    sums.words[1] = [(1 << 50) + 7, -(1 << 45), 9]

    def value(cell: int) -> int:
        return sum(int(word) << (32 * k) for k, word in enumerate(sums.words[cell]))

    before = [value(0), value(1)]
    carry(sums.words, sums.limbs.n)
    assert [value(0), value(1)] == before
    assert (0 <= sums.words[:, :2]).all() and (sums.words[:, :2] < 1 << 32).all()
