"""Aggregates over the rows of a group, computed from scratch: what N applies at every change (5.4: any function of the rows).

NULLs are passed over, but for FIRST and LAST, which go by the order in which rows began; all but COUNT of nothing are NULL. SUM
of integers is exact, of floats the correctly rounded sum; VARIANCE and STDDEV are those of a sample, from an exact numerator.
NaN is above all numbers. MEDIAN interpolates numbers and takes the lower of two other values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from experiments.papers.buffers import Values
from experiments.papers.buffers.element import NAN
from lineage.errors import EddyError, did_you_mean


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    if all(isinstance(value, int) for value in values):
        return sum(values)
    total = math.fsum(values)
    return NAN if total != total else total


def _average(values: list[Any]) -> Any:
    return None if not values else _sum(values) / len(values)


def _rank(value: Any) -> tuple[bool, Any]:
    return (True, 0) if value != value else (False, value)


def _least(values: list[Any]) -> Any:
    return min(values, key=_rank, default=None)


def _greatest(values: list[Any]) -> Any:
    return max(values, key=_rank, default=None)


def _variance(values: list[Any]) -> Any:
    n = len(values)
    if n < 2:
        return None
    if not all(map(math.isfinite, values)):
        return NAN
    exact = [Fraction(value) for value in values]
    return float(n * sum(value * value for value in exact) - sum(exact) ** 2) / (n * (n - 1))


def _deviation(values: list[Any]) -> Any:
    variance = _variance(values)
    return variance if variance is None or variance != variance else math.sqrt(variance)


def _median(values: list[Any]) -> Any:
    if not values:
        return None
    ordered = sorted(values, key=_rank)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if not isinstance(low, (int, float)) or isinstance(low, bool):
        return low
    if high != high:
        return NAN
    return float(low) if low == high else low * 0.5 + high * 0.5


_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": len,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _least,
    "MAX": _greatest,
    "STDDEV": _deviation,
    "VARIANCE": _variance,
    "MEDIAN": _median,
    "FIRST": lambda values: values[0] if values else None,
    "LAST": lambda values: values[-1] if values else None,
}
#: These take a NULL for a value.
_OF_NULLS = ("FIRST", "LAST")


@dataclass(frozen=True, slots=True)
class RowAggregate:
    """One aggregate of a column; COUNT of no column counts rows.

    >>> RowAggregate("AVG", 0).of([(1,), (None,), (4,)])
    2.5
    """

    function: str
    column: int | None = None
    #: COUNT(DISTINCT column)
    distinct: bool = False
    #: FILTER (WHERE ..): which rows count
    condition: Callable[[Values], bool] | None = None

    def __post_init__(self) -> None:
        if self.function not in _FUNCTIONS:
            hint = did_you_mean(self.function, list(_FUNCTIONS))
            raise EddyError(f'there is no aggregate "{self.function}"', code="bad_option", hint=hint)
        if self.column is None and self.function != "COUNT":
            raise EddyError(f"{self.function} has no column", code="bad_option", hint="COUNT alone counts rows")
        if self.distinct and (self.column is None or self.function != "COUNT"):
            raise EddyError(f"{self.function} is not of distinct values", code="bad_option", hint="COUNT of a column is")

    def of(self, rows: Sequence[Values]) -> object:
        """Its value over these rows, in the order in which they began."""
        if self.condition is not None:
            rows = [row for row in rows if self.condition(row)]
        if self.column is None:
            return len(rows)
        values = [row[self.column] for row in rows if row[self.column] is not None or self.function in _OF_NULLS]
        return _FUNCTIONS[self.function](list(set(values)) if self.distinct else values)
