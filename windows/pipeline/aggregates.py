"""Aggregates over the rows of a group, computed from scratch: what N applies at every change.

NULLs are passed over; SUM, AVG, MIN and MAX of nothing are NULL. SUM of integers is exact, of floats the correctly rounded sum.
NaN is above all numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lineage.errors import EddyError, did_you_mean
from windows.buffers import Values
from windows.buffers.element import NAN


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


_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": len,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _least,
    "MAX": _greatest,
}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a column; COUNT of no column counts rows.

    >>> Aggregate("AVG", 0).of([(1,), (None,), (4,)])
    2.5
    """

    function: str
    column: int | None = None

    def __post_init__(self) -> None:
        if self.function not in _FUNCTIONS:
            hint = did_you_mean(self.function, list(_FUNCTIONS))
            raise EddyError(f'there is no aggregate "{self.function}"', code="bad_option", hint=hint)
        if self.column is None and self.function != "COUNT":
            raise EddyError(f"{self.function} has no column", code="bad_option", hint="COUNT alone counts rows")

    def of(self, rows: Sequence[Values]) -> object:
        """Its value over these rows."""
        if self.column is None:
            return len(rows)
        return _FUNCTIONS[self.function]([row[self.column] for row in rows if row[self.column] is not None])
