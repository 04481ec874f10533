"""Reader of files of rows for `eddy push`, in parts of bounded size.

    csv         cut between records, sent as CSV: the service knows the types of its columns (`api/commands/csv_files.py`)
    ndjson      cut between lines
    arrow       IPC stream or file, a batch at a time
    parquet     a batch at a time

`schema_of` says what columns the first part of any format but CSV has, as `stream add` would be told.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from eddy import EddyError

if TYPE_CHECKING:
    from eddy.csv import CsvForm

#: Bytes and rows of one part, about.
PART_BYTES = 1 << 20
PART_ROWS = 10_000

CSV, NDJSON = "text/csv", "application/x-ndjson"
FORMATS = ("csv", "ndjson", "arrow", "parquet")
_BY_SUFFIX = {
    ".csv": "csv", ".tsv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".arrow": "arrow", ".arrows": "arrow",
    ".feather": "arrow", ".ipc": "arrow", ".parquet": "parquet",
}  # fmt: skip


class FileError(EddyError):
    """A file of rows cannot be read."""

    default_code = "bad_file"


@dataclass(frozen=True, slots=True)
class FilePart:
    """Some rows of a file: a body and its media type, or an Arrow table."""

    n_rows: int
    n_bytes: int
    body: bytes = b""
    media: str = ""
    table: Any = None
    #: where the rows of a sorted file were in it
    places: Any = None


class OpenedFile(NamedTuple):
    """The parts of a file, its number of bytes if known, and the form of a CSV."""

    parts: Iterator[FilePart]
    size: float | None
    form: CsvForm | None = None


def open_rows(name: str, format_: str | None, csv: Mapping[str, Any] | None = None) -> OpenedFile:
    """Open a file of rows, `-` is standard input; `csv` gives the known facts of a CSV's form (`eddy/csv.py`)."""
    path = Path(name)
    kind = format_ or (_sniffed(sys.stdin.buffer) if name == "-" else _BY_SUFFIX.get(path.suffix.lower(), ""))
    if kind not in FORMATS:
        fact = f'there is no format "{kind}"' if kind else f'the format of "{path.name}" is not known'
        raise FileError(fact, hint=f"--format is one of {', '.join(FORMATS)}")
    if csv and kind != "csv":
        raise FileError(f"--{min(csv).replace('_', '-')} is said of CSV only", detail=f"the rows are {kind}")
    source: IO[bytes] = sys.stdin.buffer
    size = None
    if name != "-":
        try:
            source = path.open("rb")
            size = float(path.stat().st_size)
        except OSError as error:
            raise FileError(f"{name} cannot be read", detail=error.strerror or str(error)) from None
    if kind == "csv":
        from api.commands.csv_files import CsvFile

        file = CsvFile(source, csv or {})
        found = (FilePart(*rows, CSV) for rows in file.bodies(PART_BYTES, PART_ROWS))
        return OpenedFile(found if name == "-" else _closing(source, found), size, file.form)
    reader = {"ndjson": _line_parts, "arrow": _arrow_parts, "parquet": _parquet_parts}[kind]
    return OpenedFile(reader(source) if name == "-" else _closing(source, reader(source)), size)


def _closing(source: IO[bytes], parts: Iterator[FilePart]) -> Iterator[FilePart]:
    try:
        yield from parts
    finally:
        source.close()


def _sniffed(source: IO[bytes]) -> str:
    """Return the format of standard input, guessed from its first bytes."""
    assert isinstance(source, io.BufferedReader)
    head = source.peek(16)
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.startswith(b"PAR1"):
        return "parquet"
    return "ndjson" if head.lstrip().startswith(b"{") else "csv"


def _line_parts(source: IO[bytes]) -> Iterator[FilePart]:
    for n_rows, body in _gathered(line if line.endswith(b"\n") else line + b"\n" for line in source):
        yield FilePart(n_rows, len(body), body, NDJSON)


def _gathered(lines: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield lines that are not blank, joined into parts."""
    waiting: list[bytes] = []
    n_bytes = 0
    for line in lines:
        if not line.strip():
            continue
        waiting.append(line)
        n_bytes += len(line)
        if n_bytes >= PART_BYTES or len(waiting) >= PART_ROWS:
            yield len(waiting), b"".join(waiting)
            waiting, n_bytes = [], 0
    if waiting:
        yield len(waiting), b"".join(waiting)


def _arrow_parts(source: IO[bytes]) -> Iterator[FilePart]:
    import pyarrow as pa

    from api.arrow.arrow_files import MAGIC, file_batches, stream_batches
    from api.arrow.flatbuffer import FormatError

    assert isinstance(source, io.BufferedReader)
    try:
        if source.peek(6).startswith(MAGIC):
            batches = file_batches(source if source.seekable() else io.BytesIO(source.read()))
        else:
            batches = stream_batches(source)
        for batch in batches:
            yield from _table_parts(pa.Table.from_batches([batch]))
    except (FormatError, OSError) as error:
        raise FileError("this is not Arrow IPC", detail=str(error).split("\n", 1)[0]) from None


def _parquet_parts(source: IO[bytes]) -> Iterator[FilePart]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(source if source.seekable() else io.BytesIO(source.read()))
        for batch in file.iter_batches(batch_size=PART_ROWS):
            yield from _table_parts(pa.Table.from_batches([batch]))
    except (pa.ArrowException, OSError) as error:
        raise FileError("this is not Parquet", detail=str(error).split("\n", 1)[0]) from None


def _table_parts(table: Any) -> Iterator[FilePart]:
    for first in range(0, table.num_rows, PART_ROWS):
        part = table.slice(first, PART_ROWS)
        yield FilePart(part.num_rows, part.nbytes, table=part)


# ---- what columns there are


def schema_of(part: FilePart, time: str | None) -> dict[str, str]:
    """Return the columns of a file, inferred from its first part; `time` names the time column."""
    table = part.table if part.table is not None else _as_table(part)
    found: dict[str, str] = {}
    for name, column in zip(table.column_names, table.columns):
        kind = _type_of(column.type)
        found[name] = _time_type(column, kind) if name == time else kind
    if time is not None and time not in found:
        raise FileError(f'there is no column "{time}"', hint=f"--time is one of {', '.join(found)}")
    return found


def _as_table(part: FilePart) -> Any:
    import pyarrow as pa

    rows = []
    for n, line in enumerate(part.body.split(b"\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise FileError(f"line {n} is not JSON", detail=str(error)) from None
            if not isinstance(row, dict):
                raise FileError(f"line {n} is no object", hint='{"sensor": 1, "temp": 20.5}')
            rows.append(row)
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, TypeError):
            raise FileError(f'column "{name}" has values of several types', hint="create the stream by hand") from None
    return pa.table(columns)


def _type_of(type_: Any) -> str:
    import pyarrow as pa

    if pa.types.is_boolean(type_):
        return "bool"
    if pa.types.is_integer(type_):
        return "int"
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "float"
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return "timestamp"
    return "string"


def _time_type(column: Any, kind: str) -> str:
    """Return the type of a time column: bare numbers get the unit that puts the first in 2001 or later, else ms."""
    from eddy.csv import unit_of

    if kind not in ("int", "float"):
        return "timestamp"
    first = next((value.as_py() for value in column if value.is_valid), 0)
    unit = unit_of(first)
    return "timestamp" if unit == "ms" else f"timestamp[{unit}]"
