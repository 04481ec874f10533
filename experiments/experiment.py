"""An experiment: a question of a paper, rows that answer it, a verdict on their shape, a picture.

    steps     measure; each step gives rows of the CSV, so progress can be told between them
    judge     a pure function from rows to a verdict, so anyone can judge the CSV again
    draw      the same for the picture

A verdict compares by ratios, slopes and counts, never by times: a slow machine gives the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = int | float | str
#: One line of the CSV.
Row = dict[str, Value]
Step = Callable[[], list[Row]]


@dataclass(frozen=True, slots=True)
class Setting:
    """The choices of a run: its size, seed and data."""

    quick: bool = False
    seed: int = 1
    #: a folder with real data, for those that need it
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A fact about the set-up. The stored text of the paper has lost its numbers: those we had to choose are `ours`."""

    name: str
    value: str
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """One claim about the shape: the value found, and its bar."""

    claim: str
    value: float
    bar: str
    holds: bool

    @classmethod
    def at_most(cls, claim: str, value: float, bar: float) -> Check:
        return cls(claim, value, f"at most {bar:g}", value <= bar)

    @classmethod
    def at_least(cls, claim: str, value: float, bar: float) -> Check:
        return cls(claim, value, f"at least {bar:g}", value >= bar)

    @classmethod
    def below(cls, claim: str, value: float, bar: float) -> Check:
        return cls(claim, value, f"less than {bar:g}", value < bar)

    @classmethod
    def above(cls, claim: str, value: float, bar: float) -> Check:
        return cls(claim, value, f"more than {bar:g}", value > bar)

    @classmethod
    def within(cls, claim: str, value: float, low: float, high: float) -> Check:
        return cls(claim, value, f"{low:g} to {high:g}", low <= value <= high)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the shape of the paper's figure is found here."""

    checks: tuple[Check, ...]
    #: what we know of why, above all where a check does not hold
    note: str = ""

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One question."""

    name: str
    question: str
    #: where the paper asks it
    figure: str
    #: what the paper found, or what we expect, in our words
    expected: str
    parameters: tuple[Parameter, ...]
    #: of the CSV, name -> meaning
    columns: Mapping[str, str]
    steps: Callable[[Setting], Sequence[Step]]
    judge: Callable[[Sequence[Row]], Verdict]
    draw: Callable[[Figure, Sequence[Row]], None]
    #: what the picture shows, for who reads the report
    caption: str
    #: what is compared: counts are the same on every machine
    by: str = "ratios of CPU time"
    #: the files it reads below the folder of real data; none: it makes its own rows
    files: tuple[str, ...] = ()
    #: inches
    size: tuple[float, float] = field(default=(8.0, 4.5))


def shown(value: float) -> str:
    """A figure for people.

    >>> shown(1.23456), shown(3584.0), shown(0.00861), shown(float("inf"))
    ('1.23', '3,584', '0.00861', 'never')
    """
    if value == float("inf"):
        return "never"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def column(rows: Sequence[Row], name: str) -> list[float]:
    """A column of numbers."""
    return [float(row[name]) for row in rows]


def where(rows: Sequence[Row], **wanted: Value) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def one(rows: Sequence[Row], name: str, **wanted: Value) -> float:
    """The value of the one row that has these values."""
    (row,) = where(rows, **wanted)
    return float(row[name])


def distinct(rows: Sequence[Row], name: str) -> list[Value]:
    """The values of a column, in the order in which they come."""
    return list(dict.fromkeys(row[name] for row in rows))


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The slope of a line through the logarithms: 1 for what grows as x does, 0 for what stays.

    >>> slope([1, 10, 100], [2, 20, 200]), slope([1, 10, 100], [5, 5, 5])
    (1.0, 0.0)
    """
    import numpy as np

    return round(float(np.polyfit(np.log(xs), np.log(ys), 1)[0]), 12) + 0.0
