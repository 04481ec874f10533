"""The command `eddy trace`: why a row did or did not match."""

from __future__ import annotations

import json as json_
from typing import Annotated, Any

import typer

from api.commands.common import Json, Token, Url, command, connect, print_json, shown

_Stream = Annotated[str, typer.Argument(metavar="STREAM", help="The stream.")]
_Row = Annotated[str, typer.Argument(metavar="ROW", help="The number of a row that came, or a JSON object that is not pushed.")]
_Query = Annotated[str | None, typer.Option(help="Only this query.")]


@command
def trace(
    stream: _Stream, row: _Row, query: _Query = None, url: Url = None, token: Token = None, json: Json = False
) -> None:  # fmt: skip
    """Say why a row did or did not match, of a row that came or of one that never will.

    eddy trace readings '{"sensor": 1, "temp": 12.5, "ts": 1000}'
    """
    with connect(url, token) as client:
        found = client.trace(stream, _row(row), query)
    if json:
        print_json(found)
        return
    for line in lines(found):
        print(line)


def _row(text: str) -> int | dict[str, Any]:
    try:
        value = json_.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise typer.BadParameter(f"{text} is neither the number of a row nor a JSON object", param_hint="ROW")


def lines(found: dict[str, Any]) -> list[str]:
    """Return a trace as lines of text."""
    row = found["row"]
    name = "this row, not pushed," if row["number"] is None else f"row {row['number']}"
    values = "  ".join(f"{column}={shown(value)}" for column, value in row["values"].items())
    when = f" at {found['time']}" if found["time"] else ""
    said = [f"{name} of {found['stream']}{when}{', late' if found['late'] else ''}", f"  {values}"]
    for query in found["matched"]:
        said += [f"✓ {query}", *(f"    {line}" for leaf in found["above"].get(query, []) for line in _leaf_lines(leaf))]
    said += [f"… {query}: waits, {waiting['reason']}" for query, waiting in found["waiting"].items()]
    for query, refusal in found["refused"].items():
        if refusal["predicate"] is None:
            said.append(f"✗ {query}: {refusal['reason']}")
            continue
        seen = ", ".join(f"{column} is {_cell(value)}" for column, value in refusal["values"].items())
        said.append(f"✗ {query}: {refusal['predicate']} is {_verdict(refusal['reason'])}" + (f", {seen}" if seen else ""))
    if len(said) == 2:
        said.append("no query reads the stream")
    return said


def _leaf_lines(leaf: dict[str, Any]) -> list[str]:
    """Return where a row entered a query with operators, and the operators above, one a line."""
    through = f", through {', '.join(leaf['through'])}" if "through" in leaf else ""
    left = f"; it left at {shown(leaf['left'])}" if "left" in leaf else ""
    return [f"in {leaf['leaf']}{through}{left}", *map(_fact, leaf["facts"])]


def _fact(fact: dict[str, Any]) -> str:
    if "group" not in fact:
        return ", ".join(f"{word}: {told}" for word, told in fact.items())
    group = f"group {_cells(fact['group'])}" if fact["group"] else "all rows"
    row = fact.get("row", "")
    if isinstance(row, str):
        return f"{group}: {row}" if row else group
    return f"{group}: it has no rows now" if row is None else f"{group}: {_cells(row)}"


def _cells(values: dict[str, Any]) -> str:
    return "  ".join(f"{name}={_cell(value)}" for name, value in values.items())


def _cell(value: Any) -> str:
    return "NULL" if value is None else shown(value)


def _verdict(reason: str) -> str:
    return "not true" if reason in ("not true", "none is true") else reason
