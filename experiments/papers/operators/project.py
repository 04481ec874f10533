"""Rows with other columns, duplicates kept (N 5.6): no state, ids and lives stay."""

from __future__ import annotations

from collections.abc import Callable

from experiments.papers.buffers import Element, Values
from experiments.papers.buffers.element import canonical
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import StatelessOperator


class QueuedProject(StatelessOperator):
    """`SELECT columns(values)`."""

    kind = "project"
    rule = "select"

    def __init__(self, child: PlanNode, columns: Callable[[Values], Values]) -> None:
        super().__init__(child)
        self.columns = columns

    def _begin(self, element: Element, port: int) -> None:
        self._emit(self._projected(element))

    def _end(self, element: Element, port: int) -> None:
        self._emit_end(self._projected(element))

    def _projected(self, element: Element) -> Element:
        return element._replace(values=canonical(self.columns(element.values)))
