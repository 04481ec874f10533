"""Arithmetic and numeric functions over vectors.

    int op int      exact, or NULL and counted where the result leaves int64
    float           IEEE, so overflow is infinite, as in DuckDB; but x/0, x%0, sqrt and ln outside their domain are
                    NULL and counted, because a query's answer should not depend on which zero was meant
    `/`             always float; `%` has the sign of the dividend; round is half away from zero

Every function has the signature `(result type, arguments, frame) -> Vector` and costs O(rows).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array, Frame, Mask, Vector, settle, union_nulls
from lineage.schema import KEY_MIN, Type

#: A float product below this bound cannot stand for an int product outside int64: 2**63 less a margin of 1/400.
_SURE_PRODUCT = 9.2e18
#: 10**18 is the largest power of ten in int64.
_MAX_POWER = 18


def add(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    nulls = union_nulls(args)
    if type is Type.FLOAT:
        with np.errstate(all="ignore"):
            return Vector(type, _floats(args[0]) + _floats(args[1]), nulls)
    a, b = args[0].values, args[1].values
    total = a + b
    return settle(type, total, nulls, ((a ^ total) & (b ^ total)) < 0, frame)


def subtract(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    nulls = union_nulls(args)
    if type is Type.FLOAT:
        with np.errstate(all="ignore"):
            return Vector(type, _floats(args[0]) - _floats(args[1]), nulls)
    a, b = args[0].values, args[1].values
    difference = a - b
    return settle(type, difference, nulls, ((a ^ b) & (a ^ difference)) < 0, frame)


def multiply(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    nulls = union_nulls(args)
    with np.errstate(all="ignore"):
        approximate = _floats(args[0]) * _floats(args[1])
    if type is Type.FLOAT:
        return Vector(type, approximate, nulls)
    a, b = args[0].values, args[1].values
    product = a * b
    failed = np.abs(approximate) > _SURE_PRODUCT
    if failed.any():
        rows = np.flatnonzero(failed)
        failed[rows] = _wrapped(a[rows], b[rows], product[rows])
    return settle(type, product, nulls, failed, frame)


def divide(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    a, b = _floats(args[0]), _floats(args[1])
    with np.errstate(all="ignore"):
        return settle(type, a / b, union_nulls(args), b == 0, frame)


def modulo(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    nulls = union_nulls(args)
    if type is Type.FLOAT:
        a, b = _floats(args[0]), _floats(args[1])
        with np.errstate(all="ignore"):
            return settle(type, np.fmod(a, b), nulls, b == 0, frame)
    a, b = args[0].values, args[1].values
    # KEY_MIN % -1 overflows in DuckDB and may trap in hardware; by 1 the remainder of every other value is the same.
    failed = (b == 0) | ((a == KEY_MIN) & (b == -1))
    return settle(type, np.fmod(a, np.where((b == 0) | (b == -1), 1, b)), nulls, failed, frame)


def negate(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    (a,) = args
    if type is Type.FLOAT:
        return Vector(type, -_floats(a), a.nulls)
    return settle(type, -a.values, a.nulls, a.values == KEY_MIN, frame)


def absolute(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    (a,) = args
    if type is Type.FLOAT:
        return Vector(type, np.abs(_floats(a)), a.nulls)
    return settle(type, np.abs(a.values), a.nulls, a.values == KEY_MIN, frame)


def floor(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    (a,) = args
    return a.widened(type) if a.type is Type.INT else Vector(type, np.floor(a.values), a.nulls)


def ceil(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    (a,) = args
    return a.widened(type) if a.type is Type.INT else Vector(type, np.ceil(a.values), a.nulls)


def square_root(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    values = _floats(args[0])
    with np.errstate(all="ignore"):
        return settle(type, np.sqrt(values), args[0].nulls, values < 0, frame)


def logarithm(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    values = _floats(args[0])
    with np.errstate(all="ignore"):
        return settle(type, np.log(values), args[0].nulls, values <= 0, frame)


def exponential(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    with np.errstate(all="ignore"):
        return Vector(type, np.exp(_floats(args[0])), args[0].nulls)


def power(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    with np.errstate(all="ignore"):
        return Vector(type, np.power(_floats(args[0]), _floats(args[1])), union_nulls(args))


def round_half_away(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    """`round(a)` or `round(a, digits)`; negative digits round before the point."""
    a, nulls = args[0], union_nulls(args)
    digits = args[1].values if len(args) == 2 else np.broadcast_to(np.int64(0), len(a))
    if a.type is Type.INT:
        rounded, failed = _round_ints(a.values, digits)
        return settle(Type.INT, rounded, nulls, failed, frame).widened(type)
    return Vector(type, _round_floats(a.values, digits), nulls)


def _floats(vector: Vector) -> Array:
    return vector.widened(Type.FLOAT).values


def _wrapped(a: Array, b: Array, product: Array) -> Mask:
    """Where `product`, the int64 product of non-zero `a` and `b`, is not the true one."""
    # Division by -1 may itself overflow, and there only KEY_MIN wraps.
    divisor = np.where(b == -1, 1, b)
    inexact = (product // divisor != a) | (product % divisor != 0)
    wrapped: Mask = np.where(b == -1, a == KEY_MIN, inexact) | ((a == -1) & (b == KEY_MIN))
    return wrapped


def _nearest(values: Array) -> Array:
    """The nearest whole float, halves away from zero; the fraction of a float is exact, so nothing is rounded twice."""
    whole = np.trunc(values)
    nearest: Array = np.copysign(np.abs(whole) + (np.abs(values - whole) >= 0.5), values)
    return nearest


def _round_floats(values: Array, digits: Array) -> Array:
    """DuckDB's rule: scale, round, scale back; where scaling overflows the value is kept, or is 0 for negative digits."""
    with np.errstate(all="ignore"):
        if not digits.any():
            return np.where(np.isfinite(values), _nearest(values), values)
        scale = np.power(10.0, np.abs(digits).astype(np.float64))
        after = _nearest(values * scale) / scale
        before = _nearest(values / scale) * scale
        after = np.where(np.isfinite(after), after, values)
        before = np.where(np.isfinite(before), before, 0.0)
        rounded = np.where(digits == 0, _nearest(values), np.where(digits < 0, before, after))
    return np.where(np.isfinite(values), rounded, values)


def _round_ints(values: Array, digits: Array) -> tuple[Array, Array]:
    places = np.clip(-digits, 0, _MAX_POWER)
    unit = np.power(np.int64(10), places)
    rest = np.fmod(values, unit)
    whole = values - rest
    # |rest| < 10**18, so twice it fits.
    step = np.where(2 * np.abs(rest) >= unit, np.where(rest < 0, -unit, unit), 0)
    step[unit == 1] = 0
    rounded = whole + step
    failed = ((whole ^ rounded) & (step ^ rounded)) < 0
    # To 10**19 everything is 0 but what lies nearer to +-10**19, which is outside int64; beyond that all is 0.
    nineteen = digits == -(_MAX_POWER + 1)
    failed = np.where(digits < -_MAX_POWER, nineteen & ((values >= 5 * 10**18) | (values <= -5 * 10**18)), failed)
    return np.where(digits < -_MAX_POWER, 0, rounded), failed
