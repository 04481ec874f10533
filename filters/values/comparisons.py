"""Comparisons, IN, GREATEST and LEAST: one total order per type.

    int, timestamp, bool   the value; false < true
    float                  NaN = NaN, above every number; -0.0 = 0.0
    int with float         as real numbers, exact beyond 2**53 (DuckDB rounds the int)
    string                 by code points, which is the byte order of UTF-8

`order_keys(a, b)` turns two vectors into two arrays that numpy orders the same way, so each operator is one ufunc.
O(rows), and for strings a sort of the distinct ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from filters.values.intervals import NAN_KEY
from filters.values.vector import Array, Frame, Vector, assemble, strings_array, union_nulls
from lineage.schema import KEY_MAX, Type

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def compare(op: str, args: Sequence[Vector]) -> Vector:
    """A BOOL vector of `args[0] op args[1]`; NULL where either is."""
    a, b = order_keys(args[0], args[1])
    return Vector(Type.BOOL, OPERATORS[op](a, b), union_nulls(args))


def order_keys(a: Vector, b: Vector) -> tuple[Array, Array]:
    """Return arrays that compare like the two vectors; their values under NULL are arbitrary."""
    if a.type is Type.STRING:
        return _string_ranks(a, b)
    if a.type is Type.FLOAT and b.type is Type.FLOAT:
        if np.isnan(a.values).any() or np.isnan(b.values).any():
            return float_keys(a.values), float_keys(b.values)
    elif a.type is Type.FLOAT:
        return np.int8(0) - int_against_float(b.values, a.values), np.zeros(len(a), np.int8)
    elif b.type is Type.FLOAT:
        return int_against_float(a.values, b.values), np.zeros(len(a), np.int8)
    return a.values, b.values


def contained(args: Sequence[Vector]) -> Vector:
    """`args[0] IN (args[1], ...)`: TRUE on a match, else NULL if the value or any candidate is NULL."""
    value, candidates = args[0], args[1:]
    hit = np.zeros(len(value), np.bool_)
    unknown = value.null_mask()
    for candidate in candidates:
        equal = compare("=", [value, candidate])
        hit |= equal.values & ~equal.null_mask()
        if candidate.nulls is not None:
            unknown = unknown | candidate.nulls
    return Vector(Type.BOOL, hit, unknown & ~hit)


def contained_in_constants(value: Vector, constants: Sequence[Any]) -> Vector:
    """IN over constants of the value's own type, one pass however many there are; None among them is NULL."""
    known = [constant for constant in constants if constant is not None]
    if value.type is Type.STRING:
        texts, places = value.compact()
        wanted = set(known)
        hit = np.array([text in wanted for text in texts], np.bool_)[places]
    else:
        candidates = np.array(known, value.values.dtype)
        hit = np.isin(value.values, candidates)
        if value.type is Type.FLOAT and np.isnan(candidates).any():
            hit = hit | np.isnan(value.values)
    hit = hit & ~value.null_mask()
    if len(known) < len(constants):
        return Vector(Type.BOOL, hit, ~hit)
    return Vector(Type.BOOL, hit, value.nulls)


def greatest(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    return _extreme(">", type, args, frame)


def least(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    return _extreme("<", type, args, frame)


def _extreme(op: str, type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    """The extreme of the arguments that are not NULL."""
    best = args[0].widened(type)
    for arg in args[1:]:
        arg = arg.widened(type)
        wins = (compare(op, [arg, best]).values | best.null_mask()) & ~arg.null_mask()
        best = assemble(type, frame.n_rows, [(~wins, best.take(~wins)), (wins, arg.take(wins))])
    return best


def _string_ranks(a: Vector, b: Vector) -> tuple[Array, Array]:
    texts_a, places_a = a.compact()
    texts_b, places_b = b.compact()
    if len(texts_b) == 1:
        # The usual case of a constant needs no sort.
        # An array of one, not a str: numpy takes trailing NULs off a str that it compares with an array.
        texts, constant = strings_array(texts_a), strings_array(texts_b)
        return (texts > constant).astype(np.int8)[places_a], (texts < constant).astype(np.int8)[places_a]
    rank = {text: place for place, text in enumerate(sorted({*texts_a, *texts_b}))}
    ranks_a = np.array([rank[text] for text in texts_a], np.int64)
    ranks_b = np.array([rank[text] for text in texts_b], np.int64)
    return ranks_a[places_a], ranks_b[places_b]


def float_keys(values: Array) -> Array:
    """The order key of each float, as `filters.values.intervals.float_key` gives it."""
    # Adding 0.0 turns -0.0 into 0.0; negative floats have their bits in reverse order.
    bits = (values + 0.0).view(np.int64)
    return np.where(np.isnan(values), NAN_KEY, np.where(bits < 0, bits ^ KEY_MAX, bits))


def int_against_float(ints: Array, floats: Array) -> Array:
    """-1, 0 or 1 as the int is below, equal to or above the float, compared as real numbers."""
    with np.errstate(invalid="ignore"):
        below_all = floats < -(2.0**63)
        above_all = ~(floats < 2.0**63)
        whole = np.floor(floats)
        limit = np.where(below_all | above_all, 0.0, whole).astype(np.int64)
    sign = (ints > limit).astype(np.int8) - (ints < limit).astype(np.int8)
    # Equal to the float's floor means below the float when it has a fraction.
    sign = np.where((sign == 0) & (whole != floats), np.int8(-1), sign)
    return np.where(above_all, np.int8(-1), np.where(below_all, np.int8(1), sign))
