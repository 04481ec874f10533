"""The order in which the operator join adds its inputs, and the comparisons made at each.

    what moves           in the order of FROM: streams in windows, derived relations, running queries
    tables as they were  each met when a combination of those begins (semantics 15)
    tables as they are   last: what they bring meets no other table anew

Without a table that counts as it was the order is that of FROM.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, columns_of, replace_columns
from lineage.schema import Type
from queries.joins import KeyColumn
from queries.nodes import JoinNode, Node, Select, Slide
from queries.split import read_equality
from queries.tree import of_tables, walk
from windows.operators.frozen_join import CommitNumber, Stamps
from windows.operators.join import JoinStep
from windows.operators.join_keys import KeyPair

#: The column in which the rows of every input begin: the seat of their query (`windows/operators/seats.py`).
_SEAT = ColumnRef(Type.INT, "seat", 0)


class JoinOrder:
    """The ordered inputs of one join; `commit` is the number of the running commit. Rows of different seats never meet."""

    def __init__(self, node: JoinNode, commit: CommitNumber) -> None:
        self._node = node
        self._commit = commit
        n = len(node.inputs)
        self._order = list(range(n))
        if any(node.frozen):
            self._order.sort(key=lambda k: 1 if node.frozen[k] else 2 * of_tables(node.inputs[k]))
        self.inputs = [node.inputs[k] for k in self._order]
        self.frozen = [node.frozen[k] for k in self._order]
        #: whether rows may be shown later than they came, so that they have to say when that was
        self.stamped = any(node.frozen) and any(slides(item) for item in node.inputs)

    def is_stamped(self, item: Node) -> bool:
        return self.stamped and not of_tables(item)

    def steps(self, types: Sequence[Sequence[Type]]) -> list[JoinStep]:
        """One step for each input after the first; `types` are those of the inputs, seats and stamps included."""
        node, offsets = self._node, _offsets(types)
        place = {k: at for at, k in enumerate(self._order)}
        stamps = self._stamps(offsets)
        terms = [] if node.condition is None else self._terms(node.condition, offsets)
        found = []
        for at in range(1, len(self._order)):
            pairs = [KeyPair(_SEAT, _SEAT)]
            for edge in node.join.equalities:
                ends = sorted((edge.left, edge.right), key=lambda k: place[k])
                if place[ends[1]] == at:
                    both = [pair if ends[0] == edge.left else pair[::-1] for pair in edge.pairs]
                    before = offsets[place[ends[0]]]
                    pairs += [KeyPair(self._key(ends[0], left, before), self._key(ends[1], right, 0)) for left, right in both]
            own = [term for term in terms if max(bisect_right(offsets, ref.position) - 1 for ref in columns_of(term)) == at]
            found.append(JoinStep(tuple(pairs), _conjunction(own), self.frozen[at], stamps if self.frozen[at] else None))
        return found

    def _key(self, k: int, column: KeyColumn, offset: int) -> Expression:
        """A key column of an input whose columns begin, with the seat, at an offset."""
        if column.expression is None:
            return ColumnRef(column.type, self._node.inputs[k].columns[column.position].name, offset + 1 + column.position)
        return replace_columns(column.expression, lambda ref: ColumnRef(ref.type, ref.name, offset + 1 + ref.position))

    def columns(self, types: Sequence[Sequence[Type]]) -> list[Expression]:
        """The seat, and the columns of the join, over the concatenation of its ordered inputs."""
        return [_SEAT, *(self._moved(column.expression, _offsets(types)) for column in self._node.columns)]

    def _stamps(self, offsets: Sequence[int]) -> Stamps | None:
        if not self.stamped:
            return None
        windows = [found.window for item in self.inputs if slides(item) for found in walk(item) if isinstance(found, Slide)]
        keep_us = max(window.width_us + window.slide_us for window in windows)
        positions = [offsets[at + 1] - 1 for at, item in enumerate(self.inputs) if self.is_stamped(item)]
        return Stamps(tuple(positions), keep_us, self._commit)

    def _terms(self, condition: Expression, offsets: Sequence[int]) -> list[Expression]:
        """The conjuncts to check besides equal keys."""
        firsts = _offsets([item.columns for item in self._node.inputs])

        def input_of(ref: ColumnRef) -> int:
            return bisect_right(firsts, ref.position) - 1

        terms = condition.args if isinstance(condition, FunctionCall) and condition.op == "and" else (condition,)
        return [self._moved(term, offsets) for term in terms if read_equality(term, input_of) is None]

    def _moved(self, expression: Expression, offsets: Sequence[int]) -> Expression:
        """An expression over the inputs in FROM order, rewritten for this order."""
        firsts = _offsets([item.columns for item in self._node.inputs])
        place = {k: at for at, k in enumerate(self._order)}

        def moved(ref: ColumnRef) -> ColumnRef:
            k = bisect_right(firsts, ref.position) - 1
            return ColumnRef(ref.type, ref.name, offsets[place[k]] + 1 + ref.position - firsts[k])

        return replace_columns(expression, moved)


def slides(node: Node) -> bool:
    """Whether a node gives rows of a window with SLIDE, directly or through selections."""
    return isinstance(node, Slide) or (isinstance(node, Select) and slides(node.child))


def _offsets(parts: Sequence[Sequence[object]]) -> list[int]:
    found = [0]
    for part in parts:
        found.append(found[-1] + len(part))
    return found


def _conjunction(terms: list[Expression]) -> Expression | None:
    if len(terms) < 2:
        return terms[0] if terms else None
    return FunctionCall(Type.BOOL, "and", tuple(terms))
