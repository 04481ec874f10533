"""Parameter values as literals, and literals as another type."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import SupportsIndex

from filters.expressions.expression import Expression, Interval, Literal
from lineage.errors import did_you_mean
from lineage.schema import KEY_MAX, KEY_MIN, Type
from queries.durations import UNITS_HINT, DurationError, parse_duration, timedelta_micros, timestamp_micros
from queries.lifting import timed
from queries.sql_text import SqlText
from queries.syntax import ParsedQuery, Syntax, WindowParam
from queries.windows import check_rows, check_width
from windows.spec import WindowSpec

_KINDS = "a parameter is an int, float, str, bool, None, datetime or timedelta"


def check_params(parsed: ParsedQuery, params: Mapping[str, object]) -> None:
    """Refuse parameters the query does not have; missing ones are found where they stand."""
    for name in params:
        if name not in parsed.params:
            hint = did_you_mean(str(name), sorted(parsed.params)) or "the query has no parameters"
            raise parsed.source.error(f'the query has no parameter ":{name}"', 0, 0, "unknown_param", hint)


def param_value(source: SqlText, node: Syntax | WindowParam, name: str, params: Mapping[str, object]) -> object:
    """The value given for a parameter; raises `QueryError` when there is none."""
    if name not in params:
        raise source.error(
            f'parameter ":{name}" has no value', node.start, node.end, "missing_param", f'params={{"{name}": ...}}'
        )
    return params[name]


def param_literal(source: SqlText, node: Syntax, name: str, value: object) -> Literal:
    """A parameter's value as a literal."""
    if value is None:
        return Literal(Type.NULL, None)
    if isinstance(value, bool):
        return Literal(Type.BOOL, value)
    if isinstance(value, str):
        if value.isascii() or is_text(value):
            return Literal(Type.STRING, value)
        raise source.error(f'parameter ":{name}" is no UTF-8 text', node.start, node.end, "bad_param")
    if isinstance(value, float):
        return Literal(Type.FLOAT, float(value))
    if isinstance(value, datetime):
        return Literal(Type.TIMESTAMP, timestamp_micros(value))
    if isinstance(value, timedelta):
        return Literal(Type.INTERVAL, Interval(0, timedelta_micros(value)))
    if not isinstance(value, int | SupportsIndex):
        fact = f'parameter ":{name}" is of type {type(value).__name__}'
        raise source.error(fact, node.start, node.end, "bad_param", _KINDS)
    number = operator.index(value)
    if not KEY_MIN <= number <= KEY_MAX:
        raise source.error(
            f'parameter ":{name}" is too large', node.start, node.end, "number_too_large", "integers are 64 bits wide"
        )
    return Literal(Type.INT, number)


def is_text(value: str) -> bool:
    """Whether a text can be written in UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def param_window(source: SqlText, node: WindowParam, value: object) -> WindowSpec:
    """The window `[RANGE :name]` for a value: a timedelta or a text such as '5 minutes'."""
    if isinstance(value, timedelta):
        width = Interval(0, timedelta_micros(value))
    elif isinstance(value, str):
        try:
            width = parse_duration(value)
        except DurationError as error:
            raise source.error(str(error), node.start, node.end, "bad_interval", UNITS_HINT) from None
    else:
        fact = f'parameter ":{node.name}" is of type {type(value).__name__}, not a duration'
        raise source.error(fact, node.start, node.end, "bad_param", "give a timedelta or a text such as '5 minutes'")
    return check_width(width, source, node.start, node.end)


def param_rows(source: SqlText, node: WindowParam, value: object) -> int:
    """The count of `[ROWS :name]` for a value."""
    if isinstance(value, bool) or not isinstance(value, int | SupportsIndex):
        fact = f'parameter ":{node.name}" is of type {type(value).__name__}, not a number of rows'
        raise source.error(fact, node.start, node.end, "bad_param", "give a whole number")
    return check_rows(operator.index(value), source, node.start, node.end)


def as_timestamp(source: SqlText, node: Syntax, text: Expression) -> Literal:
    """A text literal that stands where a time is needed."""
    assert isinstance(text, Literal) and text.type is Type.STRING
    found = timed(text)
    if found is None:
        written = str(text.value)
        shown = written if len(written) <= 40 else written[:37] + "..."
        raise source.error(f"'{shown}' is no time", node.start, node.end, "bad_timestamp", "write 2024-05-01T12:00:00Z")
    return found
