"""The command `eddy push`: rows of a file or of standard input into a stream."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.commands.common import Json, Token, Url, columns_text, command, connect, print_json, shown
from api.commands.push_hints import InputTotals, Totals, hints, stream_state
from eddy import ConflictError, EddyError, NotFoundError, RowError

if TYPE_CHECKING:
    from api.commands.row_files import FilePart
    from eddy import Stream
    from eddy.client import Client, MergeReceipt, Receipt
    from eddy.csv import CsvForm

#: Bytes at the beginning of a CSV by which its columns are judged.
JUDGED_BYTES = 8 << 20

_Stream = Annotated[str, typer.Argument(metavar="STREAM", help="The stream.")]
_File = Annotated[str, typer.Argument(metavar="FILE", help=".csv, .tsv, .ndjson, .arrow or .parquet; - is standard input.")]
_Input = Annotated[str | None, typer.Option("--input", help="The input of a merged stream whose rows they are.")]
_Format = Annotated[str | None, typer.Option("--format", help="csv, ndjson, arrow or parquet, if the name does not say.")]
_Create = Annotated[bool, typer.Option("--create", help="Make the stream if there is none, by what the first rows look like.")]
_Time = Annotated[
    str | None,
    typer.Option(help="With --create: the column with the time of a row. CSV: ts=date,time makes one of several columns."),
]
_Types = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=TYPE,..", help="With --create, of a CSV: types not to be guessed.")
]
_Lateness = Annotated[float | None, typer.Option(help="With --create: how far behind a row may arrive, milliseconds.")]
_Timeline = Annotated[str | None, typer.Option(help="With --create: the timeline whose clock the stream shares.")]
_Bad = Annotated[str, typer.Option(help="Rows that do not fit: refuse, or skip and count them.")]
_Sort = Annotated[
    bool, typer.Option("--sort", help="CSV: push the rows in the order of their times; the file is held in memory.")
]
_Delimiter = Annotated[
    str | None, typer.Option(help="CSV: what stands between cells; tab for a tab.", show_default="by the first lines")
]
_Names = Annotated[str | None, typer.Option(metavar="A,B,..", help="CSV: the names of the columns, if no line has them.")]
_Rename = Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="CSV: another name for a column; repeatable.")]
_Null = Annotated[list[str] | None, typer.Option(metavar="WORD", help="CSV: a word that is NULL in every column; repeatable.")]
_TimeFormat = Annotated[str | None, typer.Option(metavar="FORMAT", help="CSV: how times are written: '%d/%m/%Y %H:%M'.")]
_Tz = Annotated[str | None, typer.Option(metavar="ZONE", help="CSV: whose times they are that have no zone: Europe/Berlin.")]
_Decimal = Annotated[str | None, typer.Option(help="CSV: a comma, if that stands before decimals.")]


#: What a summary does not count, or says in its own words.
_APART = ("accepted", "settled_before", "leader")


@command
def push(
    stream: _Stream, file: _File, input_: _Input = None, format_: _Format = None, create: _Create = False, time: _Time = None,
    types: _Types = None, lateness: _Lateness = None, timeline: _Timeline = None, bad: _Bad = "refuse", sort: _Sort = False,
    delimiter: _Delimiter = None, names: _Names = None, rename: _Rename = None, null: _Null = None,
    time_format: _TimeFormat = None, tz: _Tz = None, decimal: _Decimal = None,
    url: Url = None, token: Token = None, json: Json = False,
) -> None:  # fmt: skip
    """Push the rows of a file into a stream, or as one input of a merged stream, in parts.

    eddy push readings readings.csv --create --time ts
    """
    from api.commands.progress import progress
    from api.commands.row_files import open_rows

    made = time if time is not None and "=" in time else None
    _check(create, {"time": None if made else time, "types": types, "lateness": lateness, "timeline": timeline})
    if bad not in ("refuse", "skip"):
        raise typer.BadParameter(f'"{bad}" is neither refuse nor skip', param_hint="--bad")
    if create and input_ is not None:
        raise typer.BadParameter("a merged stream is made with `eddy merge add`", param_hint="--create")
    told = {
        "delimiter": delimiter, "names": names, "rename": rename, "null": null, "time": made, "time_format": time_format,
        "tz": tz, "decimal": decimal,
    }  # fmt: skip
    opened = open_rows(file, format_, {name: value for name, value in told.items() if value})
    making = _Making(made and made.partition("=")[0] or time, types or [], lateness, timeline) if create else None
    pushed = _Pushed(Totals() if input_ is None else InputTotals())
    quiet = json or input_ is not None
    with connect(url, token) as client, progress(stream, opened.size, in_bytes=True) as advance:
        begun = _begun(client, stream, opened.parts, opened.form, making, json)
        before = None if quiet else stream_state(client, stream)
        try:
            for part in _ordered(begun, opened.form) if sort else begun.parts:
                pushed.add(_push(client, stream, input_, part, opened.form, bad, pushed.n_rows), part)
                advance(part.n_bytes, part.n_rows)
        except BaseException:
            if begun.made and not pushed.totals.accepted:
                # what failed as a whole leaves nothing behind, if the service still answers
                with suppress(EddyError):
                    client.drop(stream)
            raise
        after = None if quiet else stream_state(client, stream)
    _summary(stream, pushed, opened.form is not None, json)
    if isinstance(pushed.totals, Totals) and not json:
        for line in hints(stream, pushed.totals, before, after):
            print(line, file=sys.stderr)


@dataclass(slots=True)
class _Pushed:
    """The totals of a push so far."""

    totals: Totals | InputTotals
    #: rows of the file
    n_rows: int = 0
    #: cells that are NULL, by column; of a CSV
    nulls: Counter[str] = field(default_factory=Counter)

    def add(self, receipt: Any, part: FilePart) -> None:
        self.totals = self.totals.plus(receipt)
        self.n_rows += part.n_rows
        self.nulls.update(receipt.nulls or {})


def _summary(stream: str, pushed: _Pushed, csv: bool, json: bool) -> None:
    """Print the numbers of rows that were pushed, late and expired."""
    totals = pushed.totals
    if json:
        print_json({"stream": stream, **totals._asdict(), **({"nulls": pushed.nulls} if csv else {})})
        return
    more = "".join(f", {n} {word}" for word, n in totals._asdict().items() if n and word not in _APART)
    if isinstance(totals, InputTotals) and totals.settled_before is not None:
        more += f"; settled before {shown(totals.settled_before)}, leader {totals.leader}"
    print(f'{totals.accepted} rows into stream "{stream}"{more}', flush=True)
    if pushed.nulls:
        print(f"NULL: {', '.join(f'{n} in {name}' for name, n in pushed.nulls.items())}", flush=True)


def _check(create: bool, of_creation: dict[str, Any]) -> None:
    for name, value in of_creation.items():
        if value is not None and not create:
            what = "the time column is" if name == "time" else f"{name} are" if name == "types" else f"the {name} is"
            raise typer.BadParameter(f"{what} chosen when a stream is made: give --create too", param_hint=f"--{name}")


@dataclass(frozen=True, slots=True)
class _Making:
    """The options of a stream to create."""

    time: str | None
    types: list[str]
    lateness: float | None
    timeline: str | None


@dataclass(slots=True)
class _Begun:
    """An existing stream, whether this call created it, and the parts to push."""

    stream: Stream | None
    made: bool
    parts: Iterator[FilePart]


def _begun(
    client: Client, stream: str, parts: Iterator[FilePart], form: CsvForm | None, making: _Making | None, quiet: bool
) -> _Begun:
    """Find the stream, or create it if `making` is given and it does not exist."""
    head = _head(parts, JUDGED_BYTES if making is not None and form is not None else 0)
    parts = chain(head, parts)
    known = None
    try:
        known = client.stream(stream)
    except NotFoundError:
        if making is None or not head:
            # the push says that there is none
            return _Begun(None, False, parts)
    if known is not None:
        if making is not None:
            _check_same(known, making)
        if form is not None and head:
            from api.commands.csv_files import naive_columns, naive_note

            _note(naive_note(naive_columns(head[0].body, form, known.columns)))
        return _Begun(known, False, parts)
    assert making is not None
    columns, time = _columns(head, form, making)
    asked = {"lateness": making.lateness, "timeline": making.timeline}
    options: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    made = client.create_stream(stream, columns, time=time, **options)
    if not quiet:
        print(f'stream "{made.name}": {columns_text(made.columns)}')
    return _Begun(made, True, parts)


def _check_same(known: Stream, making: _Making) -> None:
    """Raise if an existing stream differs from the options."""
    lateness = None if making.lateness is None else making.lateness * 1000
    asked = {"time": making.time, "timeline": making.timeline, "lateness": lateness}
    held = {"time": known.time, "timeline": known.timeline, "lateness": known.lateness_us}
    for name, value in asked.items():
        if value is not None and value != held[name]:
            fact = f'stream "{known.name}" exists with another {name}'
            raise ConflictError(fact, code="other_definition", hint=f"drop it first, push into a new one, or leave out --{name}")


def _head(parts: Iterator[FilePart], n_bytes: int) -> list[FilePart]:
    """Return the first parts of a file, until they have `n_bytes` bytes."""
    found: list[FilePart] = []
    held = 0
    for part in parts:
        found.append(part)
        held += part.n_bytes
        if held >= n_bytes:
            break
    return found


def _columns(head: list[FilePart], form: CsvForm | None, making: _Making) -> tuple[dict[str, str], str | None]:
    """Return the columns of a file and its time column, as a stream would declare them."""
    if form is None:
        from api.commands.row_files import FileError, schema_of

        if making.types:
            raise FileError("--types is said of CSV only", hint="a column has the type that the file says")
        return schema_of(head[0], making.time), making.time
    from api.commands.csv_files import columns_of
    from eddy.csv import types_of

    found = columns_of([part.body for part in head], form, making.time, types_of(making.types))
    _note(found.notes)
    return found.types, found.time


def _note(notes: list[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def _ordered(begun: _Begun, form: CsvForm | None) -> Iterator[FilePart]:
    """Yield the parts in the order of their rows' times."""
    from api.commands import row_files
    from api.commands.csv_files import in_order

    if form is None:
        hint = "eddy generate from sorts files of any size and format, eddy replay pushes them"
        raise row_files.FileError("--sort is said of CSV only", hint=hint)
    stream = begun.stream
    if stream is None:
        # the push says that there is none
        yield from begun.parts
        return
    if stream.time is None:
        raise row_files.FileError("a stream without a time column has no order to sort by", hint="--create --time ts")
    bodies = ((part.n_rows, part.n_bytes, part.body) for part in begun.parts)
    for one in in_order(bodies, form, stream.columns, stream.time, row_files.PART_BYTES, row_files.PART_ROWS):
        yield row_files.FilePart(one.n_rows, one.n_bytes, one.body, row_files.CSV, places=one.places)


def _push(
    client: Client, stream: str, of: str | None, part: FilePart, form: CsvForm | None, bad: str, before: int
) -> Receipt | MergeReceipt:  # fmt: skip
    """Push a part; `before` is the number of the file's rows before it."""
    try:
        if part.table is not None:
            found: Receipt | MergeReceipt = client.push(stream, part.table, of, bad=bad)
        else:
            found = client.push_body(stream, part.body, part.media, of, csv=form, bad=bad)
        return found
    except ConflictError as error:
        if error.code == "is_merge":
            error.hint = f"eddy push {stream} FILE --input I gives it the rows of one input"
        raise
    except RowError as error:
        # the service counts from the start of a part
        if error.row is not None:
            error.row = int(part.places[error.row]) if part.places is not None else error.row + before
        if before:
            error.detail = f"the {before} rows of earlier parts were taken"
        raise
