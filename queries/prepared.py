"""A query text whose parameters can change without binding it again.

Thousands of queries are one text with different parameters, and nearly always the condition is a conjunction of comparisons
`column op :param` or `column op literal` on numbers or texts. Of such a text only the constants are new:

    prepared.condition(params) == normalise(bind(parsed, lookup, params).condition)

in a fraction of the time. Whatever is not plainly a number for a number or a text for a text (NULL, a time, a parameter too
many or too few) is left to the binder, which knows what to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from filters.expressions.predicate import FLIPPED, Condition, IndexAtom, conjunction
from filters.values.intervals import compare
from lineage.schema import KEY_MAX, KEY_MIN, Type
from queries.bound import Block, Readable
from queries.literals import is_text
from queries.syntax import Apply, Constant, Name, Param, ParsedQuery, SelectQuery, Syntax
from windows.spec import WindowSpec


class _Comparison(NamedTuple):
    """`column op :param`."""

    position: int
    name: str
    type: Type
    op: str
    param: str


class PreparedQuery:
    """A text bound once for all values of its parameters: comparisons over one stream or table."""

    __slots__ = ("readable", "_n_params", "_terms")

    def __init__(self, readable: Readable, n_params: int, terms: list[_Comparison | IndexAtom]) -> None:
        #: what the text was bound over; good for no other
        self.readable = readable
        self._n_params = n_params
        #: comparisons with parameters, and the atoms of those with literals
        self._terms = terms

    def condition(self, params: Mapping[str, object]) -> Condition | None:
        """The condition for these parameters; None when the binder has to look at them."""
        if len(params) != self._n_params:
            return None
        atoms = []
        for term in self._terms:
            if isinstance(term, _Comparison):
                position, name, type_, op, param = term
                value = _plain(type_, params.get(param))
                if value is None:
                    return None
                term = IndexAtom(position, name, compare(type_, op, value))
            atoms.append(term)
        return conjunction(atoms)


def prepare(parsed: ParsedQuery, bound: Block) -> PreparedQuery | None:
    """The prepared form of a text that was bound; None when it has none."""
    query = parsed.query
    if len(bound.inputs) > 1 or not isinstance(query, SelectQuery):
        return None
    # the block of a query in parentheses has a condition that does not stand here
    if query.from_items[0].query is not None or not isinstance(query.from_items[0].window, WindowSpec):
        return None
    schema = bound.inputs[0].schema
    terms: list[_Comparison | IndexAtom] = []
    seen: set[str] = set()
    for node in _conjuncts(query.condition):
        if not isinstance(node, Apply) or node.op not in FLIPPED:
            return None
        left, right = node.args
        op = node.op
        if isinstance(right, Name):
            left, right, op = right, left, FLIPPED[op]
        if not isinstance(left, Name):
            return None
        column = schema.find(left.name)
        assert column is not None, "a bound name is known"
        position = schema.position(column.name)
        if isinstance(right, Param):
            seen.add(right.name)
            terms.append(_Comparison(position, column.name, column.type, op, right.name))
            continue
        value = _plain(column.type, right.literal.value) if isinstance(right, Constant) else None
        if value is None:
            return None
        terms.append(IndexAtom(position, column.name, compare(column.type, op, value)))
    # a parameter that stands elsewhere, in the select list, needs the binder
    return PreparedQuery(bound.inputs[0].readable, len(seen), terms) if seen == set(parsed.params) else None


def _conjuncts(node: Syntax | None) -> tuple[Syntax, ...]:
    if node is None:
        return ()
    return node.args if isinstance(node, Apply) and node.op == "and" else (node,)


def _plain(column: Type, value: object) -> int | float | str | None:
    """A value as one of Python's own numbers or texts, if it is plainly of a column's kind; None otherwise."""
    if isinstance(value, str):
        return value if column is Type.STRING and (value.isascii() or is_text(value)) else None
    if column is not Type.FLOAT and column is not Type.INT:
        return None
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        return number if KEY_MIN <= number <= KEY_MAX else None
    return None
