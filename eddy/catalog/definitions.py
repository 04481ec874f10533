"""Definitions of streams and tables: what their users write, checked and with every option written out.

Two definitions are the same iff the descriptions that these functions return are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from eddy.base.description import Stream, Table
from lineage.errors import SchemaError, did_you_mean
from lineage.schema import Schema, Type, check_name
from lineage.times import duration_us

#: Timeline of streams without a time column.
ARRIVAL = "arrival"
#: Timeline of streams for which none is named, and of queries over tables alone.
MAIN = "main"


def stream_definition(
    name: str,
    columns: Mapping[str, str],
    time: str | None = None,
    lateness: Any = 0,
    late: str = "adjust",
    timeline: str = MAIN,
    keep: Any = None,
    key: Any = None,
    end: Any = None,
) -> Stream:
    """Check the options of a stream, and return it as its users see it."""
    schema = Schema.parse(columns, name)
    time_column = None if time is None else _timestamp_column(schema, "time", name, time, None)
    if late not in ("adjust", "drop"):
        raise SchemaError(f"late is {late!r}", hint='"adjust" or "drop"')
    lateness_us = duration_us(lateness)
    if lateness_us < 0:
        raise SchemaError("lateness is negative")
    keep_us = None if keep is None else duration_us(keep)
    key_columns = () if key is None else _key_columns(schema, "stream", name, key)
    end_column = None if end is None else _end_column(schema, name, end, time_column)
    check_name(timeline, "timeline")
    if time_column is None:
        timeline = _arrival(timeline, lateness_us)
    elif timeline == ARRIVAL:
        raise SchemaError(f'timeline "{ARRIVAL}" is for streams without a time column')
    declared = MappingProxyType(schema.declared())
    return Stream(name, declared, time_column, timeline, lateness_us, late, keep_us, key_columns, end_column)


def table_definition(name: str, columns: Mapping[str, str], key: Any, retroactive: bool = False) -> Table:
    """Check the options of a table, and return it as its users see it."""
    schema = Schema.parse(columns, name)
    key_columns = _key_columns(schema, "table", name, key)
    if not isinstance(retroactive, bool):
        raise SchemaError(f"retroactive is {retroactive!r}", hint="True or False")
    return Table(name, MappingProxyType(schema.declared()), key_columns, retroactive)


def _key_columns(schema: Schema, kind: str, of: str, key: Any) -> tuple[str, ...]:
    """The key columns of a table or stream; `key` is a name or a list of names."""
    names = [key] if isinstance(key, str) else key
    if not isinstance(names, list | tuple) or not names:
        raise SchemaError(f'{kind} "{of}" has no key', code="bad_key", hint='key="id", or key=["room", "sensor"]')
    found = []
    for name in names:
        column = schema.find(name) if isinstance(name, str) else None
        if column is None:
            hint = did_you_mean(str(name), list(schema.names))
            raise SchemaError(f'key column "{name}" does not exist in "{of}"', code="bad_key", hint=hint)
        found.append(column.name)
    if len(set(found)) < len(found):
        raise SchemaError(f'a column is twice in the key of "{of}"', code="bad_key", hint="name each column once")
    return tuple(found)


def _timestamp_column(schema: Schema, what: str, stream: str, name: Any, code: str | None) -> str:
    column = schema.find(name) if isinstance(name, str) else None
    if column is None:
        hint = did_you_mean(str(name), list(schema.names))
        raise SchemaError(f'{what} column "{name}" does not exist in "{stream}"', code=code, hint=hint)
    if column.type is not Type.TIMESTAMP:
        fact = f'{what} column "{column.name}" is of type {column.declared}'
        raise SchemaError(fact, code=code, hint="declare it as timestamp")
    return column.name


def _end_column(schema: Schema, stream: str, name: Any, time_column: str | None) -> str:
    found = _timestamp_column(schema, "end", stream, name, "bad_end")
    if found == time_column:
        fact = f'"{found}" is both the time and the end of a row'
        raise SchemaError(fact, code="bad_end", hint="name another column: a row lives from its time to its end")
    return found


def _arrival(timeline: str, lateness_us: int) -> str:
    """The timeline of a stream without a time column."""
    if timeline not in (MAIN, ARRIVAL):
        fact = f'a stream without a time column is on timeline "{ARRIVAL}"'
        raise SchemaError(fact, hint="name its time column, or leave timeline out")
    if lateness_us:
        fact = "a stream without a time column has no late rows"
        raise SchemaError(fact, hint="name its time column, or leave lateness out")
    return ARRIVAL
