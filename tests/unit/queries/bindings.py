"""Short ways to bind a text over one schema, for the tests of this folder."""

from __future__ import annotations

from filters.expression import UserFunction
from lineage.schema import Schema, Type
from queries.binder import bind
from queries.bound import BoundQuery
from queries.parser import parse

SCHEMA = Schema.parse({"sensor": "int", "room": "string", "temp": "float", "ok": "bool", "ts": "timestamp"}, "readings")
RISKY = UserFunction("risky", lambda *args: True, Type.BOOL, 1.0)


def run(sql: str, params: dict[str, object] | None = None) -> BoundQuery:
    streams = {"readings": SCHEMA}
    return bind(parse(sql), lambda name: streams.get(name.lower()), params, {"risky": RISKY}, lambda: list(streams))


def condition(text: str, params: dict[str, object] | None = None) -> str:
    return str(run(f"SELECT sensor FROM readings WHERE {text}", params).condition)


def value(text: str) -> tuple[str, str]:
    (column,) = run(f"SELECT {text} AS x FROM readings").columns
    return str(column.expression), column.type.value
