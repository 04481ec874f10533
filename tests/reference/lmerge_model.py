"""LMERGE in FROM by its definition, over lists: every event is kept for ever, with the inputs that have it (`semantics.md` 36).

event       (values, t, k): the k-th row of these values and this time in any input
entered     when a commit is over: by the input that moved V, or at V as soon as any input has it
content     what a window holds of the rows that entered, from scratch at each look
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.reference.values import Row


class Given(NamedTuple):
    """A row that an input gives: its time, its start, its place in the commit."""

    input: str
    t: int
    start: int
    place: float
    row: Row


@dataclass(eq=False)
class Entered:
    """A row of the merge."""

    row: Row
    t: int
    start: int
    #: when it is taken back
    end: float = math.inf


@dataclass
class Event:
    holders: dict[str, Given] = field(default_factory=dict)
    entered: Entered | None = None


def values_of(row: Row) -> tuple[Any, ...]:
    return tuple(row.items())


class StreamMergeModel:
    """A merge of streams."""

    def __init__(self, inputs: Sequence[str], points: Mapping[str, float | None]) -> None:
        self.inputs = inputs
        self.point = max((point for point in points.values() if point is not None), default=-math.inf)
        self.events: dict[tuple[Any, ...], Event] = {}
        #: by input, how many rows of each value and time it has given
        self.counts: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in inputs}
        #: in the order in which they entered
        self.rows: list[Entered] = []
        self.met: Counter[str] = Counter()

    def commit(self, given: list[Given], points: Mapping[str, float | None], clock: float) -> None:
        """Take the rows of a commit, in its order; `points` are those after it, None for an input that is paused."""
        before = self.point
        after = max([before, *(point for point in points.values() if point is not None)])
        leader = next((name for name in self.inputs if points[name] == after), None) if after > before else None
        for one in given:
            self._take(one, before)
        entering: list[tuple[Given, Event]] = []
        for (_, t, _), event in self.events.items():
            if leader is not None and before <= t < after:
                if leader in event.holders:
                    entering.append((event.holders[leader], event))
                elif event.entered is not None and event.entered.end == math.inf:
                    event.entered.end = clock
                    self.met["taken back"] += 1
            elif t == after and event.holders:
                entering.append((min(event.holders.values(), key=lambda one: (one.start, one.place)), event))
        for one, event in sorted(entering, key=lambda pair: (pair[0].start, pair[0].place)):
            if event.entered is None:
                event.entered = Entered(one.row, one.t, one.start)
                self.rows.append(event.entered)
                self.met["entered"] += 1
        self.point = after
        self.met[f"leader {leader}"] += leader is not None

    def leave(self, name: str) -> None:
        """An input is paused: it has given nothing."""
        if name in self.inputs:
            self.counts[name].clear()
            for event in self.events.values():
                event.holders.pop(name, None)

    def _take(self, one: Given, before: float) -> None:
        if one.t < before:
            self.met["settled"] += 1
            return
        key = values_of(one.row), one.t
        self.counts[one.input][key] += 1
        event = self.events.setdefault((*key, self.counts[one.input][key]), Event())
        self.met["known"] += bool(event.holders)
        event.holders[one.input] = one

    def open(self, given: list[Given], points: Mapping[str, float | None], clock: float) -> None:
        """Begin with what is stored of the inputs, as if it came in one commit: in order of time, none before an older one."""
        self.point = -math.inf
        self.commit(given, points, clock)
        self.rows.sort(key=lambda row: (row.t, row.start))
        latest = -math.inf
        for row in self.rows:
            latest = max(latest, row.start)
            row.start = int(latest)


class Shape(NamedTuple):
    """A window: its text and its numbers."""

    text: str
    width: float = math.inf
    rows: int = 0
    partition: str | None = None
    slide: int = 0


def content(rows: Sequence[Entered], shape: Shape, now: float) -> list[Row]:
    """The rows of a window at an instant, in the order in which they entered."""
    if shape.slide:
        boundary = now // shape.slide * shape.slide
        held = [row for row in rows if boundary - shape.width <= row.t and row.start < boundary]
    else:
        held = [row for row in rows if row.t + shape.width > now]
    if shape.rows:
        newest: set[int] = set()
        places: Counter[Any] = Counter()
        for row in reversed(rows):
            key = row.row[shape.partition] if shape.partition else None
            if places[key] < shape.rows:
                newest.add(id(row))
            places[key] += 1
        held = [row for row in held if id(row) in newest]
    return [row.row for row in held if row.end > now]
