"""Parsers of rows in bodies of requests: JSON, NDJSON, CSV or Arrow, into what the engine takes.

    application/json                        one row {..}, rows [{..}, ..], or columns {"a": [..], ..}
    application/x-ndjson                    a row a line
    text/csv                                names in the first line; values as their columns' types say (`lineage/csv_form.py`)
    application/vnd.apache.arrow.stream     an Arrow IPC stream (api/arrow/)

Rows of several streams are a JSON object, `{"s": rows, ..}`, or Arrow IPC streams one after the other, each with the name of its
stream in the metadata of its schema, under `stream`.

What cannot be read is a `BodyError`, which says where; whether the rows fit their stream is the engine's business. The same bytes
always give the same rows: the journal keeps bodies as they came and reads them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from api.arrow.buffers import ByteBudget
from api.arrow.flatbuffer import FormatError
from api.arrow.stream import Streamed, read_stream
from eddy import EddyError
from eddy.csv import CsvError, CsvForm, CsvRows, decode, from_texts

JSON = "application/json"
NDJSON = "application/x-ndjson"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"

#: Other names under which the formats are known.
ALIASES = {
    "application/ndjson": NDJSON,
    "application/jsonl": NDJSON,
    "application/x-jsonlines": NDJSON,
    "application/csv": CSV,
}
ACCEPTED = (JSON, NDJSON, CSV, ARROW)
#: What curl calls whatever it sends.
FORM = "application/x-www-form-urlencoded"


class BodyError(EddyError):
    """The body of a request cannot be parsed."""

    default_code = "bad_body"


class UnsupportedMediaError(EddyError):
    """The media type or encoding of a request is not supported."""

    default_code = "unsupported_media"


class RowKeys(NamedTuple):
    """Keys of rows to delete or retract, and the time from which they are gone."""

    keys: list[Any]
    time: Any


def media_type(header: str | None) -> str:
    """Return the format that a Content-Type header names; JSON without a header."""
    if not header:
        return JSON
    name = header.split(";", 1)[0].strip().lower()
    name = ALIASES.get(name, name)
    if name.endswith("+json"):
        name = JSON
    if name == FORM:
        raise UnsupportedMediaError(
            f'the media type "{name}" is not read', hint=f"curl says that of -d unless told otherwise: -H 'Content-Type: {JSON}'"
        )
    if name not in ACCEPTED:
        raise UnsupportedMediaError(f'the media type "{name}" is not read', hint=f"one of {', '.join(ACCEPTED)}")
    return name


def expect_json(header: str | None) -> None:
    """Raise unless a Content-Type header is absent or names JSON."""
    if media_type(header) != JSON:
        raise UnsupportedMediaError("this call takes JSON", hint=JSON)


def parse_json(body: bytes) -> Any:
    """Parse any JSON value."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BodyError("the body is not JSON", detail=f"{error.msg}: line {error.lineno}, column {error.colno}") from None


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise BodyError("the body is not a JSON object", hint="{...}")
    return value


def parse_rows(body: bytes, media: str, n_columns: int = 0, room: int | None = None) -> Any:
    """Parse rows in any format but CSV, which needs the types of its columns: `parse_csv`.

    `n_columns` is the number of columns of the stream or table; `room` bounds the bytes of decoded Arrow.
    """
    if media == JSON:
        return as_rows(parse_json(body))
    if media == NDJSON:
        return _parse_lines(body)
    return _parse_arrow(body, n_columns, room)


def as_rows(value: Any) -> Any:
    """Return one row, rows or columns of JSON in the form the engine takes."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        # no column type holds lists, so an object of lists can only be columns
        return value if any(isinstance(cells, list) for cells in value.values()) else [value]
    raise BodyError("the body is neither a row nor rows nor columns", hint='{"a": 1}, [{"a": 1}, ...] or {"a": [1, ...]}')


def parse_bundle(
    body: bytes, media: str = JSON, width: Callable[[str], int] = lambda stream: 0, room: int | None = None
) -> dict[str, Any]:  # fmt: skip
    """Parse rows of several streams; `width` gives a stream's number of columns, `room` bounds the bytes of decoded Arrow."""
    if media == ARROW:
        return _parse_arrow_bundle(body, width, ByteBudget(room))
    return {stream: as_rows(rows) for stream, rows in parse_object(body).items()}


def _parse_arrow_bundle(body: bytes, width: Callable[[str], int], budget: ByteBudget) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = 0
    while at < len(body):
        try:
            streamed = read_stream(body, at, budget)
        except FormatError as error:
            raise BodyError("the body is not a row of Arrow IPC streams", detail=str(error)) from None
        stream, at = streamed.stream, streamed.end
        if not stream or stream in found:
            fact = (
                f'the stream "{stream}" comes twice' if stream else "an Arrow stream does not say which stream its rows are for"
            )
            raise BodyError(fact, hint='the metadata of each schema has "stream": its name')
        _charge_absent(streamed, width(stream), budget)
        found[stream] = streamed.rows
    return found


def _charge_absent(found: Streamed, n_columns: int, budget: ByteBudget) -> None:
    """Charge the columns that the rows leave out: they become NULLs."""
    if n_columns > found.n_columns:
        budget.charge_values(found.n_rows * (n_columns - found.n_columns))


def bundle_type(header: str | None) -> str:
    """Return the format that a Content-Type header names for rows of several streams."""
    media = media_type(header)
    if media not in (JSON, ARROW):
        raise UnsupportedMediaError("rows of several streams are JSON or Arrow", hint=f"{JSON} or {ARROW}")
    return media


def parse_keys(body: bytes) -> RowKeys:
    """Parse `{"keys": [..], "time": ..}`; a key of several columns is a list."""
    value = parse_object(body)
    keys = value.get("keys")
    if not isinstance(keys, list):
        raise BodyError('the body has no list "keys"', hint='{"keys": [1, 2]}; a key of two columns is [["lab", 1]]')
    unknown = set(value) - {"keys", "time"}
    if unknown:
        raise BodyError(f'the body has an unknown field "{min(unknown)}"', hint='"keys" and "time"')
    return RowKeys([tuple(key) if isinstance(key, list) else key for key in keys], value.get("time"))


def _parse_lines(body: bytes) -> list[Any]:
    rows = []
    for n, line in enumerate(body.split(b"\n")):
        if not line or line.isspace():
            continue
        try:
            rows.append(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            raise BodyError(f"line {n + 1} is not JSON", detail=f"{error.msg}: column {error.colno}") from None
    return rows


def _parse_arrow(body: bytes, n_columns: int, limit: int | None) -> Any:
    budget = ByteBudget(limit)
    try:
        found = read_stream(body, 0, budget)
    except FormatError as error:
        raise BodyError("the body is not an Arrow IPC stream", detail=str(error)) from None
    _charge_absent(found, n_columns, budget)
    return found.rows


def csv_form(texts: Mapping[str, Any] | None) -> CsvForm:
    """Return the CSV form that the parameters of a request describe."""
    try:
        return from_texts(texts)
    except CsvError as error:
        raise BodyError(error.fact, code=error.code, detail=error.detail, hint=error.hint) from None


def parse_csv(body: bytes, columns: Mapping[str, str], form: CsvForm, *, skip: bool) -> CsvRows:
    """Parse the rows of a CSV; a bad row raises or, with `skip`, is left out."""
    try:
        return decode(body, columns, form, skip=skip)
    except CsvError as error:
        raise BodyError(error.fact, code="bad_body", detail=error.detail, hint=error.hint) from None
