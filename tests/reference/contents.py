"""What an item of FROM holds after an event: streams, windows over them, tables, answers of queries.

Windows are told by what they hold (`semantics.md` 4, 7, 8, 34), `now` being the time of the last event:

    RANGE w          t + w > now
    ROWS n           fewer than n rows (of its key) came after it, ended ones too: they leave their place empty
    SLIDE s          B - w <= t and start < B, with B the last multiple of s up to now
    and always       not retracted, not replaced by a row of its key, and now < its `end`

A row of a relation is a value; a row of a stream also has its arrival.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tests.reference.lives import Window
from tests.reference.operators import Slide
from tests.reference.tables import Table
from tests.reference.values import Row, Value


@dataclass(frozen=True)
class Event:
    """`kind`: arrival, retraction, table, ends, open or close; `seq` is the commit it belongs to."""

    number: int
    kind: str
    time: float
    seq: int


@dataclass(eq=False)
class Arrived:
    """A row of a stream; `until` is what its `end` column says, `gone` holds once it is retracted or replaced."""

    row: Row
    t: float
    start: float
    seq: int
    event: int
    until: float = math.inf
    gone: bool = False


class Element(NamedTuple):
    """A row as an item of FROM has it."""

    row: Row
    #: the commit in which it came, for tables that count as they were then; None if only tables made it
    came: int | None
    #: the commit since which the item has it
    born: int


class Node(Protocol):
    def step(self, event: Event) -> None: ...

    def due(self, now: float) -> float:
        """The next instant after `now` at which something may happen by itself."""
        ...


class Running(Node, Protocol):
    """A relation has `rows`, a stream has `emitted`; the other one is empty."""

    @property
    def rows(self) -> Sequence[Value]: ...

    @property
    def born(self) -> Sequence[int]:
        """The commit since which each of its rows is there."""
        ...

    @property
    def emitted(self) -> Sequence[Value]: ...


class Input(Node, Protocol):
    """What an item of FROM holds; the same list as long as nothing changed."""

    @property
    def elements(self) -> list[Element]: ...


class BaseFeed:
    """The rows of a stream from a position on; those from before the opening count as of the opening."""

    def __init__(self, arrived: list[Arrived], first: int, opened: int) -> None:
        self._arrived = arrived
        self._next = first
        self._opened = opened
        self.new: list[Arrived] = []

    def step(self, event: Event) -> None:
        self.new = self._arrived[self._next :]
        self._next = len(self._arrived)

    def due(self, now: float) -> float:
        return math.inf

    def seq(self, row: Arrived) -> int:
        return max(row.seq, self._opened)


class QueryFeed:
    """The rows of a stream that a query gives, timed by the event that emitted them."""

    def __init__(self, child: Running, columns: Sequence[str]) -> None:
        self.child = child
        self._columns = columns
        self.new: list[Arrived] = []

    def step(self, event: Event) -> None:
        self.child.step(event)
        rows = [dict(zip(self._columns, value, strict=True)) for value in self.child.emitted]
        self.new = [Arrived(row, event.time, event.time, event.seq, event.number) for row in rows]

    def due(self, now: float) -> float:
        return self.child.due(now)

    def seq(self, row: Arrived) -> int:
        return row.seq


Feed = BaseFeed | QueryFeed


class Unwindowed:
    """A stream without a window: each row once, in the event in which it comes."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.elements: list[Element] = []

    def step(self, event: Event) -> None:
        self.feed.step(event)
        new = [] if event.kind == "open" else self.feed.new
        self.elements = [Element(row.row, self.feed.seq(row), self.feed.seq(row)) for row in new if row.until > row.start]

    def due(self, now: float) -> float:
        return self.feed.due(now)


class Windowed:
    """A window over a stream."""

    def __init__(self, feed: Feed, window: Window | Slide) -> None:
        self.feed = feed
        self._window = window
        #: rows that are or may be inside, or hold a place
        self.rows: list[Arrived] = []
        self.inside: list[tuple[Arrived, float]] = []
        #: the commit in which each was first inside
        self._born: list[int] = []
        self.elements: list[Element] = []

    def step(self, event: Event) -> None:
        self.feed.step(event)
        self.rows += self.feed.new
        boundary = self._window.boundary(event.time) if isinstance(self._window, Slide) else math.nan
        self.rows = [row for row in self.rows if not self._over(row, event.time)]
        shown = boundary if isinstance(self._window, Slide) and self._window.bounds else 0.0
        inside = [(row, shown) for row in self._held(boundary) if not row.gone and event.time < row.until]
        if inside != self.inside:
            known = {(id(row), shown): born for (row, shown), born in zip(self.inside, self._born)}
            self.inside = inside
            self._born = [known.get((id(row), shown), event.seq) for row, shown in inside]
            made = zip(inside, self._born)
            self.elements = [Element(self._shown(row.row, shown), self.feed.seq(row), born) for (row, shown), born in made]

    def _over(self, row: Arrived, now: float) -> bool:
        """Whether it can neither be inside again nor hold a place."""
        if isinstance(self._window, Slide):
            return self._window.boundary(now) - self._window.width > row.t
        return row.t + self._window.width <= now or (self._window.rows is None and (row.gone or row.until <= now))

    def _held(self, boundary: float) -> list[Arrived]:
        if isinstance(self._window, Slide):
            return [row for row in self.rows if boundary - self._window.width <= row.t and row.start < boundary]
        if self._window.rows is not None:
            newer: Counter[Value] = Counter()
            kept = []
            for row in reversed(self.rows):
                key = self._window.key(row.row)
                newer[key] += 1
                if newer[key] <= self._window.rows:
                    kept.append(row)
            self.rows = kept[::-1]
        return self.rows

    def _shown(self, row: Row, boundary: float) -> Row:
        if not isinstance(self._window, Slide) or not self._window.bounds:
            return row
        return {**row, "window_start": int(boundary - self._window.width), "window_end": int(boundary)}

    def due(self, now: float) -> float:
        times = [self.feed.due(now), *(row.until for row in self.rows)]
        if isinstance(self._window, Slide):
            times += [self._window.boundary(now) + self._window.slide] if self.rows else []
        else:
            times += [row.t + self._window.width for row in self.rows]
        return min((time for time in times if time > now), default=math.inf)


class TableNow:
    """A table as it is."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._opened: int | None = None
        self.elements: list[Element] = []

    def step(self, event: Event) -> None:
        if self._opened is None:
            self._opened = event.seq
        if event.kind in ("open", "table"):
            versions = self._table.at(event.seq)
            self.elements = [Element(version.row, None, max(version.opened, self._opened)) for version in versions]

    def due(self, now: float) -> float:
        return math.inf


class Derived:
    """The answer of a query as an item of FROM; `of_tables`: it reads tables alone."""

    def __init__(self, child: Running, columns: Sequence[str], of_tables: bool) -> None:
        self.child = child
        self._columns = columns
        self._of_tables = of_tables
        self.rows: Sequence[Value] | None = None
        self.elements: list[Element] = []

    def step(self, event: Event) -> None:
        self.child.step(event)
        if self.child.rows is not self.rows:
            self.rows = self.child.rows
            made = zip(self.rows, self.child.born, strict=True)
            self.elements = [
                Element(dict(zip(self._columns, row, strict=True)), None if self._of_tables else born, born) for row, born in made
            ]

    def due(self, now: float) -> float:
        return self.child.due(now)
