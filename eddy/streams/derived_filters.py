"""Residual conditions that are intervals of a derived column, with a grouped filter over it (decision 38).

    x * 2 + v > 10        the column x * 2 + v (`stems/derived.py`), computed once a row, in [11, )

The expression and the constant stay on the sides where they were written: no term crosses over, floats would not bear it. One
column serves all legs of a stream that compare the expression with constants. It is computed for every row, so

    alone      a leg with no other condition asks for every row anyhow: it gets a column
    guarded    one with others would compute only what those let through: it gets a column if that is cheap, if somebody has it,
               or if several ask for it; and never one for what can fail, for failures are counted for the rows that are asked for
    few        there are at most `MAX_ALONE` columns that one leg alone asks for

and everything else is a predicate module. A leg stays as it was placed; an expression's text is one or the other, never both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Literal, columns_of, user_functions_of, walk
from filters.expressions.predicate import Condition, compared
from filters.values.intervals import Intervals
from lineage.schema import COLUMN_TYPES, Type
from stems.derived import DerivedColumn, DerivedColumns

T = TypeVar("T")

#: Columns that one leg alone may ask for; each takes 8 bytes a row.
MAX_ALONE = 8
#: Legs that compute an expression each for itself.
MAX_ASKING = 4

#: What gives a value, or NULL, whatever its arguments are, and what of it may overflow with ints.
_ALWAYS = frozenset(
    "+ - * neg abs floor ceil exp power round lower upper length trim ltrim rtrim || coalesce case greatest least nullif is_null "
    "= <> < <= > >= in and or not like".split()
)
_OVERFLOWING = frozenset("+ - * neg abs round".split())


@dataclass(slots=True, eq=False)
class DerivedPredicate:
    """Residuals of one leg as one set of values of a derived column."""

    column: DerivedColumn
    intervals: Intervals
    #: of the residuals
    texts: tuple[str, ...]
    #: failures of the column that the leg has nothing to do with
    errors_before: int = 0


class DerivedFilters:
    """Which residuals of a stream's legs are predicates on derived columns."""

    def __init__(self, columns: DerivedColumns) -> None:
        self._columns = columns
        #: legs without a column for an expression that they ask for
        self._asking: Counter[Expression] = Counter()
        #: legs by the texts of residuals that are predicates on columns
        self.texts: Counter[str] = Counter()

    def place(self, condition: Condition, modules: Collection[str]) -> tuple[DerivedPredicate, ...]:
        """The predicates on columns of a new leg, held for it; `modules` are the texts that have a predicate module."""
        placed = []
        for value, parts in self.chosen(condition, modules).items():
            if not parts:
                self._asking[value] += 1
                continue
            both, *others = parts.values()
            for other in others:
                both = both.intersect(other)
            column = self._columns.hold(value)
            self.texts.update(parts.keys())
            placed.append(DerivedPredicate(column, both, tuple(parts), column.errors))
        return tuple(placed)

    def chosen(self, condition: Condition, modules: Collection[str]) -> dict[Expression, dict[str, Intervals]]:
        """By expression that a condition compares with constants, the residuals that would be predicates on its column, by their
        text: all that have no module, or none."""
        if not condition.residuals:
            return {}
        found = _by_value(condition)
        alone = _alone(condition, found)
        chosen = {}
        for value, parts in found.items():
            rest = {text: intervals for text, intervals in parts.items() if text not in modules}
            wanted = rest and (any(text in self.texts for text in rest) or self._pays(value, alone))
            chosen[value] = rest if wanted else {}
        return chosen

    def on_columns(self, condition: Condition, modules: Collection[str]) -> dict[str, Expression]:
        """By their text, the expressions of residuals that are, or would be, predicates on their columns."""
        return {text: value for value, parts in self.chosen(condition, modules).items() for text in parts}

    def release(self, condition: Condition, placed: Collection[DerivedPredicate]) -> None:
        """A leg goes, with its predicates on columns."""
        if not condition.residuals:
            return
        held = {one.column.expression for one in placed}
        for value in _by_value(condition):
            if value not in held:
                _less(self._asking, value)
        for one in placed:
            for text in one.texts:
                _less(self.texts, text)
            self._columns.release(one.column)

    def _pays(self, value: Expression, alone: bool) -> bool:
        """Whether a leg's expression is to be a column."""
        if not alone and can_fail(value):
            return False
        if value in self._columns.columns or self._asking[value] >= MAX_ASKING:
            return True
        return (alone or not _is_dear(value)) and len(self._columns.columns) < MAX_ALONE


def _is_dear(value: Expression) -> bool:
    """Whether it may pay to compute it for few rows only: texts of several columns, or of their pairs, are made row by row."""
    reads = columns_of(value)
    return any(ref.type is Type.STRING for ref in reads) and len(reads) > 1


def _less(counts: Counter[T], key: T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def _alone(condition: Condition, found: dict[Expression, dict[str, Intervals]]) -> bool:
    """Whether a condition says nothing but what one expression is."""
    if len(found) != 1 or condition.conjuncts or condition.clauses:
        return False
    (only,) = found.values()
    return len(only) == len(condition.residuals)


def _by_value(condition: Condition) -> dict[Expression, dict[str, Intervals]]:
    """By expression, the residuals that compare it with constants: their texts, and the values for which they are true."""
    found: dict[Expression, dict[str, Intervals]] = {}
    for residual in condition.residuals:
        read = read_residual(residual.expression)
        if read is not None:
            found.setdefault(read[0], {})[str(residual)] = read[1]
    return found


def read_residual(expression: Expression) -> tuple[Expression, Intervals] | None:
    """The expression that a residual compares with constants, and for which of its values it is true; None if it is no such."""
    negated = isinstance(expression, FunctionCall) and expression.op == "not"
    call = expression.args[0] if negated and isinstance(expression, FunctionCall) else expression
    read = compared(call, negated) if isinstance(call, FunctionCall) else None
    if read is None or read[1].empty or not isinstance(read[0], FunctionCall):
        return None
    value = read[0]
    if value.type not in COLUMN_TYPES or user_functions_of(value) or not columns_of(value):
        return None
    return read


def can_fail(expression: Expression) -> bool:
    """Whether there may be rows for which the expression cannot be computed."""
    return any(_may_fail(node) for node in walk(expression))


def _may_fail(node: Expression) -> bool:
    if isinstance(node, Literal | ColumnRef):
        return False
    if not isinstance(node, FunctionCall) or node.op not in _ALWAYS:
        return True
    return node.type is Type.TIMESTAMP or (node.type is Type.INT and node.op in _OVERFLOWING)
