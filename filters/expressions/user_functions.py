"""Calling registered Python functions, row by row.

A function gets Python values (None for NULL, `datetime` in UTC for timestamps) and gives one, None being NULL:

    returns int        an int that fits 64 bits (a bool is not an int here)
    returns float      a float or an int
    returns string     a str that UTF-8 can write
    returns bool       a bool
    returns timestamp  a datetime; one without a time zone is UTC

Anything else, and any exception, makes the row's value NULL and is counted. numpy scalars count as their Python kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from filters.expressions.expression import UserFunction
from filters.values.vector import DATETIME_MAX_US, DATETIME_MIN_US, DTYPES, Frame, Vector
from lineage.schema import KEY_MAX, KEY_MIN, Type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def call_rows(function: UserFunction, args: Sequence[Vector], frame: Frame) -> Vector:
    """One call per row; O(rows) Python calls."""
    accept = _ACCEPT[function.returns]
    columns = [arg.to_pylist() for arg in args]
    rows = zip(*columns, strict=True) if columns else iter([()] * frame.n_rows)
    callable_rows = _callable_rows(args, frame.n_rows)
    cells: list[Any] = []
    failed = np.zeros(frame.n_rows, np.bool_)
    for row, values in enumerate(rows):
        cell = None
        try:
            if not callable_rows[row]:
                raise OverflowError("a timestamp is outside the years of datetime")
            result = function.fn(*values)
            cell = None if result is None else accept(result)
        except Exception:
            # Documented: no row breaks a commit, so whatever user code raises is a counted NULL. What is no
            # Exception (KeyboardInterrupt, SystemExit) is not about the row and passes.
            failed[row] = True
        cells.append(cell)
    if failed.any():
        frame.fail(failed)
    return _vector(function.returns, cells)


def _callable_rows(args: Sequence[Vector], n_rows: int) -> list[bool]:
    """False where a timestamp has no `datetime`."""
    callable_rows = np.ones(n_rows, np.bool_)
    for arg in args:
        if arg.type is Type.TIMESTAMP:
            inside = (arg.values >= DATETIME_MIN_US) & (arg.values <= DATETIME_MAX_US)
            callable_rows &= inside | arg.null_mask()
    return callable_rows.tolist()


def _vector(type: Type, cells: list[Any]) -> Vector:
    if type is Type.STRING:
        return Vector.of_strings(cells)
    nulls = np.array([cell is None for cell in cells], np.bool_)
    values = np.array([0 if cell is None else cell for cell in cells], DTYPES[type])
    return Vector(type, values, nulls if nulls.any() else None)


def _accept_int(result: Any) -> int:
    if isinstance(result, bool) or not isinstance(result, int | np.integer):
        raise TypeError("not an int")
    if not KEY_MIN <= result <= KEY_MAX:
        raise OverflowError("not in 64 bits")
    return int(result)


def _accept_float(result: Any) -> float:
    if isinstance(result, bool) or not isinstance(result, int | float | np.integer | np.floating):
        raise TypeError("not a float")
    return float(result)


def _accept_string(result: Any) -> str:
    if not isinstance(result, str):
        raise TypeError("not a str")
    result.encode()
    return str(result)


def _accept_bool(result: Any) -> bool:
    if not isinstance(result, bool | np.bool_):
        raise TypeError("not a bool")
    return bool(result)


def _accept_timestamp(result: Any) -> int:
    if not isinstance(result, datetime):
        raise TypeError("not a datetime")
    moment = result if result.tzinfo is not None else result.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


_ACCEPT: dict[Type, Callable[[Any], Any]] = {
    Type.INT: _accept_int,
    Type.FLOAT: _accept_float,
    Type.STRING: _accept_string,
    Type.BOOL: _accept_bool,
    Type.TIMESTAMP: _accept_timestamp,
}
