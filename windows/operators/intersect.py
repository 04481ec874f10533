"""INTERSECT over two inputs whose ends are known and never premature: three ends a value, and no row at all.

    latest     of each side: the latest end of the rows of the value that came
    shown      the end of the row that stands for the value in the output

A value is in the output while both sides have it. It is shown up to the earlier of the two latest ends; when that comes and
both sides have got later ones meanwhile, it is shown again from the same instant on: a - that lets a + in, as in delta-star
(`windows/operators/distinct.py`). The output's ends are known, its ids are the codes of the values. A value is *held*, and keeps
one reference, until the last end of both sides.

Over other inputs, and for INTERSECT ALL, copies are counted: `windows/operators/set_operation.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array
from lineage.elements import FOREVER
from lineage.growth import LEAST, fitted
from lineage.kernels import Number, inline, kernel
from lineage.schema import Type
from windows.delta import SCHEDULED, Delta, Plus, merged_order
from windows.operators.operator import Child, Operator
from windows.operators.set_operation import in_order, standing
from windows.state.due import Buffer
from windows.state.values import ValueCodes

#: What stands for "nothing shown" and "nothing came": before every end.
_NEVER = -(2**63)

#: Marks of a code: it is held; in this commit its row shown may be another; its holding may be over.
_HELD, _TURNED, _ASKED = 1, 2, 4

#: Places of `sizes`: rows out, references to give back, codes marked turned and asked.
_OUT, _BACK, _TURNS, _ASKS = range(4)


@inline
def _show(code: Number, time: Number, rank: Number, latest: Number, shown: Number, out: Number, sizes: Number) -> None:
    """Show a value from this event on, if both sides have it."""
    end = min(latest[0, code], latest[1, code])
    if end > time:
        shown[code] = end
        n = sizes[_OUT]
        out[0, n] = code
        out[1, n] = time
        out[2, n] = rank
        out[3, n] = end
        sizes[_OUT] = n + 1


@inline
def _hand_over(code: Number, upto: Number, latest: Number, shown: Number, out: Number, sizes: Number) -> None:
    """End the row shown if it is due by `upto`, and show the next in its place."""
    while shown[code] <= upto and shown[code] != _NEVER:
        instant = shown[code]
        shown[code] = _NEVER
        _show(code, instant, SCHEDULED, latest, shown, out, sizes)


@inline
def _mark(code: Number, mark: Number, marks: Number, codes: Number, sizes: Number, place: Number) -> None:
    """Add a code to a list of the commit, once."""
    if marks[code] & mark == 0:
        marks[code] |= mark
        codes[sizes[place]] = code
        sizes[place] += 1


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, int64[:,::1], int64[::1],"
    "int64[::1], int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1])"
)
def meet(
    codes: np.ndarray, sides: np.ndarray, times: np.ndarray, ranks: np.ndarray, ends: np.ndarray, due: np.ndarray,
    over: np.ndarray, upto: int, latest: np.ndarray, shown: np.ndarray, marks: np.ndarray, out: np.ndarray, back: np.ndarray,
    turned: np.ndarray, asked: np.ndarray, sizes: np.ndarray,
) -> None:  # fmt: skip
    """Walk the arrivals of both sides in order, then the ends of all values up to the clock; write the changes of the output.

    `due`: codes whose row shown ends; `over`: codes whose holding may be over.
    """
    for k in range(len(due)):
        _mark(due[k], _TURNED, marks, turned, sizes, _TURNS)
    for k in range(len(over)):
        _mark(over[k], _ASKED, marks, asked, sizes, _ASKS)
    for k in range(len(codes)):
        code = codes[k]
        if marks[code] & _HELD:
            back[sizes[_BACK]] = code
            sizes[_BACK] += 1
        else:
            marks[code] |= _HELD
            _mark(code, _ASKED, marks, asked, sizes, _ASKS)
        _hand_over(code, times[k], latest, shown, out, sizes)
        latest[sides[k], code] = max(latest[sides[k], code], ends[k])
        if shown[code] == _NEVER:
            _show(code, times[k], ranks[k], latest, shown, out, sizes)
            if shown[code] != _NEVER:
                _mark(code, _TURNED, marks, turned, sizes, _TURNS)
    for k in range(sizes[_TURNS]):
        marks[turned[k]] &= ~_TURNED
        _hand_over(turned[k], upto, latest, shown, out, sizes)
    for k in range(sizes[_ASKS]):
        code = asked[k]
        marks[code] &= ~_ASKED
        if max(latest[0, code], latest[1, code]) <= upto:
            latest[0, code] = _NEVER
            latest[1, code] = _NEVER
            marks[code] = 0
            back[sizes[_BACK]] = code
            sizes[_BACK] += 1


class IntersectStar(Operator):
    """INTERSECT over inputs whose ends are known and never premature."""

    def __init__(self, types: Sequence[Type], shown: Buffer, held: Buffer) -> None:
        self.types = tuple(types)
        #: find the values whose row shown is due, and those that may be let go; slots are codes
        self._due, self._over = shown, held
        self.values = self._values = ValueCodes(types)
        self._latest = np.full((2, LEAST), _NEVER, np.int64)
        self._shown = np.full(LEAST, _NEVER, np.int64)
        #: when to ask whether a value is still held
        self._asked = np.full(LEAST, _NEVER, np.int64)
        self._marks = np.zeros(LEAST, np.int64)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        assert not any(len(delta.minus) for delta in inputs), "no end is premature"
        came = self._came([delta.plus for delta in inputs])
        n_rows = len(came[0])
        self._fit()
        due, over = self._due.due(upto, self._shown), self._over.due(upto, self._asked)
        # each time that a value is shown has a row that came since the last, or the one before was there at the start
        out = np.empty((4, n_rows + len(due)), np.int64)
        back = np.empty(2 * n_rows + len(over), np.int64)
        turned, asked = np.empty(n_rows + len(due), np.int64), np.empty(n_rows + len(over), np.int64)
        sizes = np.zeros(4, np.int64)
        meet(*came, due, over, upto, self._latest, self._shown, self._marks, out, back, turned, asked, sizes)
        found = in_order(out[:, : sizes[_OUT]], self._values)
        self._wait(turned[: sizes[_TURNS]], asked[: sizes[_ASKS]])
        self._values.release(back[: sizes[_BACK]])
        self._fit()
        return found

    def _came(self, pluses: Sequence[Plus]) -> tuple[Array, Array, Array, Array, Array]:
        """Return the arrivals of both sides in event order: code, side, time, rank and end."""
        order = merged_order([(plus.times, plus.ranks) for plus in pluses])
        codes = np.concatenate([self._values.encode(plus.columns, len(plus)) for plus in pluses])
        sides = np.repeat(np.arange(2), [len(plus) for plus in pluses])
        times = np.concatenate([plus.times for plus in pluses])
        ranks = np.concatenate([plus.ranks for plus in pluses])
        ends = np.concatenate([plus.ends for plus in pluses])
        return codes[order], sides[order], times[order], ranks[order], ends[order]

    def _wait(self, turned: Array, asked: Array) -> None:
        """Schedule the end of each shown row and the last end of both sides; rows without an end need none."""
        ends = self._shown[turned]
        self._due.add(turned[(ends != _NEVER) & (ends < FOREVER)], self._shown)
        self._asked[asked] = last = self._latest[:, asked].max(axis=0)
        self._over.add(asked[(last != _NEVER) & (last < FOREVER)], self._asked)

    def sweep(self, dead: Array, now: int) -> None:
        codes = np.flatnonzero(self._marks)
        codes = codes[dead[self._values.column(0, codes).values]]
        for buffer, ends in ((self._due, self._shown), (self._over, self._asked)):
            buffer.remove(codes[(ends[codes] != _NEVER) & (ends[codes] < FOREVER)], ends)
            ends[codes] = _NEVER
        self._latest[:, codes] = _NEVER
        self._marks[codes] = 0
        self._values.release(codes)
        self._fit()

    def _fit(self) -> None:
        capacity = self._values.capacity
        self._latest, self._shown, self._asked = (
            fitted(ends, capacity, _NEVER) for ends in (self._latest, self._shown, self._asked)
        )  # fmt: skip
        self._marks = fitted(self._marks, capacity)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        codes = np.flatnonzero(self._shown != _NEVER)
        return standing(codes, now, self._values, codes, self._shown[codes])

    @property
    def bytes(self) -> int:
        own = self._latest.nbytes + self._shown.nbytes + self._asked.nbytes + self._marks.nbytes
        return own + self._due.bytes + self._over.bytes + self._values.bytes

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "values": len(self._values)}

    def check(self) -> None:
        self._values.check()
        held = np.flatnonzero(self._marks)
        # what stands above may keep values that are held no more
        assert set(held.tolist()) <= set(self._values.live().tolist()), "the values held are kept"
        assert (self._marks[held] == _HELD).all(), "nothing is left to look at"
        shown = np.flatnonzero(self._shown != _NEVER)
        assert set(shown.tolist()) <= set(held.tolist()), "what is shown is held"
        assert (self._shown[shown] <= self._latest[:, shown].min(axis=0)).all(), "both sides have what is shown"
        for buffer, ends, codes in ((self._due, self._shown, shown), (self._over, self._asked, held)):
            assert np.sort(buffer.slots()).tolist() == codes[ends[codes] < FOREVER].tolist(), "every known end is waited for"
