"""Rows that satisfy a condition (N 5.6): no state, a row and its end go the same way.

The condition reads values alone, so the end of a row meets the same answer as its beginning. A flag whose row is filtered out
goes on as a null message; a join message always goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from experiments.papers.buffers import Element, Values
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import StatelessOperator


class QueuedSelect(StatelessOperator):
    """`WHERE condition(values)`."""

    kind = "select"
    rule = "select"

    def __init__(self, child: PlanNode, condition: Callable[[Values], bool]) -> None:
        super().__init__(child)
        self.condition = condition

    def _begin(self, element: Element, port: int) -> None:
        if self.condition(element.values):
            self._emit(element)

    def _end(self, element: Element, port: int) -> None:
        if self.condition(element.values):
            self._emit_end(element)
