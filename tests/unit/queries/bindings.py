"""Short ways to bind a text over one schema, for the tests of this folder."""

from __future__ import annotations

from filters.expression import UserFunction
from lineage.schema import Schema, Type
from queries.binder import bind
from queries.bound import Block, Readable
from queries.parser import parse

SCHEMA = Schema.parse({"sensor": "int", "room": "string", "temp": "float", "ok": "bool", "ts": "timestamp"}, "readings")
RISKY = UserFunction("risky", lambda *args: True, Type.BOOL, 1.0)


ORDERS = Schema.parse({"id": "int", "sensor": "int", "price": "float", "at": "timestamp"}, "orders")
ROOMS = Schema.parse({"room": "string", "floor": "int", "size": "float"}, "rooms")
KNOWN = {
    "readings": Readable(SCHEMA),
    "orders": Readable(ORDERS),
    "rooms": Readable(ROOMS, is_table=True, key=(0,)),
    "prices": Readable(ROOMS, is_table=True, key=(0,), retroactive=True),
}


def run(sql: str, params: dict[str, object] | None = None) -> Block:
    return bind(parse(sql), lambda name: KNOWN.get(name.lower()), params, {"risky": RISKY}, lambda: list(KNOWN))


def condition(text: str, params: dict[str, object] | None = None) -> str:
    return str(run(f"SELECT sensor FROM readings WHERE {text}", params).condition)


def value(text: str) -> tuple[str, str]:
    (column,) = run(f"SELECT {text} AS x FROM readings").columns
    return str(column.expression), column.type.value
