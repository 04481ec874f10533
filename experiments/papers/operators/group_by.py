"""Groups and their aggregates (N 5.4, Algorithm 3), as rows with known bounds that are taken back (G 3.2, model 3, Figure 4).

    result of a group   keys and aggregates of its live rows, bounded by the latest of their ends
    scalar              without keys there is always one result, also of no rows

Every row that begins or ends gives a new result of its group; the old one is ended before its bound, so that end always
travels. A group whose last row ends by schedule ends with it: there the bound is the end, and nothing need travel. Every row
enters the state, not only the first of its group (step 14, errata).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from experiments.papers.buffers import Element, Values
from experiments.papers.machine.messages import QueueMessage
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.row_aggregates import RowAggregate
from experiments.papers.operators.grouping import Grouping
from lineage.elements import FOREVER


class QueuedGroupBy(Grouping):
    """`SELECT keys, aggregates .. GROUP BY keys`; no keys: a scalar aggregate."""

    kind = "group-by"

    def __init__(self, child: PlanNode, keys: Sequence[int], aggregates: Sequence[RowAggregate]) -> None:
        super().__init__(child, keys, aggregates)
        #: group -> the result that is shown
        self._results: dict[Hashable, Element] = {}

    @property
    def n_rows(self) -> int:
        return len(self._rows) + len(self._results)

    def start(self, time: int) -> list[QueueMessage]:
        self._out = []
        self.clock = self._due_us = time
        if not self.columns:
            self._show(())
        return self._out

    def _begin(self, element: Element, port: int) -> None:
        self._rows.insert(element)
        self._show(self._group(element.values))

    def _end(self, element: Element, port: int) -> None:
        self._show(self._group(element.values))

    def _show(self, group: Values) -> None:
        """Replace the result of a group."""
        rows = [row for row in self._rows.find(group) if row.end > self.clock]
        self._count_probe(len(rows))
        old = self._results.pop(group, None)
        if old is not None:
            self._take_back(old, last=not rows)
        if rows or not self.columns:
            end = max((row.end for row in rows), default=FOREVER)
            self._results[group] = self._emit(Element(group, self._result(group, rows), self.clock, end))

    def _take_back(self, old: Element, *, last: bool) -> None:
        self._emit_end(old)
