"""Cutting a call that ends very many rows into several commits (semantics 11).

An end is one of

    a row leaves a window length that some query has          `[RANGE w]` over a stream, in plain queries, joins and blocks
    a row that is stored reaches the end its stream gave it   `end` columns; of rows that are there when the call comes
    a row of a stream is shown in another extent              `SLIDE`, TUMBLE and HOP whose bounds are looked at; likewise
    a row leaves a window that an operator keeps              windows over `ISTREAM (...)` and of joins in steps; likewise

A call with more than `MAX_ENDS` of them is cut at the instant of the last of each `STEP_ENDS`; all ends and arrivals up to that
instant make a commit of their own. So the cut follows from the rows and the queries alone, never from the size of batches or the
way in which rows expire. A commit's work after a pause, and the scratch memory of operators, are bounded by `STEP_ENDS`, or by
the ends of one instant, which are never parted.

Windows that count rows are left out: the rows that a row displaces from `[PARTITION BY k ROWS n]` are known once it is stored,
not before, and then it is the row's commit, whose size its sender chose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from eddy.streams.source import Source
from eddy.streams.timeline import Rows, Timeline
from stems.own_ends import OwnEnds

#: A call with more ends is cut.
MAX_ENDS = 1_000_000
#: Ends of one commit of a call that is cut, but for those of one instant. Operators take up to 0.7 us for each: 3 ms of 10, and
#: now and then as much for what shrinks.
STEP_ENDS = 4_096

Released = list[tuple[Source, Rows]]
#: How many of certain rows end by an instant.
Count = Callable[[int], int]


class TimedRows(Protocol):
    """Rows that end by the clock, and can be counted."""

    def most_ends(self, upto: int) -> int: ...

    def count_ends(self, upto: int) -> Count: ...


class CommitCuts:
    """The instants at which one call is cut."""

    def __init__(self, timeline: Timeline, sources: Sequence[Source], after: int, others: list[Count]) -> None:
        self._timeline = timeline
        self._sources = sources
        self._after = after
        #: ends of rows that are there when the call comes
        self._others = others

    def next(self, released: Released) -> int | None:
        """The clock at which the next commit ends; None if the rest is one commit. `released`: the rows not yet stored."""
        now, step = self._timeline.now, min(STEP_ENDS, MAX_ENDS)
        before = sum(count(now) for count in self._others)

        def until(clock: int) -> int:
            return self._leaving(released, clock) + sum(count(clock) for count in self._others) - before

        if until(self._after) <= step:
            return None
        # the smallest instant with so many ends: below it they are too few
        low, high = now, self._after
        while low < high:
            middle = (low + high) // 2
            if until(middle) >= step:
                high = middle
            else:
                low = middle + 1
        return low if low < self._after else None

    def n_ends(self, released: Released) -> int:
        """The number of ends in the whole call."""
        return self._leaving(released, self._after) + sum(count(self._after) for count in self._others)

    def _leaving(self, released: Released, clock: int) -> int:
        """The number of rows that leave windows over streams."""
        arriving = dict(released)
        return sum(source.expiry.ends_until(clock, arriving.get(source)) for source in self._sources)


def cuts_of(
    timeline: Timeline, sources: Sequence[Source], released: Released, after: int, operators: Sequence[TimedRows]
) -> CommitCuts | None:
    """The cuts of a call that takes the clock to `after`; None if it is one commit."""
    arriving = dict(released)
    most = 0
    for source in sources:
        most += source.expiry.most_ends(arriving[source].n_rows if source in arriving else 0)
        most += 0 if source.own_ends is None else source.own_ends.n_scheduled
    for operator in operators:
        most += operator.most_ends(after)
    if most <= MAX_ENDS:
        return None
    others = [operator.count_ends(after) for operator in operators]
    others += [_own_ends(source.own_ends, timeline.now, after) for source in sources if source.own_ends is not None]
    cuts = CommitCuts(timeline, sources, after, others)
    return cuts if cuts.n_ends(released) > MAX_ENDS else None


def _own_ends(own_ends: OwnEnds, now: int, after: int) -> Count:
    ends = own_ends.ends_between(now, after)
    return lambda clock: int(np.searchsorted(ends, clock, "right"))


def split_at(released: Released, clock: int) -> tuple[Released, Released]:
    """The rows up to an instant, and the later ones."""
    earlier, later = [], []
    for source, rows in released:
        at = rows.count_until(clock)
        first, rest = rows.split(at)
        if first.n_rows:
            earlier.append((source, first))
        if rest.n_rows:
            later.append((source, rest))
    return earlier, later
