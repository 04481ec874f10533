"""Files of rows that somebody else wrote, as `eddy generate from` is told of them. No Spark: what can be refused at once, is.

name=FILE     a file of the stream `name`; several files may have one stream
FILE          the stream is named by the file

intel         the text of the Intel Berkeley lab: date time epoch moteid temperature humidity light voltage, by spaces
csv           with a line of names
parquet
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from lineage.errors import SchemaError
from lineage.schema import Schema
from pipeline.dataset import DatasetError

FORMATS = ("csv", "intel", "parquet")
_BY_SUFFIX = {".csv": "csv", ".parquet": "parquet", ".txt": "intel"}
_INTEL_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? -?\d+ -?\d+ ")

INTEL_COLUMNS = {
    "ts": "timestamp",
    "epoch": "int",
    "moteid": "int",
    "temperature": "float",
    "humidity": "float",
    "light": "float",
    "voltage": "float",
}


@dataclass(frozen=True, slots=True)
class Source:
    """The files of one stream. `stored` says how a column comes: "text", "int", "float", "bool", "timestamp", "nanoseconds"."""

    stream: str
    files: tuple[Path, ...]
    format: str
    stored: Mapping[str, str]


def sources_of(words: Sequence[str], format_: str | None) -> list[Source]:
    """The streams that words name, with their files looked at."""
    if format_ is not None and format_ not in FORMATS:
        raise SchemaError(f'there is no format "{format_}"', hint=f"--format is one of {', '.join(FORMATS)}")
    files: dict[str, list[Path]] = {}
    for word in words:
        name, _, path = word.partition("=") if re.match(r"[A-Za-z_]\w*=", word) else ("", "", word)
        file = Path(path).absolute()
        files.setdefault(name or re.sub(r"\W", "_", file.name.split(".")[0]), []).append(file)
    return [_source(stream, tuple(found), format_) for stream, found in files.items()]


def _source(stream: str, files: tuple[Path, ...], format_: str | None) -> Source:
    formats = {format_ or _format_of(file) for file in files}
    if len(formats) > 1:
        raise SchemaError(f'stream "{stream}" has files of several formats: {", ".join(sorted(formats))}')
    (found,) = formats
    look = {"csv": _csv_columns, "intel": _intel_columns, "parquet": _parquet_columns}[found]
    stored = look(files[0])
    for file in files[1:]:
        if (other := look(file)) != stored:
            raise SchemaError(
                f'the files of stream "{stream}" do not have the same columns',
                detail=f"{files[0].name}: {_shown(stored)}; {file.name}: {_shown(other)}",
                hint="give them different names: NAME=FILE",
            )
    Schema.parse(dict.fromkeys(stored, "string"), stream)
    return Source(stream, files, found, stored)


def _shown(stored: Mapping[str, str]) -> str:
    return " ".join(f"{name}:{kind}" for name, kind in stored.items())


def _format_of(file: Path) -> str:
    found = _BY_SUFFIX.get(Path(file.name.removesuffix(".gz")).suffix.lower())
    if found is None:
        raise SchemaError(f'the format of "{file.name}" is not known', hint=f"--format is one of {', '.join(FORMATS)}")
    return found


def _open(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(file), errors="replace", newline="")
    return file.open(errors="replace", newline="")


def _first_line(file: Path) -> str:
    try:
        with _open(file) as lines:
            return next(iter(lines), "")
    except (OSError, EOFError) as error:
        raise _unreadable(file, error) from None


def _unreadable(file: Path, error: Exception) -> DatasetError:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n", 1)[0]
    return DatasetError(f"{file} cannot be read", code="bad_file", detail=words)


def _csv_columns(file: Path) -> dict[str, str]:
    names = next(csv.reader([_first_line(file).removeprefix("\ufeff")]), [])
    if not names:
        raise DatasetError(f"{file} is empty", code="bad_file", hint="the first line of a CSV has the names of the columns")
    if len(set(names)) < len(names):
        raise SchemaError(f"{file} has two columns of one name", detail=", ".join(names))
    return dict.fromkeys(names, "text")


def _intel_columns(file: Path) -> dict[str, str]:
    if not _INTEL_LINE.match(_first_line(file)):
        raise DatasetError(
            f"{file} is not in the Intel lab's format",
            code="bad_file",
            hint="a line is: date time epoch moteid temperature humidity light voltage; --format names another format",
        )
    return dict.fromkeys(INTEL_COLUMNS, "text")


def _parquet_columns(file: Path) -> dict[str, str]:
    try:
        schema = pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from None
    return {field.name: _stored(field, file) for field in schema}


def _stored(field: pa.Field, file: Path) -> str:
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        return "nanoseconds" if kind.unit == "ns" else "timestamp"
    for word, fits in (
        ("int", pa.types.is_integer),
        ("float", lambda t: pa.types.is_floating(t) or pa.types.is_decimal(t)),
        ("bool", pa.types.is_boolean),
        ("text", lambda t: pa.types.is_string(t) or pa.types.is_large_string(t)),
        ("timestamp", pa.types.is_date),
    ):
        if fits(kind):
            return word
    raise SchemaError(f'column "{field.name}" of {file} has type {kind}', hint="leave it out, or write it as a string")
