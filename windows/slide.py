"""Windows that slide in steps: `[RANGE w SLIDE s]`, `TUMBLE`, `HOP`.

    boundary B     a multiple of s since 1970 UTC
    its extent     the rows with B - w <= t and start < B, shown from B to B + s

A row is thus shown from the first boundary after its start to the last one at or before t + w, and that one's step on: one life,
known when it comes. With bounds each extent is a row of its own, with `window_start` = B - w and `window_end` = B as further
columns, and the row comes again at each boundary under the same id. Where s > w some rows are in no extent. A row that lags is
missing from the extents between its time and its start, which have been shown: counted as missed.

All that happens at a boundary is one event, of rank SCHEDULED: the clock's, before any arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from filters.vector import Array, Vector
from lineage.schema import Type
from windows.delta import SCHEDULED, Delta, Minus, Plus, no_minus
from windows.due import Calendar
from windows.growth import LEAST, fitted
from windows.operator import Child, TimedOperator
from windows.rows import LiveRows
from windows.stored import StoredRows


class Slide(TimedOperator):
    """The rows of a stream, shown at boundaries."""

    def __init__(self, types: Sequence[Type], width_us: int, slide_us: int, *, bounds: bool, sends_ends: bool = False) -> None:
        self.types = (*types, Type.TIMESTAMP, Type.TIMESTAMP) if bounds else tuple(types)
        self.sends_ends = sends_ends
        self._width = width_us
        self._slide = slide_us
        self._bounds = bounds
        #: rows from their start to the end of the last extent they are in
        self._stored = StoredRows(types, LiveRows(Calendar(), by_id=False))
        #: by slot: first and last boundary of a row, and its number by coming
        self._shown = np.zeros((3, LEAST), np.int64)
        #: slots of rows that wait for their first boundary
        self._waiting: list[Array] = []
        #: boundaries up to here are done
        self._clock = -(2**62)
        self._n_rows = 0
        #: extents that rows were too late for
        self.missed = 0

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        assert not len(delta.minus), "a stream takes nothing back"
        plus, first, last = self._kept(delta.plus)
        slots, events = self._stored.apply(Delta(plus, no_minus()), upto)
        self._shown = fitted(self._shown, self._stored.rows.capacity)
        self._shown[:, slots] = first, last, np.arange(self._n_rows, self._n_rows + len(slots))
        self._n_rows += len(slots)
        self._waiting.append(slots)
        found = self._passed(events.ended, upto)
        self._clock = upto
        self._stored.settle()
        self._shown = fitted(self._shown, self._stored.rows.capacity)
        return found

    def _kept(self, plus: Plus) -> tuple[Plus, Array, Array]:
        """The rows that will be shown, each until the end of its last extent, and the boundaries between which they are."""
        s, t = self._slide, plus.effective_times
        first = (plus.times // s + 1) * s
        last = (t + self._width) // s * s
        missed = np.minimum(plus.times // s, (t + self._width) // s) - t // s
        self.missed += int(missed[missed > 0].sum())
        kept = first <= last
        plus, first, last = plus.take(kept), first[kept], last[kept]
        return Plus(plus.ids, plus.times, plus.ranks, last + s, plus.columns), first, last

    def _passed(self, ended: Array, upto: int) -> Delta:
        """What the boundaries since the last clock show and end."""
        if upto // self._slide == self._clock // self._slide:
            return Delta(self._plus(np.zeros(0, np.int64), np.zeros(0, np.int64)), no_minus())
        waiting = np.concatenate(self._waiting)
        begins = self._shown[0, waiting] <= upto
        self._waiting = [waiting[~begins]]
        if self._bounds:
            live = np.concatenate([self._stored.rows.live(), ended])
            slots, boundaries = self._extents(live, 0, upto)
            gone, ends = self._extents(live, self._slide, upto) if self.sends_ends else (None, None)
        else:
            slots = waiting[begins]
            boundaries = self._shown[0, slots]
            gone, ends = (ended, self._shown[1, ended] + self._slide) if self.sends_ends else (None, None)
        minus = no_minus()
        if gone is not None and ends is not None:
            order = np.argsort(ends, kind="stable")
            minus = Minus(self._stored.rows.ids[gone[order]], ends[order], np.full(len(gone), SCHEDULED, np.int64))
        return Delta(self._plus(slots, boundaries), minus)

    def _extents(self, slots: Array, later: int, upto: int) -> tuple[Array, Array]:
        """(slot, boundary + later) for each boundary of each row, where the sum is past the last clock and not past this one."""
        s = self._slide
        first = np.maximum(self._shown[0, slots] + later, (self._clock // s + 1) * s)
        last = np.minimum(self._shown[1, slots] + later, upto // s * s)
        n = np.maximum((last - first) // s + 1, 0)
        repeated = np.repeat(np.arange(len(slots)), n)
        number = np.arange(len(repeated)) - np.repeat(np.cumsum(n) - n, n)
        instants = first[repeated] + s * number
        slots = slots[repeated]
        order = np.lexsort((self._shown[2, slots], instants))
        return slots[order], instants[order]

    def _plus(self, slots: Array, boundaries: Array) -> Plus:
        """Rows shown from these boundaries on."""
        stored, s = self._stored, self._slide
        columns = stored.take(slots)
        ends = self._shown[1, slots] + s
        if self._bounds:
            ends = boundaries + s
            columns += [Vector(Type.TIMESTAMP, boundaries - self._width), Vector(Type.TIMESTAMP, boundaries)]
        return Plus(stored.rows.ids[slots], boundaries, np.full(len(slots), SCHEDULED, np.int64), ends, columns)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        slots = self._stored.rows.live()
        boundary = self._clock // self._slide * self._slide
        slots = slots[(self._shown[0, slots] <= boundary) & (boundary <= self._shown[1, slots])]
        plus = self._plus(slots, np.full(len(slots), boundary, np.int64))
        plus.times, plus.ranks = np.full(len(slots), now, np.int64), np.zeros(len(slots), np.int64)
        return Delta(plus, no_minus())

    def most_ends(self, upto: int) -> int:
        passed = upto // self._slide - self._clock // self._slide
        return len(self._stored) * min(passed, self._width // self._slide + 1 if self._bounds else 1)

    def count_ends(self, upto: int) -> Callable[[int], int]:
        """An extent is counted by the boundary at which it is shown: that is an end of the one before it."""
        live, s = self._stored.rows.live(), self._slide
        if not self._bounds:
            ends = np.sort(self._shown[1, live]) + s
            return lambda clock: int(np.searchsorted(ends, clock, "right"))
        # boundaries as numbers of steps from now on
        base = self._clock // s
        first = np.sort(np.maximum(self._shown[0, live] // s - base, 1))
        last = np.sort(np.maximum(self._shown[1, live] // s - base, 0))
        of_first, of_last = np.cumsum(np.append(0, first)), np.cumsum(np.append(0, last))

        def until(clock: int) -> int:
            """Of every row its boundaries from the first up to the clock's, less those after its last."""
            here = clock // s - base
            begun, over = np.searchsorted(first, here, "right"), np.searchsorted(last, here, "right")
            return int(begun * (here + 1) - of_first[begun] - (over * here - of_last[over]))

        return until

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
