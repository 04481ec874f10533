"""Rows as clients send them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from api.wire import bodies
from eddy import EddyError
from eddy.csv import CsvForm

COLUMNS = {"a": "int", "b": "float", "c": "string", "d": "bool", "t": "timestamp"}


def arrow_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("media", "body", "rows"),
    [
        (bodies.JSON, b'{"a": 1}', [{"a": 1}]),
        (bodies.JSON, b'[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        (bodies.JSON, b'{"a": [1, 2]}', {"a": [1, 2]}),
        (bodies.JSON, b"[]", []),
        (bodies.NDJSON, b'{"a": 1}\n\n{"a": 2}', [{"a": 1}, {"a": 2}]),
    ],
)
def test_each_format_gives_rows(media: str, body: bytes, rows: object) -> None:
    assert bodies.parse_rows(body, media) == rows


def test_an_arrow_stream_gives_columns() -> None:
    table = pa.table({"a": [1, 2]})
    assert pa.table(bodies.parse_rows(arrow_bytes(table), bodies.ARROW)).equals(table)


@pytest.mark.parametrize(
    ("media", "body", "words"),
    [
        (bodies.JSON, b'{"a": ', "not JSON"),
        (bodies.JSON, b"7", "neither a row nor rows nor columns"),
        (bodies.NDJSON, b'{"a": 1}\n{"a"', "line 2 is not JSON"),
        (bodies.CSV, b"", "the CSV is empty"),
        (bodies.CSV, b"a,a\n1,2\n", 'two columns "a"'),
        (bodies.CSV, b"\xff\xfe", "not UTF-8"),
        (bodies.CSV, b'a\n"1', "not CSV"),
        (bodies.ARROW, b"not arrow", "not an Arrow IPC stream"),
        (bodies.ARROW, arrow_bytes(pa.table({"a": [1, 2]}))[:-20], "not an Arrow IPC stream"),
    ],
)
def test_what_cannot_be_read_is_said_and_where(media: str, body: bytes, words: str) -> None:
    with pytest.raises(EddyError) as error:
        if media == bodies.CSV:
            bodies.parse_csv(body, COLUMNS, CsvForm(), skip=False)
        bodies.parse_rows(body, media)
    assert words in str(error.value)


def test_what_cannot_be_said_of_a_csv_is_a_bad_body() -> None:
    with pytest.raises(bodies.BodyError) as error:
        bodies.csv_form({"tz": "Mars/Olympus"})
    assert error.value.code == "bad_csv_form" and "Mars/Olympus" in error.value.fact


def test_who_forgets_curls_header_is_told_which_one() -> None:
    with pytest.raises(bodies.UnsupportedMediaError) as caught:
        bodies.media_type("application/x-www-form-urlencoded")
    assert "-H 'Content-Type: application/json'" in caught.value.hint


def test_the_media_type_is_taken_from_the_header_in_any_case_and_without_its_parameters() -> None:
    assert bodies.media_type("Application/JSON; charset=utf-8") == bodies.JSON
    assert bodies.media_type(None) == bodies.JSON
    assert bodies.media_type("application/ndjson") == bodies.NDJSON
    with pytest.raises(bodies.UnsupportedMediaError):
        bodies.media_type("text/html")


def test_keys_of_several_columns_are_lists() -> None:
    assert bodies.parse_keys(b'{"keys": [1, ["lab", 2]], "time": 5}') == bodies.RowKeys([1, ("lab", 2)], 5)
    with pytest.raises(bodies.BodyError):
        bodies.parse_keys(b'{"keys": 1}')
    with pytest.raises(bodies.BodyError):
        bodies.parse_keys(b'{"keys": [], "tme": 1}')


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"junk", "not a row of Arrow IPC streams"),
        (arrow_bytes(pa.table({"a": [1]})), "does not say which stream"),
        (2 * arrow_bytes(pa.table({"a": [1]}).replace_schema_metadata({"stream": "s"})), '"s" comes twice'),
        (arrow_bytes(pa.table({"a": [1]}).replace_schema_metadata({"stream": "s"}))[:-30], "not a row of Arrow IPC streams"),
    ],
)
def test_what_is_no_bundle_of_arrow_streams_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(bodies.BodyError, match=words):
        bodies.parse_bundle(body, bodies.ARROW)
