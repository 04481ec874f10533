"""The rows of both inputs (N 5.3, U 2.1): no state; an id says which input a row is of.

The paper has the output of two windows FIFO again. That needs windows of one length, so two weakest inputs of different lengths
make a weak output. `UNION` without ALL is a distinct above.
"""

from __future__ import annotations

from experiments.papers.buffers import Element
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import StatelessOperator
from experiments.papers.machine.timed_source import TimedSource
from windows import patterns


class QueuedUnion(StatelessOperator):
    """`left UNION ALL right`."""

    kind = "union"
    rule = "union"

    def __init__(self, left: PlanNode, right: PlanNode) -> None:
        super().__init__(left, right)

    @property
    def pattern(self) -> str:
        pattern = super().pattern
        windows = {node.window for node in self.walk() if isinstance(node, TimedSource)}
        return patterns.WEAK if pattern == patterns.WEAKEST and len(windows) > 1 else pattern

    def _begin(self, element: Element, port: int) -> None:
        self._emit(element._replace(id=(port, element.id)))

    def _end(self, element: Element, port: int) -> None:
        self._emit_end(element._replace(id=(port, element.id)))
