"""Rows and values as the model and the comparisons hold them: `==` means the same SQL value."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
Value = tuple[Any, ...]

#: What NaN is replaced by, so that it equals itself.
NAN = ("NaN",)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def canonical(value: Any) -> Any:
    """One value such that `==` means the same SQL value: NaN = NaN, -0.0 = 0.0, a datetime is its microseconds.

    >>> canonical(float("nan")) == canonical(float("nan")), str(canonical(-0.0))
    (True, '0.0')
    """
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - EPOCH) // dt.timedelta(microseconds=1)
    return value


def canonical_row(values: Iterable[Any]) -> Value:
    return tuple(canonical(value) for value in values)
