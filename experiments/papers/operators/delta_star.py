"""One row of each value, without the input: at most two rows a value (U 5.3.1, delta-star).

    output      the row that stands for its value
    auxiliary   of the other rows of the value the one with the latest end, if it outlives the output

The paper keeps the youngest; over a weak input that one may end first, and the value would be lost. Right only where no end is
premature: an heir that was not kept could be needed. The plan uses it where the ends of the input are known, which they are not
above a group-by, and here a premature end is refused.
"""

from __future__ import annotations

from experiments.papers.buffers import Element, RowBuffer, Values
from experiments.papers.buffers.row_buffer import whole_row
from experiments.papers.machine.messages import MessageKind, QueueMessage
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator


class QueuedDeltaStar(QueuedOperator):
    """`SELECT DISTINCT` over rows whose ends are known."""

    kind = "delta-star"
    rule = "distinct"

    _output: RowBuffer

    def __init__(self, child: PlanNode) -> None:
        super().__init__(child)
        self._auxiliary: dict[Values, Element] = {}

    def _open_states(self) -> None:
        self._output = self.output_state = self.mode.make_buffer(self.pattern, whole_row, False)
        self.states = (self._output,)

    @property
    def n_rows(self) -> int:
        return len(self._output) + len(self._auxiliary)

    def receive(self, message: QueueMessage, port: int) -> list[QueueMessage]:
        assert message.kind is not MessageKind.PREMATURE, "delta-star above rows that end prematurely"
        return super().receive(message, port)

    def _begin(self, element: Element, port: int) -> None:
        shown = self._output.find(element.values)
        self._count_probe(len(shown))
        if not shown:
            self._keep(self._output, self._emit(element), port)
            return
        outlived = self._auxiliary.get(element.values, shown[0])
        if element.end > outlived.end:
            self._auxiliary[element.values] = element

    def _end(self, element: Element, port: int) -> None:
        self._emit_end(element)
        heir = self._auxiliary.pop(element.values, None)
        if heir is not None and heir.end > self.clock:
            self._keep(self._output, self._emit(heir.starting(self.clock)), port)
