"""Rows of the left input that the right one does not cover (N 5.3, Algorithm 2).

    n, m        live rows of a value on the left and on the right
    EXCEPT ALL  max(0, n - m) of them, the oldest
    EXCEPT      one iff n > 0 and m = 0; not "minus, then distinct" (semantics 18)

Whatever happens to a value, its result is brought back to that number: the printed steps are the eight ways in which it can be
off by one. A row that enters is one not shown already (step 14, errata); if a left row ends that was not shown, a shown one
must go (steps 5-8, which U leaves out). The paper lets any row, or the oldest, leave; the youngest leaves here and the oldest
enters, because old rows end by themselves before anything must be taken back.
"""

from __future__ import annotations

from collections.abc import Hashable

from experiments.papers.buffers import Element, Values
from experiments.papers.buffers.row_buffer import whole_row
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator


def age(element: Element) -> tuple[int, int]:
    """Older rows first."""
    return element.start, element.number


class QueuedMinus(QueuedOperator):
    """`left EXCEPT ALL right`, or `EXCEPT` without duplicates."""

    kind = "minus"
    rule = "except"

    def __init__(self, left: PlanNode, right: PlanNode, *, duplicates: bool = True) -> None:
        super().__init__(left, right)
        self.duplicates = duplicates
        #: value -> what is shown of it, by id; no value without a row
        self._output: dict[Values, dict[Hashable, Element]] = {}

    def _open_states(self) -> None:
        self.states = [self.mode.make_buffer(node.pattern, whole_row, False) for node in self.inputs]

    @property
    def n_rows(self) -> int:
        return super().n_rows + sum(map(len, self._output.values()))

    def _begin(self, element: Element, port: int) -> None:
        self.states[port].insert(element)
        self._balance(element.values)

    def _end(self, element: Element, port: int) -> None:
        shown = self._output.get(element.values, {})
        if port == 0 and element.id in shown:
            self._hide(shown[element.id])
        self._balance(element.values)

    def _balance(self, values: Values) -> None:
        """Show as many rows of a value as the counts ask for."""
        left, right = ([row for row in state.find(values) if row.end > self.clock] for state in self.states)
        self._count_probe(len(left) + len(right))
        wanted = max(0, len(left) - len(right)) if self.duplicates else int(bool(left) and not right)
        shown = self._output.get(values, {})
        # rows that are over go first: their own ends, which may still be under way, then find nothing
        for row in sorted(shown.values(), key=lambda row: (row.end <= self.clock, age(row)))[wanted:]:
            self._hide(row)
        hidden = sorted((row for row in left if row.id not in shown), key=age)
        for row in hidden[: wanted - len(shown)] if wanted > len(shown) else []:
            result = self._emit(row.starting(self.clock))
            # kept with the age it has among the rows of its input
            self._output.setdefault(values, {})[row.id] = result._replace(start=row.start, number=row.number)

    def _hide(self, row: Element) -> None:
        shown = self._output[row.values]
        del shown[row.id]
        if not shown:
            del self._output[row.values]
        self._emit_end(row)
