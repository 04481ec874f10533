"""Typed scalar expressions: the closed language between the binder and the evaluator.

A bound expression is a tree of four node kinds. Each node knows its type; names are resolved, casts are explicit, and
nothing in it can execute text. `filters/expressions/evaluate.py` computes one over columns with SQL's three-valued logic;
`filters/expressions/predicate.py` turns the indexable parts of a WHERE clause into intervals.

    Literal      a constant (None is NULL; timestamps are int microseconds, intervals are `Interval`)
    ColumnRef    a column of the stream or, in a join, of one of its inputs
    Call         an operator or built-in function by its canonical name in `op`
    UserCall     a registered Python function

Canonical `op` names of `FunctionCall`, with their arguments:

    logic        and(a, b, ...)  or(a, b, ...)  not(a)  is_null(a)
    comparison   =  <>  <  <=  >  >=  (a, b of comparable types; int and float compare exactly)
                 in(a, literal, ...)   like(a, pattern[, escape])   BETWEEN is and(>=, <=)
    arithmetic   +  -  *  /  %  neg(a)      int op int is int except `/`, which is float; timestamp + interval,
                 timestamp - interval, timestamp - timestamp (int microseconds are never shown: type INTERVAL is
                 not a result type, so the binder refuses timestamp - timestamp with a hint to use EPOCH_MS)
    text         ||  lower upper length substr(a, from[, count]) trim ltrim rtrim replace(a, what, by)
                 position(what, in) split_part(a, separator, n)
    numbers      abs round(a[, digits]) floor ceil sqrt power exp ln
    conditional  case(when1, then1, when2, then2, ..., else)   coalesce(...)  nullif(a, b)  greatest(...)  least(...)
    time         extract:<part>(timestamp)  date_trunc:<unit>(timestamp)  strftime(timestamp, format literal)
                 epoch_ms(timestamp)
    conversion   cast(a): to the node's own type; what cannot be converted is NULL and counted

The canonical text (`str(expression)`) of two expressions over one schema is equal exactly when they are the same computation
written the same way; it is the key under which predicate modules are shared. Two inputs of a join may have columns of the
same name: expressions over several inputs are compared as values, which include positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lineage.schema import Type


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time as SQL writes it: whole months and microseconds, kept apart because months vary in length."""

    months: int
    micros: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant. Floats are equal when they are the same float: 0.0 is not -0.0 here, and NaN is NaN."""

    type: Type
    value: int | float | str | bool | Interval | None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or self.type is not other.type:
            return False
        if isinstance(self.value, float) and isinstance(other.value, float):
            return repr(self.value) == repr(other.value)
        return self.value == other.value

    def __hash__(self) -> int:
        return hash((self.type, repr(self.value) if isinstance(self.value, float) else self.value))

    def __str__(self) -> str:
        return f"{self.type.value}:{self.value!r}"


@dataclass(frozen=True, slots=True)
class ColumnRef:
    type: Type
    name: str
    #: position in the stream's schema or, in a join, in the concatenation of the inputs' schemas
    position: int

    def __str__(self) -> str:
        return f'"{self.name}"'


@dataclass(frozen=True, slots=True)
class FunctionCall:
    type: Type
    op: str
    args: tuple[Expression, ...]

    def __str__(self) -> str:
        name = f"cast:{self.type.value}" if self.op == "cast" else self.op
        return f"{name}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True, eq=False)
class UserFunction:
    """A Python function registered under a name; `cost` is the declared cost in microseconds a row."""

    name: str
    fn: Callable[..., Any]
    returns: Type
    cost: float


@dataclass(frozen=True, slots=True)
class UserCall:
    type: Type
    function: UserFunction
    args: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function.name}@{id(self.function):x}({', '.join(map(str, self.args))})"


Expression = Literal | ColumnRef | FunctionCall | UserCall

TRUE = Literal(Type.BOOL, True)
FALSE = Literal(Type.BOOL, False)


def children(expression: Expression) -> tuple[Expression, ...]:
    return expression.args if isinstance(expression, FunctionCall | UserCall) else ()


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node, parents first; iterative, so depth is no danger."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def columns_of(expression: Expression) -> list[ColumnRef]:
    """The distinct columns an expression reads, by position."""
    found = {node.position: node for node in walk(expression) if isinstance(node, ColumnRef)}
    return [found[position] for position in sorted(found)]


def replace_columns(expression: Expression, by: Callable[[ColumnRef], Expression]) -> Expression:
    """The expression with other expressions for its columns. The binder bounds the depth."""
    if isinstance(expression, ColumnRef):
        return by(expression)
    if isinstance(expression, Literal):
        return expression
    args = tuple([replace_columns(arg, by) for arg in expression.args])
    if isinstance(expression, UserCall):
        return UserCall(expression.type, expression.function, args)
    return FunctionCall(expression.type, expression.op, args)


def user_functions_of(expression: Expression) -> list[UserFunction]:
    return [node.function for node in walk(expression) if isinstance(node, UserCall)]
