"""ISTREAM, DSTREAM and RSTREAM: a relation as a stream, a row for each change or for each time it is looked at.

    istream, dstream   the net + or - of each event by value, at the event's time and rank; all scheduled ends of an instant are
                       one event
    rstream            the whole answer, at each instant at which it changed (by value, over the whole instant) or, with a slide,
                       at each boundary; once the clock has passed it, for more may happen at the same instant

Rows of a stream are numbered as they come, those of one event in order of value (`windows/state/value_order.py`). Those of
RSTREAM have the rank AFTER_ALL: behind everything that happens at the instant. How the events are cut into commits makes no
difference to any of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array
from lineage.elements import BEGINNING, FOREVER
from lineage.growth import LEAST, fitted, fitted_rows
from lineage.kernels import Number, inline, kernel
from lineage.schema import Type
from windows.delta import Delta, Plus, concatenated, empty, no_minus
from windows.operators.operator import Child, Operator
from windows.operators.seats import Seats
from windows.state.coded import CodedRows
from windows.state.netting import Netting, group_stops
from windows.state.rows import LiveRows
from windows.state.value_order import in_order
from windows.state.values import ValueCodes

#: The rank of what is said of an instant once it has passed.
AFTER_ALL = 2**62

_NEVER = -(2**63)

#: Places of `state`: the event the walk is at, the instant that is looked at next, rows alive, values changed at that instant.
_EVENT, _INSTANT, _ALIVE, _N_CHANGED = range(4)


class ChangeStream(Operator):
    """ISTREAM (sign +1) or DSTREAM (sign -1)."""

    def __init__(self, sign: int, types: Sequence[Type], rows: LiveRows) -> None:
        self.types = tuple(types)
        self._sign = sign
        self._rows = CodedRows(rows, ValueCodes(types))
        self._netting = Netting()
        self._n_rows = 0

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        events, codes = self._rows.apply(delta, upto)
        stops = group_stops(events.times, events.ranks)
        values = self._rows.values
        places = self._netting.remaining(codes, events.signs, stops, values.capacity)
        places = places[events.signs[places] == self._sign]
        found = _stream(self._n_rows, events.times[places], events.ranks[places], self._rows, codes[places])
        self._n_rows += len(places)
        self._rows.settle()
        if not len(self._rows):
            self._netting.shrink()
        return found

    def sweep(self, dead: Array, now: int) -> None:
        self._rows.kill(dead)
        self.process([empty(self.types)], now)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        """Return an empty delta: a stream has no past rows for a new reader."""
        return empty(self.types)

    @property
    def bytes(self) -> int:
        return self._rows.bytes + self._rows.values.bytes + self._netting.bytes

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "rows": len(self._rows), "out": self._n_rows}

    def check(self) -> None:
        self._rows.check()


def _stream(first: int, times: Array, ranks: Array, rows: CodedRows, codes: Array) -> Delta:
    """Rows of a stream, numbered from `first`; those of one event are put in order."""
    n = len(codes)
    columns = rows.values.take(codes)
    order = in_order(times, ranks, columns)
    if order is not None:
        # time and rank stand as they are: only rows of one event change places
        columns = [column.take(order) for column in columns]
    return Delta(Plus(np.arange(first, first + n), times, ranks, np.full(n, FOREVER, np.int64), columns), no_minus())


@inline
def _list_answers(
    instant: Number, slide: Number, counts: Number, seat_of: Number, marks: Number, found: Number, n: Number
) -> Number:
    """List the rows of the answers that are due at an instant; return the new length of the list."""
    for code in range(len(counts)):
        mark = marks[seat_of[code]]
        if mark <= instant if slide > 0 else mark != 0:
            for _ in range(counts[code, 0]):
                found[0, n] = code
                found[1, n] = instant
                n += 1
    return n


@inline
def _next_instant(instant: Number, time: Number, slide: Number, alive: Number) -> Number:
    """The next slide boundary at which an answer must be listed before `time`."""
    if alive > 0:
        return instant + slide
    return max(instant + slide, -((-time) // slide) * slide)


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, int64, int64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[::1])")
def walk_answers(
    times: np.ndarray, codes: np.ndarray, signs: np.ndarray, upto: int, slide: int, counts: np.ndarray, seat_of: np.ndarray,
    marks: np.ndarray, found: np.ndarray, state: np.ndarray,
) -> int:  # fmt: skip
    """List the answers at each instant that is due, until all is done or the list is full; returns how many rows it has.

    `counts[value]` is (copies, change over the instant looked at next). slide = 0: instants at which something changed, and the
    seats where it did: `marks[seat]` of their values changed. Else `marks[seat]` is the first boundary of a seat.
    """
    n = np.int64(0)
    while True:
        k = state[_EVENT]
        # what happens next: an event, or nothing before the clock
        time = times[k] if k < len(times) else np.int64(upto)
        if state[_INSTANT] != _NEVER and state[_INSTANT] < time:
            if slide > 0 or state[_N_CHANGED] > 0:
                if n + state[_ALIVE] > found.shape[1]:
                    break
                n = _list_answers(state[_INSTANT], slide, counts, seat_of, marks, found, n)
            if state[_N_CHANGED] > 0:
                for code in range(len(counts)):
                    counts[code, 1] = 0
                for seat in range(len(marks)):
                    marks[seat] = 0
                state[_N_CHANGED] = 0
            state[_INSTANT] = _next_instant(state[_INSTANT], time, slide, state[_ALIVE]) if slide > 0 else _NEVER
        elif k < len(times):
            if slide == 0:
                state[_INSTANT] = time
                before = counts[codes[k], 1]
                counts[codes[k], 1] += signs[k]
                more = np.int64(counts[codes[k], 1] != 0) - np.int64(before != 0)
                state[_N_CHANGED] += more
                marks[seat_of[codes[k]]] += more
            counts[codes[k], 0] += signs[k]
            state[_ALIVE] += signs[k]
            state[_EVENT] = k + 1
        else:
            break
    return int(n)


class AnswerStream(Operator):
    """RSTREAM; `slide_us` = 0: at each instant at which the answer changed."""

    def __init__(self, types: Sequence[Type], rows: LiveRows, slide_us: int = 0, seats: Seats | None = None) -> None:
        """With `seats`, each of them has an answer of its own."""
        self._seats = seats
        self.types = tuple(types)
        self._rows = CodedRows(rows, ValueCodes(types))
        self._slide = slide_us
        #: by code: copies in the answer, and change over the instant that has not passed
        self._counts = np.zeros((LEAST, 2), np.int64)
        #: by seat: values that changed at the instant that has not passed, or with a slide its first boundary
        self._marks = np.full(1, _NEVER if slide_us else 0, np.int64)
        self._state = np.array([0, _NEVER, 0, 0], np.int64)
        #: values that changed at that instant, each with a reference until it has passed
        self._held = np.zeros(0, np.int64)
        self._n_rows = 0

    def opened(self, now: int, seats: Array) -> None:
        """Start after the commit that opened some seats: rows already there are no change, and the next boundary is the first."""
        codes = np.flatnonzero(self._counts[:, 1])
        codes = codes[np.isin(self._seat_of(codes), seats)]
        self._counts[codes, 1] = 0
        self._fit_marks()
        self._marks[seats] = (now // self._slide + 1) * self._slide if self._slide and now > BEGINNING else 0
        self._state[_N_CHANGED] -= len(codes)
        if not self._slide and not self._state[_N_CHANGED]:
            self._state[_INSTANT] = _NEVER
        self._settle()

    def _fit_marks(self) -> None:
        if self._seats is not None:
            self._marks = fitted(self._marks, self._seats.capacity)

    def _seat_of(self, codes: Array) -> Array:
        """The seats of values; without seats all have the same."""
        if self._seats is None:
            return np.zeros(len(codes), np.int64)
        found: Array = self._rows.values.column(0, codes).values
        return found

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        events, codes = self._rows.apply(delta, upto)
        self._fit()
        state = self._state
        state[_EVENT] = 0
        if self._slide and state[_INSTANT] == _NEVER and upto > BEGINNING:
            first = int(events.times[0]) if len(events) else upto
            state[_INSTANT] = -(-first // self._slide) * self._slide
        seat_of = np.zeros(len(self._counts), np.int64)
        if self._seats is not None:
            live = self._rows.values.live()
            seat_of[live] = self._seat_of(live)
            self._fit_marks()
        parts = []
        room = 64
        while True:
            room = max(2 * room, int(state[_ALIVE]) + len(events))
            found = np.empty((2, room), np.int64)
            n = walk_answers(
                events.times, codes, events.signs, upto, self._slide, self._counts, seat_of, self._marks, found, state
            )  # fmt: skip
            ranks = np.full(n, AFTER_ALL, np.int64)
            parts.append(_stream(self._n_rows, found[1, :n], ranks, self._rows, found[0, :n]))
            self._n_rows += n
            if state[_EVENT] == len(events) and not self._owes(upto):
                break
        self._settle()
        return concatenated(self.types, parts)

    def _owes(self, upto: int) -> bool:
        """Whether a due instant is still unlisted because the list was full."""
        return bool(_NEVER < self._state[_INSTANT] < upto)

    def _settle(self) -> None:
        # the change of a value that is gone by the end of the commit still counts while its instant lasts
        held = np.flatnonzero(self._counts[:, 1])
        self._rows.values.acquire(held)
        self._rows.values.release(self._held)
        self._held = held
        self._rows.settle()
        self._fit()

    def _fit(self) -> None:
        capacity = self._rows.values.capacity
        if len(self._counts) != capacity:
            self._counts = fitted_rows(self._counts, capacity)

    def sweep(self, dead: Array, now: int) -> None:
        self._rows.kill(dead)
        self.process([empty(self.types)], now)
        self.opened(now, np.flatnonzero(dead))

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        """Return an empty delta: a stream has no past rows for a new reader."""
        return empty(self.types)

    @property
    def bytes(self) -> int:
        return self._rows.bytes + self._rows.values.bytes + self._counts.nbytes + self._held.nbytes

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "rows": len(self._rows), "out": self._n_rows}

    def check(self) -> None:
        self._rows.check()
        rows = self._rows
        copies = np.bincount(rows.codes(rows.rows.live()), minlength=len(self._counts))
        assert (copies == self._counts[:, 0]).all(), "the copies of every value are counted"
        assert self._state[_ALIVE] == len(rows), "rows are counted"
        assert self._state[_N_CHANGED] == np.count_nonzero(self._counts[:, 1]), "changed values are counted"
        assert self._slide or self._state[_N_CHANGED] == self._marks.sum(), "and each at its seat"
