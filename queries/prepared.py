"""A query text whose parameters can change without binding it again.

Thousands of queries are one text with different parameters, and nearly always the condition is a conjunction of comparisons
`column op :param` or `column op literal` on numbers or texts. Of such a text only the constants are new:

    prepared.condition(params) == normalise(bind(parsed, lookup, params).condition)

in a fraction of the time. A parameter of another kind than the column's (a text for a number, NULL) is left to the binder,
which knows what to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from filters.intervals import compare
from filters.predicate import FLIPPED, Condition, IndexAtom, conjunction
from lineage.schema import Type
from queries.bound import Block, Readable
from queries.literals import check_params, param_literal, param_value
from queries.syntax import Apply, Constant, Name, Param, ParsedQuery, SelectQuery, Syntax
from windows.spec import WindowSpec


class _Comparison(NamedTuple):
    position: int
    name: str
    type: Type
    op: str
    constant: Constant | Param


class Prepared:
    """What of a text does not depend on its parameters."""

    __slots__ = ("readable", "_parsed", "_comparisons")

    def __init__(self, parsed: ParsedQuery, readable: Readable, comparisons: list[_Comparison]) -> None:
        #: what the text was bound over; good for no other
        self.readable = readable
        self._parsed = parsed
        self._comparisons = comparisons

    def condition(self, params: Mapping[str, object]) -> Condition | None:
        """The condition for these parameters; None when the binder has to look at them. Raises `QueryError`."""
        check_params(self._parsed, params)
        source = self._parsed.source
        atoms = []
        for position, name, type_, op, constant in self._comparisons:
            if isinstance(constant, Param):
                value = param_value(source, constant, constant.name, params)
                literal = param_literal(source, constant, constant.name, value)
            else:
                literal = constant.literal
            if not _fits(type_, literal.type):
                return None
            atoms.append(IndexAtom(position, name, compare(type_, op, literal.value)))
        return conjunction(atoms)


def prepare(parsed: ParsedQuery, bound: Block) -> Prepared | None:
    """The prepared form of a text that was bound; None when it has none."""
    query = parsed.query
    if len(bound.inputs) > 1 or not isinstance(query, SelectQuery) or not isinstance(query.from_items[0].window, WindowSpec):
        return None
    schema = bound.inputs[0].schema
    comparisons = []
    seen: set[str] = set()
    for node in _conjuncts(query.condition):
        if not isinstance(node, Apply) or node.op not in FLIPPED:
            return None
        left, right = node.args
        op = node.op
        if isinstance(right, Name):
            left, right, op = right, left, FLIPPED[op]
        if not isinstance(left, Name) or not isinstance(right, Constant | Param):
            return None
        column = schema.find(left.name)
        assert column is not None, "a bound name is known"
        if isinstance(right, Param):
            seen.add(right.name)
        comparisons.append(_Comparison(schema.position(column.name), column.name, column.type, op, right))
    # a parameter that stands elsewhere, in the select list, needs the binder
    return Prepared(parsed, bound.inputs[0].readable, comparisons) if seen == set(parsed.params) else None


def _conjuncts(node: Syntax | None) -> tuple[Syntax, ...]:
    if node is None:
        return ()
    return node.args if isinstance(node, Apply) and node.op == "and" else (node,)


def _fits(column: Type, literal: Type) -> bool:
    return literal is column is Type.STRING or (column.numeric and literal.numeric)
