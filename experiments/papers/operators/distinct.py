"""One row of each value, by two tables (N 5.2, Algorithm 1; with keys, G 3.4).

    rows     every live row                      (N: H; G: HPK and HDST)
    output   the row that stands for its value   (N: DL)
    every value of a live row has exactly one row in the output

When the row that stands for a value ends, another live row of the value takes its place: the one with the latest end, so that
there are few such hand-overs. Ends name their row by its id, which is G's primary key: of two equal rows with different ends
the right one goes. Only the output reacts to scheduled ends; dead rows of the other table are passed over and cleaned lazily (U
2.1).
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.papers.buffers import Element, RowBuffer
from experiments.papers.buffers.row_buffer import whole_row
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator


class QueuedDistinct(QueuedOperator):
    """`SELECT DISTINCT`."""

    kind = "distinct"
    rule = "distinct"

    _rows: RowBuffer
    _output: RowBuffer

    def __init__(self, child: PlanNode) -> None:
        super().__init__(child)

    def _open_states(self) -> None:
        (child,) = self.inputs
        self._rows = self.mode.make_buffer(child.pattern, whole_row, True)
        self._output = self.output_state = self.mode.make_buffer(self.pattern, whole_row, False)
        self.states = (self._rows, self._output)

    def _eager(self) -> Sequence[tuple[int, RowBuffer]]:
        return ((0, self._output),)

    def _lazy(self) -> Sequence[tuple[int, RowBuffer]]:
        return ((0, self._rows),)

    def _begin(self, element: Element, port: int) -> None:
        self._rows.insert(element)
        shown = self._output.find(element.values)
        self._count_probe(len(shown))
        if not shown:
            self._keep(self._output, self._emit(element), port)

    def _end_named(self, element: Element, port: int) -> None:
        if self._rows.remove(element) is None:
            self.counters.dropped += 1
            return
        shown = self._output.remove(element)
        if shown is not None:
            self._end(shown, port)

    def _end_all(self, end: int, port: int) -> None:
        for element in self._rows.take_ending(end):
            self._rows.forget(element)
            shown = self._output.remove(element)
            if shown is not None:
                self._end(shown, port)

    def _end(self, element: Element, port: int) -> None:
        """The row that stood for its value ends."""
        self._emit_end(element)
        rows = self._rows.find(element.values)
        self._count_probe(len(rows))
        heirs = [row for row in rows if row.end > self.clock]
        if heirs:
            heir = max(heirs, key=lambda row: row.end)
            self._keep(self._output, self._emit(heir.starting(self.clock)), port)
