"""The answer (N 5.7): the results that have begun and not ended, as far as the recipient has been told.

Between messages it may be wrong: a result whose end it has not heard of, or whose end it has not looked for, is still in it.
That is the delay the papers measure; every change notes when it was due.
"""

from __future__ import annotations

from experiments.papers.buffers import Element, GroupArray, RowBuffer, Values
from experiments.papers.buffers.row_buffer import whole_row
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator
from experiments.papers.operators.group_by import QueuedGroupBy
from experiments.papers.operators.overwriting import OverwritingAggregate


class QueuedRecipient(QueuedOperator):
    """The root of every plan."""

    kind = "recipient"
    rule = "select"

    _answer: RowBuffer

    def __init__(self, child: PlanNode) -> None:
        super().__init__(child)
        #: when each change of the answer made by the last message was due
        self.effects: list[int] = []
        #: every result that began, if somebody keeps them
        self.history: list[Element] | None = None

    def _open_states(self) -> None:
        (child,) = self.inputs
        by_group = isinstance(child, OverwritingAggregate) or (isinstance(child, QueuedGroupBy) and self.mode.by_pattern)
        self._answer = GroupArray() if by_group else self.mode.make_buffer(child.pattern, whole_row, False)
        self.states = (self._answer,)

    @property
    def answer(self) -> list[Values]:
        return [row.values for row in self._answer]

    def _begin(self, element: Element, port: int) -> None:
        self.effects.append(self._due_us)
        self._answer.insert(element)
        if self.history is not None:
            self.history.append(element)

    def _end(self, element: Element, port: int) -> None:
        self.effects.append(self._due_us)
