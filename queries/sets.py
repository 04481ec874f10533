"""UNION, EXCEPT and INTERSECT: two relations whose columns are made to be of the same types.

Columns are matched by their place and named as on the left. int beside float is cast to float, a column that is NULL takes the
type of the other; nothing else is converted unasked.
"""

from __future__ import annotations

from dataclasses import replace

from filters.expressions.expression import Expression, FunctionCall, Literal
from lineage.errors import QueryError
from lineage.schema import Column, Type
from queries.bound import Block, OutputColumn
from queries.inputs import Derived
from queries.nodes import Distinct, JoinNode, Node, Select, SetOperation, ToStream, column_refs
from queries.sql_text import SqlText
from queries.syntax import Item, QuerySyntax, SelectQuery, SetQuery, WithQuery

_AS_SOURCE = "give it a window as a source: SELECT * FROM (ISTREAM (...)) [RANGE 5 MINUTES] AS a"
_WINDOWS = "choose [RANGE 5 MINUTES], [ROWS 100], [NOW] or [RANGE UNBOUNDED]"


def combine(source: SqlText, query: SetQuery, left: Derived, right: Derived) -> Node:
    """The set operation over two bound queries; raises `QueryError` when they do not fit each other."""
    word = query.kind.upper()
    for side in (left, right):
        if isinstance(side.node, ToStream):
            fact = f"{side.node.kind.upper()} gives a stream, and {word} takes relations"
            raise source.error(fact, *side.span, "missing_window", _AS_SOURCE)
        if side.node.is_stream:
            raise stream_error(source, side.stream, side.span, word)
    names = (left.node.columns, right.node.columns)
    if len(names[0]) != len(names[1]):
        fact = f"the queries of {word} have {len(names[0])} and {len(names[1])} columns"
        raise source.error(fact, query.start, query.end, "column_count", "columns are matched by their place")
    types = [_common(source, query, left.node, right.node, at) for at in range(len(names[0]))]
    return SetOperation(query.kind, query.all, _convert(left.node, types), _convert(right.node, types))


def stream_error(source: SqlText, stream: str, span: tuple[int, int], what: str) -> QueryError:
    """The error for a stream, said in words, where a relation is needed."""
    return source.error(f"{stream} needs a window under {what}", *span, "missing_window", _WINDOWS)


def _common(source: SqlText, query: SetQuery, left: Node, right: Node, at: int) -> Type:
    one, other = left.columns[at].type, right.columns[at].type
    if one is other or _is_null(right, at):
        return one
    if _is_null(left, at):
        return other
    if one.numeric and other.numeric:
        return Type.FLOAT
    fact = f"column {at + 1} of {query.kind.upper()} is of type {one.value} on the left and {other.value} on the right"
    start, end = _place(query.right, at) or (query.start, query.end)
    raise source.error(fact, start, end, "type_mismatch", "CAST one side")


def _is_null(node: Node, at: int) -> bool:
    """Whether a column is nothing but a written NULL, which has no type of its own."""
    if isinstance(node, Block | Select | JoinNode):
        return node.columns[at].expression == Literal(Type.INT, None)
    if isinstance(node, SetOperation):
        return _is_null(node.left, at) and _is_null(node.right, at)
    return isinstance(node, Distinct) and _is_null(node.child, at)


def _convert(node: Node, types: list[Type]) -> Node:
    """The node with columns of these types; the casts are done where the columns are made, if that can be."""
    if [column.type for column in node.columns] == types:
        return node
    if isinstance(node, Block | Select | JoinNode):
        return replace(node, columns=_cast(node.columns, [column.expression for column in node.columns], types))
    return Select(node, None, _cast(node.columns, list(column_refs(node.columns)), types))


def _cast(
    columns: tuple[Column | OutputColumn, ...], expressions: list[Expression], types: list[Type]
) -> tuple[OutputColumn, ...]:
    return tuple(
        OutputColumn(column.name, _as(expression, kind)) for column, expression, kind in zip(columns, expressions, types)
    )


def _as(expression: Expression, kind: Type) -> Expression:
    if expression.type is kind:
        return expression
    if expression == Literal(Type.INT, None):
        return Literal(kind, None)
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return Literal(kind, float(expression.value))
    return FunctionCall(kind, "cast", (expression,))


def _place(query: QuerySyntax, at: int) -> tuple[int, int] | None:
    """Where the column of a query stands in the text, if it is written out."""
    while isinstance(query, WithQuery):
        query = query.query
    if isinstance(query, SelectQuery) and all(isinstance(item, Item) for item in query.items[: at + 1]):
        return query.items[at].start, query.items[at].end
    return None
