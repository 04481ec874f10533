"""Stream rows with the rows of a table that have their key, as the table was when they came (N 6.1.3, U 4).

    joined tuples table   row -> the results it made; only rows that made some are in it

The ends of results come from what was made, never from another probe: the table may have changed since (semantics 15). Under join
messages the joined tuples table says whether a message is needed. Where no end travels and none is premature there is nothing to
remember, and the operator has no state.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from experiments.papers.buffers import Element, RowBuffer, Values
from experiments.papers.buffers.element import canonical
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator
from experiments.papers.operators.join import column_key


class KeyedTable:
    """Rows of a table that is not retroactive: a change counts for rows that come after it."""

    def __init__(self, key: Sequence[int], rows: Sequence[Values] = ()) -> None:
        self.key = column_key(key)
        self._rows: dict[Hashable, dict[int, Values]] = {}
        self._number = 0
        for row in rows:
            self.insert(row)

    def insert(self, row: Values) -> None:
        self._number += 1
        self._rows.setdefault(self.key(row), {})[self._number] = canonical(row)

    def delete(self, key: Values) -> None:
        """Take out all rows with this key."""
        self._rows.pop(key, None)

    def find(self, key: Hashable) -> list[tuple[int, Values]]:
        """The rows with this key, numbered."""
        return [] if key is None else list(self._rows.get(key, {}).items())


class QueuedTableJoin(QueuedOperator):
    """`child JOIN table` on equal columns."""

    kind = "table join"
    rule = "join with a frozen table"

    def __init__(self, child: PlanNode, table: KeyedTable, key: Sequence[int]) -> None:
        super().__init__(child)
        self.table = table
        self.key = column_key(key)
        self._joined: RowBuffer | None = None
        self._results: dict[Hashable, list[Element]] = {}

    def _open_states(self) -> None:
        (child,) = self.inputs
        if self.mode.sends_ends or not child.ends_known:
            self._joined = self.mode.make_buffer(child.pattern, lambda values: values, True)
            self.states = (self._joined,)

    def _eager(self) -> Sequence[tuple[int, RowBuffer]]:
        return ()

    def _lazy(self) -> Sequence[tuple[int, RowBuffer]]:
        return list(enumerate(self.states))

    def _discard(self, element: Element, port: int) -> None:
        del self._results[element.id]

    def _begin(self, element: Element, port: int) -> None:
        matches = self.table.find(self.key(element.values))
        self._count_probe(len(matches))
        results = [
            self._emit(Element((element.id, number), element.values + row, element.start, element.end)) for number, row in matches
        ]
        if results and self._joined is not None:
            self._joined.insert(element)
            self._results[element.id] = results

    def _end(self, element: Element, port: int) -> None:
        results = self._results.pop(element.id)
        if element.end <= self.clock and self.mode.messages:
            self.counters.cases["-->-"] += 1
            self._emit_message(element.end)
            return
        for result in results:
            self._emit_end(result)
