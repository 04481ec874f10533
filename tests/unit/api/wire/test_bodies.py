"""Rows as clients send them, and answers in every format."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pyarrow as pa
import pytest

from api.wire import bodies, formats
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


# -- Answers in every format -------------------------------------------------------------------------------------------


TABLE = pa.table(
    {
        "n": pa.array([1, None], pa.int64()),
        "x": pa.array([0.5, float("nan")], pa.float64()),
        "s": ["a,b", ""],
        "t": pa.array([datetime(2024, 5, 1, 12, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
    }
)


def encoded(table: pa.Table, format_: str) -> bytes:
    return b"".join(formats.encode(table, format_, {"seq": 7}))


def test_json_has_the_facts_and_then_rows() -> None:
    rows = [{"n": 1, "x": 0.5, "s": "a,b", "t": "2024-05-01T12:00:00Z"}, {"n": None, "x": None, "s": "", "t": None}]
    assert orjson.loads(encoded(TABLE, "json")) == {"seq": 7, "rows": rows}


def test_json_by_columns_has_a_list_for_each() -> None:
    found = orjson.loads(encoded(TABLE, "columns"))
    assert found["data"] == {"n": [1, None], "x": [0.5, None], "s": ["a,b", ""], "t": ["2024-05-01T12:00:00Z", None]}


def test_ndjson_is_a_row_a_line() -> None:
    assert [orjson.loads(line)["n"] for line in encoded(TABLE, "ndjson").splitlines()] == [1, None]


def test_csv_has_names_first_and_empty_cells_for_null() -> None:
    assert encoded(TABLE, "csv").decode().splitlines() == [
        '"n","x","s","t"',
        '1,0.5,"a,b","2024-05-01T12:00:00.000000Z"',
        ',nan,"",',
    ]


def test_arrow_comes_back_as_it_was() -> None:
    table = TABLE.drop_columns(["x"])  # NaN does not equal itself
    assert pa.ipc.open_stream(encoded(table, "arrow")).read_all().equals(table)


@pytest.mark.parametrize("format_", ["json", "columns", "ndjson", "csv", "arrow"])
def test_an_empty_answer_is_whole_in_every_format(format_: str) -> None:
    found = encoded(TABLE.slice(0, 0), format_)
    if format_ == "arrow":
        assert pa.ipc.open_stream(found).read_all().num_rows == 0
    elif format_ == "ndjson":
        assert found == b""
    elif format_ == "csv":
        assert found.count(b"\n") == 1
    else:
        assert orjson.loads(found)["seq"] == 7


def test_a_large_answer_is_the_same_in_stretches() -> None:
    n = 3 * formats.STRETCH + 5
    table = pa.table({"n": list(range(n))})
    assert [row["n"] for row in orjson.loads(encoded(table, "json"))["rows"]] == list(range(n))
    assert orjson.loads(encoded(table, "columns"))["data"]["n"] == list(range(n))
    assert encoded(table, "csv").count(b"\n") == n + 1
    assert len(encoded(table, "ndjson").splitlines()) == n


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "json"),
        ("*/*", "json"),
        ("text/csv", "csv"),
        ("text/html, application/x-ndjson;q=0.5, */*;q=0.1", "ndjson"),
        ("application/json;q=0.1, text/csv;q=0.9", "csv"),
        ("application/vnd.apache.arrow.stream", "arrow"),
    ],
)
def test_the_format_is_the_best_that_both_know(accept: str | None, chosen: str) -> None:
    assert formats.choose(None, accept, formats.MEDIA, "json") == chosen


def test_the_parameter_wins_over_the_header() -> None:
    assert formats.choose("csv", "application/json", formats.MEDIA, "json") == "csv"


@pytest.mark.parametrize(("format_", "accept"), [("xml", None), (None, "text/html"), (None, "text/csv;q=0")])
def test_what_cannot_be_made_is_refused(format_: str | None, accept: str | None) -> None:
    with pytest.raises(formats.NotAcceptableError):
        formats.choose(format_, accept, formats.MEDIA, "json")
