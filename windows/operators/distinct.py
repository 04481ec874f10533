"""DISTINCT: each value once while any row has it.

Over any input it is a set operation over one input (`windows/operators/set_operation.py`): counts by value, every end explicit.
Where ends are known and none is premature, *delta-star* keeps two ends a value and no row at all:

    shown      the end of the row that stands for the value in the output
    reserve    the latest end of all that came since, if later

When the row shown ends, the reserve takes its place: a new + of the same id at that instant, with the reserve's end. Any other
row of the value ends no later than the reserve, so it is never missed. (The youngest, which is what the paper keeps, may end
before an older one.) The output's ends are known, its ids are the codes of the values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array
from lineage.elements import FOREVER
from lineage.growth import LEAST, fitted
from lineage.kernels import Number, inline, kernel
from lineage.schema import Type
from windows.delta import SCHEDULED, Delta
from windows.operators.operator import Child, Operator
from windows.operators.set_operation import UNION, SetOperator, in_order, standing
from windows.state.due import Buffer
from windows.state.rows import LiveRows
from windows.state.values import ValueCodes

#: What stands for "nothing shown" and "no reserve": before every end.
_NEVER = -(2**63)

#: Places of `sizes`: rows out, references to give back, codes to look at again.
_OUT, _BACK, _CHANGED = 0, 1, 2


def distinct(types: Sequence[Type], rows: LiveRows, values: ValueCodes | None = None) -> SetOperator:
    """Make the operator of DISTINCT over any input; `values` are the input's, if it keeps them."""
    return SetOperator(UNION, types, [rows], values)


@inline
def _hand_over(code: Number, upto: Number, shown: Number, reserve: Number, out: Number, sizes: Number) -> None:
    """End the row shown if it is due by `upto`, and show the reserve in its place."""
    while shown[code] <= upto and shown[code] != _NEVER:
        instant = shown[code]
        shown[code] = reserve[code] if reserve[code] > instant else _NEVER
        reserve[code] = _NEVER
        if shown[code] != _NEVER:
            n = sizes[_OUT]
            out[0, n] = code
            out[1, n] = instant
            out[2, n] = SCHEDULED
            out[3, n] = shown[code]
            sizes[_OUT] = n + 1


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[::1], uint8[::1],"
    "int64[:,::1], int64[::1], int64[::1], int64[::1])"
)
def star(
    codes: np.ndarray, times: np.ndarray, ranks: np.ndarray, ends: np.ndarray, due: np.ndarray, upto: int, shown: np.ndarray,
    reserve: np.ndarray, changed: np.ndarray, out: np.ndarray, back: np.ndarray, again: np.ndarray, sizes: np.ndarray,
) -> None:  # fmt: skip
    """Walk the arrivals in order, then the ends of all values up to the clock; write the changes of the output.

    `changed` marks the codes in `again`: shown by another row than before the commit, or by none.
    """
    for k in range(len(due)):
        changed[due[k]] = 1
        again[sizes[_CHANGED]] = due[k]
        sizes[_CHANGED] += 1
    for k in range(len(codes)):
        code = codes[k]
        held = shown[code] != _NEVER or changed[code] != 0
        _hand_over(code, times[k], shown, reserve, out, sizes)
        if shown[code] == _NEVER:
            shown[code] = ends[k]
            n = sizes[_OUT]
            out[0, n] = code
            out[1, n] = times[k]
            out[2, n] = ranks[k]
            out[3, n] = ends[k]
            sizes[_OUT] = n + 1
            if changed[code] == 0:
                changed[code] = 1
                again[sizes[_CHANGED]] = code
                sizes[_CHANGED] += 1
        elif ends[k] > shown[code]:
            reserve[code] = max(reserve[code], ends[k])
        # a value keeps one reference while it is shown or looked at again
        if held:
            back[sizes[_BACK]] = code
            sizes[_BACK] += 1
    for k in range(sizes[_CHANGED]):
        code = again[k]
        changed[code] = 0
        _hand_over(code, upto, shown, reserve, out, sizes)
        if shown[code] == _NEVER:
            back[sizes[_BACK]] = code
            sizes[_BACK] += 1


class DeltaStar(Operator):
    """DISTINCT over an input whose ends are known and never premature."""

    def __init__(self, types: Sequence[Type], buffer: Buffer, values: ValueCodes | None = None) -> None:
        """`values`: the value codes of the input, if it keeps them."""
        self.types = tuple(types)
        #: finds the values whose row shown is due; its slots are codes
        self._buffer = buffer
        self.values = self._values = ValueCodes(types) if values is None else values
        self._shares = values is not None
        self._shown = np.full(LEAST, _NEVER, np.int64)
        self._reserve = np.full(LEAST, _NEVER, np.int64)
        self._changed = np.zeros(LEAST, np.uint8)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        assert not len(delta.minus), "no end is premature"
        plus = delta.plus
        codes = self._values.encode(plus.columns, len(plus))
        self._fit()
        due = self._buffer.due(upto, self._shown)
        # a row is shown at once, in reserve, or never: at most two + for each, and one for a reserve from before
        out = np.empty((4, len(codes) + len(due)), np.int64)
        back = np.empty(2 * len(codes) + len(due), np.int64)
        again = np.empty(len(codes) + len(due), np.int64)
        sizes = np.zeros(3, np.int64)
        star(
            codes, plus.times, plus.ranks, plus.ends, due, upto, self._shown, self._reserve, self._changed, out, back, again,
            sizes,
        )  # fmt: skip
        found = in_order(out[:, : sizes[_OUT]], self._values)
        again = again[: sizes[_CHANGED]]
        ends = self._shown[again]
        self._buffer.add(again[(ends != _NEVER) & (ends < FOREVER)], self._shown)
        self._values.release(back[: sizes[_BACK]])
        self._fit()
        return found

    def sweep(self, dead: Array, now: int) -> None:
        codes = np.flatnonzero(self._shown != _NEVER)
        codes = codes[dead[self._values.column(0, codes).values]]
        self._buffer.remove(codes[self._shown[codes] < FOREVER], self._shown)
        self._shown[codes] = self._reserve[codes] = _NEVER
        self._values.release(codes)
        self._fit()

    def _fit(self) -> None:
        self._shown = fitted(self._shown, self._values.capacity, _NEVER)
        self._reserve = fitted(self._reserve, self._values.capacity, _NEVER)
        self._changed = fitted(self._changed, self._values.capacity)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        codes = np.flatnonzero(self._shown != _NEVER)
        return standing(codes, now, self._values, codes, self._shown[codes])

    @property
    def bytes(self) -> int:
        own = self._shown.nbytes + self._reserve.nbytes + self._changed.nbytes + self._buffer.bytes
        return own + (0 if self._shares else self._values.bytes)

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "values": len(self._values)}

    def check(self) -> None:
        self._values.check()
        shown = np.flatnonzero(self._shown != _NEVER)
        assert set(shown.tolist()) <= set(self._values.live().tolist()), "the values shown are kept"
        assert not self._changed.any(), "nothing is left to look at"
        reserved = np.flatnonzero(self._reserve != _NEVER)
        assert (self._reserve[reserved] > self._shown[reserved]).all(), "a reserve ends after the row shown"
        waiting = np.sort(self._buffer.slots())
        assert waiting.tolist() == shown[self._shown[shown] < FOREVER].tolist(), "every known end is waited for"
