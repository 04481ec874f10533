"""Short ways to bind a text over one schema, for the tests of this folder."""

from __future__ import annotations

from filters.expressions.expression import ColumnRef, Expression, UserFunction, replace_columns
from lineage.schema import Schema, Type
from queries.binder import bind
from queries.bound import BoundInput, OutputColumn, QueryProperties, Readable
from queries.nodes import (
    Aggregate,
    Block,
    Distinct,
    GroupBy,
    JoinNode,
    NamedQuery,
    Node,
    Select,
    SetOperation,
    Slide,
    ToStream,
    Window,
)
from queries.parser import parse

SCHEMA = Schema.parse({"sensor": "int", "room": "string", "temp": "float", "ok": "bool", "ts": "timestamp"}, "readings")
RISKY = UserFunction("risky", lambda *args: True, Type.BOOL, 1.0)


ORDERS = Schema.parse({"id": "int", "sensor": "int", "price": "float", "at": "timestamp"}, "orders")
ROOMS = Schema.parse({"room": "string", "floor": "int", "size": "float"}, "rooms")
KNOWN = {
    "readings": Readable(SCHEMA, time=4),
    "orders": Readable(ORDERS),
    "rooms": Readable(ROOMS, is_table=True, key=(0,)),
    "prices": Readable(ROOMS, is_table=True, key=(0,), retroactive=True),
    "hot": Readable(ORDERS, query=QueryProperties(False, "weakest", True)),
    "fresh": Readable(ORDERS, query=QueryProperties(True, "monotonic", True)),
    "deep": Readable(ORDERS, query=QueryProperties(False, "weak", False, levels=16)),
}


def tree(sql: str, params: dict[str, object] | None = None) -> Node:
    return bind(parse(sql), lambda name: KNOWN.get(name.lower()), params, {"risky": RISKY}, lambda: list(KNOWN))


def run(sql: str, params: dict[str, object] | None = None) -> Block:
    """A query that is one block."""
    node = tree(sql, params)
    assert isinstance(node, Block)
    return node


def condition(text: str, params: dict[str, object] | None = None) -> str:
    return str(run(f"SELECT sensor FROM readings WHERE {text}", params).condition)


def value(text: str) -> tuple[str, str]:
    (column,) = run(f"SELECT {text} AS x FROM readings").columns
    return str(column.expression), column.type.value


def outline(node: Node) -> str:
    """A tree in one line: what a node is, with its columns and its condition, and its children in parentheses."""
    match node:
        case Block():
            sources = ", ".join(f"{item.name}{_window(item)}" for item in node.inputs)
            return f"block[{_select(node.columns, node.condition)} from {sources}]"
        case NamedQuery():
            return f"query[{node.name}]"
        case Window():
            return f"window{node.window.say([column.name for column in node.columns])}({outline(node.child)})"
        case Slide():
            return f"slide{node.window}{'+bounds' if node.bounds else ''}({outline(node.child)})"
        case Select():
            return f"select[{_select(node.columns, node.condition)}]({outline(node.child)})"
        case JoinNode():
            inputs = ", ".join(outline(item) + ("*" if frozen else "") for item, frozen in zip(node.inputs, node.frozen))
            return f"join[{_select(node.columns, node.condition)}]({inputs})"
        case Distinct():
            return f"distinct({outline(node.child)})"
        case SetOperation():
            return f"{node.kind}{' all' if node.all else ''}({outline(node.left)}, {outline(node.right)})"
        case GroupBy():
            aggregates = [_aggregate(item) for item in node.aggregates]
            return f"group[{node.n_keys}; {', '.join(aggregates)}]({outline(node.child)})"
        case ToStream():
            return f"{node.kind}({outline(node.child)})"


def _window(item: BoundInput) -> str:
    return "" if item.is_table or item.window.is_stream else item.window.say(item.schema.names)


def _select(columns: tuple[OutputColumn, ...], condition: Expression | None) -> str:
    shown = [_numbered(column.expression) for column in columns]
    return ", ".join(shown) + ("" if condition is None else f" where {_numbered(condition)}")


def _numbered(expression: Expression) -> str:
    """The canonical text with positions instead of names."""
    return str(replace_columns(expression, lambda ref: ColumnRef(ref.type, f"#{ref.position}", ref.position))).replace('"', "")


def _aggregate(item: Aggregate) -> str:
    argument = "*" if item.argument is None else f"{'distinct ' if item.distinct else ''}#{item.argument}"
    return f"{item.kind}({argument})" + ("" if item.filter is None else f" if #{item.filter}")
