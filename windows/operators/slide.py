"""Windows that slide in steps: `[RANGE w SLIDE s]`, `TUMBLE`, `HOP`.

    boundary B     a multiple of s since 1970 UTC
    its extent     the rows with B - w <= t and start < B, shown from B to B + s

A row is thus shown from the first boundary after its start to the last one at or before t + w, and that one's step on: one life,
known when it comes, unless the row ends before that: by an end of its own, which it carries, or by a -. With bounds each extent
is a row of its own, with `window_start` = B - w and `window_end` = B as further columns, and the row comes again at each
boundary under the same id. Where s > w some rows are in no extent. A row that lags is missing from the extents between its time
and its start, which have been shown: counted as missed.

All that begins at a boundary is one event, of rank SCHEDULED: the clock's, before any arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from filters.values.vector import Array, Vector
from lineage.growth import LEAST, fitted
from lineage.schema import Type
from windows.delta import SCHEDULED, Delta, Minus, Plus, empty, no_minus
from windows.operators.operator import Child, TimedOperator
from windows.spec import WindowSpec
from windows.state.due import Calendar
from windows.state.rows import LiveRows, RowEvents
from windows.state.stored import StoredRows


def count_extents(first: Array, last: Array, slide: int, now: int) -> Callable[[int], int]:
    """Return how many extents are shown by a clock from now on, of rows with these first and last boundaries."""
    # boundaries as numbers of steps from now on
    base = now // slide
    first = np.sort(np.maximum(first // slide - base, 1))
    last = np.sort(np.maximum(last // slide - base, 0))
    of_first, of_last = np.cumsum(np.append(0, first)), np.cumsum(np.append(0, last))

    def until(clock: int) -> int:
        """Count each row's boundaries from its first to the clock's, without those after its last."""
        here = clock // slide - base
        begun, over = np.searchsorted(first, here, "right"), np.searchsorted(last, here, "right")
        return int(begun * (here + 1) - of_first[begun] - (over * here - of_last[over]))

    return until


class SlideOperator(TimedOperator):
    """A sliding window over the rows of a stream, shown at boundaries; `ends_early`: rows may end before their time."""

    def __init__(self, types: Sequence[Type], width_us: int, slide_us: int, *, bounds: bool, ends_early: bool = False) -> None:
        self.types = (*types, Type.TIMESTAMP, Type.TIMESTAMP) if bounds else tuple(types)
        self._of = tuple(types)
        self._width = width_us
        self._slide = slide_us
        self.bounds = bounds
        #: rows from their start to the end of the last extent they are in, or to their own
        self._stored = StoredRows(types, LiveRows(Calendar(), by_id=ends_early))
        #: by slot: first and last boundary of a row, and its number by coming
        self._shown = np.zeros((3, LEAST), np.int64)
        #: slots of rows that wait for their first boundary
        self._waiting: list[Array] = []
        #: boundaries up to here are done
        self._clock = -(2**62)
        self._n_rows = 0
        #: extents that rows were too late for
        self.missed = 0

    @property
    def window(self) -> WindowSpec:
        return WindowSpec.sliding(self._width, self._slide)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        plus, first, last = self._kept(delta.plus)
        slots, events = self._stored.apply(Delta(plus, delta.minus), upto)
        self._shown = fitted(self._shown, self._stored.rows.capacity)
        self._shown[:, slots] = first, last, np.arange(self._n_rows, self._n_rows + len(slots))
        self._n_rows += len(slots)
        self._waiting.append(slots)
        minus = self._taken_back(events) if len(delta.minus) else no_minus()
        # a query that is opened brings rows that earlier boundaries show
        opened = len(first) > 0 and int(first.min()) <= upto
        found = Delta(self._begun(events.ended, upto, opened), minus)
        self._clock = upto
        self._stored.settle()
        self._shown = fitted(self._shown, self._stored.rows.capacity)
        return found

    def _kept(self, plus: Plus) -> tuple[Plus, Array, Array]:
        """Return the rows that some boundary will show, with their ends, and the first and last boundary of each."""
        s, t = self._slide, plus.effective_times
        first = (plus.times // s + 1) * s
        last = (t + self._width) // s * s
        missed = np.minimum(plus.times // s, (t + self._width) // s) - t // s
        self.missed += int(missed[missed > 0].sum())
        ends = np.minimum(last + s, plus.ends)
        last = np.minimum(last, (ends - 1) // s * s)
        kept = first <= last
        plus, first, last, ends = plus.take(kept), first[kept], last[kept], ends[kept]
        return Plus(plus.ids, plus.times, plus.ranks, ends, plus.columns), first, last

    def _taken_back(self, events: RowEvents) -> Minus:
        """Return the ends of shown rows that a - ended; no later extent holds them."""
        rows, s = self._stored.rows, self._slide
        ended = np.flatnonzero((events.signs < 0) & (events.times < rows.ends[events.slots]))
        slots, times, ranks = events.slots[ended], events.times[ended], events.ranks[ended]
        # a boundary at the same instant is an event before that of an arrival, and none before that of the clock
        last = (times - (ranks == SCHEDULED)) // s * s
        self._shown[1, slots] = np.minimum(self._shown[1, slots], last)
        shown = self._shown[0, slots] <= self._shown[1, slots]
        if self.bounds:
            # the extent before a boundary ends with it
            shown &= times < self._shown[1, slots] + s
        return Minus(rows.ids[slots[shown]], times[shown], ranks[shown])

    def _begun(self, ended: Array, upto: int, opened: bool) -> Plus:
        """Return the rows shown by the boundaries since the last clock; `ended` are the rows that ended since then, `opened` says
        whether rows came that a boundary has shown."""
        if upto // self._slide == self._clock // self._slide and not len(ended) and not opened:
            return self._plus(np.zeros(0, np.int64), np.zeros(0, np.int64))
        waiting = np.concatenate(self._waiting)
        first, last = self._shown[:2, waiting]
        self._waiting = [waiting[(first > upto) & (self._stored.rows.alive[waiting] != 0)]]
        if self.bounds:
            return self._plus(*self._extents(np.concatenate([self._stored.rows.live(), ended]), upto))
        slots = waiting[(first <= upto) & (first <= last)]
        order = np.lexsort((self._shown[2, slots], self._shown[0, slots]))
        return self._plus(slots[order], self._shown[0, slots[order]])

    def _extents(self, slots: Array, upto: int) -> tuple[Array, Array]:
        """Return (slot, boundary) for each boundary of each row in (last clock, this clock]."""
        s = self._slide
        first = np.maximum(self._shown[0, slots], (self._clock // s + 1) * s)
        last = np.minimum(self._shown[1, slots], upto // s * s)
        n = np.maximum((last - first) // s + 1, 0)
        repeated = np.repeat(np.arange(len(slots)), n)
        number = np.arange(len(repeated)) - np.repeat(np.cumsum(n) - n, n)
        instants = first[repeated] + s * number
        slots = slots[repeated]
        order = np.lexsort((self._shown[2, slots], instants))
        return slots[order], instants[order]

    def _plus(self, slots: Array, boundaries: Array) -> Plus:
        """Return the + of rows shown from these boundaries on."""
        stored = self._stored
        columns = stored.take(slots)
        ends = stored.rows.ends[slots]
        if self.bounds:
            ends = np.minimum(boundaries + self._slide, ends)
            columns += [Vector(Type.TIMESTAMP, boundaries - self._width), Vector(Type.TIMESTAMP, boundaries)]
        return Plus(stored.rows.ids[slots], boundaries, np.full(len(slots), SCHEDULED, np.int64), ends, columns)

    def sweep(self, dead: Array, now: int) -> None:
        self._stored.kill(dead)
        self.process([empty(self._of)], now)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        slots = self._stored.rows.live()
        boundary = self._clock // self._slide * self._slide
        slots = slots[(self._shown[0, slots] <= boundary) & (boundary <= self._shown[1, slots])]
        slots = slots[np.argsort(self._shown[2, slots])]
        plus = self._plus(slots, np.full(len(slots), boundary, np.int64))
        plus.times, plus.ranks = np.full(len(slots), now, np.int64), np.zeros(len(slots), np.int64)
        return Delta(plus, no_minus())

    def most_ends(self, upto: int) -> int:
        passed = upto // self._slide - self._clock // self._slide
        return len(self._stored) * min(passed, self._width // self._slide + 1 if self.bounds else 1)

    def count_ends(self, upto: int) -> Callable[[int], int]:
        """Count an extent at the boundary that shows it, which ends the one before."""
        live, s = self._stored.rows.live(), self._slide
        if not self.bounds:
            ends = np.sort(self._shown[1, live]) + s
            return lambda clock: int(np.searchsorted(ends, clock, "right"))
        return count_extents(self._shown[0, live], self._shown[1, live], s, self._clock)

    @property
    def bytes(self) -> int:
        return self._stored.bytes + self._shown.nbytes + sum(slots.nbytes for slots in self._waiting)

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "rows": len(self._stored), "missed": self.missed}

    def check(self) -> None:
        self._stored.check()
        waiting = np.concatenate([np.zeros(0, np.int64), *self._waiting])
        assert (self._shown[0, waiting] > self._clock).all(), "what waits has not been shown"
        live = self._stored.rows.live()
        assert sorted(waiting.tolist()) == live[self._shown[0, live] > self._clock].tolist(), "what has not been shown waits"
