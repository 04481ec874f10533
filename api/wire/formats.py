"""Encoders of answers: JSON rows or columns, NDJSON, CSV, Arrow; chosen by `?format=` or by `Accept`.

Tables are encoded in stretches of `STRETCH` rows, so that a large answer never stands in memory a second time. Times are ISO
8601, floats that JSON does not have are null.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from api.base.jsons import to_json, to_line
from eddy import EddyError

#: Rows that are encoded at a time.
STRETCH = 8192

MEDIA = {
    "json": "application/json",
    "columns": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
_ACCEPT = {
    "application/json": "json",
    "application/*": "json",
    "*/*": "json",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "text/csv": "csv",
    "text/*": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
}


class NotAcceptableError(EddyError):
    """The client accepts none of the formats that can be made."""

    default_code = "not_acceptable"


def choose(format_: str | None, accept: str | None, known: Iterable[str], default: str) -> str:
    """Return the format of an answer: that of `?format=`, else the first known one in `Accept`."""
    known = tuple(known)
    if format_ is not None:
        if format_ not in known:
            raise NotAcceptableError(f'there is no format "{format_}"', hint=f"one of {', '.join(known)}")
        return format_
    if not accept:
        return default
    wanted = sorted(enumerate(accept.split(",")), key=lambda entry: (-_quality(entry[1]), entry[0]))
    for _, entry in wanted:
        media = entry.split(";", 1)[0].strip().lower()
        if _quality(entry) <= 0:
            continue
        if media in ("*/*", "application/*"):
            return default
        found = _ACCEPT.get(media) if media != "text/event-stream" else "sse"
        if found in known:
            return found
    raise NotAcceptableError("none of the media types in Accept can be made", hint=f"?format= is one of {', '.join(known)}")


def _quality(entry: str) -> float:
    for parameter in entry.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def encode(table: pa.Table, format_: str, head: dict[str, Any]) -> Iterator[bytes]:
    """Encode a table in a format; `head` are the facts before the rows in JSON."""
    if format_ == "json":
        yield to_json(head)[:-1] + b',"rows":['
        yield from _joined(to_json(stretch.to_pylist())[1:-1] for stretch in _stretches(table))
        yield b"]}"
    elif format_ == "columns":
        yield to_json(head)[:-1] + b',"data":{'
        for n, name in enumerate(table.column_names):
            yield (b"," if n else b"") + to_json(name) + b":["
            pieces = (table.column(n).slice(at, STRETCH).to_pylist() for at in range(0, table.num_rows, STRETCH))
            yield from _joined(to_json(piece)[1:-1] for piece in pieces)
            yield b"]"
        yield b"}}"
    elif format_ == "ndjson":
        for stretch in _stretches(table):
            yield b"".join(map(to_line, stretch.to_pylist()))
    elif format_ == "csv":
        yield from _csv(table)
    else:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=STRETCH):
                writer.write_batch(batch)
                yield sink.getvalue()
                sink.seek(0)
                sink.truncate()
        yield sink.getvalue()


def _stretches(table: pa.Table) -> Iterator[pa.Table]:
    return (table.slice(at, STRETCH) for at in range(0, table.num_rows, STRETCH))


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for n, piece in enumerate(pieces):
        yield b"," + piece if n else piece


def _csv(table: pa.Table) -> Iterator[bytes]:
    """Encode a table as CSV: times are ISO 8601 with a Z, NULL is an empty cell, an empty text is quoted."""
    columns = [
        pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ") if pa.types.is_timestamp(column.type) else column for column in table.columns
    ]
    shown = pa.Table.from_arrays(columns, names=table.column_names)
    options = pa.csv.WriteOptions(include_header=True)
    for n, stretch in enumerate(_stretches(shown) if table.num_rows else [shown]):
        sink = io.BytesIO()
        if n:
            options = pa.csv.WriteOptions(include_header=False)
        pa.csv.write_csv(stretch, sink, options)
        yield sink.getvalue()
