"""`eddy push`: the rows of a file or of standard input into a stream."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.common import Json, Token, Url, columns_text, command, connect, print_json
from api.commands.push_hints import Totals, hints, standing
from eddy import NotFoundError, RowError

if TYPE_CHECKING:
    from api.commands.files import Part
    from eddy.client import Client, Receipt

_Stream = Annotated[str, typer.Argument(metavar="STREAM", help="The stream.")]
_File = Annotated[str, typer.Argument(metavar="FILE", help=".csv, .ndjson, .arrow or .parquet; - is standard input.")]
_Format = Annotated[str | None, typer.Option("--format", help="csv, ndjson, arrow or parquet, if the name does not say.")]
_Create = Annotated[bool, typer.Option("--create", help="Make the stream if there is none, by what the first rows look like.")]
_Time = Annotated[str | None, typer.Option(help="With --create: the column with the time of a row.")]
_Bad = Annotated[str, typer.Option(help="Rows that do not fit: refuse, or skip and count them.")]


@command
def push(
    stream: _Stream, file: _File, format_: _Format = None, create: _Create = False, time: _Time = None, bad: _Bad = "refuse",
    url: Url = None, token: Token = None, json: Json = False,
) -> None:  # fmt: skip
    """Push the rows of a file into a stream, in parts.

    eddy push readings readings.csv --create --time ts
    """
    from api.commands.files import open_rows
    from api.commands.progress import progress

    if time is not None and not create:
        raise typer.BadParameter("the time column is chosen when a stream is made: give --create too", param_hint="--time")
    if bad not in ("refuse", "skip"):
        raise typer.BadParameter(f'"{bad}" is neither refuse nor skip', param_hint="--bad")
    parts, size = open_rows(file, format_)
    totals, n_rows = Totals(), 0
    with connect(url, token) as client, progress(stream, size, in_bytes=True) as advance:
        first = next(parts, None)
        if create and first is not None:
            _create(client, stream, first, time, json)
        before = None if json else standing(client, stream)
        for part in chain([first] if first is not None else [], parts):
            try:
                receipt = _push(client, stream, part, bad)
            except RowError as error:
                # the service counts from the start of a part
                if error.row is not None:
                    error.row += n_rows
                if n_rows:
                    error.detail = f"the {n_rows} rows of earlier parts were taken"
                raise
            totals = totals.plus(receipt)
            n_rows += part.n_rows
            advance(part.n_bytes)
        after = None if json else standing(client, stream)
    if json:
        print_json({"stream": stream, **totals._asdict()})
    else:
        more = "".join(f", {n} {word}" for word, n in totals._asdict().items() if n and word != "accepted")
        print(f'{totals.accepted} rows into stream "{stream}"{more}', flush=True)
        for line in hints(stream, totals, before, after):
            print(line, file=sys.stderr)


def _create(client: Client, stream: str, first: Part, time: str | None, quiet: bool) -> None:
    """Make the stream unless there is one."""
    from api.commands.files import schema_of

    try:
        client.stream(stream)
    except NotFoundError:
        made = client.create_stream(stream, schema_of(first, time), time=time)
        if not quiet:
            print(f'stream "{made.name}": {columns_text(made.columns)}')


def _push(client: Client, stream: str, part: Part, bad: str) -> Receipt:
    if part.table is not None:
        return client.push(stream, part.table, bad=bad)
    return client.push_body(stream, part.body, part.media, bad=bad)
