"""Rows of a program as the body of a request, read back by the service's own parser."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from api.wire.bodies import parse_bundle, parse_rows
from eddy import RowError
from eddy.client.rows import ARROW, JSON, encode, encode_many

TABLE = pa.table({"a": [1, 2], "b": ["x", None]})


def read(rows: Any) -> Any:
    body = encode(rows)
    found = parse_rows(body.content, body.media)
    return pa.table(found).to_pydict() if body.media == ARROW else found


@pytest.mark.parametrize(
    "rows",
    [
        TABLE,
        TABLE.to_batches()[0],
        pl.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[7, 9]),
        {"a": np.array([1, 2]), "b": ["x", None]},
        {"a": pa.array([1, 2]), "b": pa.chunked_array([["x"], [None]], pa.string())},
        {"a": pd.Series([1, 2]), "b": pd.Series(["x", None])},
    ],
    ids=["table", "batch", "polars", "pandas", "pandas index", "numpy", "arrow arrays", "series"],
)
def test_tables_and_arrays_go_as_arrow(rows: Any) -> None:
    assert encode(rows).media == ARROW
    assert read(rows) == {"a": [1, 2], "b": ["x", None]}


def test_a_reader_is_read_once() -> None:
    assert read(pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())) == {"a": [1, 2], "b": ["x", None]}


@pytest.mark.parametrize(
    ("rows", "seen"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ([{"a": 1}, {"b": None}], [{"a": 1}, {"b": None}]),
        ({}, []),
        ([], []),
        ([{"t": datetime(2024, 1, 2, 3, 4, 5, 6, UTC)}], [{"t": "2024-01-02T03:04:05.000006+00:00"}]),
        ([{"a": np.int64(3), "b": np.float64(0.5), "c": np.bool_(True)}], [{"a": 3, "b": 0.5, "c": True}]),
        ({"s": ["a\u2028b", "\x85"]}, {"s": ["a\u2028b", "\x85"]}),
    ],
)
def test_lists_and_dicts_go_as_json(rows: Any, seen: Any) -> None:
    assert encode(rows).media == JSON
    assert read(rows) == seen


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_go_as_arrow(value: float) -> None:
    for rows in ([{"a": 1, "x": value}, {"a": 2, "s": "t"}], {"a": [1, 2], "x": [value, None], "s": [None, "t"]}):
        body = encode(rows)
        found = pa.table(parse_rows(body.content, body.media)).to_pydict()
        assert body.media == ARROW and found["a"] == [1, 2] and found["s"] == [None, "t"]
        assert repr(found["x"]) == repr([value, None])


def test_times_keep_their_unit() -> None:
    column = np.array(["2024-01-02T03:04:05.000000006"], "datetime64[ns]")
    body = encode({"t": column})
    assert parse_rows(body.content, body.media)["t"].type == pa.timestamp("ns")


@pytest.mark.parametrize("rows", [5, "text", b"bytes", None, [1, 2], [{"a": object()}], {"a": np.array([1, 2]), "b": [1]}])
def test_what_is_no_set_of_rows_is_refused(rows: Any) -> None:
    with pytest.raises(RowError) as caught:
        encode(rows)
    assert caught.value.code in ("not_rows", "bad_value", "ragged_columns")


def test_a_row_that_is_no_dict_is_named() -> None:
    with pytest.raises(RowError) as caught:
        encode([{"a": 1}, 7])
    assert caught.value.row == 1


def test_plain_rows_of_several_streams_go_as_one_json_object() -> None:
    body = encode_many({"s": {"a": [1], "t": [datetime(2024, 1, 2, tzinfo=UTC)]}, 'a "t"': [{"a": 2}]})
    assert body.media == JSON
    assert parse_bundle(body.content) == {"s": {"a": [1], "t": ["2024-01-02T00:00:00+00:00"]}, 'a "t"': [{"a": 2}]}


def test_tables_of_several_streams_go_as_one_arrow_stream_after_the_other() -> None:
    frame = pd.DataFrame({"a": [1], "t": pd.to_datetime(["2024-01-02T00:00:00Z"])})
    body = encode_many({"s": frame, "t": [{"a": 2}], "u": {"a": np.array([3, 4])}, "ü": TABLE.slice(0, 0)})
    assert body.media == ARROW
    found = parse_bundle(body.content, ARROW)
    assert {name: pa.table(rows).to_pydict() for name, rows in found.items()} == {
        "s": {"a": [1], "t": [datetime(2024, 1, 2, tzinfo=UTC)]}, "t": {"a": [2]}, "u": {"a": [3, 4]}, "ü": {"a": [], "b": []},
    }  # fmt: skip


def test_rows_of_several_streams_that_json_cannot_hold_go_as_arrow() -> None:
    body = encode_many({"s": [{"a": 1.5}], "t": [{"a": math.nan}, {"a": None}]})
    found = parse_bundle(body.content, body.media)
    assert (
        repr({name: pa.table(rows).to_pydict() for name, rows in found.items()}) == "{'s': {'a': [1.5]}, 't': {'a': [nan, None]}}"
    )
