"""Pairs of rows with equal keys (N 5.5, Algorithms 4 and 5).

    life of a pair   [latest start, earliest end); a pair with an empty life is none
    join message     one for a row at its scheduled end, iff its reference count, the pairs that end with it, is above 0

A premature end names its row, and each pair of it is ended by name: a join message would end the rows of equal end, too early
and not only its own (N 6.1, errata). Scheduled ends have no consequence but their own message, so the states may be cleaned
lazily; rows that are over make no pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from experiments.papers.buffers import Element, Key, RowBuffer, SharedBuffer, Values
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator
from experiments.papers.machine.strategy import Trigger


def column_key(columns: Sequence[int]) -> Key:
    """The values of some columns; None, which joins nothing, if one of them is NULL."""
    places = tuple(columns)

    def key(values: Values) -> Hashable:
        picked = tuple(values[place] for place in places)
        return None if None in picked else picked

    return key


class QueuedJoin(QueuedOperator):
    """`left JOIN right` on equal columns, and a condition on both rows."""

    kind = "join"
    rule = "join"

    def __init__(
        self,
        left: PlanNode,
        right: PlanNode,
        left_key: Sequence[int],
        right_key: Sequence[int],
        condition: Callable[[Values, Values], bool] | None = None,
    ) -> None:
        super().__init__(left, right)
        self.keys = (column_key(left_key), column_key(right_key))
        self.condition = condition
        #: for each input, by id: how many pairs end by that row's end
        self.references: tuple[Counter[Hashable], Counter[Hashable]] = (Counter(), Counter())

    def _open_states(self) -> None:
        assert not (self.mode.sends_ends and self.mode.trigger is Trigger.CLOCK), "a join that sends ends is told of them"
        may_share = self.maintenance.shares and not self.mode.sends_ends and self.mode.trigger is Trigger.CLOCK
        states: list[RowBuffer] = []
        for node, key in zip(self.inputs, self.keys):
            owner = node.output_state if isinstance(node, QueuedOperator) and may_share else None
            states.append(SharedBuffer(owner, key) if owner is not None else self.mode.make_buffer(node.pattern, key, True))
        self.states = states

    def _eager(self) -> Sequence[tuple[int, RowBuffer]]:
        return ()

    def _lazy(self) -> Sequence[tuple[int, RowBuffer]]:
        return list(enumerate(self.states))

    def _discard(self, element: Element, port: int) -> None:
        self.references[port].pop(element.id, None)

    def _begin(self, element: Element, port: int) -> None:
        if self.keys[port](element.values) is None:
            return
        self.states[port].insert(element)
        for partner, pair in self._pairs(element, port):
            self._emit(pair)
            self._refer(element, partner, port, +1)

    def _end(self, element: Element, port: int) -> None:
        count = self.references[port].pop(element.id, 0)
        scheduled = element.end <= self.clock
        if scheduled and self.mode.messages:
            if count:
                self.counters.cases["-->-"] += 1
                self._emit_message(element.end)
            return
        for partner, pair in self._pairs(element, port):
            self._emit_end(pair)
            self._refer(element, partner, port, -1)

    def _pairs(self, element: Element, port: int) -> list[tuple[Element, Element]]:
        """The partners of a row, each with the pair they make."""
        partners = self.states[1 - port].find(self.keys[port](element.values))
        self._count_probe(len(partners))
        found = []
        for partner in partners:
            left, right = (element, partner) if port == 0 else (partner, element)
            start, end = max(left.start, right.start), min(left.end, right.end)
            if start < end and (self.condition is None or self.condition(left.values, right.values)):
                found.append((partner, Element((left.id, right.id), left.values + right.values, start, end)))
        return found

    def _refer(self, element: Element, partner: Element, port: int, by: int) -> None:
        """Count the pair for the row that ends first, on a tie for the one that came now."""
        if not self.mode.messages:
            return
        owner, side = (partner, 1 - port) if partner.end < element.end else (element, port)
        counts = self.references[side]
        counts[owner.id] += by
        if counts[owner.id] <= 0:
            del counts[owner.id]
