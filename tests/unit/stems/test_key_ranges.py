"""Ranges of stored keys against the condition itself, evaluated on values."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddy.compile import ensure
from filters.intervals import float_key
from lineage.schema import KEY_MAX, KEY_MIN, Type
from stems.key_ranges import Ranges, band_ranges, compare_ranges

ensure()

INTS = st.one_of(
    st.integers(KEY_MIN, KEY_MAX), st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, KEY_MAX, KEY_MIN])
)
FLOATS = st.one_of(
    st.floats(),
    st.integers(-3, 3).map(float),
    st.sampled_from([2.0**53, 2.0**63, -(2.0**63), math.nan, 0.5, -0.0, 1e16, 0.1, 0.3]),
)


def cells_of(values: list[float], type_: Type) -> np.ndarray:
    return np.array(values, np.float64).view(np.int64) if type_ is Type.FLOAT else np.array(values, np.int64)


def key_of(value: float) -> int:
    return float_key(value) if isinstance(value, float) else value


def inside(ranges: Ranges, i: int, value: float) -> bool:
    return bool(ranges.lowest[i] <= key_of(value) <= ranges.highest[i])


def ordered(value: float) -> tuple[int, float]:
    """Orders as DuckDB does: NaN above all; Python compares ints with floats exactly."""
    return (1, 0.0) if value != value else (0, value)


def holds(operator: str, a: float, b: float) -> bool:
    x, y = ordered(a), ordered(b)
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[operator]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@given(stored=st.one_of(INTS, FLOATS), probing=st.one_of(INTS, FLOATS))
def test_a_comparison_is_exact_whatever_the_types(operator: str, stored: float, probing: float) -> None:
    types = [Type.FLOAT if isinstance(value, float) else Type.INT for value in (stored, probing)]
    ranges = compare_ranges(operator, types[0], types[1], cells_of([probing], types[1]), None)
    assert inside(ranges, 0, stored) is holds(operator, stored, probing)


@given(stored=INTS, probing=INTS, low=st.one_of(st.none(), INTS), high=st.one_of(st.none(), INTS))
def test_a_band_of_ints_is_exact_and_overflow_matches_nothing(
    stored: int, probing: int, low: int | None, high: int | None
) -> None:
    ranges = band_ranges(Type.INT, cells_of([probing], Type.INT), None, low, high)
    difference = stored - probing
    expected = KEY_MIN <= difference <= KEY_MAX and (low is None or low <= difference) and (high is None or difference <= high)
    assert inside(ranges, 0, stored) is expected


BOUNDS = st.one_of(st.none(), FLOATS.filter(lambda value: value == value))


@given(stored=FLOATS, probing=FLOATS, low=BOUNDS, high=BOUNDS)
def test_a_band_of_floats_is_what_the_subtraction_gives(
    stored: float, probing: float, low: float | None, high: float | None
) -> None:  # fmt: skip
    check_band(stored, probing, low, high)


def check_band(stored: float, probing: float, low: float | None, high: float | None) -> None:
    ranges = band_ranges(Type.FLOAT, cells_of([probing], Type.FLOAT), None, low, high)
    difference = stored - probing
    expected = (low is None or holds(">=", difference, low)) and (high is None or holds("<=", difference, high))
    assert inside(ranges, 0, stored) is expected


def test_a_band_of_floats_is_exact_next_to_its_ends() -> None:
    """Where stored - probing rounds to the bound: values a few steps off probing + bound, and near cancellation."""
    rng = random.Random(3)
    for _ in range(3000):
        probing = rng.choice([rng.uniform(-10, 10), rng.uniform(-1e18, 1e18), rng.uniform(-1e-300, 1e-300)])
        bound = rng.choice([0.1, 0.5, -probing, -probing * (1 + 1e-16), rng.uniform(-10, 10), 1e300])
        stored = probing + bound
        for _ in range(rng.randrange(4)):
            stored = math.nextafter(stored, rng.choice([-math.inf, math.inf]))
        check_band(stored, probing, bound, None)
        check_band(stored, probing, None, bound)


def test_null_matches_nothing() -> None:
    nulls = np.array([1, 0], np.uint8)
    for ranges in (
        compare_ranges("<", Type.INT, Type.INT, np.array([0, 5]), nulls),
        band_ranges(Type.FLOAT, cells_of([0.0, 5.0], Type.FLOAT), nulls, None, None),
    ):
        assert ranges.lowest[0] > ranges.highest[0] and ranges.lowest[1] <= ranges.highest[1]
