"""The command `eddy top`: a live view of a service."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.commands.common import Json, Token, Url, as_bytes, command, connect, print_json, print_table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from eddy.client import Client

_Every = Annotated[float, typer.Option(min=0.1, max=60.0, help="Seconds between two looks.")]
_Count = Annotated[int | None, typer.Option("--count", "-n", min=1, help="Looks; without end on a terminal, else one.")]
_Queries = Annotated[int, typer.Option("--queries", min=0, max=1000, help="How many of the largest queries.")]


@command
def top(
    every: _Every = 1.0, count: _Count = None, queries: _Queries = 10, url: Url = None, token: Token = None, json: Json = False
) -> None:
    """Rates of streams, the queue, and the largest queries, live. Ctrl-C ends it."""
    terminal = sys.stdout.isatty()
    if count is None and not terminal and not json:
        count = 1
    with connect(url, token) as client:
        looks = _looks(client, every, count, queries)
        if json:
            for look in looks:
                print_json(look)
        elif terminal:
            from rich.live import Live

            with Live(auto_refresh=False, screen=count is None) as live:
                for look in looks:
                    live.update(screen(look, live.console.width), refresh=True)
        else:
            for look in looks:
                _print(look)


def _looks(client: Client, every: float, count: int | None, n_queries: int) -> Iterator[dict[str, Any]]:
    """Yield the streams, queue and largest queries of a service, again and again; rates are over the time between two looks."""
    before, began = client.stats(), time.monotonic()
    n = 0
    while count is None or n < count:
        time.sleep(every)  # the time between two looks is what was asked for
        after, now = client.stats(), time.monotonic()
        largest = client.find_queries(sort="-own_bytes", limit=n_queries) if n_queries else []
        yield {
            "seq": after["seq"],
            "commits_per_s": _rate(before["seq"], after["seq"], now - began),
            "queue": after["queue"],
            "bytes": after["bytes"],
            "n_queries": after["n_queries"],
            "streams": [
                {
                    "name": name,
                    "rows_per_s": _rate(before["streams"].get(name, {}).get("rows", 0), facts["rows"], now - began),
                    **{count_: facts[count_] for count_ in ("rows", "late", "expired", "held", "queries")},
                    "bytes": sum(facts["bytes"].values()),
                }
                for name, facts in after["streams"].items()
            ],
            "largest": [{"name": query.name, "own_bytes": query.own_bytes, "sql": query.sql} for query in largest],
        }
        before, began = after, now
        n += 1


def _rate(before: int, after: int, seconds: float) -> float:
    return round(max(0, after - before) / seconds, 1)


_STREAM_COLUMNS = ["stream", "rows/s", "rows", "late", "expired", "held", "queries", "bytes"]
_QUERY_COLUMNS = ["query", "own", "sql"]
#: Columns that a terminal of fewer than `WIDE` columns has no room for.
_WIDE_ONLY = ("late", "expired", "held")
WIDE = 80


def _head(look: dict[str, Any]) -> str:
    queue = look["queue"]
    return (
        f"commit {look['seq']}, {look['commits_per_s']}/s; {look['n_queries']} queries; {as_bytes(look['bytes'])}; "
        f"queue {queue['calls']} calls, {as_bytes(queue['bytes'])}"
    )


def _stream_rows(look: dict[str, Any]) -> list[list[str]]:
    names = ("name", "rows_per_s", "rows", "late", "expired", "held", "queries")
    return [[*(str(stream[name]) for name in names), as_bytes(stream["bytes"])] for stream in look["streams"]]


def _query_rows(look: dict[str, Any]) -> list[list[str]]:
    return [[query["name"], as_bytes(query["own_bytes"]), " ".join(query["sql"].split())] for query in look["largest"]]


def _print(look: dict[str, Any]) -> None:
    print(_head(look))
    print_table(_STREAM_COLUMNS, _stream_rows(look))
    if look["largest"]:
        print_table(_QUERY_COLUMNS, _query_rows(look))


def screen(look: dict[str, Any], width: int) -> RenderableType:
    """Return a look for a terminal of `width` columns: numbers whole, names and texts cut to fit."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def table(columns: list[str], rows: list[list[str]], texts: dict[str, int]) -> Table:
        """Return a table; `texts` has the columns that are cut, with their shares of the remaining width."""
        found = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True, expand=bool(rows))
        for name in columns:
            share = texts.get(name)
            found.add_column(name, justify="left" if share else "right", ratio=share, no_wrap=True, overflow="ellipsis")
        for row in rows:
            found.add_row(*map(Text, row))
        return found

    shown = [k for k, name in enumerate(_STREAM_COLUMNS) if width >= WIDE or name not in _WIDE_ONLY]
    streams = [[name, *map(short, cells)] for name, *cells in _stream_rows(look)]
    return Group(
        Text(_head(look), style="bold"),
        table([_STREAM_COLUMNS[k] for k in shown], [[row[k] for k in shown] for row in streams], {"stream": 1}),
        table(_QUERY_COLUMNS, _query_rows(look), {"query": 1, "sql": 2}),
    )


def short(cell: str) -> str:
    """Return a large number in a few digits, and any other text unchanged.

    >>> short("12345678"), short("1234.5"), short("99"), short("demo"), short("1.5 kB")
    ('12.3 M', '1234.5', '99', 'demo', '1.5 kB')
    """
    if not cell.replace(".", "", 1).isdigit():
        return cell
    number = float(cell)
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 10 * size:
            return f"{number / size:.1f} {unit}"
    return cell
