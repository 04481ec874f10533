"""Where rows enter a plan: a stream under a window (N 3.2 SSCAN, 4.2.1 EXPIRE).

    life of a row      [time, min(time + width, its own end)); a row that would be over when it begins is counted and not shown
    in steps           from the first boundary after its time up to the first whose extent it is no longer in (semantics 7)
    premature ends     a row with the key of a live one replaces it, a retraction ends it, the n-th newer row displaces it

Under the strategies in which ends travel the source sends a negative when a row's scheduled end is reached, also when nothing
comes. What happens at one instant: scheduled ends first, then arrivals and retractions as they were fed.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from experiments.papers.buffers import Element, Values
from experiments.papers.buffers.element import canonical
from experiments.papers.machine.messages import MessageKind, QueueMessage
from experiments.papers.machine.node import PlanNode
from lineage.elements import FOREVER
from lineage.errors import EddyError
from windows import patterns
from windows.spec import WindowSpec


@dataclass(frozen=True, slots=True)
class TimedRow:
    """A row that arrives at a time; `end_us` if it has an end of its own."""

    time_us: int
    values: Values
    end_us: int = FOREVER


@dataclass(frozen=True, slots=True)
class Retraction:
    """The end of the live row with a key, at a time."""

    time_us: int
    key: Values


class TimedSource(PlanNode):
    """A stream under a window; `key`: the columns by which it has one row at a time."""

    kind = "source"

    def __init__(self, name: str, window: WindowSpec, *, key: tuple[int, ...] = (), has_end: bool = False) -> None:
        super().__init__()
        self.name = name
        self.window = window
        self.key = key
        self.has_end = has_end
        self._fed: deque[TimedRow | Retraction] = deque()
        self._last_fed_us = -FOREVER
        self._n_rows = 0
        self._sends_ends = False
        #: live rows by number, where something may name them later
        self._live: dict[int, Element] = {}
        #: rows of a window in steps that wait for their boundary, earliest first
        self._waiting: list[tuple[int, int]] = []
        self._unseen: dict[int, Element] = {}
        #: scheduled ends of live rows, earliest first
        self._ends: list[tuple[int, int]] = []
        self._by_key: dict[Values, int] = {}
        #: the rows of each partition of a window that counts rows, oldest first
        self._counted: dict[Values, deque[int]] = {}
        #: rows that were over when they began, and retractions of unknown keys
        self.dropped = 0

    @property
    def pattern(self) -> str:
        return patterns.window_pattern(self.window, bool(self.key), self.has_end)

    @property
    def ends_known(self) -> bool:
        return self.pattern != patterns.STRICT

    def open(self, sends_ends: bool) -> None:
        self._sends_ends = sends_ends

    def feed(self, rows: Iterable[TimedRow | Retraction]) -> None:
        """Rows to come, in order of time."""
        for row in rows:
            if row.time_us < self._last_fed_us:
                raise EddyError(
                    f'a row of "{self.name}" is older than the one before it', code="bad_rows", hint="feed rows in order of time"
                )
            if isinstance(row, Retraction) and not self.key:
                raise EddyError(f'"{self.name}" has no key to retract by', code="bad_rows", hint="Source(..., key=(0,))")
            self._last_fed_us = row.time_us
            self._fed.append(row)

    def next_time(self) -> int | None:
        """When something happens next."""
        times = [self._fed[0].time_us] if self._fed else []
        if self._sends_ends and self._ends:
            times.append(self._ends[0][0])
        if self._waiting:
            times.append(self._waiting[0][0])
        return min(times, default=None)

    def end_due(self, now_us: int) -> list[QueueMessage]:
        """Negatives of the rows whose scheduled end is reached."""
        sent = []
        while self._ends and self._ends[0][0] <= now_us:
            end, number = heapq.heappop(self._ends)
            if number in self._live:
                element = self._live.pop(number)
                if self._sends_ends:
                    sent.append(QueueMessage(MessageKind.NEGATIVE, end, end, element))
        return sent

    def take(self, now_us: int) -> list[QueueMessage]:
        """Messages of the rows that have arrived, after those of rows that a boundary shows."""
        sent: list[QueueMessage] = []
        while self._fed and self._fed[0].time_us <= now_us:
            row = self._fed.popleft()
            self._show(row.time_us, sent)
            self.end_due(row.time_us)
            if isinstance(row, Retraction):
                self._retract(row.key, row.time_us, sent)
            else:
                self._admit(row, sent)
        self._show(now_us, sent)
        return sent

    def _admit(self, row: TimedRow, sent: list[QueueMessage]) -> None:
        start, end = self._life(row)
        if end <= start:
            self.dropped += 1
            return
        self._n_rows += 1
        number = self._n_rows
        element = Element((self.name, number), canonical(row.values), start, end, number)
        self._replace(element, number, row.time_us, sent)
        self._displace(element, number, sent)
        if start > row.time_us:
            self._unseen[number] = element
            heapq.heappush(self._waiting, (start, number))
        else:
            self._begin(element, number, sent)

    def _life(self, row: TimedRow) -> tuple[int, int]:
        window = self.window
        width = FOREVER if window.is_stream else window.width_us
        start, end = row.time_us, row.time_us + width
        if window.slide_us:
            start, end = ((time // window.slide_us + 1) * window.slide_us for time in (start, end))
        return start, min(end, row.end_us, FOREVER)

    def _begin(self, element: Element, number: int, sent: list[QueueMessage]) -> None:
        if self._sends_ends or self.key or self.window.rows:
            self._live[number] = element
            if element.end < FOREVER:
                heapq.heappush(self._ends, (element.end, number))
        sent.append(QueueMessage(MessageKind.POSITIVE, element.start, element.start, element))

    def _show(self, now_us: int, sent: list[QueueMessage]) -> None:
        """Begin the rows whose boundary is reached, unless they ended before it."""
        while self._waiting and self._waiting[0][0] <= now_us:
            _, number = heapq.heappop(self._waiting)
            element = self._unseen.pop(number, None)
            if element is not None:
                self._begin(element, number, sent)

    def _replace(self, element: Element, number: int, time_us: int, sent: list[QueueMessage]) -> None:
        """End the live row with the same key."""
        if self.key:
            key = self._pick(element.values, self.key)
            older = self._by_key.get(key)
            if older is not None:
                self._end_early(older, time_us, sent)
            self._by_key[key] = number

    def _displace(self, element: Element, number: int, sent: list[QueueMessage]) -> None:
        """End the row whose place in a window that counts rows it takes; the place of a retracted row stays empty."""
        if self.window.rows:
            counted = self._counted.setdefault(self._pick(element.values, self.window.partition), deque())
            counted.append(number)
            if len(counted) > self.window.rows:
                self._end_early(counted.popleft(), element.start, sent)

    def _retract(self, key: Values, time_us: int, sent: list[QueueMessage]) -> None:
        number = self._by_key.pop(canonical(key), None)
        if number is None or (number not in self._live and number not in self._unseen):
            self.dropped += 1
        else:
            self._end_early(number, time_us, sent)

    def _end_early(self, number: int, time_us: int, sent: list[QueueMessage]) -> None:
        self._unseen.pop(number, None)
        element = self._live.pop(number, None)
        if element is not None:
            sent.append(QueueMessage(MessageKind.PREMATURE, time_us, time_us, element))

    def _pick(self, values: Values, columns: tuple[int, ...]) -> Values:
        return tuple(values[column] for column in columns)
