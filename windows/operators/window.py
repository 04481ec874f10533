"""Windows over the rows of a stream that an operator makes: RANGE, NOW, UNBOUNDED, [PARTITION BY k] ROWS n, also with RANGE.

    [RANGE w], [NOW]    a life known when the row comes; rows that a query makes are timed by their change and never lag, those of
                        a merge may (`Plus.effective`)
    [ROWS n]            the row n places newer, of the same key, ends a row at its own event, - before +; of rows that come in
                        one event only those that are still there after it are seen

Rows of a key are numbered as they come and hang in a list: a row is displaced when the number of the newest is n above its own.
So one that was taken back leaves its place empty (semantics 34).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from filters.values.vector import Array
from lineage.elements import FOREVER
from lineage.growth import LEAST, fitted, fitted_rows
from lineage.kernels import Number, inline, kernel
from lineage.schema import Type
from windows.delta import SCHEDULED, Delta, Minus, Plus, empty, no_minus
from windows.operators.operator import Child, TimedOperator
from windows.spec import MAX_ROWS, WindowKind, WindowSpec
from windows.state.due import Fifo
from windows.state.rows import LiveRows, RowEvents
from windows.state.stored import StoredRows
from windows.state.values import ValueCodes

_NONE = -1


@inline
def _unlink(slot: Number, code: Number, by_code: Number, links: Number) -> None:
    """Take a row out of the list of its key."""
    older, newer = links[slot, 0], links[slot, 1]
    if older == _NONE:
        by_code[code, 1] = newer
    else:
        links[older, 1] = newer
    if newer == _NONE:
        by_code[code, 2] = older
    else:
        links[newer, 0] = older
    by_code[code, 0] -= 1


@kernel(
    "int64(int64[::1], int64[::1], int64[::1], uint8[::1], int64, boolean, uint8[::1], int64[:,::1], int64[:,::1], int64[:,::1])"
)
def walk_newest(
    slots: np.ndarray, codes: np.ndarray, signs: np.ndarray, early: np.ndarray, n_newest: int, sends_ends: bool,
    displaced: np.ndarray, by_code: np.ndarray, links: np.ndarray, ended: np.ndarray,
) -> int:  # fmt: skip
    """Walk arrivals and ends; end displaced rows. `early` marks premature ends.

    `by_code[key]` is (rows, oldest, newest, number of the newest row that came), `links[slot]` (next older, next newer, number).
    `displaced` marks rows that newer ones ended; `ended` gets (slot, event, 1 if displaced) of the rows that end in the output.
    """
    n = np.int64(0)
    for k in range(len(slots)):
        slot = slots[k]
        code = codes[slot]
        if signs[k] > 0:
            newest = by_code[code, 2] if by_code[code, 0] > 0 else np.int64(_NONE)
            by_code[code, 3] += 1
            links[slot, 0] = newest
            links[slot, 1] = _NONE
            links[slot, 2] = by_code[code, 3]
            if newest == _NONE:
                by_code[code, 1] = slot
            else:
                links[newest, 1] = slot
            by_code[code, 2] = slot
            by_code[code, 0] += 1
            oldest = by_code[code, 1]
            if links[oldest, 2] <= by_code[code, 3] - n_newest:
                _unlink(oldest, code, by_code, links)
                displaced[oldest] = 1
                ended[0, n] = oldest
                ended[1, n] = k
                ended[2, n] = 1
                n += 1
        elif displaced[slot] == 0:
            _unlink(slot, code, by_code, links)
            if sends_ends or early[k] == 1:
                ended[0, n] = slot
                ended[1, n] = k
                ended[2, n] = 0
                n += 1
    return int(n)


class WindowOperator(TimedOperator):
    """A window over the rows of a stream."""

    def __init__(
        self, types: Sequence[Type], spec: WindowSpec, *, sends_ends: bool = False, takes_back: bool = False
    ) -> None:  # fmt: skip
        """`takes_back`: a - may come for rows of the stream."""
        assert spec.kind is not WindowKind.NONE, "a stream without a window is no relation"
        self.types = tuple(types)
        self.sends_ends = sends_ends
        self._spec = spec
        self._stored = StoredRows(types, LiveRows(Fifo(), by_id=takes_back))
        self._keys = ValueCodes([types[position] for position in spec.partition])
        #: by slot: the code of a row's key, the next older and newer row of that key and its number in it, its number by coming,
        #: and 1 if others ended it in the commit
        self._codes = np.zeros(LEAST, np.int64)
        self._links = np.zeros((LEAST, 3), np.int64)
        self._came = np.zeros(LEAST, np.int64)
        self._displaced = np.zeros(LEAST, np.uint8)
        self._n_rows = 0
        #: by code: rows, the oldest, the newest, the number of the newest that came
        self._by_code = np.zeros((LEAST, 4), np.int64)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        plus = self._scheduled(delta.plus)
        slots, events = self._stored.apply(Delta(plus, delta.minus), upto)
        codes = self._keys.encode([plus.columns[position] for position in self._spec.partition], len(plus))
        self._fit()
        self._codes[slots] = codes
        self._came[slots] = np.arange(self._n_rows, self._n_rows + len(slots))
        self._n_rows += len(slots)
        minus, unseen = self._walked(events, upto)
        if len(unseen):
            plus = plus.take(~np.isin(slots, unseen))
        self._keys.release(self._codes[self._stored.rows.ended])
        self._stored.settle()
        self._fit()
        return Delta(plus, minus)

    def _scheduled(self, plus: Plus) -> Plus:
        """Return the rows with the ends that the clock gives them, without those that are over: all older ones are as well."""
        forever = self._spec.width_us >= FOREVER
        ends = np.full(len(plus), FOREVER, np.int64) if forever else plus.effective_times + self._spec.width_us
        found = Plus(plus.ids, plus.times, plus.ranks, ends, plus.columns)
        return found if plus.effective is None else found.take(ends > plus.times)

    def _fit(self) -> None:
        if len(self._by_code) != self._keys.capacity:
            self._by_code = fitted_rows(self._by_code, self._keys.capacity)
        capacity = self._stored.rows.capacity
        self._codes = fitted(self._codes, capacity)
        self._links = fitted_rows(self._links, capacity)
        self._came = fitted(self._came, capacity)
        self._displaced = fitted(self._displaced, capacity)

    def _walked(self, events: RowEvents, upto: int) -> tuple[Minus, Array]:
        """Return the ends of displaced rows and of those taken back, and rows that newer ones of one event displaced at once."""
        ended = np.empty((3, len(events)), np.int64)
        early = (events.ranks != SCHEDULED).astype(np.uint8)
        n = walk_newest(
            events.slots, self._codes, events.signs, early, self._spec.rows or MAX_ROWS, self.sends_ends, self._displaced,
            self._by_code, self._links, ended,
        )  # fmt: skip
        slots, at, displaced = ended[:, :n]
        self._stored.rows.end(slots[displaced == 1], upto)
        self._displaced[slots] = 0
        first = _last_places(events.slots, events.signs > 0, slots)
        unseen = (first >= 0) & (events.times[first] == events.times[at]) & (events.ranks[first] == events.ranks[at])
        ids, times, ranks = self._stored.rows.ids[slots], events.times[at], events.ranks[at]
        return Minus(ids, times, ranks).take(~unseen), slots[unseen]

    def sweep(self, dead: Array, now: int) -> None:
        self._stored.kill(dead)
        self.process([empty(self.types)], now)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        rows = self._stored.rows
        slots = rows.live()
        slots = slots[np.argsort(self._came[slots])]
        n = len(slots)
        times, ranks = np.full(n, now, np.int64), np.zeros(n, np.int64)
        return Delta(Plus(rows.ids[slots], times, ranks, rows.ends[slots], self._stored.take(slots)), no_minus())

    def most_ends(self, upto: int) -> int:
        return 0 if self._spec.width_us >= FOREVER else len(self._stored)

    def count_ends(self, upto: int) -> Callable[[int], int]:
        rows = self._stored.rows
        ends = np.sort(rows.ends[rows.live()])
        return lambda clock: int(np.searchsorted(ends, clock, "right"))

    @property
    def bytes(self) -> int:
        arrays: tuple[Array, ...] = (self._codes, self._links, self._came, self._displaced, self._by_code)
        return self._stored.bytes + self._keys.bytes + sum(array.nbytes for array in arrays)

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "rows": len(self._stored), "keys": len(self._keys)}

    def check(self) -> None:
        self._stored.check()
        self._keys.check()
        live = self._stored.rows.live()
        counts = np.bincount(self._codes[live], minlength=len(self._by_code))
        assert (self._by_code[:, 0] == counts[: len(self._by_code)]).all(), "the rows of every key are counted"
        assert not counts.size or counts.max() <= (self._spec.rows or MAX_ROWS), "no key has more rows than the window holds"


def _last_places(slots: Array, chosen: Array, wanted: Array) -> Array:
    """Return the last chosen place of each slot, or -1; O(events of the commit), not O(live rows)."""
    if not len(wanted):
        return np.zeros(0, np.int64)
    places = np.flatnonzero(chosen)
    order = np.argsort(slots[places], kind="stable")
    ordered = slots[places][order]
    at = np.searchsorted(ordered, wanted, "right") - 1
    found = (at >= 0) & (ordered[np.maximum(at, 0)] == wanted) if len(ordered) else np.zeros(len(wanted), np.bool_)
    return np.where(found, places[order[np.maximum(at, 0)]] if len(ordered) else -1, -1)
