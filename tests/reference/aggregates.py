"""Aggregates over a list of values, exactly (`semantics.md` 17, 20).

A list holds the values of the rows that passed FILTER, in the order of the rows. Sums are exact: integers as they are, floats by
`math.fsum`, and the variance in fractions, rounded once at the end.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tests.reference.values import canonical
from tests.reference.workload import INT_MAX, INT_MIN, order_key


def aggregate(kind: str, values: list[Any], distinct: bool = False) -> Any:
    """The value of an aggregate; COUNT(*) gets a list of anything but None."""
    if kind in ("first", "last"):  # NULLs included
        return (values[0] if kind == "first" else values[-1]) if values else None
    values = [value for value in values if value is not None]
    if distinct:
        values = list({canonical(value): value for value in values}.values())
    if kind == "count":
        return len(values)
    if not values:
        return None
    match kind:
        case "sum":
            return _sum(values)
        case "avg":
            return _average(values)
        case "min":
            return min(values, key=order_key)
        case "max":
            return max(values, key=order_key)
        case "median":
            return _median(sorted(values, key=order_key))
        case "variance" | "stddev":
            return _deviation(values, root=kind == "stddev")
    raise ValueError(f"no aggregate {kind}")


def _sum(values: list[Any]) -> Any:
    if not isinstance(values[0], float):
        total = sum(values)
        return total if INT_MIN <= total <= INT_MAX else None
    if all(map(math.isfinite, values)):
        return math.fsum(values)
    return sum(value for value in values if not math.isfinite(value))


def _average(values: list[Any]) -> float:
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return float(_sum(values))
    return float(sum(map(Fraction, values)) / len(values))


def _median(values: list[Any]) -> float:
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    return float((Fraction(low) + Fraction(high)) / 2)


def _deviation(values: list[Any], root: bool) -> float | None:
    """Of a sample: NULL for a single value."""
    if len(values) < 2:
        return None
    mean = sum(map(Fraction, values)) / len(values)
    variance = float(sum((Fraction(value) - mean) ** 2 for value in values) / (len(values) - 1))
    return math.sqrt(variance) if root else variance
