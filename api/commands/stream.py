"""The commands `eddy stream`: add, list and drop streams."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from api.commands.common import Json, Name, Names, Token, Url, as_columns, columns_text, command, connect, print_json, print_table
from eddy import Stream

app = typer.Typer(name="stream", help="Streams: what rows come in.", no_args_is_help=True)

_Columns = Annotated[
    list[str], typer.Argument(metavar="COLUMN:TYPE...", help="int, float, string, bool, timestamp, timestamp\\[s|ms|us|ns].")
]
_Time = Annotated[str | None, typer.Option(help="The column with the time of a row; without one it is that of arrival.")]
_Lateness = Annotated[float, typer.Option(help="How far behind a row may arrive, milliseconds.")]
_Late = Annotated[str, typer.Option(help="Older rows: adjust or drop.")]
_Timeline = Annotated[str, typer.Option(help="The timeline whose clock it shares.")]
_Keep = Annotated[float | None, typer.Option(help="How long rows are kept for later queries, milliseconds.")]
_Key = Annotated[list[str] | None, typer.Option(help="A column by which rows replace each other; repeatable.")]
_End = Annotated[str | None, typer.Option(help="The column with the end of a row's life.")]


def facts(stream: Stream) -> dict[str, Any]:
    """Return a stream as JSON, as the service shows it."""
    found = dataclasses.asdict(stream)
    lateness, keep = found.pop("lateness_us"), found.pop("keep_us")
    return found | {"lateness": lateness / 1000, "keep": None if keep is None else keep / 1000}


@app.command()
@command
def add(
    name: Name, columns: _Columns, time: _Time = None, lateness: _Lateness = 0.0, late: _Late = "adjust",
    timeline: _Timeline = "main", keep: _Keep = None, key: _Key = None, end: _End = None,
    url: Url = None, token: Token = None, json: Json = False,
) -> None:  # fmt: skip
    """Declare a stream; an equal one that is there already is fine.

    eddy stream add readings sensor:int temp:float ts:timestamp --time ts
    """
    with connect(url, token) as client:
        made = client.create_stream(
            name, as_columns(columns), time=time, lateness=lateness, late=late, timeline=timeline, keep=keep, key=key, end=end
        )
    if json:
        print_json(facts(made))
    else:
        print(f'stream "{made.name}": {columns_text(made.columns)}')


@app.command("list")
@command
def list_(url: Url = None, token: Token = None, json: Json = False) -> None:
    """The streams there are."""
    with connect(url, token) as client:
        found = list(client.streams.values())
    if json:
        print_json([facts(stream) for stream in found])
        return
    rows = [(stream.name, stream.time, stream.timeline, stream.key, columns_text(stream.columns)) for stream in found]
    print_table(["name", "time", "timeline", "key", "columns"], rows)


@app.command()
@command
def drop(names: Names, url: Url = None, token: Token = None) -> None:
    """Remove streams that no query reads."""
    with connect(url, token) as client:
        for name in names:
            client.stream(name)  # a table of that name is not meant
            client.drop(name)
