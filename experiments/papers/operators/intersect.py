"""Values that both inputs have (N 5.3, U 2.1): rows paired one to one.

    n, m           live rows of a value on the left and on the right
    INTERSECT ALL  min(n, m) pairs;  INTERSECT  one iff n > 0 and m > 0
    life of a pair [latest start, earliest end)

A result is a pair, so its end is known: it is that of the row that ends first. The other row of the pair is then free, and if a
free row is on the other side as well the two are a new pair: a hand-over. Nothing is ever taken back because a row came. Of
several free rows the one with the latest end is taken.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from experiments.papers.buffers import Element, Values
from experiments.papers.buffers.row_buffer import whole_row
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator


class _Pair(NamedTuple):
    left: Hashable
    right: Hashable
    result: Element


class QueuedIntersect(QueuedOperator):
    """`left INTERSECT ALL right`, or `INTERSECT` without duplicates."""

    kind = "intersect"
    rule = "intersect"

    def __init__(self, left: PlanNode, right: PlanNode, *, duplicates: bool = True) -> None:
        super().__init__(left, right)
        self.duplicates = duplicates
        #: (input, row) -> the pair it is in: both rows of a pair lead to it
        self._pairs: dict[tuple[int, Hashable], _Pair] = {}

    def _open_states(self) -> None:
        self.states = [self.mode.make_buffer(node.pattern, whole_row, False) for node in self.inputs]

    def _begin(self, element: Element, port: int) -> None:
        self.states[port].insert(element)
        self._pair_up(element.values)

    def _end(self, element: Element, port: int) -> None:
        pair = self._pairs.get((port, element.id))
        if pair is None:
            return
        del self._pairs[0, pair.left], self._pairs[1, pair.right]
        self._emit_end(pair.result)
        self._pair_up(element.values)

    def _pair_up(self, values: Values) -> None:
        """Make a pair of free rows, if there is one on each side."""
        rows = [state.find(values) for state in self.states]
        self._count_probe(sum(map(len, rows)))
        if not self.duplicates and any((0, row.id) in self._pairs for row in rows[0]):
            return
        free = [[row for row in rows[port] if row.end > self.clock and (port, row.id) not in self._pairs] for port in range(2)]
        if not (free[0] and free[1]):
            return
        left, right = (max(side, key=lambda row: row.end) for side in free)
        result = self._emit(Element((left.id, right.id), values, self.clock, min(left.end, right.end)))
        self._pairs[0, left.id] = self._pairs[1, right.id] = _Pair(left.id, right.id, result)
