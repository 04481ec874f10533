"""The common part of aggregate operators: keys, aggregates, and the live rows of the input by group."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.papers.buffers import Element, RowBuffer, Values
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator
from experiments.papers.machine.row_aggregates import RowAggregate


class Grouping(QueuedOperator):
    """Rows by the values of their key columns; without keys all rows are one group."""

    rule = "group-by"

    _rows: RowBuffer

    def __init__(self, child: PlanNode, keys: Sequence[int], aggregates: Sequence[RowAggregate]) -> None:
        super().__init__(child)
        self.columns = tuple(keys)
        self.aggregates = tuple(aggregates)

    def _open_states(self) -> None:
        (child,) = self.inputs
        self._rows = self.mode.make_buffer(child.pattern, self._group, False)
        self.states = (self._rows,)

    def _group(self, values: Values) -> Values:
        return tuple(values[column] for column in self.columns)

    def _result(self, group: Values, rows: list[Element]) -> Values:
        """Keys and aggregates of a group with these rows."""
        values = [row.values for row in sorted(rows, key=lambda row: row.start)]
        return group + tuple(aggregate.of(values) for aggregate in self.aggregates)
