"""Binding of one scalar expression: columns, parameters, operators and functions with their types.

    bind : syntax node -> typed expression          one method per operator family, found in `_OPERATORS`

The rules of types are in `queries/types.py`, the table of functions in `queries/signatures.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from filters.expressions.evaluate import fold
from filters.expressions.expression import Expression, FunctionCall, Interval, Literal, UserCall, UserFunction
from filters.expressions.time_functions import EXTRACT_PARTS, TRUNC_UNITS, check_format
from lineage.errors import QueryError, did_you_mean
from lineage.schema import Type
from queries.literals import as_timestamp, param_literal, param_value
from queries.scope import Scope
from queries.signatures import SIGNATURES, SPECIAL, Signature
from queries.sql_text import SqlText
from queries.syntax import Aggregated, Apply, Constant, Convert, Invoke, Name, Param, Syntax
from queries.types import comparable, convert, is_text, mismatch, unify

_NO_ALIASES: Mapping[str, Syntax] = {}
_MISPLACED = {
    "WHERE": "a condition on groups stands in HAVING",
    "ON": "a condition on groups stands in HAVING",
    "an aggregate": "group first, in a query in FROM: SELECT MAX(n) FROM (SELECT COUNT(*) AS n ...) AS a",
}
_TIME_DIFFERENCE = "take EPOCH_MS(a) - EPOCH_MS(b), in milliseconds"


class Known(NamedTuple):
    """What an expression may name beside the columns of its inputs."""

    params: Mapping[str, object]
    #: in the place of parameters, where there are any
    literals: Mapping[str, Literal]
    #: by their names in lower case
    functions: Mapping[str, UserFunction]


class ScalarBinder:
    """Binds the expressions of one query over the inputs in its scope."""

    __slots__ = ("source", "scope", "clause", "aggregate", "aliases", "has_constant_call", "_known")

    def __init__(self, source: SqlText, scope: Scope, known: Known) -> None:
        self.source = source
        self.scope = scope
        #: what is being bound, in the words of an error
        self.clause = "the select list"
        #: binds an aggregate; None iff none can stand where the expression does
        self.aggregate: Callable[[Aggregated], Expression] | None = None
        #: names of the select list that stand for its expressions where no column has the name, in lower case
        self.aliases: Mapping[str, Syntax] = _NO_ALIASES
        #: whether any call over literals only was made: then folding is worth a walk
        self.has_constant_call = False
        self._known = known

    def bind(self, node: Syntax) -> Expression:
        """The bound expression of any type."""
        return _BINDERS[type(node)](self, node)

    def bind_bool(self, node: Syntax, what: str) -> Expression:
        """The bound expression, which must be a condition."""
        expression = self.bind(node)
        if expression.type is not Type.BOOL and expression.type is not Type.NULL:
            hint = "compare it: x <> 0" if expression.type.numeric else "compare it with a value"
            raise self._error(node, f"{what} needs a bool, not a value of type {expression.type.value}", hint)
        return expression

    def fold(self, expression: Expression) -> Expression:
        """Compute constant parts; the flag spares the walk for the many queries that have none."""
        return fold(expression) if self.has_constant_call else expression

    # -- leaves

    def _column(self, node: Name) -> Expression:
        if self.aliases and node.qualifier is None and node.name.lower() in self.aliases and not self.scope.has(node.name):
            known, self.aliases = self.aliases, _NO_ALIASES
            try:
                return self.bind(known[node.name.lower()])
            finally:
                self.aliases = known
        return self.scope.column(node)

    def _aggregated(self, node: Aggregated) -> Expression:
        if self.aggregate is not None:
            return self.aggregate(node)
        hint = _MISPLACED.get(self.clause, "an aggregate stands in the select list or in HAVING")
        fact = f"{node.name.upper()} cannot stand in {self.clause}"
        raise self.source.error(fact, node.start, node.end, "misplaced_aggregate", hint)

    def _constant(self, node: Constant) -> Expression:
        return node.literal

    def _param(self, node: Param) -> Expression:
        found = self._known.literals.get(node.name)
        if found is not None:
            return found
        return param_literal(self.source, node, node.name, param_value(self.source, node, node.name, self._known.params))

    def _convert(self, node: Convert) -> Expression:
        found = convert(self.source, node, node.type, self.bind(node.arg))
        return self._call(found.type, found.op, found.args) if isinstance(found, FunctionCall) else found

    # -- operators

    def _apply(self, node: Apply) -> Expression:
        return _OPERATORS[node.op](self, node)

    def _connect(self, node: Apply) -> Expression:
        what = node.op.upper()
        return self._call(Type.BOOL, node.op, tuple([self.bind_bool(arg, what) for arg in node.args]))

    def _is_null(self, node: Apply) -> Expression:
        arg = self.bind(node.args[0])
        if arg.type is Type.INTERVAL:
            raise mismatch(self.source, node, "an interval is never NULL", Type.INTERVAL, Type.INTERVAL)
        return self._call(Type.BOOL, "is_null", (arg,))

    def _compare(self, node: Apply) -> Expression:
        left, right = node.args
        return self._call(Type.BOOL, node.op, comparable(self.source, node, (left, right), self.bind(left), self.bind(right)))

    def _in(self, node: Apply) -> Expression:
        """Constants that fit the value's type; the parser has made any other list an OR."""
        value = self.bind(node.args[0])
        args: list[Expression] = []
        for arg in node.args[1:]:
            value, constant = comparable(self.source, arg, (node.args[0], arg), value, self.bind(arg))
            args.append(constant)
        return self._call(Type.BOOL, "in", (value, *args))

    def _like(self, node: Apply) -> Expression:
        args = tuple([self._text(arg, "LIKE") for arg in node.args])
        escape = args[2] if len(args) == 3 else None
        if isinstance(escape, Literal) and isinstance(escape.value, str) and len(escape.value) != 1:
            raise self.source.error("the ESCAPE of LIKE is one character", node.args[2].start, node.args[2].end, "bad_escape")
        return self._call(Type.BOOL, "like", args)

    def _concatenate(self, node: Apply) -> Expression:
        return self._call(Type.STRING, "||", tuple([self._text(arg, "||") for arg in node.args]))

    def _text(self, node: Syntax, what: str) -> Expression:
        arg = self.bind(node)
        if arg.type is not Type.STRING and arg.type is not Type.NULL:
            raise self._error(node, f"{what} needs a string, not a value of type {arg.type.value}", "CAST(x AS string)")
        return arg

    def _arithmetic(self, node: Apply) -> Expression:
        op = node.op
        left, right = self.bind(node.args[0]), self.bind(node.args[1])
        a, b = left.type, right.type
        if op in ("+", "-") and (Type.TIMESTAMP in (a, b) or Type.INTERVAL in (a, b)):
            return self._move(node, left, right)
        if not _is_number(a) or not _is_number(b):
            raise mismatch(self.source, node, f"{a.value} {op} {b.value} is not defined", a, b)
        kind = Type.FLOAT if op == "/" or Type.FLOAT in (a, b) else Type.INT
        return self._call(kind, op, (left, right))

    def _move(self, node: Apply, left: Expression, right: Expression) -> Expression:
        """A timestamp plus or minus an interval; a text literal beside an interval is a time."""
        if right.type is Type.INTERVAL and is_text(left):
            left = as_timestamp(self.source, node.args[0], left)
        elif left.type is Type.INTERVAL and is_text(right):
            right = as_timestamp(self.source, node.args[1], right)
        pair = (left.type, right.type)
        if pair in ((Type.TIMESTAMP, Type.INTERVAL), (Type.TIMESTAMP, Type.NULL), (Type.NULL, Type.INTERVAL)):
            return self._call(Type.TIMESTAMP, node.op, (left, right))
        if node.op == "+" and pair in ((Type.INTERVAL, Type.TIMESTAMP), (Type.NULL, Type.TIMESTAMP), (Type.INTERVAL, Type.NULL)):
            return self._call(Type.TIMESTAMP, "+", (right, left))
        fact = f"{pair[0].value} {node.op} {pair[1].value} is not defined"
        if pair == (Type.TIMESTAMP, Type.TIMESTAMP):
            raise self._error(node, fact, _TIME_DIFFERENCE)
        if Type.TIMESTAMP in pair:
            raise self._error(node, fact, f"ts {node.op} INTERVAL '5' MINUTE")
        raise mismatch(self.source, node, fact, *pair)

    def _sign(self, node: Apply) -> Expression:
        arg = self.bind(node.args[0])
        if isinstance(arg, Literal) and arg.type is Type.INTERVAL:
            assert isinstance(arg.value, Interval)
            return arg if node.op == "plus" else Literal(Type.INTERVAL, Interval(-arg.value.months, -arg.value.micros))
        if not _is_number(arg.type):
            raise self._error(node, f"a sign needs a number, not a value of type {arg.type.value}", "")
        if node.op == "plus":
            return arg
        return self._call(Type.INT if arg.type is Type.NULL else arg.type, "neg", (arg,))

    def _case(self, node: Apply) -> Expression:
        conditions = [self.bind_bool(when, "WHEN") for when in node.args[:-1:2]]
        results = (*node.args[1::2], node.args[-1])
        kind, values = unify(self.source, node, results, [self.bind(result) for result in results], "CASE")
        args = [arg for pair in zip(conditions, values[:-1], strict=True) for arg in pair]
        return self._call(kind, "case", (*args, values[-1]))

    # -- functions

    def _invoke(self, node: Invoke) -> Expression:
        signature = SIGNATURES.get(node.name)
        if signature is not None:
            return self._built_in(node, signature)
        if node.name in ("extract", "date_trunc"):
            return self._time_part(node)
        if node.name in SPECIAL:
            return self._conditional(node)
        function = self._known.functions.get(node.name)
        if function is None:
            known = sorted({*SIGNATURES, *SPECIAL, *self._known.functions})
            hint = did_you_mean(node.name, known)
            if not hint.startswith("did you mean"):
                hint = "register a Python function under that name first"
            fact = f'function "{node.name}" does not exist'
            raise self.source.error(fact, node.start, node.end, "unknown_function", hint)
        args = tuple([self.bind(arg) for arg in node.args])
        if any(arg.type is Type.INTERVAL for arg in args):
            raise mismatch(self.source, node, "a function cannot take an interval", Type.INTERVAL, Type.INTERVAL)
        return UserCall(function.returns, function, args)

    def _built_in(self, node: Invoke, signature: Signature) -> Expression:
        if not signature.required <= len(node.args) <= len(signature.takes):
            raise self._wrong_count(node, signature.usage)
        args = tuple([self._argument(node, signature, at) for at in range(len(node.args))])
        if signature.op == "strftime":
            self._check_format(node, args[1])
        kind = signature.returns or (Type.INT if args[0].type is Type.NULL else args[0].type)
        return self._call(kind, signature.op, args)

    def _argument(self, node: Invoke, signature: Signature, at: int) -> Expression:
        arg, takes = self.bind(node.args[at]), signature.takes[at]
        if arg.type in takes or arg.type is Type.NULL:
            return arg
        if Type.TIMESTAMP in takes and is_text(arg):
            return as_timestamp(self.source, node.args[at], arg)
        wanted = "a number" if Type.FLOAT in takes else "an int" if Type.INT in takes else f"a {next(iter(takes)).value}"
        fact = f"argument {at + 1} of {node.name.upper()} must be {wanted}, not a value of type {arg.type.value}"
        raise self._error(node.args[at], fact, signature.usage)

    def _check_format(self, node: Invoke, format: Expression) -> None:
        place = node.args[1]
        if not isinstance(format, Literal) or not isinstance(format.value, str):
            raise self._error(place, "the format of STRFTIME must be a text, not an expression", "STRFTIME(ts, '%Y-%m-%d')")
        wrong = check_format(format.value)
        if wrong is not None:
            raise self.source.error(wrong, place.start, place.end, "bad_format", "STRFTIME(ts, '%Y-%m-%d')")

    def _time_part(self, node: Invoke) -> Expression:
        """EXTRACT and DATE_TRUNC: the first argument is a word, kept in the operator's name."""
        if len(node.args) != 2:
            raise self._wrong_count(node, SPECIAL[node.name])
        place = node.args[0]
        part = self.bind(place)
        if not isinstance(part, Literal) or not isinstance(part.value, str):
            raise self._error(place, f"the unit of {node.name.upper()} must be a text, not an expression", SPECIAL[node.name])
        known = EXTRACT_PARTS if node.name == "extract" else TRUNC_UNITS
        unit = part.value.lower()
        unit = unit if unit in known else unit.removesuffix("s")
        if unit not in known:
            fact = f'"{part.value[:40]}" is no unit for {node.name.upper()}'
            raise self.source.error(fact, place.start, place.end, "bad_unit", did_you_mean(unit[:40], list(known)))
        moment = self.bind(node.args[1])
        if is_text(moment):
            moment = as_timestamp(self.source, node.args[1], moment)
        if moment.type not in (Type.TIMESTAMP, Type.NULL):
            fact = f"{node.name.upper()} needs a timestamp, not a value of type {moment.type.value}"
            raise self._error(node.args[1], fact, SPECIAL[node.name])
        kind = Type.TIMESTAMP if node.name == "date_trunc" else Type.FLOAT if unit == "epoch" else Type.INT
        return self._call(kind, f"{node.name}:{unit}", (moment,))

    def _conditional(self, node: Invoke) -> Expression:
        """COALESCE, NULLIF, GREATEST, LEAST."""
        if not node.args or (node.name == "nullif" and len(node.args) != 2):
            raise self._wrong_count(node, SPECIAL[node.name])
        args = [self.bind(arg) for arg in node.args]
        if node.name == "nullif":
            pair = comparable(self.source, node, (node.args[0], node.args[1]), args[0], args[1])
            return self._call(Type.INT if pair[0].type is Type.NULL else pair[0].type, "nullif", pair)
        kind, args = unify(self.source, node, node.args, args, node.name.upper())
        return self._call(kind, node.name, tuple(args))

    # -- nodes

    def _call(self, kind: Type, op: str, args: tuple[Expression, ...]) -> FunctionCall:
        if not self.has_constant_call:
            for arg in args:
                if not isinstance(arg, Literal):
                    break
            else:
                self.has_constant_call = True
        return FunctionCall(kind, op, args)

    def _error(self, node: Syntax, fact: str, hint: str) -> QueryError:
        return self.source.error(fact, node.start, node.end, "type_mismatch", hint)

    def _wrong_count(self, node: Invoke, usage: str) -> QueryError:
        fact = f"{node.name.upper()} does not take {len(node.args)} argument{'' if len(node.args) == 1 else 's'}"
        return self.source.error(fact, node.start, node.end, "wrong_arguments", usage)


def _is_number(kind: Type) -> bool:
    return kind is Type.INT or kind is Type.FLOAT or kind is Type.NULL


_BINDERS: dict[type, Callable[..., Expression]] = {
    Name: ScalarBinder._column,
    Constant: ScalarBinder._constant,
    Param: ScalarBinder._param,
    Apply: ScalarBinder._apply,
    Invoke: ScalarBinder._invoke,
    Convert: ScalarBinder._convert,
    Aggregated: ScalarBinder._aggregated,
}

_OPERATORS: dict[str, Callable[[ScalarBinder, Apply], Expression]] = {
    **dict.fromkeys(("and", "or", "not"), ScalarBinder._connect),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), ScalarBinder._compare),
    **dict.fromkeys(("+", "-", "*", "/", "%"), ScalarBinder._arithmetic),
    **dict.fromkeys(("neg", "plus"), ScalarBinder._sign),
    "is_null": ScalarBinder._is_null,
    "in": ScalarBinder._in,
    "like": ScalarBinder._like,
    "||": ScalarBinder._concatenate,
    "case": ScalarBinder._case,
}
