"""Windows as lifetimes: what one row is for one FROM item of one query (`semantics.md` 4-8).

    RANGE w                 [start, t + w)
    NOW                     [start, t + 1)
    ROWS n                  [start, start of the n-th row after it)     counted before WHERE, from the query's submit on
    PARTITION BY k ROWS n   the same among the rows of its key          NaN is one key, -0.0 is 0.0, NULL is a key
    with RANGE w            the earlier of both ends
    version of a table      [T of the commit that wrote it, T of the commit that replaced or deleted it)

A life that is empty is no life. But lives are measured in event time and commits are not: a row may be seen by one commit
and be displaced by the next while T stands still. Then its life, [T, T), was not empty when it began, and counts.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tests.reference.timelines import Taken
from tests.reference.values import Row, Value, canonical_row

#: Width of a window that never ends.
UNBOUNDED = math.inf


@dataclass(frozen=True)
class Window:
    """`RANGE width`, `ROWS rows`, `PARTITION BY partition ROWS rows`, or one of the latter with the former."""

    width: float = UNBOUNDED
    rows: int | None = None
    partition: tuple[str, ...] = ()

    def key(self, row: Row) -> Value:
        return canonical_row(row[column] for column in self.partition)


NOW = Window(1)


@dataclass(eq=False)
class Part:
    """A stream's row or a table's version as one query's FROM item has it.

    `seq` is the commit in which it came to the query: later than the one in which it was taken if the query is younger.
    `end` only ever gets earlier, when a newer row or version takes its place.
    """

    number: int
    row: Row
    seq: int
    start: float
    end: float


def displace(window: Window, parts: Sequence[Part]) -> None:
    """Row n + 1 ends the oldest at its own start; `parts` are in order of arrival.

    Parts that have ended may be missing: none of them is newer than one that lives.
    """
    if window.rows is None:
        return
    by_key: dict[Value, list[Part]] = defaultdict(list)
    for part in parts:
        by_key[window.key(part.row)].append(part)
    for group in by_key.values():
        for part, successor in zip(group, group[window.rows :], strict=False):
            part.end = min(part.end, successor.start)


def contents(window: Window, taken: Sequence[Taken], first: int, now: int) -> Sequence[int]:
    """Positions, from `first` on, of the rows in the window at `now`, as if a query had been there for ever."""
    # rows are in order of t
    in_range = range(max(first, bisect.bisect_right(taken, now - window.width, key=lambda entry: entry.t)), len(taken))
    if window.rows is None:
        return in_range
    inside = []
    newer: Counter[Value] = Counter()
    for position in reversed(in_range):
        key = window.key(taken[position].row)
        if newer[key] < window.rows:
            inside.append(position)
        newer[key] += 1
    return inside[::-1]
