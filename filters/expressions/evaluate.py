"""Computing a bound expression over the rows of a frame, column by column.

    evaluate(e, frame)[i] = e over row i            with SQL's three-valued logic
    true_rows(e, frame)[i]                          e is TRUE on row i: neither FALSE nor NULL

Each node is computed once over all rows that reach it. CASE, COALESCE, NULLIF, AND and OR compute an argument only on
the rows that still need it, on a selection of the frame, so `CASE WHEN x <> 0 THEN 1 / x END` counts no error. A value
that cannot be computed is NULL and adds one to `frame.errors`; nothing here raises for the sake of a value.

The binder bounds the depth of an expression, so plain recursion is safe. Cost: O(rows) per node.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Interval, Literal, UserCall
from filters.expressions.functions import FUNCTIONS
from filters.expressions.time_functions import shift
from filters.expressions.user_functions import call_rows
from filters.values.comparisons import compare, contained, contained_in_constants, greatest, least
from filters.values.vector import Array, Frame, ListFrame, Mask, Vector, assemble
from lineage.schema import Type


def evaluate(expression: Expression, frame: Frame) -> Vector:
    """The value of the expression on every row of the frame."""
    if isinstance(expression, ColumnRef):
        return frame.column(expression.position)
    if isinstance(expression, Literal):
        return Vector.constant(expression.type, expression.value, frame.n_rows)
    if isinstance(expression, UserCall):
        return call_rows(expression.function, [evaluate(arg, frame) for arg in expression.args], frame)
    conditional = _CONDITIONALS.get(expression.op)
    if conditional is not None:
        return conditional(expression, frame)
    if expression.type is Type.TIMESTAMP and expression.op in ("+", "-"):
        return _shifted(expression, frame)
    args = [evaluate(arg, frame) for arg in expression.args]
    if any(arg.type is Type.NULL for arg in args):
        return Vector.constant(expression.type, None, frame.n_rows)
    return FUNCTIONS[expression.op](expression.type, args, frame)


def true_rows(expression: Expression, frame: Frame) -> Mask:
    """True where a BOOL expression is TRUE."""
    return _true(evaluate(expression, frame))


def fold(expression: Expression) -> Expression:
    """The same expression with every part that reads no column and calls no user function made a literal.

    A part that cannot be computed stays as it is, so that it is still counted on every row.
    """
    return _fold(expression)[0]


def _fold(expression: Expression) -> tuple[Expression, bool]:
    """The folded expression, and whether it is constant."""
    if isinstance(expression, Literal | ColumnRef):
        return expression, isinstance(expression, Literal)
    folded = [_fold(arg) for arg in expression.args]
    args = tuple(arg for arg, _ in folded)
    if isinstance(expression, UserCall):
        return UserCall(expression.type, expression.function, args), False
    call = FunctionCall(expression.type, expression.op, args)
    if not all(constant for _, constant in folded):
        return call, False
    frame = ListFrame([], n_rows=1)
    value = evaluate(call, frame).cell(0)
    return (call if frame.errors else Literal(call.type, value)), True


def _true(vector: Vector) -> Mask:
    return vector.values.astype(np.bool_) & ~vector.null_mask()


def _on(expression: Expression, frame: Frame, rows: Array) -> Vector:
    """The expression on some rows, given in order; its errors are the frame's."""
    if len(rows) == frame.n_rows:
        return evaluate(expression, frame)
    selection = frame.select(rows)
    found = evaluate(expression, selection)
    frame.absorb(selection, rows)
    return found


def _and_or(call: FunctionCall, frame: Frame) -> Vector:
    """AND is decided by the first FALSE, OR by the first TRUE; undecided rows are NULL if any argument was."""
    deciding = call.op == "or"
    decided = np.zeros(frame.n_rows, np.bool_)
    unknown = np.zeros(frame.n_rows, np.bool_)
    rows: Array = np.arange(frame.n_rows)
    for arg in call.args:
        if len(rows) == 0:
            break
        found = _on(arg, frame, rows)
        nulls = found.null_mask()
        decides = (found.values.astype(np.bool_) == deciding) & ~nulls
        decided[rows[decides]] = True
        unknown[rows[nulls]] = True
        rows = rows[~decides]
    return Vector(Type.BOOL, decided == deciding, unknown & ~decided)


def _not(call: FunctionCall, frame: Frame) -> Vector:
    found = evaluate(call.args[0], frame)
    return Vector(Type.BOOL, ~found.values.astype(np.bool_), found.nulls)


def _is_null(call: FunctionCall, frame: Frame) -> Vector:
    return Vector(Type.BOOL, evaluate(call.args[0], frame).null_mask())


def _in(call: FunctionCall, frame: Frame) -> Vector:
    value = evaluate(call.args[0], frame)
    if value.type is Type.NULL:
        return Vector.constant(Type.BOOL, None, frame.n_rows)
    candidates = call.args[1:]
    constants = [arg.value for arg in candidates if isinstance(arg, Literal) and arg.type in (value.type, Type.NULL)]
    if len(constants) == len(candidates):
        return contained_in_constants(value, constants)
    vectors = [evaluate(arg, frame) for arg in candidates]
    return contained([value, *(_typed(value.type, vector) for vector in vectors)])


def _typed(type: Type, vector: Vector) -> Vector:
    """The vector, a NULL of no type as NULLs of `type`."""
    return vector.widened(type) if vector.type is Type.NULL else vector


def _case(call: FunctionCall, frame: Frame) -> Vector:
    rows: Array = np.arange(frame.n_rows)
    pieces: list[tuple[Array, Vector]] = []
    for when, then in zip(call.args[0:-1:2], call.args[1:-1:2], strict=True):
        if len(rows) == 0:
            break
        reached = _true(_on(when, frame, rows))
        if reached.any():
            pieces.append((rows[reached], _on(then, frame, rows[reached])))
            rows = rows[~reached]
    if len(rows):
        pieces.append((rows, _on(call.args[-1], frame, rows)))
    return assemble(call.type, frame.n_rows, pieces)


def _coalesce(call: FunctionCall, frame: Frame) -> Vector:
    rows: Array = np.arange(frame.n_rows)
    pieces: list[tuple[Array, Vector]] = []
    for arg in call.args:
        if len(rows) == 0:
            break
        found = _on(arg, frame, rows)
        nulls = found.null_mask()
        pieces.append((rows[~nulls], found.take(~nulls)))
        rows = rows[nulls]
    return assemble(call.type, frame.n_rows, pieces)


def _nullif(call: FunctionCall, frame: Frame) -> Vector:
    value = evaluate(call.args[0], frame).widened(call.type)
    rows = np.flatnonzero(~value.null_mask())
    other = _on(call.args[1], frame, rows)
    if other.type is Type.NULL or value.type is Type.NULL:
        return value
    nulls = value.null_mask().copy()
    nulls[rows[_true(compare("=", [value.take(rows), other]))]] = True
    return Vector(value.type, value.values, nulls, value.dictionary)


def _extreme(call: FunctionCall, frame: Frame) -> Vector:
    vectors = [evaluate(arg, frame) for arg in call.args]
    return (greatest if call.op == "greatest" else least)(call.type, vectors, frame)


def _shifted(call: FunctionCall, frame: Frame) -> Vector:
    """A timestamp moved by an interval literal, which may stand first in a sum."""
    moment, span = call.args if call.args[1].type is not Type.TIMESTAMP else call.args[::-1]
    found = evaluate(moment, frame)
    if found.type is Type.NULL or not isinstance(span, Literal) or not isinstance(span.value, Interval):
        return Vector.constant(call.type, None, frame.n_rows)
    return shift(found, span.value, 1 if call.op == "+" else -1, frame)


#: Operators that decide themselves on which rows their arguments are computed, or that treat NULL as a value.
_CONDITIONALS: dict[str, Callable[[FunctionCall, Frame], Vector]] = {
    "and": _and_or,
    "or": _and_or,
    "not": _not,
    "is_null": _is_null,
    "in": _in,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _extreme,
    "least": _extreme,
}
