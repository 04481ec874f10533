"""Constants of expressions as columns, so that expressions that differ in their values alone are one expression.

    sum(x) * 3 > 10    ->    sum(x) * p0 > p1        p0, p1 = 3, 10

`PARAMETERS` says of each function which arguments may be one: those that it computes with row by row. A pattern, a format, a
unit or a list is looked at as a whole, an exponent may be computed in another way where it is the same for all rows, and a
branch decides for which rows others are computed: such constants stay. So does what cannot be a column: an interval, and NULL
of no type. The type of a constant stays in the column's place.
"""

from __future__ import annotations

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Literal
from filters.values.comparisons import OPERATORS
from filters.values.vector import DTYPES
from lineage.schema import Type

_BOTH = frozenset((0, 1))

#: By the canonical name of a function: the arguments that may be a parameter. Of a function that is not here none may.
PARAMETERS: dict[str, frozenset[int]] = {
    **dict.fromkeys(OPERATORS, _BOTH),
    **dict.fromkeys(("+", "-", "*", "/", "%", "||", "nullif"), _BOTH),
}


def is_parameter(expression: Expression) -> bool:
    """Whether an expression is a constant that can be a column."""
    return isinstance(expression, Literal) and expression.type in DTYPES and expression.type is not Type.NULL


def lift(expression: Expression, first: int, found: list[Literal], whole: bool = False) -> Expression:
    """The expression with columns for its parameters, of which the first of all is column `first`; they are appended to `found`.

    `whole`: it may be a parameter itself.
    """
    if isinstance(expression, Literal):
        if not whole or not is_parameter(expression):
            return expression
        found.append(expression)
        return ColumnRef(expression.type, f"p{len(found) - 1}", first + len(found) - 1)
    if not isinstance(expression, FunctionCall):
        return expression
    lifted = PARAMETERS.get(expression.op, frozenset())
    args = tuple([lift(arg, first, found, at in lifted) for at, arg in enumerate(expression.args)])
    return FunctionCall(expression.type, expression.op, args)
