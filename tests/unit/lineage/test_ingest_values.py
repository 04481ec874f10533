"""Values of every type become cells; what does not fit is named and leaves no trace."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lineage.dictionary import MAX_STRING_BYTES, SMALL, Dictionary
from lineage.errors import RowError
from lineage.ingest import Ingestor
from lineage.schema import Schema
from tests.unit.lineage.ingested import LENGTHS, READINGS, ingestor, refused, take, values


class Level(enum.IntEnum):
    HIGH = 3


ACCEPTED = [
    ("int", 5, 5),
    ("int", -(2**63), -(2**63)),
    ("int", 2**63 - 1, 2**63 - 1),
    ("int", 5.0, 5),
    ("int", 2.0**62, 2**62),
    ("int", -(2.0**63), -(2**63)),
    ("int", np.int8(5), 5),
    ("int", np.uint64(2**63 - 1), 2**63 - 1),
    ("int", np.float32(5), 5),
    ("int", Level.HIGH, 3),
    ("float", 1.5, 1.5),
    ("float", 2, 2.0),
    ("float", 2**53 + 1, float(2**53)),
    ("float", 10**300, 1e300),
    ("float", float("inf"), float("inf")),
    ("float", np.float16(0.5), 0.5),
    ("float", np.uint8(3), 3.0),
    ("float", np.longdouble(1.5), 1.5),
    ("bool", True, True),
    ("bool", np.False_, False),
    ("string", "", ""),
    ("string", "ä\x00€𝄞", "ä\x00€𝄞"),
    ("string", np.str_("a"), "a"),
    ("timestamp", 1500, 1_500_000),
    ("timestamp", 0.0005, 0),
    ("timestamp[s]", 1.5, 1_500_000),
    ("timestamp[us]", 7, 7),
    ("timestamp[ns]", -1, -1),
    ("timestamp[ns]", 1999, 1),
    ("timestamp", np.int32(3), 3000),
    ("timestamp", np.uint64(3), 3000),
    ("timestamp", "1970-01-01T00:00:01+00:00", 1_000_000),
    ("timestamp", "1970-01-01 00:00:01", 1_000_000),
    ("timestamp", dt.datetime(1970, 1, 2), 86_400_000_000),
    ("timestamp", dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), 0),
    ("timestamp", dt.date(1970, 1, 2), 86_400_000_000),
    ("timestamp[s]", np.datetime64(5, "ms"), 5000),
    ("timestamp", pd.Timestamp("1970-01-01T00:00:00.000001999Z"), 1),
]
NULLS = [None, pd.NA, pd.NaT, np.ma.masked]


@pytest.mark.parametrize(("kind", "value", "cell"), ACCEPTED)
def test_a_good_value_is_taken_alone_and_among_many(kind: str, value: Any, cell: Any) -> None:
    for n_rows in (*LENGTHS, 3):
        assert take(kind, [value] * n_rows) == [cell] * n_rows
        assert take(kind, (value,) * n_rows) == [cell] * n_rows
        assert take(kind, [*NULLS, value] * n_rows) == [None, None, None, None, cell] * n_rows
        assert take(kind, np.array([value] * n_rows, object)) == [cell] * n_rows


def test_nan_is_a_value_of_a_float_column() -> None:
    for column in ([float("nan")], np.array([np.nan]), pa.array([float("nan")]), [np.float32("nan"), 1.0] * SMALL):
        into = ingestor({"x": "float"})
        taken = into.take({"x": column})
        assert np.isnan(taken.cells[0][0]) and taken.nulls == [None]


def test_pandas_says_nan_where_it_means_null() -> None:
    assert take("float", pd.Series([1.0, np.nan])) == [1.0, None]
    assert take("int", pd.Series([1.0, np.nan])) == [1, None]
    assert take("string", pd.Series(["a", np.nan], dtype=object)) == ["a", None]
    assert take("timestamp", pd.Series(["1970-01-01", None], dtype="datetime64[ns]")) == [0, None]
    assert take("string", pd.Series(["a", None, "b"], dtype="category")) == ["a", None, "b"]
    assert take("int", pd.Index([3, 4])) == [3, 4]


REFUSED = [
    ("int", "abc", '"abc" is not an int', "a number, not its text"),
    ("int", True, "True is not an int", "declare the column bool, or send 0 and 1"),
    ("int", np.True_, "True is not an int", "declare the column bool, or send 0 and 1"),
    ("int", 1.5, "1.5 is not an int", "round it, or declare the column float"),
    ("int", float("nan"), "nan is not an int", "NULL is None"),
    ("int", np.float64("nan"), "nan is not an int", "NULL is None"),
    ("int", float("inf"), "inf is not an int", "round it, or declare the column float"),
    ("int", decimal.Decimal(1), "Decimal('1') is not an int", ""),
    ("int", [1], "[1] is not an int", ""),
    ("int", np.timedelta64(5, "s"), "5 seconds is not an int", ""),
    ("int", 2**63, "9223372036854775808 does not fit 64 bits", "an int is -2^63 to 2^63-1; a float may be larger"),
    ("int", -(2**63) - 1, "-9223372036854775809 does not fit 64 bits", "an int is -2^63 to 2^63-1; a float may be larger"),
    ("int", 2.0**63, "9.223372036854775808e+18", None),
    ("int", np.uint64(2**63), "9223372036854775808 does not fit 64 bits", None),
    ("float", "1.5", '"1.5" is not a float', "a number, not its text"),
    ("float", False, "False is not a float", "declare the column bool, or send 0 and 1"),
    ("float", 10**400, "does not fit a float", "a float is at most 1.8e308"),
    ("float", 1j, "1j is not a float", ""),
    ("bool", 1, "1 is not a bool", "true or false; numbers and texts are not converted"),
    ("bool", "true", '"true" is not a bool', None),
    ("bool", float("nan"), "nan is not a bool", "NULL is None"),
    ("string", 5, "5 is not a string", "texts only; convert the value first"),
    ("string", b"x", "b'x' is not a string", None),
    ("string", float("nan"), "nan is not a string", "NULL is None"),
    ("string", "a\ud800", '"a\\ud800" is not valid text', "a lone surrogate or other bytes that are not UTF-8"),
    ("timestamp", True, "True is not a time", None),
    ("timestamp", "abc", '"abc" is not a time', None),
    ("timestamp", float("nan"), "nan is not a time", "a time is finite; NULL is None"),
    ("timestamp", float("inf"), "inf is not a time", "a time is finite; NULL is None"),
    ("timestamp", 10**18, "1000000000000000000 is not within the years 1 to 9999", None),
    ("timestamp", 10**30, "is not within the years 1 to 9999", None),
    ("timestamp", 1e300, "1e+300 is not within the years 1 to 9999", None),
    ("timestamp", np.datetime64(2**60, "s"), "is not within the years 1 to 9999", None),
    ("timestamp", dt.timedelta(1), "datetime.timedelta(days=1) is not a time", None),
]


@pytest.mark.parametrize(("kind", "value", "fact", "hint"), REFUSED)
def test_a_bad_value_is_named_with_its_row(kind: str, value: Any, fact: str, hint: str | None) -> None:
    good = {"int": 1, "float": 1.0, "bool": True, "string": "a", "timestamp": 1}[kind]
    for before in (0, 3, SMALL + 1):
        for column in ([good] * before + [value, object()], [None] * before + [value]):
            error = refused(kind, column)
            assert error.row == before
            if not fact.startswith("9.22"):
                assert fact in error.fact
            assert hint is None or error.hint == hint
            assert error.code in ("bad_value", "out_of_range", "time_out_of_range")
        many = refused(kind, [value] * (before + 1))
        assert many.row == 0


@pytest.mark.parametrize(
    ("kind", "column", "row"),
    [
        ("int", np.array([1.0, 2.5, 3.5]), 1),
        ("int", np.array([1.0, np.nan]), 1),
        ("int", np.array([1, 2**63], np.uint64), 1),
        ("int", np.array([True, False]), 0),
        ("int", np.array(["1"]), 0),
        ("int", np.array([1], "M8[s]"), 0),
        ("int", pa.array(["x", None]), 0),
        ("int", pa.array([None, 1.5]), 1),
        ("int", pa.array([None, True]), 1),
        ("int", pa.array([None, [1]]), 1),
        ("int", pa.array([None, dt.datetime(2024, 1, 1)]), 1),
        ("float", np.array([True]), 0),
        ("float", np.array(["1"]), 0),
        ("float", pa.array([decimal.Decimal(1)]), 0),
        ("bool", np.array([0, 1]), 0),
        ("bool", pa.array([None, 1]), 1),
        ("string", np.array([1]), 0),
        ("string", np.array([b"x"]), 0),
        ("string", np.array(["a", "\ud800"]), 1),
        ("string", pa.array([None, b"x"]), 1),
        ("string", pa.array([None, 1]), 1),
        ("timestamp", np.array([0.0, np.inf]), 1),
        ("timestamp", np.array([0, 10**18]), 1),
        ("timestamp", np.array([False]), 0),
        ("timestamp", np.array(["1970-01-01", "x"]), 1),
        ("timestamp", np.array([0, 2**60], "M8[s]"), 1),
        ("timestamp", pa.array([None, 2**60], pa.timestamp("s")), 1),
        ("timestamp", pa.array(["1970-01-01", None, "x"]), 2),
        ("timestamp", pa.array([None, 5], pa.duration("s")), 1),
        ("timestamp", pa.array([None, 5], pa.time32("s")), 1),
    ],
)
def test_a_bad_element_of_an_array_is_named_with_its_row(kind: str, column: Any, row: int) -> None:
    assert refused(kind, column).row == row


@pytest.mark.parametrize(
    ("kind", "column", "cells"),
    [
        ("int", np.array([1, 2], ">i4"), [1, 2]),
        ("int", np.arange(10)[::3], [0, 3, 6, 9]),
        ("int", np.ma.array([1, 2], mask=[0, 1]), [1, None]),
        ("int", np.ma.array([1.0, np.nan], mask=[0, 1]), [1, None]),
        ("int", pa.array([None, 2], pa.uint8()), [None, 2]),
        ("int", pa.array([1, 2, 3]).slice(1), [2, 3]),
        ("int", pa.nulls(2), [None, None]),
        ("int", pa.array([1, None, 1]).dictionary_encode(), [1, None, 1]),
        ("int", pa.array([1, None, 3], pa.float16()), [1, None, 3]),
        ("float", pa.array([1, None]), [1.0, None]),
        ("float", np.array([1, 2], np.float32), [1.0, 2.0]),
        ("bool", pa.array([True, None]), [True, None]),
        ("bool", np.ma.array([True, True], mask=[1, 0]), [None, True]),
        ("string", np.array(["a", "bc"]), ["a", "bc"]),
        ("string", np.array(["a", "bc"], np.dtypes.StringDType()), ["a", "bc"]),
        ("string", np.ma.array(["a", "b"], mask=[0, 1]), ["a", None]),
        ("string", pa.array(["a", None], pa.string_view()), ["a", None]),
        ("string", pa.nulls(2), [None, None]),
        ("string", pl.Series(["a", None, "a"], dtype=pl.Categorical), ["a", None, "a"]),
        ("timestamp", np.array([1, "NaT"], "M8[D]"), [86_400_000_000, None]),
        ("timestamp", np.array(["1970-01-02"]), [86_400_000_000]),
        ("timestamp[us]", np.array([1.4, 1.6], np.float32), [1, 2]),
        ("timestamp", pa.array([1, None], pa.date32()), [86_400_000_000, None]),
        ("timestamp", pa.array([86_400_000, None], pa.date64()), [86_400_000_000, None]),
        ("timestamp", pa.array([-1, None], pa.timestamp("ns", "Asia/Tokyo")), [-1, None]),
        ("timestamp", pa.array([1, 2], pa.timestamp("s")), [1_000_000, 2_000_000]),
        ("timestamp[s]", pa.array([1, None]), [1_000_000, None]),
        ("timestamp", pa.array([None, "1970-01-01T00:00:01Z", "1970-01-01"]), [None, 1_000_000, 0]),
        ("timestamp", pa.chunked_array([["1970-01-01"], [None]]), [0, None]),
        ("timestamp", pa.array(["1970-01-01", "1970-01-01"]).dictionary_encode(), [0, 0]),
        ("timestamp", pl.Series([dt.datetime(1970, 1, 2), None]), [86_400_000_000, None]),
    ],
)
def test_arrays_of_every_kind_are_taken(kind: str, column: Any, cells: list[Any]) -> None:
    assert take(kind, column) == cells


@pytest.mark.parametrize("n_rows", LENGTHS)
def test_a_string_that_is_too_long_is_refused(n_rows: int) -> None:
    column = ["a"] * n_rows + ["x" * (MAX_STRING_BYTES + 1)]
    for given_ in (column, np.array(column, object), pa.array(column)):
        error = refused("string", given_)
        assert (error.code, error.row, error.fact) == ("too_long", n_rows, "the string is longer than 1048576 bytes")


@pytest.mark.parametrize("kind", ["int", "string", "timestamp"])
def test_arrow_text_that_is_not_utf8_is_refused(kind: str) -> None:
    offsets = pa.array([0, 0, 1], pa.int32()).buffers()[1]
    column = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"\xff"))
    error = refused(kind, column.slice(1))
    assert error.row == 0 and error.code == "bad_value"


def test_the_first_bad_column_of_the_schema_is_reported() -> None:
    into = ingestor(READINGS, "ts")
    with pytest.raises(RowError) as caught:
        into.take({"ts": ["x", "y"], "temp": [1.0, "x"], "sensor": [1, 2], "room": ["a", "b"]})
    assert (caught.value.row, caught.value.column) == (1, "temp")
    assert str(caught.value) == '"x" is not a float (row 1, column "temp")\nhint: a number, not its text'


@pytest.mark.parametrize("n_rows", LENGTHS)
def test_a_call_that_fails_leaves_the_dictionaries_as_they_were(n_rows: int) -> None:
    into = ingestor({"a": "string", "b": "string", "ts": "timestamp"}, "ts")
    dictionaries = [dictionary for _, dictionary in into._strings]
    into.take({"a": ["x"], "b": ["y"], "ts": [0]})
    before = [(list(d.strings), d.bytes) for d in dictionaries]
    new = [f"new{i}" for i in range(n_rows)]
    for b, ts in ((new, [None] * n_rows), (new, ["bad"] * n_rows), ([5] * n_rows, [0] * n_rows), (new, [0] * (n_rows + 1))):
        for rows in (
            {"a": new, "b": b, "ts": ts},
            {"a": np.array(new), "b": b, "ts": ts},
            {"a": pa.array(new), "b": b, "ts": ts},
        ):
            with pytest.raises(RowError):
                into.take(rows)
            assert [(d.strings, d.bytes) for d in dictionaries] == before
    taken = into.take({"a": new, "b": ["y"] * n_rows, "ts": [0] * n_rows})
    assert taken.cells[0].tolist() == list(range(1, n_rows + 1)) and not taken.cells[1].any()


def test_two_columns_may_share_a_dictionary() -> None:
    shared = Dictionary()
    into = Ingestor(Schema.parse({"a": "string", "b": "string"}, "s"), None, [shared] * 2)
    taken = into.take({"a": ["x", "y"], "b": ["y", "z"]})
    assert [cell.tolist() for cell in taken.cells] == [[0, 1], [1, 2]]
    shared.check()


def test_long_lists_are_not_looped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow way is for short lists and for errors: a long good one never calls `scalar`."""
    now = dt.datetime(2024, 5, 6, 7, 8, 9, 10)
    good: dict[str, list[Any]] = {
        "int": [1, 2.0, None, np.int8(3)],
        "float": [1, 2.5, None, np.float32(1)],
        "bool": [True, np.False_, None],
        "string": ["a", None, pd.NA, np.str_("b")],
        "timestamp": [
            1,
            1.5,
            "2024-01-01",
            now,
            now.replace(tzinfo=dt.UTC),
            now.date(),
            pd.Timestamp(now),
            np.datetime64(1, "s"),
            None,
        ],
    }
    for kind, column in good.items():
        expected = take(kind, column)
        into = ingestor({"x": kind})
        monkeypatch.setattr(type(into._converters[0]), "scalar", None)
        assert values(into.take({"x": column * SMALL}), into, 0) == expected * SMALL
        dicts = [{"x": value} for value in column * SMALL]
        assert values(into.take(dicts), into, 0) == expected * SMALL
