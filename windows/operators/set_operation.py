"""EXCEPT, INTERSECT, UNION, with and without ALL, and DISTINCT: one kernel over how often each value is there.

With n copies of a value on the left and m on the right the output has

    union, distinct   n + m > 0            except all      max(0, n - m)        intersect all   min(n, m)
                                           except          n > 0 and m = 0      intersect       n > 0 and m > 0

copies of it. The kernel walks the events of both inputs in order. After each event it compares, for the values the event
touched, the copies shown with the copies due: what one event takes and gives back is not seen. Copies of a value are a stack:
one more goes on top, one less comes off the top, so the oldest stay. Ids number the copies shown, densely; no end is known before
it comes, so every end of the output is explicit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array
from lineage.elements import FOREVER
from lineage.growth import LEAST, fitted_rows
from lineage.kernels import Number, inline, kernel
from lineage.numbers import Numbers, hand_out, take_back
from lineage.schema import Type
from windows.delta import Delta, Minus, Plus, empty, no_minus
from windows.operators.operator import Child, Operator
from windows.state.coded import CodedRows
from windows.state.rows import LiveRows, RowEvents
from windows.state.values import ValueCodes

UNION, EXCEPT_ALL, EXCEPT, INTERSECT_ALL, INTERSECT = range(5)

#: By (word, ALL); UNION ALL keeps no counts: `windows/operators/union.py`.
KINDS = {
    ("union", False): UNION, ("except", True): EXCEPT_ALL, ("except", False): EXCEPT,
    ("intersect", True): INTERSECT_ALL, ("intersect", False): INTERSECT,
}  # fmt: skip

#: The events of one side, in order: times, ranks, codes of the rows' values, signs.
SideEvents = tuple[Array, Array, Array, Array]
_SIDE = "UniTuple(int64[::1], 4)"


@inline
def _copies(kind: Number, n: Number, m: Number) -> Number:
    """Return the number of copies of a value in the output."""
    if kind == UNION:
        return np.int64(n + m > 0)
    if kind == EXCEPT_ALL:
        return max(n - m, np.int64(0))
    if kind == EXCEPT:
        return np.int64((n > 0) & (m == 0))
    if kind == INTERSECT_ALL:
        return min(n, m)
    return np.int64((n > 0) & (m > 0))


@kernel("int64(int64, int64, int64)")
def copies_of(kind: int, n: int, m: int) -> int:
    """Return the number of copies of a value in the output; for checks."""
    return int(_copies(kind, n, m))


@inline
def _count_side(
    side: Number, at: Number, time: Number, rank: Number, events: Number, by_code: Number, touched: Number, n_touched: Number
) -> Number:
    """Count the rows of one event on one side; returns the place of the next event, and the number of values touched."""
    times, ranks, codes, signs = events
    while at < len(codes) and times[at] == time and ranks[at] == rank:
        code = codes[at]
        by_code[code, side] += signs[at]
        if by_code[code, 4] == 0:
            by_code[code, 4] = 1
            touched[n_touched] = code
            n_touched += 1
        at += 1
    return at, n_touched


@kernel(
    f"void(int64, {_SIDE}, {_SIDE}, int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1],"
    "int64[::1])"
)
def count_events(
    kind: int, left_events: SideEvents, right_events: SideEvents, by_code: np.ndarray, by_id: np.ndarray, free: np.ndarray,
    header: np.ndarray, touched: np.ndarray, plus: np.ndarray, minus: np.ndarray, sizes: np.ndarray,
) -> None:  # fmt: skip
    """Walk the events of both sides; write the changes. `by_code[v]` is (n, m, id on top or -1, copies, touched).

    `by_id[id]` is (id below, code + 1 or 0). `plus` and `minus` get (id, time, rank), `plus` the code as well.
    """
    left_times, left_ranks, left_codes, _ = left_events
    right_times, right_ranks, right_codes, _ = right_events
    n_plus = np.int64(0)
    n_minus = np.int64(0)
    left = np.int64(0)
    right = np.int64(0)
    while left < len(left_codes) or right < len(right_codes):
        on_left = right == len(right_codes) or (
            left < len(left_codes)
            and (
                left_times[left] < right_times[right]
                or (left_times[left] == right_times[right] and left_ranks[left] <= right_ranks[right])
            )
        )
        time = left_times[left] if on_left else right_times[right]
        rank = left_ranks[left] if on_left else right_ranks[right]
        n_touched = np.int64(0)
        left, n_touched = _count_side(0, left, time, rank, left_events, by_code, touched, n_touched)
        right, n_touched = _count_side(1, right, time, rank, right_events, by_code, touched, n_touched)
        for j in range(n_touched):
            code = touched[j]
            by_code[code, 4] = 0
            due = _copies(kind, by_code[code, 0], by_code[code, 1])
            while by_code[code, 3] > due:
                id = by_code[code, 2]
                by_code[code, 2] = by_id[id, 0]
                by_code[code, 3] -= 1
                by_id[id, 1] = 0
                take_back(id, free, header)
                minus[0, n_minus] = id
                minus[1, n_minus] = time
                minus[2, n_minus] = rank
                n_minus += 1
        for j in range(n_touched):
            code = touched[j]
            due = _copies(kind, by_code[code, 0], by_code[code, 1])
            while by_code[code, 3] < due:
                id = hand_out(free, header)
                by_id[id, 0] = by_code[code, 2]
                by_id[id, 1] = code + 1
                by_code[code, 2] = id
                by_code[code, 3] += 1
                plus[0, n_plus] = id
                plus[1, n_plus] = time
                plus[2, n_plus] = rank
                plus[3, n_plus] = code
                n_plus += 1
    sizes[0] = n_plus
    sizes[1] = n_minus


class SetOperator(Operator):
    """One of `KINDS` over two inputs; UNION over one input is DISTINCT."""

    sends_ends = True

    def __init__(self, kind: int, types: Sequence[Type], rows: Sequence[LiveRows], values: ValueCodes | None = None) -> None:
        """`values`: the value codes of an input, if it keeps them."""
        self.types = tuple(types)
        self._kind = kind
        self.values = self._values = ValueCodes(types) if values is None else values
        self._shares = values is not None
        #: the live rows of each input
        self._rows = [CodedRows(live, self._values) for live in rows]
        self._reset()

    def _reset(self) -> None:
        #: by code: rows on the left, on the right, the newest copy shown or -1, copies shown, touched by the event (0 between)
        self._by_code = _new_codes(LEAST)
        #: by id of a copy shown: the one below it, its code + 1 or 0 if the id is free
        self._by_id = np.zeros((LEAST, 2), np.int64)
        #: the ids, and how many are shown
        self._numbers = Numbers()
        self._n_shown = 0

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        applied = [rows.apply(delta, upto) for rows, delta in zip(self._rows, inputs, strict=True)]
        return self._settled(self._walked([events for events, _ in applied], [codes for _, codes in applied]))

    def _settled(self, found: Delta) -> Delta:
        """End the commit: let go of rows and copies that ended."""
        for rows in self._rows:
            rows.settle()
        self._n_shown += len(found.plus) - len(found.minus)
        if not any(map(len, self._rows)):
            self._reset()
        elif self._numbers.shrink(len(found.minus), self._by_id[:, 1], self._n_shown):
            self._fit_ids()
        return found

    def _walked(self, events: Sequence[RowEvents], values: Sequence[Array]) -> Delta:
        most_plus, most_minus = self._most_changes(events)
        self._reserve(most_plus)
        n_touched = min(sum(map(len, events)), len(self._by_code))
        plus, minus = np.empty((4, most_plus), np.int64), np.empty((3, most_minus), np.int64)
        touched = np.empty(n_touched, np.int64)
        sizes = np.zeros(2, np.int64)
        left, right = ((event.times, event.ranks, codes, event.signs) for event, codes in self._two_sides(events, values))
        count_events(
            self._kind, left, right, self._by_code, self._by_id, self._numbers.free, self._numbers.header, touched, plus, minus,
            sizes,
        )  # fmt: skip
        # copies, for what was made room for is more
        began, ended = plus[:, : sizes[0]].copy(), minus[:, : sizes[1]].copy()
        ends = np.full(len(began[0]), FOREVER, np.int64)
        return Delta(Plus(began[0], began[1], began[2], ends, self._values.take(began[3])), Minus(*ended))

    def _two_sides(self, events: Sequence[RowEvents], values: Sequence[Array]) -> list[tuple[RowEvents, Array]]:
        """Return the events of the left and of the right side with the codes of their rows; DISTINCT has no right side."""
        none = np.zeros(0, np.int64)
        return [*zip(events, values, strict=True), (RowEvents(none, none, none, none), none)][:2]

    def _most_changes(self, events: Sequence[RowEvents]) -> tuple[int, int]:
        """Return upper bounds on the copies that begin and end: at most one for each row."""
        began = [int(np.count_nonzero(event.signs > 0)) for event in events]
        ended = [len(event) - n for event, n in zip(events, began)]
        if self._kind in (EXCEPT, EXCEPT_ALL) and len(events) == 2:
            # a row on the right takes one back; with nothing there the copies of one input are counted
            began[1], ended[1] = ended[1], began[1]
        return sum(began), min(sum(ended), self._n_shown + sum(began))

    def _reserve(self, n_more: int) -> None:
        """Make room for every value, and for so many more copies."""
        if len(self._by_code) != self._values.capacity:
            by_code = _new_codes(self._values.capacity)
            kept = min(len(by_code), len(self._by_code))
            by_code[:kept] = self._by_code[:kept]
            self._by_code = by_code
        if self._kind not in (EXCEPT_ALL, INTERSECT_ALL):
            # a value has one copy at most
            n_more = min(n_more, len(self._by_code) - self._n_shown)
        if self._numbers.reserve(n_more, self._by_id[:, 1]):
            self._fit_ids()

    def _fit_ids(self) -> None:
        self._by_id = fitted_rows(self._by_id, self._numbers.capacity)

    def sweep(self, dead: Array, now: int) -> None:
        for rows in self._rows:
            rows.kill(dead)
        self.process([empty(self.types)] * len(self._rows), now)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        ids = np.flatnonzero(self._by_id[:, 1])
        return standing(ids, now, self._values, self._by_id[ids, 1] - 1)

    @property
    def bytes(self) -> int:
        own = self._by_code.nbytes + self._by_id.nbytes + self._numbers.bytes
        return own + (0 if self._shares else self._values.bytes) + sum(rows.bytes for rows in self._rows)

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "values": len(self._values), "rows": sum(map(len, self._rows))}

    def check(self) -> None:
        self._values.check()
        by_code = np.zeros((self._values.capacity, 2), np.int64)
        for k, rows in enumerate(self._rows):
            rows.check()
            np.add.at(by_code[:, k], rows.codes(rows.rows.live()), 1)
        counted = self._by_code[: len(by_code)]
        assert (counted[:, :2] == by_code[: len(counted)]).all(), "the rows of every value are counted"
        self._numbers.check(self._by_id[:, 1])
        live = np.flatnonzero(self._by_id[:, 1])
        assert len(live) == self._n_shown, "copies shown are counted"
        copies = np.bincount(self._by_id[live, 1] - 1, minlength=len(counted))
        for code, (n, m, _, shown, touched) in enumerate(counted.tolist()):
            assert touched == 0 and shown == copies[code] == copies_of(self._kind, n, m), "as many copies as the counts say"


def _new_codes(capacity: int) -> Array:
    by_code = np.zeros((capacity, 5), np.int64)
    by_code[:, 2] = -1
    return by_code


def in_order(shown: Array, values: ValueCodes) -> Delta:
    """Return values that were shown, given by (code, time, rank, end) and known by their codes, as + in event order."""
    # row by row, for numpy would lay the whole out column by column
    order = np.lexsort((shown[2], shown[1]))
    codes, times, ranks, ends = (row[order] for row in shown)
    return Delta(Plus(codes, times, ranks, ends, values.take(codes)), no_minus())


def standing(ids: Array, now: int, values: ValueCodes, codes: Array, ends: Array | None = None) -> Delta:
    """Return live rows as + at one instant."""
    n = len(ids)
    known = np.full(n, FOREVER, np.int64) if ends is None else ends
    return Delta(Plus(ids, np.full(n, now, np.int64), np.zeros(n, np.int64), known, values.take(codes)), no_minus())
