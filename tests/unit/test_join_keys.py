"""Keys of rows against the comparison of the values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from filters.values.comparisons import compare, float_keys
from filters.values.intervals import float_key
from filters.values.vector import Vector
from lineage.schema import KEY_MAX, KEY_MIN, Type
from tests.reference.join_keys import join_keys

INTS = [KEY_MIN, KEY_MIN + 1, -(2**53) - 1, -1, 0, 1, 2**53, 2**53 + 1, KEY_MAX - 1, KEY_MAX]
FLOATS = [-math.inf, -(2.0**64), -(2.0**63), -(2.0**53) - 2, -1.0, -0.5, -0.0, 0.0, 5e-324, 1.0, 1.5, 2.0**53, 2.0**63, math.inf]
FLOATS += [math.nan, -math.nan]
VALUES = {Type.INT: INTS, Type.FLOAT: FLOATS, Type.TIMESTAMP: [-5, 0, 5], Type.BOOL: [False, True]}
DTYPES = {Type.INT: np.int64, Type.FLOAT: np.float64, Type.TIMESTAMP: np.int64, Type.BOOL: np.bool_}
PAIRS = [(kind, kind) for kind in VALUES] + [(Type.INT, Type.FLOAT), (Type.FLOAT, Type.INT)]


@pytest.mark.parametrize(("probing", "held"), PAIRS)
def test_keys_are_equal_exactly_where_the_values_are(probing: Type, held: Type) -> None:
    pairs = list(itertools.product(VALUES[probing], VALUES[held]))
    left = Vector(probing, np.array([a for a, _ in pairs], DTYPES[probing]))
    right = Vector(held, np.array([b for _, b in pairs], DTYPES[held]))
    keys, joins = join_keys(left, held)
    held_keys, all_join = join_keys(right, held)
    assert all_join.all() and keys.dtype == held_keys.dtype == np.int64
    assert (joins & (keys == held_keys)).tolist() == compare("=", [left, right]).values.tolist()


@pytest.mark.parametrize(("probing", "held"), PAIRS)
def test_a_null_has_no_key(probing: Type, held: Type) -> None:
    vector = Vector(probing, np.zeros(2, DTYPES[probing]), np.array([True, False]))
    assert join_keys(vector, held)[1].tolist() == [False, True]


def test_an_int_beyond_53_bits_joins_only_the_float_that_is_it() -> None:
    _, joins = join_keys(Vector(Type.INT, np.array([2**53, 2**53 + 1, KEY_MAX, KEY_MIN])), Type.FLOAT)
    assert joins.tolist() == [True, False, False, True]
    keys, joins = join_keys(Vector(Type.FLOAT, np.array([2.0**53, 2.0**63, -(2.0**63), 0.5, -0.0, math.nan])), Type.INT)
    assert joins.tolist() == [True, False, True, False, True, False]
    assert keys[joins].tolist() == [2**53, KEY_MIN, 0]


def test_order_keys_are_those_of_the_intervals() -> None:
    assert float_keys(np.array(FLOATS)).tolist() == [float_key(value) for value in FLOATS]
