"""One row with its life, as it travels and as it is kept."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

#: The values of a row. NULL is None; a NaN is the one object `NAN`, so that equal rows are equal keys.
Values = tuple[object, ...]

NAN = float("nan")


class Element(NamedTuple):
    """A row that is alive during `[start, end)`; its id names it from its + to its end and may come again after that."""

    id: Hashable
    values: Values
    start: int
    #: its scheduled end; something may end it before
    end: int
    #: which of its producer's rows it is, counted from 1
    number: int = 0

    def starting(self, start: int) -> Element:
        """The same row, beginning later."""
        return self if self.start >= start else self._replace(start=start)


def canonical(values: Values) -> Values:
    """The values with one NaN for all, so that rows with the same values are equal.

    >>> canonical((float("nan"), 1)) == canonical((float("nan"), 1))
    True
    """
    return tuple(NAN if value != value else value for value in values)
