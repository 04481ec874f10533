"""Files of rows for `eddy generate from`, checked without Spark so that mistakes are refused at once.

name=FILE     a file of the stream `name`; several files may have one stream
FILE          the stream is named by the file

intel         the text of the Intel Berkeley lab: date time epoch moteid temperature humidity light voltage, by spaces
csv           in any form that `lineage/csv_form.py` describes; the delimiter is found if it is not said
parquet
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lineage.csv_cells import infer, is_naive
from lineage.csv_form import USUAL, CsvForm
from lineage.csv_rows import SNIFFED_LINES, made_column, sniff, split
from lineage.errors import EddyError, SchemaError
from lineage.schema import Schema
from pipeline.dataset import DatasetError

FORMATS = ("csv", "intel", "parquet")
_BY_SUFFIX = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".txt": "intel"}
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
class StreamFiles:
    """The files of one stream. `stored` has the kind of each column: text, int, float, bool, timestamp, nanoseconds."""

    stream: str
    files: tuple[Path, ...]
    format: str
    stored: Mapping[str, str]
    #: of a CSV
    form: CsvForm = USUAL
    #: the columns of a CSV that another is made of
    parts: tuple[str, ...] = ()

    @property
    def made(self) -> str | None:
        """Return the column of a CSV that is made of others."""
        return self.form.time[0] if self.form.time else None


def sources_of(words: Sequence[str], format_: str | None, csv: Mapping[str, Any] | None = None) -> list[StreamFiles]:
    """Return the streams that words name, with their files checked; `csv` gives the form of CSV files (`CsvForm.parse`)."""
    if format_ is not None and format_ not in FORMATS:
        raise SchemaError(f'there is no format "{format_}"', hint=f"--format is one of {', '.join(FORMATS)}")
    files: dict[str, list[Path]] = {}
    for word in words:
        name, _, path = word.partition("=") if re.match(r"[A-Za-z_]\w*=", word) else ("", "", word)
        file = Path(path).absolute()
        files.setdefault(name or re.sub(r"\W", "_", file.name.split(".")[0]), []).append(file)
    return [_source(stream, tuple(found), format_, csv or {}) for stream, found in files.items()]


def _source(stream: str, files: tuple[Path, ...], format_: str | None, csv: Mapping[str, Any]) -> StreamFiles:
    formats = {format_ or _format_of(file) for file in files}
    if len(formats) > 1:
        raise SchemaError(f'stream "{stream}" has files of several formats: {", ".join(sorted(formats))}')
    (found,) = formats
    if csv and found != "csv":
        raise SchemaError(
            f"--{min(csv).replace('_', '-')} is said of CSV only", detail=f'the files of stream "{stream}" are {found}'
        )
    if found == "csv":
        form = CsvForm.parse(**({"delimiter": sniff([line.encode() for line in _first_lines(files[0])])} | dict(csv)))
        header = _header(files[0], form)
    look = {"csv": lambda file: _csv_columns(file, form), "intel": _intel_columns, "parquet": _parquet_columns}[found]
    stored = look(files[0])
    for file in files[1:]:
        if (other := look(file)) != stored:
            raise SchemaError(
                f'the files of stream "{stream}" do not have the same columns',
                detail=f"{files[0].name}: {_shown(stored)}; {file.name}: {_shown(other)}",
                hint="give them different names: NAME=FILE",
            )
    Schema.parse(dict.fromkeys(stored, "string"), stream)
    if found != "csv":
        return StreamFiles(stream, files, found, stored)
    columns = form.columns(header)
    parts = tuple(columns[form.source(part, header, columns)] for part in form.time[1]) if form.time else ()
    return StreamFiles(stream, files, found, stored, form, parts)


def naive_times(source: StreamFiles) -> list[str]:
    """Return the columns of a CSV whose times have no zone, and for which no option gives one; judged by its first lines."""
    if source.format != "csv":
        return []
    try:
        texts = split("".join(_first_lines(source.files[0])).encode(), source.form, skip=True)
    except EddyError:
        # the job will say what is wrong
        return []
    names = source.form.columns(texts.header)
    every = [*((name, cells, False) for name, cells in zip(names, texts.columns)), *made_column(texts, names, source.form)]
    return [
        name for name, cells, made in every
        if (made or infer(cells, source.form) == "timestamp") and is_naive(cells, source.form, made)
    ]  # fmt: skip


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
    return next(iter(_first_lines(file)), "")


def _first_lines(file: Path) -> list[str]:
    try:
        with _open(file) as lines:
            return list(islice(lines, SNIFFED_LINES))
    except (OSError, EOFError) as error:
        raise _unreadable(file, error) from None


def _unreadable(file: Path, error: Exception) -> DatasetError:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n", 1)[0]
    return DatasetError(f"{file} cannot be read", code="bad_file", detail=words)


def _header(file: Path, form: CsvForm) -> list[str]:
    """Return the names in the header of a CSV, or their stand-ins."""
    names = list(form.names) or next(csv.reader([_first_line(file).removeprefix("\ufeff")], delimiter=form.delimiter), [])
    if not names:
        hint = "the first line of a CSV has the names of the columns, or --names a,b,c has"
        raise DatasetError(f"{file} is empty", code="bad_file", hint=hint)
    if len(set(names)) < len(names):
        raise SchemaError(f"{file} has two columns of one name", detail=", ".join(names))
    return names


def _csv_columns(file: Path, form: CsvForm) -> dict[str, str]:
    names = form.columns(_header(file, form))
    if form.time is not None:
        if form.time[0].lower() in map(str.lower, names):
            raise SchemaError(
                f'{file} has a column "{form.time[0]}" already', hint="--time NAME=column,.. makes one of another name"
            )
        names.append(form.time[0])
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
