"""Predicates in words, as `trace` and `explain` show them.

Intervals are of order keys; here they become comparisons again. `x > 30.0` is stored as "from the float after 30.0 on", so of
the two ways to write a bound the shorter one is shown.
"""

from __future__ import annotations

import struct
from typing import Any

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Interval, Literal, UserCall
from filters.expressions.predicate import Atom, Condition, IndexAtom
from filters.values.intervals import Intervals, Key, texts_beginning
from lineage.schema import KEY_MAX, Schema, Type
from lineage.times import to_iso

_INFIX = {"=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||"}


def say_condition(condition: Condition, schema: Schema) -> str:
    """A whole condition."""
    if condition.never:
        return "never true"
    parts = [say_atom(atom, schema) for atom in condition.single()]
    parts += [f"({' OR '.join(say_atom(atom, schema) for atom in clause)})" for clause in condition.clauses]
    return " AND ".join(parts) or "every row"


def say_atom(atom: Atom, schema: Schema) -> str:
    """One predicate."""
    if isinstance(atom, IndexAtom):
        return say_intervals(atom.name, schema.columns[atom.position].type, atom.intervals)
    return say_expression(atom.expression)


def say_intervals(name: str, type_: Type, intervals: Intervals) -> str:
    """`name` in a set of values.

    >>> from filters.values.intervals import compare
    >>> say_intervals("temp", Type.FLOAT, compare(Type.FLOAT, ">", 30)), say_intervals("id", Type.INT, compare(Type.INT, "<>", 7))
    ('temp > 30.0', 'id <> 7')
    """
    spans = intervals.spans
    points = intervals.points()
    parts: list[str]
    if points is not None:
        values = [_value(point, type_) for point in points]
        parts = [f"{name} = {values[0]}" if len(values) == 1 else f"{name} IN ({', '.join(values)})"]
    elif len(spans) == 2 and spans[0][0] is None and spans[1][1] is None and Intervals(((spans[0][1], spans[1][0]),)).points():
        parts = [f"{name} <> {_value(spans[0][1], type_)}"]
    else:
        parts = [_say_span(name, type_, lo, hi) for lo, hi in spans]
    if intervals.null:
        parts.append(f"{name} IS NULL")
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _say_span(name: str, type_: Type, lo: Key | None, hi: Key | None) -> str:
    if lo is None and hi is None:
        return f"{name} IS NOT NULL"
    if isinstance(lo, str) and lo and hi is not None and not set(lo) & set("%_\\") and texts_beginning(lo).spans == ((lo, hi),):
        return f"{name} LIKE {_value(lo + '%', type_)}"
    parts = []
    if lo is not None:
        parts.append(f"{name} {_bound(lo, type_, '>=', '>')}")
    if hi is not None:
        parts.append(f"{name} {_bound(hi, type_, '<', '<=')}")
    return " AND ".join(parts)


def _bound(key: Key, type_: Type, at: str, beside: str) -> str:
    """A bound at a key, or beside the key before it if that is shorter to write."""
    here = _value(key, type_)
    if type_ is Type.STRING:
        return f"{beside} {_value(key[:-1], type_)}" if key.endswith("\0") else f"{at} {here}"
    before = _value(key - 1, type_)
    return f"{beside} {before}" if len(before) < len(here) else f"{at} {here}"


def _value(key: Any, type_: Type) -> str:
    if type_ is Type.STRING:
        return "'" + str(key).replace("'", "''") + "'"
    if type_ is Type.FLOAT:
        (value,) = struct.unpack("<d", struct.pack("<q", key if key >= 0 else key ^ KEY_MAX))
        return repr(value)
    if type_ is Type.BOOL:
        return "TRUE" if key else "FALSE"
    if type_ is Type.TIMESTAMP:
        return f"'{to_iso(key)}'"
    return str(key)


def say_expression(expression: Expression) -> str:
    """An expression as SQL would write it, more or less."""
    if isinstance(expression, Literal):
        value = expression.value
        if value is None:
            return "NULL"
        if isinstance(value, Interval):
            return f"INTERVAL ({value.months} months, {value.micros} us)"
        return repr(value) if expression.type is Type.FLOAT else _value(value, expression.type)
    if isinstance(expression, ColumnRef):
        return expression.name
    args = [say_expression(arg) for arg in expression.args]
    if isinstance(expression, UserCall):
        return f"{expression.function.name}({', '.join(args)})"
    return _say_call(expression, args)


def _say_call(call: FunctionCall, args: list[str]) -> str:
    op = call.op
    if op in _INFIX:
        return f"({args[0]} {op} {args[1]})"
    if op in ("and", "or"):
        return f"({f' {op.upper()} '.join(args)})"
    if op == "not":
        return f"NOT {args[0]}"
    if op == "neg":
        return f"-{args[0]}"
    if op == "is_null":
        return f"{args[0]} IS NULL"
    if op == "like":
        return f"{args[0]} LIKE {args[1]}" + (f" ESCAPE {args[2]}" if len(args) > 2 else "")
    if op == "in":
        return f"{args[0]} IN ({', '.join(args[1:])})"
    if op == "cast":
        return f"CAST({args[0]} AS {call.type.value})"
    name, _, part = op.partition(":")
    return f"{name.upper()}({', '.join([repr(part), *args] if part else args)})"
