"""Conversions between types, with DuckDB's readings and spellings.

    float -> int      nearest, halves to even; NaN and what int64 cannot hold are errors
    text -> int       exact decimal, halves away from zero; `1e3`, `1_000`, `0x1f` and `0b11` are numbers too
    number -> text    ints plain, floats the shortest that reads back: 1.0, 1e+16, nan, inf
    text -> timestamp ISO 8601, UTC unless an offset says otherwise

An error is NULL and counted. Casts from and to text run once per distinct value, the others are one numpy step.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from filters.values.dates import parse_timestamp, timestamp_text
from filters.values.distinct_calls import map_distinct
from filters.values.vector import Frame, Vector, settle
from lineage.schema import KEY_MAX, KEY_MIN, Type

_SPACE = " \t\n\v\f\r"
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_BASED = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+", re.ASCII)
_BOOLS = {**dict.fromkeys(("true", "t", "yes", "y", "1"), True), **dict.fromkeys(("false", "f", "no", "n", "0"), False)}
#: Wide enough for any exponent text can spell in a row; what is wider is an error.
_CONTEXT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])


def cast(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    """The argument as `type`."""
    (value,) = args
    if value.type is type:
        return value
    if value.type is Type.STRING:
        return map_distinct(type, _READERS[type], args, frame)
    if type is Type.STRING:
        return map_distinct(type, _WRITERS[value.type], args, frame)
    if value.type is Type.FLOAT and type is Type.INT:
        return _round_to_int(value, frame)
    if type is Type.BOOL:
        return Vector(type, value.values != 0, value.nulls)
    if type is Type.INT:
        return Vector(type, value.values.astype(np.int64), value.nulls)
    assert type is Type.FLOAT, f"the binder left a cast from {value.type} to {type}"
    return Vector(type, value.values.astype(np.float64), value.nulls)


def _round_to_int(value: Vector, frame: Frame) -> Vector:
    nearest = np.rint(value.values)
    fits = (nearest >= -(2.0**63)) & (nearest < 2.0**63)
    return settle(Type.INT, np.where(fits, nearest, 0.0).astype(np.int64), value.nulls, ~fits, frame)


def read_int(text: str) -> int | None:
    """An int from decimal, hexadecimal or binary text, rounded if it has a fraction; None if it is none or too large."""
    text = text.strip(_SPACE)
    if _BASED.fullmatch(text):
        found = int(text, 0)
    elif _DECIMAL.fullmatch(text):
        number = _CONTEXT.create_decimal(text.replace("_", ""))
        if not number.is_finite() or (number and number.adjusted() > 19):
            return None
        if number.is_zero() or number.adjusted() < -1:
            return 0
        found = int(number.to_integral_value(decimal.ROUND_HALF_UP, _CONTEXT))
    else:
        return None
    return found if KEY_MIN <= found <= KEY_MAX else None


def read_float(text: str) -> float | None:
    """A float from decimal text, `nan` or `inf` in any case; too large is infinite; None if it is none."""
    text = text.strip(_SPACE)
    if _DECIMAL.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return float(text)
    return None


def read_bool(text: str) -> bool | None:
    return _BOOLS.get(text.lower())


def _write_bool(value: bool) -> str:
    return "true" if value else "false"


_READERS: dict[Type, Callable[[str], Any]] = {
    Type.INT: read_int,
    Type.FLOAT: read_float,
    Type.BOOL: read_bool,
    Type.TIMESTAMP: parse_timestamp,
}

_WRITERS: dict[Type, Callable[[Any], str]] = {
    Type.INT: str,
    Type.FLOAT: repr,
    Type.BOOL: _write_bool,
    Type.TIMESTAMP: timestamp_text,
}
