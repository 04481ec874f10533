"""Reading a comparison of two columns as a band: a range for the difference of their keys.

    l + s  op  r + t                 bounds on r - l;  l and r are columns, s and t sums of constants
    (l + s) - (r + t)  op  c         the same, for ints

for two int columns, two timestamp columns (constants are intervals without months) or two plain float columns. A band is
exact: together with its *guards* it is TRUE on exactly the rows on which the comparison is.

Guards. `x - 5` is NULL where it passes the range of its type, and so is the comparison; the difference of the columns knows
nothing of that. So each shifted column is also confined to the values that the shift keeps in range:

    x + s1 + s2 in range at each step   iff   low <= x <= high          a condition on one input, served by its filter

Timestamps in rows are of the years 1 to 9999 (`lineage/times.py`) while computed ones reach much further, so only a shift of
some 280,000 years leaves a guard for them. A difference `l - r` is NULL outside 64 bits, which bounds it on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Interval, Literal
from filters.expressions.predicate import FLIPPED
from filters.values.dates import TIMESTAMP_MAX, TIMESTAMP_MIN
from lineage import times
from lineage.schema import KEY_MAX, KEY_MIN, Type

#: What a row can hold, and what a sum can give without being NULL.
_HELD = {Type.INT: (KEY_MIN, KEY_MAX), Type.TIMESTAMP: (times.MIN_US, times.MAX_US)}
_COMPUTED = {Type.INT: (KEY_MIN, KEY_MAX), Type.TIMESTAMP: (TIMESTAMP_MIN, TIMESTAMP_MAX)}


@dataclass(frozen=True, slots=True)
class Band:
    """`low <= key(right) - key(left) <= high` with the guards on either column; None is open."""

    left: ColumnRef
    right: ColumnRef
    low: int | None
    high: int | None
    guards: tuple[Expression, ...] = ()

    def turned(self) -> Band:
        """The same band with left and right exchanged."""
        low = None if self.high is None else -self.high
        high = None if self.low is None else -self.low
        return Band(self.right, self.left, low, high, self.guards)


@dataclass(frozen=True, slots=True)
class _Term:
    """`column + shift`; not NULL iff the column is within [low, high]."""

    column: ColumnRef
    shift: int
    low: int
    high: int

    def guards(self) -> list[Expression]:
        kind = self.column.type
        if kind is Type.FLOAT:
            return []
        least, most = _HELD[kind]
        found: list[Expression] = []
        if self.low > least:
            found.append(FunctionCall(Type.BOOL, ">=", (self.column, Literal(kind, self.low))))
        if self.high < most:
            found.append(FunctionCall(Type.BOOL, "<=", (self.column, Literal(kind, self.high))))
        return found


def read_band(comparison: Expression) -> Band | None:
    """The band of a comparison over two columns, None when it is no band or not exactly one."""
    if not isinstance(comparison, FunctionCall) or comparison.op not in FLIPPED or comparison.op == "<>":
        return None
    left, right = comparison.args
    if isinstance(right, Literal):
        return _read_difference(left, comparison.op, right)
    if isinstance(left, Literal):
        return _read_difference(right, FLIPPED[comparison.op], left)
    near, far = _read_term(left), _read_term(right)
    if near is None or far is None or near.column.type is not far.column.type:
        return None
    # near + s op far + t: the difference of the columns, far - near, against s - t
    low, high = _range(FLIPPED[comparison.op], near.shift - far.shift)
    return Band(near.column, far.column, low, high, (*near.guards(), *far.guards()))


def _read_difference(difference: Expression, op: str, limit: Literal) -> Band | None:
    """`near - far op limit` over ints."""
    if limit.type is not Type.INT or not isinstance(limit.value, int):
        return None
    if not isinstance(difference, FunctionCall) or difference.op != "-" or difference.type is not Type.INT:
        return None
    near, far = _read_term(difference.args[0]), _read_term(difference.args[1])
    if near is None or far is None:
        return None
    low, high = _range(op, limit.value)
    low, high = (KEY_MIN if low is None else low), (KEY_MAX if high is None else high)
    shift = near.shift - far.shift
    return Band(near.column, far.column, shift - high, shift - low, (*near.guards(), *far.guards()))


def _range(op: str, limit: int) -> tuple[int | None, int | None]:
    """The whole numbers `d` with `d op limit`."""
    match op:
        case "<":
            return None, limit - 1
        case "<=":
            return None, limit
        case ">":
            return limit + 1, None
        case ">=":
            return limit, None
    return limit, limit


def _read_term(expression: Expression) -> _Term | None:
    """A column plus or minus constants; None for anything else. The binder bounds the depth."""
    if isinstance(expression, ColumnRef):
        if expression.type is Type.FLOAT:
            return _Term(expression, 0, 0, 0)
        if expression.type not in _HELD:
            return None
        return _Term(expression, 0, *_HELD[expression.type])
    if not isinstance(expression, FunctionCall) or expression.op not in ("+", "-") or expression.type not in _COMPUTED:
        return None
    inner, constant = expression.args
    if expression.op == "+" and isinstance(inner, Literal):
        inner, constant = constant, inner
    step = _read_constant(constant)
    term = _read_term(inner)
    if step is None or term is None or term.column.type is not expression.type:
        return None
    shift = term.shift + (step if expression.op == "+" else -step)
    least, most = _COMPUTED[expression.type]
    low, high = max(term.low, least - shift), min(term.high, most - shift)
    return _Term(term.column, shift, low, high) if low <= high else None


def _read_constant(expression: Expression) -> int | None:
    """The int, or the microseconds of the interval; None if it is neither, has months, or is too long to add at all."""
    if not isinstance(expression, Literal):
        return None
    value = expression.value
    if isinstance(value, Interval):
        return None if value.months or abs(value.micros) > TIMESTAMP_MAX else value.micros
    return value if expression.type is Type.INT and isinstance(value, int) else None
