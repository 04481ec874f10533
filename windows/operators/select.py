"""Condition and columns over one input: no state, and the input's own ids.

A row that the condition refuses never begins. Ends pass as they are, those of refused rows too: whoever keeps rows drops an end
of one it does not have.
"""

from __future__ import annotations

from collections.abc import Sequence

from filters.expressions.evaluate import evaluate, true_rows
from filters.expressions.expression import Expression
from filters.values.vector import Frame, ListFrame
from windows.delta import Delta, Plus
from windows.operators.operator import Child, Operator
from windows.operators.seats import SeatFrame, Seats


class SelectOperator(Operator):
    """`SELECT columns FROM input WHERE condition`; a condition of None keeps every row."""

    def __init__(
        self, condition: Expression | None, columns: Sequence[Expression], *, sends_ends: bool = False, seats: Seats | None = None
    ) -> None:  # fmt: skip
        """With `seats`, expressions may read the constants of the queries behind the input's columns."""
        self._condition = condition
        self._columns = tuple(columns)
        self.types = tuple(column.type for column in columns)
        self.sends_ends = sends_ends
        self._seats = seats

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        return Delta(self._selected(delta.plus, True), delta.minus)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        """Reading counts no errors."""
        (child,) = children
        found = child()
        return Delta(self._selected(found.plus, False), found.minus)

    def _selected(self, plus: Plus, counts: bool) -> Plus:
        if self._condition is not None and len(plus):
            frame = self._frame(plus)
            met = true_rows(self._condition, frame)
            self._count(frame, counts)
            plus = plus.take(met)
        frame = self._frame(plus)
        columns = [evaluate(column, frame).widened(column.type) for column in self._columns]
        self._count(frame, counts)
        return Plus(plus.ids, plus.times, plus.ranks, plus.ends, columns, plus.effective)

    def _frame(self, plus: Plus) -> Frame:
        if self._seats is None:
            return ListFrame(plus.columns, len(plus))
        return SeatFrame(plus.columns, len(plus), self._seats)

    def _count(self, frame: Frame, counts: bool) -> None:
        if counts and frame.errors:
            self.errors += frame.count() if isinstance(frame, SeatFrame) else frame.errors

    @property
    def bytes(self) -> int:
        return 0

    def check(self) -> None:
        """There is no state."""
