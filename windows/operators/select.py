"""Condition and columns over one input: no state, and the input's own ids.

A row that the condition refuses never begins. Ends pass as they are, those of refused rows too: whoever keeps rows drops an end
of one it does not have.
"""

from __future__ import annotations

from collections.abc import Sequence

from filters.expressions.evaluate import evaluate, true_rows
from filters.expressions.expression import Expression
from filters.values.vector import ListFrame
from windows.delta import Delta, Plus
from windows.operators.operator import Child, Operator


class SelectOperator(Operator):
    """`SELECT columns FROM input WHERE condition`; a condition of None keeps every row."""

    def __init__(self, condition: Expression | None, columns: Sequence[Expression], *, sends_ends: bool = False) -> None:
        self._condition = condition
        self._columns = tuple(columns)
        self.types = tuple(column.type for column in columns)
        self.sends_ends = sends_ends

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        return Delta(self._selected(delta.plus), delta.minus)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        errors = self.errors
        found = self.process([child() for child in children], now)
        # reading counts nothing
        self.errors = errors
        return found

    def _selected(self, plus: Plus) -> Plus:
        if self._condition is not None and len(plus):
            frame = ListFrame(plus.columns, len(plus))
            plus = plus.take(true_rows(self._condition, frame))
            self.errors += frame.errors
        frame = ListFrame(plus.columns, len(plus))
        columns = [evaluate(column, frame).widened(column.type) for column in self._columns]
        self.errors += frame.errors
        return Plus(plus.ids, plus.times, plus.ranks, plus.ends, columns, plus.effective)

    @property
    def bytes(self) -> int:
        return 0

    def check(self) -> None:
        """There is no state."""
