"""The bytes of a CSV as a table, by a form (`lineage/csv_form.py`) and the types of a stream's columns.

The same bytes, form and types always give the same table. Rows count from 0 and lines with nothing on them are no rows. The line
of names is read here, the rest by Arrow, all of it as texts; `lineage/csv_cells.py` makes cells of them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from lineage.csv_cells import error_of, read
from lineage.csv_form import USUAL, CsvError, CsvForm
from lineage.errors import LimitError, RowError
from lineage.ingest import MAX_ROWS
from lineage.schema import MAX_COLUMNS

Array = np.ndarray[Any, Any]

MARK = b"\xef\xbb\xbf"
#: Bad rows of one body that are left out; with more, something else is wrong than a few rows.
MAX_BAD = 10_000
#: Lines by which the delimiter is found.
SNIFFED_LINES = 20
#: Bytes of the line of names.
_HEADER_BYTES = 1 << 20


@dataclass(slots=True)
class CsvTexts:
    """The cells of a CSV as they stand: columns in its order, and the rows that have another number of cells."""

    header: list[str]
    columns: list[Any]
    #: how many rows there are, with the ragged ones, which are in no column
    n_rows: int
    ragged: list[RowError] = field(default_factory=list)

    def numbers(self) -> Array:
        """The places of the rows that are in the columns."""
        places = np.arange(self.n_rows)
        return np.delete(places, [error.row or 0 for error in self.ragged]) if self.ragged else places


@dataclass(slots=True)
class CsvRows:
    """Rows of a CSV; `numbers` are their places in it, `errors` those of the rows that were left out."""

    table: pa.Table
    numbers: Array
    errors: list[RowError]

    def without(self, places: Collection[int]) -> CsvRows:
        """The rows but for those in some places."""
        kept = ~np.isin(self.numbers, np.fromiter(places, np.int64, len(places)))
        return CsvRows(self.table.filter(pa.array(kept)), self.numbers[kept], self.errors)

    def nulls(self) -> dict[str, int]:
        """How many cells are NULL, by column, where any is."""
        counts = zip(self.table.column_names, self.table.columns)
        return {name: column.null_count for name, column in counts if column.null_count}


def decode(
    body: bytes, types: Mapping[str, str], form: CsvForm = USUAL, *, skip: bool = False, only: Collection[str] | None = None
) -> CsvRows:
    """The rows of a CSV for columns of these types; other columns are texts. A bad row is an error or, with `skip`, left out.

    With `only`, no more than these columns are read.
    """
    texts = split(body, form, skip=skip)
    names = form.columns(texts.header, types)
    kinds = {name.lower(): kind for name, kind in types.items()}
    wanted = None if only is None else {name.lower() for name in only}
    # what a time is made of need not be a column of the stream
    used = set() if form.time is None else {names[form.source(part, texts.header, names)] for part in form.time[1]}
    bad_rows: dict[int, RowError] = {}
    numbers = texts.numbers()
    found: dict[str, Any] = {}
    for name, cells, made in [*((n, c, False) for n, c in zip(names, texts.columns)), *made_column(texts, names, form)]:
        if wanted is not None and name.lower() not in wanted or name in used and name.lower() not in kinds:
            continue
        kind = kinds.get(name.lower(), "timestamp" if made else "string")
        found[name], bad = read(cells, kind, form, made)
        if bad is None:
            continue
        for at in np.flatnonzero(bad).tolist():
            error = error_of(cells[at].as_py() or "", kind, form, made)
            error.row, error.column = int(numbers[at]), name
            if not skip:
                raise error
            bad_rows.setdefault(at, error)
            _bounded(len(bad_rows), error)
    table = pa.table(found) if found else pa.table({})
    rows = CsvRows(table, numbers, [])
    if bad_rows:
        rows = rows.without([int(numbers[at]) for at in bad_rows])
    rows.errors = sorted([*texts.ragged, *bad_rows.values()], key=lambda error: error.row or 0)
    return rows


def made_column(texts: CsvTexts, names: list[str], form: CsvForm) -> list[tuple[str, Any, bool]]:
    """The column that is made of others, if any."""
    if form.time is None:
        return []
    name, parts = form.time
    if name.lower() in {other.lower() for other in names}:
        fact = f'the CSV has a column "{name}" already'
        raise CsvError(fact, code="bad_csv_form", hint="time=name=column,.. (--time) makes a column of another name")
    words = form.words("timestamp")
    cells = []
    for part in parts:
        column = pc.ascii_trim_whitespace(texts.columns[form.source(part, texts.header, names)])
        cells.append(pc.if_else(pc.is_in(column, pa.array(words, pa.string())), pa.scalar(None, pa.string()), column))
    return [(name, pc.binary_join_element_wise(*cells, " "), True)]


# ---- cells as they stand


def split(body: bytes, form: CsvForm = USUAL, *, skip: bool = False) -> CsvTexts:
    """The cells of a CSV. A row with another number of cells than there are names is an error or, with `skip`, left out."""
    _check_text(body)
    start = len(MARK) if body.startswith(MARK) else 0
    header = list(form.names)
    if not header:
        header, start = _header(body, start, form.delimiter)
    rest = body[start:] if start else body
    if not rest.strip(b"\r\n"):
        return CsvTexts(header, [pa.array([], pa.string())] * len(header), 0)
    if (n_lines := max(rest.count(b"\n"), rest.count(b"\r"))) > MAX_ROWS:
        raise LimitError(f"{n_lines} lines in one call, more than {MAX_ROWS}", code="too_many_rows", hint="push them in parts")
    if rest.count(b'"') & 1:
        _check_quotes(rest, form.delimiter)
    return _by_arrow(rest, header, form.delimiter, skip)


def _by_arrow(rest: bytes, header: list[str], delimiter: str, skip: bool) -> CsvTexts:
    ragged: list[RowError] = []

    def handle(row: Any) -> str:
        one = "cell" if row.actual_columns == 1 else "cells"
        fact = f"the row has {row.actual_columns} {one}, there are {row.expected_columns} columns"
        hint = "bad=skip (--bad skip) leaves such rows out; delimiter=; (--delimiter) says what stands between cells"
        ragged.append(RowError(fact, code="bad_csv", hint=hint, row=row.number - 1))
        return "skip" if skip and len(ragged) <= MAX_BAD else "error"

    names = [str(n) for n in range(len(header))]
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(rest),
            # one block: rows are numbered through, and nothing straddles
            pyarrow.csv.ReadOptions(use_threads=False, block_size=len(rest) + 1, column_names=names),
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=handle),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )
    except (pa.ArrowException, OverflowError) as error:
        if ragged:
            _bounded(len(ragged) if skip else 0, ragged[0])
            raise ragged[0] from None
        raise CsvError("the body is not CSV", detail=str(error).split("\n", 1)[0][:200]) from None
    columns = [column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) for column in table.columns]
    return CsvTexts(header, columns, table.num_rows + len(ragged), ragged)


def _bounded(n_bad: int, first: RowError) -> None:
    if n_bad > MAX_BAD:
        fact = f"more than {MAX_BAD} rows of the call are bad"
        raise LimitError(fact, code="too_many_bad_rows", detail=str(first)) from None


def _check_text(body: bytes) -> None:
    if body.isascii():
        return
    try:
        body.decode()
    except UnicodeDecodeError as error:
        wide = body.startswith((b"\xff\xfe", b"\xfe\xff"))
        hint = f"iconv -f {'utf-16' if wide else 'latin1'} -t utf-8 makes it so"
        raise CsvError("the body is not UTF-8", detail=f"byte {error.start}", hint=hint) from None


def _header(body: bytes, start: int, delimiter: str) -> tuple[list[str], int]:
    """The names in the first line that has any, and where the rows begin."""
    blank = re.compile(rb"[\r\n]*").match(body, start)
    begin = blank.end() if blank else start
    if begin == len(body):
        raise CsvError("the CSV is empty", hint="its first line has the names of the columns, or names=a,b,c (--names) has")
    end = record_end(body, begin, delimiter)
    if end is None:
        raise _never_closed(body, begin)
    if end - begin > _HEADER_BYTES:
        raise CsvError("the first line of the CSV is no line of names", detail=f"{end - begin} bytes")
    try:
        names = next(csv.reader(io.StringIO(body[begin:end].decode(), newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise CsvError("the first line of the CSV cannot be read", detail=str(error)) from None
    if len(names) > MAX_COLUMNS:
        raise CsvError(f"the CSV has {len(names)} columns, more than {MAX_COLUMNS}", code="too_many_columns")
    return names, end


def _check_quotes(rest: bytes, delimiter: str) -> None:
    at = 0
    while at < len(rest):
        end = record_end(rest, at, delimiter)
        if end is None:
            raise _never_closed(rest, at)
        at = end


def _never_closed(body: bytes, at: int) -> CsvError:
    detail = body[at : at + 60].split(b"\n", 1)[0].decode(errors="replace")
    return CsvError("a quote in the CSV is never closed", detail=f"the body is not CSV from here on: {detail}")


@lru_cache(16)
def _record(delimiter: str) -> re.Pattern[bytes]:
    d = re.escape(delimiter.encode())
    rest = rb"[^" + d + rb"\r\n]*+"
    cell = rb'(?:"(?:[^"]++|"")*+(?:"' + rest + rb"|(\Z))|" + rest + rb")"
    return re.compile(cell + rb"(?:" + d + cell + rb")*+(?:\r\n|\n|\r|\Z)")


def record_end(data: bytes, start: int, delimiter: str) -> int | None:
    """Where the record that begins at `start` ends, after its line end; None if a quote is open at the end of the data."""
    found = _record(delimiter).match(data, start)
    assert found is not None, "anything is a record"
    return None if found.group(1) is not None or found.group(2) is not None else found.end()


_QUOTED = re.compile(rb'"(?:[^"]++|"")*+"?')


def sniff(lines: Sequence[bytes]) -> str:
    """The delimiter that lines have in equal number, most of them; a comma if none.

    >>> sniff([b"a;b\\n", b"1,5;2\\n"]), sniff([b"a,b\\n", b'1,"x;y"\\n'])
    (';', ',')
    """
    bare = [_QUOTED.sub(b"", line) for line in lines if line.strip()]
    for delimiter in (b"\t", b";", b"|"):
        counts = [line.count(delimiter) for line in bare]
        if counts and counts[0] and counts.count(counts[0]) >= 0.8 * len(counts):
            return delimiter.decode()
    return ","
