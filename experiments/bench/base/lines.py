"""Lines of a benchmark: a table for people, one JSON object a line for machines.

filters  8192 queries   rows/s 0.71 M   pairs/s 1.4 G   of bare 68 %   times paper 512 x   bar 65 %  ok
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure and its unit: `/s` and `B` are scaled, `%` is a fraction, the rest is printed as it is."""

    value: float
    unit: str

    def __str__(self) -> str:
        if self.unit == "/s":
            return scaled(self.value)
        if self.unit == "%":
            return f"{100 * self.value:.3g} %"
        if self.unit == "x":
            return f"{self.value:,.0f} x" if self.value >= 100 else f"{self.value:.3g} x"
        return f"{self.value:,.0f} {self.unit}" if self.value >= 1000 else f"{self.value:.3g} {self.unit}"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar and whether it is met."""

    text: str
    met: bool

    @classmethod
    def at_least(cls, value: float, bar: float, unit: str) -> Bar:
        return cls(str(Measure(bar, unit)), value >= bar)

    @classmethod
    def at_most(cls, value: float, bar: float, unit: str) -> Bar:
        return cls(str(Measure(bar, unit)), value <= bar)

    def __str__(self) -> str:
        return f"bar {self.text}  {'ok' if self.met else 'missed'}"


@dataclass(frozen=True, slots=True)
class Line:
    """One measured setting of one case."""

    case: str
    work: str
    measures: dict[str, Measure]
    bar: Bar | None = None
    #: the setting as numbers, for machines
    setting: Mapping[str, int | str] = field(default_factory=dict)

    def as_json(self) -> str:
        bar = {} if self.bar is None else {"bar": self.bar.text, "met": self.bar.met}
        values = {name: measure.value for name, measure in self.measures.items()}
        return json.dumps({"case": self.case, "work": self.work, **self.setting, **values, **bar})


def scaled(value: float) -> str:
    """Three digits and a unit prefix.

    >>> scaled(51_234_000), scaled(999_900_000), scaled(950.0)
    ('51.2 M', '1 G', '950')
    """
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        # what rounds to 1000 belongs to the next prefix
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"


def table_of(case: str, lines: Sequence[Line]) -> Table:
    """A table of some lines of a case; columns are the measures that they have."""
    names = list(dict.fromkeys(name for line in lines for name in line.measures))
    table = Table(title=case, title_justify="left", title_style="bold")
    table.add_column("work")
    for name in names:
        table.add_column(name.replace("_per_s", "/s").replace("_", " "), justify="right")
    table.add_column("bar")
    for line in lines:
        cells = [str(line.measures[name]) if name in line.measures else "" for name in names]
        bar = Text("" if line.bar is None else str(line.bar), style="" if line.bar is None or line.bar.met else "bold red")
        table.add_row(line.work, *cells, bar)
    return table


def show(console: Console, lines: Sequence[Line]) -> None:
    """The lines as tables, in the order of their cases; those of a case that begin with the same measure are one table."""
    tables: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        tables.setdefault((line.case, next(iter(line.measures))), []).append(line)
    for (case, _), found in tables.items():
        console.print(table_of(case, found))
