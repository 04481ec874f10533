"""Aggregates over temporal tuples alone: a result is sent when its whole life is known (G 3.2, model 1, Figure 3a).

    result = keys and aggregates, [start, end) with end <= clock: over which the group did not change

It never takes anything back and is always one row behind: a row that comes cuts the results of all groups, because only then is
it known that they lasted so long. So results are many, and what they say is past when they are sent: the recipient's answer at
its own clock is empty, and the results are read as a history.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.papers.buffers import Element, Values
from experiments.papers.machine.messages import QueueMessage
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.row_aggregates import RowAggregate
from experiments.papers.operators.grouping import Grouping


class TemporalAggregate(Grouping):
    """Group-by over rows whose ends are known, one row behind."""

    kind = "temporal aggregate"
    looks_always = True

    def __init__(self, child: PlanNode, keys: Sequence[int], aggregates: Sequence[RowAggregate]) -> None:
        super().__init__(child, keys, aggregates)
        #: group with live rows -> since when its rows are the same
        self._since: dict[Values, int] = {}

    def receive(self, message: QueueMessage, port: int) -> list[QueueMessage]:
        # in order of start, then end: results of different groups were cut at different times
        return sorted(super().receive(message, port), key=lambda sent: (sent.time, sent.element.end if sent.element else 0))

    def _begin(self, element: Element, port: int) -> None:
        for group in self._since:
            self._cut(group, self._rows.find(group))
        self._rows.insert(element)
        self._since.setdefault(self._group(element.values), self.clock)

    def _end(self, element: Element, port: int) -> None:
        group = self._group(element.values)
        rest = self._rows.find(group)
        self._cut(group, [*rest, element])
        if not rest:
            del self._since[group]

    def _cut(self, group: Values, rows: list[Element]) -> None:
        """The group had these rows until now."""
        since = self._since[group]
        if since < self.clock:
            self._emit(Element((group, since), self._result(group, rows), since, self.clock))
            self._since[group] = self.clock
