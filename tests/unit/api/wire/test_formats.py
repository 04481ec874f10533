"""Answers in every format."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pyarrow as pa
import pytest

from api.wire import formats

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
