"""Typing rules: which types meet in a comparison, a conversion, a common result.

Numbers compare with numbers of either kind, without a cast; a text *literal* beside a timestamp is read as one; NULL meets
everything. Nothing else is converted unasked: the error names both types and what to write.
"""

from __future__ import annotations

from filters.expressions.expression import Expression, FunctionCall, Literal
from lineage.errors import QueryError
from lineage.schema import Type
from queries.literals import as_timestamp
from queries.sql_text import SqlText
from queries.syntax import Syntax

_TIME_HINT = "write a time as '2024-05-01T12:00:00Z', or take EPOCH_MS(ts) for a number"


def mismatch(source: SqlText, node: Syntax, fact: str, left: Type, right: Type) -> QueryError:
    """The error for two types that do not meet."""
    pair = {left, right}
    if Type.INTERVAL in pair:
        hint = "an interval only moves a timestamp: ts - INTERVAL '5' MINUTE"
    elif Type.TIMESTAMP in pair:
        hint = "CAST(text AS timestamp)" if Type.STRING in pair else _TIME_HINT
    elif Type.STRING in pair and Type.BOOL not in pair:
        hint = "write the number without quotes, or CAST one side"
    elif Type.STRING in pair:
        hint = "write TRUE or FALSE"
    else:
        hint = "write TRUE or FALSE, or CAST one side"
    return source.error(fact, node.start, node.end, "type_mismatch", hint)


def is_text(expression: Expression) -> bool:
    """Whether it is a text literal, which may be read as a time."""
    return isinstance(expression, Literal) and expression.type is Type.STRING


def comparable(
    source: SqlText, node: Syntax, operands: tuple[Syntax, Syntax], left: Expression, right: Expression
) -> tuple[Expression, Expression]:
    """Both sides of a comparison, made comparable; raises `QueryError` when they are not."""
    a, b = left.type, right.type
    if a is not Type.INTERVAL and b is not Type.INTERVAL:
        if a is b or a is Type.NULL or b is Type.NULL or (a.numeric and b.numeric):
            return left, right
        if a is Type.TIMESTAMP and is_text(right):
            return left, as_timestamp(source, operands[1], right)
        if b is Type.TIMESTAMP and is_text(left):
            return as_timestamp(source, operands[0], left), right
    raise mismatch(source, node, f"{a.value} and {b.value} cannot be compared", a, b)


def unify(
    source: SqlText, node: Syntax, nodes: tuple[Syntax, ...], args: list[Expression], what: str
) -> tuple[Type, list[Expression]]:
    """The common type of alternatives (CASE, COALESCE, GREATEST ..) and the alternatives in that type.

    int beside float is cast to float, a text literal beside a timestamp is read as one; only NULLs are an int, as in DuckDB.
    """
    kinds = {arg.type for arg in args} - {Type.NULL}
    if Type.TIMESTAMP in kinds and Type.STRING in kinds:
        args = [as_timestamp(source, at, arg) if is_text(arg) else arg for at, arg in zip(nodes, args, strict=True)]
        kinds = {arg.type for arg in args} - {Type.NULL}
    if not kinds:
        return Type.INT, args
    if Type.INTERVAL in kinds:
        raise mismatch(source, node, f"{what} cannot give an interval", Type.INTERVAL, Type.INTERVAL)
    if kinds == {Type.INT, Type.FLOAT}:
        return Type.FLOAT, [_widen(arg) if arg.type is Type.INT else arg for arg in args]
    if len(kinds) > 1:
        first, second = sorted(kinds, key=lambda kind: kind.value)[:2]
        raise mismatch(source, node, f"{what} mixes {first.value} and {second.value}", first, second)
    return kinds.pop(), args


def _widen(arg: Expression) -> Expression:
    if isinstance(arg, Literal) and isinstance(arg.value, int):
        return Literal(Type.FLOAT, float(arg.value))
    return FunctionCall(Type.FLOAT, "cast", (arg,))


def convert(source: SqlText, node: Syntax, to: Type, arg: Expression) -> Expression:
    """CAST: explicit, between all types but timestamps and numbers or bools."""
    if arg.type is to:
        return arg
    if arg.type is Type.NULL:
        return Literal(to, None)
    if arg.type is Type.INTERVAL or (Type.TIMESTAMP in (arg.type, to) and Type.STRING not in (arg.type, to)):
        hint = "EPOCH_MS(ts) gives milliseconds as a number" if arg.type is Type.TIMESTAMP else _TIME_HINT
        raise source.error(f"{arg.type.value} cannot be cast to {to.value}", node.start, node.end, "type_mismatch", hint)
    return FunctionCall(to, "cast", (arg,))
