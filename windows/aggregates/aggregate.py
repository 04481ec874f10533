"""The definition of one aggregate, as the planner gives it: kind, argument, FILTER and type."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lineage.schema import Type


class AggregateKind(enum.Enum):
    """The aggregates of the language; COUNT without an argument is COUNT(*)."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    STDDEV = "stddev"
    VARIANCE = "variance"
    MEDIAN = "median"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """One aggregate over columns of the input, by their places.

    `type` is the output's: COUNT int; SUM that of its argument (int of a bool); AVG, STDDEV, VARIANCE float; MEDIAN float of
    numbers, else that of its argument; MIN, MAX, FIRST, LAST that of their argument.
    """

    kind: AggregateKind
    argument: int | None
    type: Type
    #: COUNT(DISTINCT x)
    distinct: bool = False
    #: place of the bool column of FILTER (WHERE ..): rows count where it is true
    filter: int | None = None
