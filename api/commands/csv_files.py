"""Reader of CSV files for `eddy push`: finds the delimiter, infers columns, cuts between records.

A file is read once, in parts, each a CSV of its own with the line of names; only `--sort` holds all of it, and refuses files
above `SORT_BYTES`. What a cell means is asked of the code that the service asks (`eddy/csv.py`), so what is inferred is what is
taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from eddy.csv import (
    MARK,
    SNIFFED_LINES,
    CsvError,
    CsvForm,
    CsvTexts,
    decode,
    infer,
    is_naive,
    made_column,
    read,
    record_end,
    sniff,
    split,
    unit_of,
)  # fmt: skip

#: Bytes of one record.
RECORD_BYTES = 16 << 20
#: Bytes of a line by which the delimiter is found.
_LINE_BYTES = 1 << 20
#: Bytes of a file that can be sorted; about three times as much memory is used.
SORT_BYTES = 256 << 20
#: The share of other cells that a column of numbers may have for us to ask what they mean.
_STRAY = 0.1


class CsvFile:
    """An open CSV file: its form, and its records."""

    def __init__(self, source: IO[bytes], texts: Mapping[str, Any]) -> None:
        # a file without line ends is not read whole
        lines = [source.readline(_LINE_BYTES) for _ in range(SNIFFED_LINES)]
        self._head = b"".join(lines).removeprefix(MARK)
        self._at = sum(map(len, lines)) - len(self._head)
        self._source = source
        self.form = CsvForm.parse(**({"delimiter": sniff(lines)} | dict(texts)))

    def bodies(self, part_bytes: int, part_rows: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield the file in parts: number of rows, number of bytes, and a CSV."""
        import numpy as np

        header = b""
        begin = told = self._at
        for data, ends in self._stretches(part_bytes):
            starts = np.concatenate([[0], ends[:-1]])
            full = _full(data, starts, ends)
            if not header and not self.form.names:
                first = int(full.argmax())
                header = bytes(data[starts[first] : ends[first]]) if full[first] else b""
                if header:
                    _check_header(header)
                full[: first + 1] = False
            rows = np.flatnonzero(full)
            for n in range(0, len(rows), part_rows):
                some = rows[n : n + part_rows]
                low, high = int(starts[some[0]]), int(ends[some[-1]])
                body = data[low:high]
                if some[-1] - some[0] + 1 > len(some):
                    body = b"".join(data[starts[row] : ends[row]] for row in some.tolist())
                yield len(some), begin + high - told, _checked(header, body, begin + low)
                told = begin + high
            begin += len(data)
        if not header and not self.form.names:
            _check_header(header)

    def _stretches(self, size: int) -> Iterator[tuple[bytes, Any]]:
        """Yield the file in blocks of whole records, with the end of each record."""
        data = self._head
        more = True
        while more:
            block = self._source.read(size)
            more = bool(block)
            data = data + block if more or not data or data.endswith(b"\n") else data + b"\n"
            ends = _ends(data, self.form.delimiter, more)
            if not len(ends):
                if data and (not more or len(data) > RECORD_BYTES):
                    raise CsvError("a quote in the CSV is never closed", detail=data[:60].decode(errors="replace").rstrip())
                continue
            yield data[: ends[-1]], ends
            data = data[ends[-1] :]
            if data and not more:
                raise CsvError("a quote in the CSV is never closed", detail=data[:60].decode(errors="replace").rstrip())


def _ends(data: bytes, delimiter: str, more: bool) -> Any:
    """Return the ends of the records in some bytes; with `more`, the last one may be incomplete."""
    import numpy as np

    if b'"' not in data:
        return np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    found = []
    at = 0
    while at < len(data):
        end = record_end(data, at, delimiter)
        if end is None or (end == len(data) and more and not data.endswith(b"\n")):
            break
        found.append(end)
        at = end
    return np.array(found, np.int64)


def _full(data: bytes, starts: Any, ends: Any) -> Any:
    """Return a mask that is True for records that are not blank."""
    import numpy as np

    full = ends - starts > 2
    for n in np.flatnonzero(~full).tolist():
        full[n] = bool(data[starts[n] : ends[n]].strip(b"\r\n"))
    return full


def _check_header(header: bytes) -> None:
    if not header.strip():
        raise CsvError("the CSV is empty", hint="its first line has the names of the columns, or --names a,b,c has")
    if b"\r" in header.removesuffix(b"\n").removesuffix(b"\r"):
        raise CsvError("the lines of the CSV end with CR alone", hint="tr '\\r' '\\n' < FILE mends it")
    if header.startswith(b"#"):
        hint = "leave such lines out: grep -v '^#' FILE | eddy push STREAM - --format csv --names a,b,c"
        raise CsvError('the first line begins with "#" and has no names', detail=header[:60].decode(errors="replace"), hint=hint)


def _checked(header: bytes, records: bytes, at: int) -> bytes:
    """Return a part as a CSV if it is text; `at` is the place of its records in the file."""
    body = header + records
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as error:
            hint = "iconv -f latin1 -t utf-8 FILE makes it so, if it is Latin-1"
            raise CsvError("the file is not UTF-8", detail=f"byte {at + error.start - len(header)}", hint=hint) from None
    return body


# ---- what columns there are


@dataclass(slots=True)
class Columns:
    """The columns of a file as a stream would declare them, its time column, and notes for the user."""

    types: dict[str, str]
    time: str | None
    notes: list[str] = field(default_factory=list)


def columns_of(bodies: Sequence[bytes], form: CsvForm, time: str | None, types: Mapping[str, str]) -> Columns:
    """Infer the columns from the first parts of a file; `time` names the time column, `types` gives some types."""
    texts = _texts(bodies, form)
    names = form.columns(texts.header)
    told = {_find(name, texts.header, names, "--types"): kind for name, kind in types.items()}
    found = Columns({}, form.time[0] if form.time else time and _find(time, texts.header, names, "--time"))
    renamed = [f'"{old}" is {new}' for old, new in zip(texts.header, names) if old != new and (old, new) not in form.rename]
    if renamed:
        found.notes.append(f"columns renamed: {', '.join(renamed)}; --rename old=new names them otherwise")
    every = [*((name, cells, False) for name, cells in zip(names, texts.columns)), *made_column(texts, names, form)]
    for name, cells, made in every:
        kind = told.get(name)
        if kind is None and name == found.time:
            kind = _time_type(name, cells, form, made)
        if kind is None:
            kind = infer(cells, form)
            if kind is None:
                found.notes.append(f'column "{name}" is empty so far: string; --types {name}=float says otherwise')
            elif kind == "string":
                found.notes += _stray(name, cells, form)
        found.types[name] = kind or "string"
    naive = [name for name, cells, made in every if found.types[name].startswith("timestamp") and is_naive(cells, form, made)]
    found.notes += naive_note(naive)
    return found


def naive_columns(body: bytes, form: CsvForm, types: Mapping[str, str]) -> list[str]:
    """Return the timestamp columns of a part whose texts have no time zone."""
    texts = split(body, form, skip=True)
    names = form.columns(texts.header, types)
    every = [*((name, cells, False) for name, cells in zip(names, texts.columns)), *made_column(texts, names, form)]
    return [name for name, cells, made in every if types.get(name, "").startswith("timestamp") and is_naive(cells, form, made)]


def naive_note(names: Sequence[str]) -> list[str]:
    """Return the note on times without a zone, if there are any."""
    if not names:
        return []
    return [f"times of {', '.join(names)} do not say their zone and are taken as UTC; --tz Europe/Berlin says whose they are"]


def _texts(bodies: Sequence[bytes], form: CsvForm) -> CsvTexts:
    import pyarrow as pa

    parts = [split(body, form, skip=True) for body in bodies]
    columns = [pa.concat_arrays([part.columns[n] for part in parts]) for n in range(len(parts[0].header))]
    return CsvTexts(parts[0].header, columns, sum(part.n_rows for part in parts))


def _find(name: str, header: Sequence[str], names: Sequence[str], option: str) -> str:
    """Return the column a user names, by its name in the file or in the stream."""
    for known in (list(header), list(names), [one.lower() for one in names]):
        wanted = name.lower() if known and known == [one.lower() for one in names] else name
        if wanted in known:
            return names[known.index(wanted)]
    raise CsvError(f'there is no column "{name}"', hint=f"{option} is said of one of {', '.join(names)}")


def _time_type(name: str, cells: Any, form: CsvForm, made: bool) -> str:
    """Return the type of the time column: bare numbers get the unit that puts the first in 2001 or later, else ms."""
    if form.reader(made) is None:
        kind = infer(cells, form)
        if kind in ("int", "float"):
            first = next((value for value in read(cells, "float", form)[0].to_pylist() if value is not None), 0.0)
            unit = unit_of(first)
            return "timestamp" if unit == "ms" else f"timestamp[{unit}]"
    bad = read(cells, "timestamp", form, made)[1]
    if bad is not None and bad.all():
        fact = f'"{cells[0].as_py()}", the first value of "{name}", is not a time'
        hint = "--time-format '%d/%m/%Y %H:%M' says how times are written, --time ts=date,time makes one of several columns"
        raise CsvError(fact, hint=hint)
    return "timestamp"


def _stray(name: str, cells: Any, form: CsvForm) -> list[str]:
    """Return a note on a column that is text only because of a few words."""
    head = cells[:1000]
    numbers, bad = read(head, "float", form)
    if bad is None or not len(head) or not 0 < bad.sum() <= _STRAY * len(head) or numbers.null_count == len(head):
        return []
    word = head[int(bad.argmax())].as_py()
    return [f'column "{name}" is string because of "{word[:40]}"; --null "{word[:40]}" reads that as NULL']


# ---- in the order of time


class Sorted(NamedTuple):
    """A part of a sorted file: its rows, bytes of the file, a CSV, and the original row numbers."""

    n_rows: int
    n_bytes: int
    body: bytes
    places: Any


def in_order(
    bodies: Iterator[tuple[int, int, bytes]], form: CsvForm, types: Mapping[str, str], time: str, part_bytes: int, part_rows: int
) -> Iterator[Sorted]:  # fmt: skip
    """Yield the parts of a file sorted by time; rows of equal time, and rows without one at the end, keep their order."""
    import numpy as np

    records: list[bytes] = []
    keys: list[Any] = []
    header = b""
    held = 0
    for _, n_bytes, body in bodies:
        held += n_bytes
        if held > SORT_BYTES:
            raise CsvError(
                f"the file has more than {SORT_BYTES >> 20} MB, too much to be sorted in memory",
                code="too_large_to_sort",
                hint="eddy generate from STREAM=FILE --out DIR sorts any file, eddy replay DIR pushes it",
            )
        header, some = _cut(body, form)
        records += some
        # what has no time comes last
        key = np.full(len(some), np.iinfo(np.int64).max)
        rows = decode(body, types, form, skip=True, only=[time])
        column = rows.table.column(0).combine_chunks()
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        key[rows.numbers[valid]] = column.drop_null().view("int64").to_numpy(zero_copy_only=False)
        keys.append(key)
    order = np.argsort(np.concatenate(keys), kind="stable") if keys else np.zeros(0, np.int64)
    waiting: list[bytes] = []
    size = first = 0
    for n, place in enumerate(order.tolist(), 1):
        waiting.append(records[place])
        size += len(records[place])
        if size >= part_bytes or len(waiting) >= part_rows or n == len(order):
            yield Sorted(len(waiting), size + (len(header) if not first else 0), header + b"".join(waiting), order[first:n])
            waiting, size, first = [], 0, n


def _cut(body: bytes, form: CsvForm) -> tuple[bytes, list[bytes]]:
    """Return the header line, if there is one, and the records of a part."""
    if b'"' not in body and body.count(b"\r") == body.count(b"\r\n"):
        records = [line + b"\n" for line in body.split(b"\n") if line.strip(b"\r")]
    else:
        records, at = [], 0
        while at < len(body):
            end = record_end(body, at, form.delimiter) or len(body)
            if body[at:end].strip(b"\r\n"):
                records.append(body[at:end])
            at = end
    return (b"", records) if form.names else (records[0], records[1:])
