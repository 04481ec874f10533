"""Rows with other columns, duplicates kept (N 5.6): no state, ids and lives stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from experiments.papers.buffers import Element, Values
from experiments.papers.buffers.element import canonical
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator


class QueuedProject(QueuedOperator):
    """`SELECT columns(values)`."""

    kind: ClassVar[str] = "project"
    rule: ClassVar[str] = "select"

    def __init__(self, child: PlanNode, columns: Callable[[Values], Values]) -> None:
        super().__init__(child)
        self.columns = columns

    def _begin(self, element: Element, port: int) -> None:
        self._emit(self._projected(element))

    def _end(self, element: Element, port: int) -> None:
        self._emit_end(self._projected(element))

    def _end_named(self, element: Element, port: int) -> None:
        self._end(element, port)

    def _end_all(self, end: int, port: int) -> None:
        self._emit_message(end)

    def _projected(self, element: Element) -> Element:
        return element._replace(values=canonical(self.columns(element.values)))
