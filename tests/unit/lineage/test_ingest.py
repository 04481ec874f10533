"""Rows in every accepted form become cells; a call of another shape is refused."""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage import ingest as ingest_module
from lineage.dictionary import SMALL
from lineage.errors import LimitError, RowError
from lineage.times import to_datetime, to_us
from tests.unit.lineage.ingested import LENGTHS, READINGS, ingestor, refused, take, values

# ---- forms of a whole call ----

ROWS = [
    {"sensor": 1, "room": "a", "temp": 31.5, "ok": True, "ts": 1000},
    {"sensor": 2, "room": "b", "temp": None, "ok": None, "ts": 2000},
    {"sensor": None, "room": None, "temp": -1.0, "ok": False, "ts": 3000},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in READINGS}


def _as_pandas_3(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    """The frame that pandas 3 makes: strings have a type of their own. Spark keeps the tests at pandas 2."""
    with pd.option_context("future.infer_string", True):
        return pd.DataFrame(columns)


def forms(times: int) -> dict[str, Any]:
    rows = ROWS * times
    columns = {name: [row[name] for row in rows] for name in READINGS}
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    return {
        "dict of lists": columns,
        "dict of tuples": {name: tuple(column) for name, column in columns.items()},
        "dict of deques": {name: collections.deque(column) for name, column in columns.items()},
        "ordered dict": collections.OrderedDict(columns),
        "another case": {name.upper(): column for name, column in columns.items()},
        "list of dicts": rows,
        "list of other mappings": [collections.ChainMap(row) for row in rows],
        "list of dicts in another case": [{name.title(): value for name, value in row.items()} for row in rows],
        "list of dicts without None": [{name: value for name, value in row.items() if value is not None} for row in rows],
        "dict of object arrays": {name: np.array(column, object) for name, column in columns.items()},
        "dict of masked arrays": {
            name: np.ma.array([column[0] if v is None else v for v in column], mask=[v is None for v in column])
            if name != "room"
            else column
            for name, column in columns.items()
        },
        "dict of arrow arrays": dict(zip(table.column_names, table.columns)),
        "table": table,
        "chunked table": pa.concat_tables([table.slice(0, 2), table.slice(2)]),
        "record batch": table.combine_chunks().to_batches()[0],
        "reader": table.to_reader(2),
        "pandas": pd.DataFrame(columns),
        "pandas 3": _as_pandas_3(columns),
        "pandas nullable": pd.DataFrame(columns).convert_dtypes(),
        "pandas arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas index": pd.DataFrame(columns, index=[f"i{i}" for i in range(len(rows))]),
        "dict of pandas series": dict(pd.DataFrame(columns).items()),
        "polars": pl.DataFrame(columns),
        "dict of polars series": {name: pl.Series(column) for name, column in columns.items()},
    }


@pytest.mark.parametrize("times", [1, SMALL])
@pytest.mark.parametrize("form", forms(1))
def test_all_forms_of_the_same_rows_give_the_same_cells(form: str, times: int) -> None:
    into = ingestor(READINGS, "ts")
    taken = into.take(forms(times)[form])
    assert taken.n_rows == 3 * times
    got = {name: values(taken, into, i) for i, name in enumerate(READINGS)}
    assert got == {name: column * times for name, column in COLUMNS.items()} | {"ts": [1_000_000, 2_000_000, 3_000_000] * times}
    assert taken.nulls[4] is None


@pytest.mark.parametrize(
    "rows", [[], {}, {"a": []}, {"a": np.empty(0)}, pa.table({"a": pa.array([], pa.int8())}), pl.DataFrame({"a": []})]
)
def test_no_rows_are_no_rows(rows: Any) -> None:
    taken = ingestor({"a": "int", "b": "string", "c": "float"}).take(rows)
    assert taken.n_rows == 0 and [len(cell) for cell in taken.cells] == [0, 0, 0] and taken.nulls == [None, None, None]


@pytest.mark.parametrize("n_rows", LENGTHS)
def test_a_column_that_is_not_given_is_null(n_rows: int) -> None:
    into = ingestor(READINGS)
    taken = into.take({"temp": [1.0] * n_rows})
    assert values(taken, into, 2) == [1.0] * n_rows
    for i in (0, 1, 3, 4):
        assert values(taken, into, i) == [None] * n_rows
    taken = into.take([{"temp": 1.0}] * n_rows)
    assert values(taken, into, 0) == [None] * n_rows


def test_arrays_that_need_no_change_come_back_as_they_are() -> None:
    into = ingestor({"i": "int", "j": "int", "f": "float", "b": "bool"})
    given_ = {"i": np.arange(3), "j": np.arange(3, dtype=np.int32), "f": np.arange(3.0), "b": np.ones(3, bool)}
    taken = into.take(given_)
    assert all(cell is column for cell, column in zip(taken.cells, given_.values()))


def test_an_arrow_column_of_int64_is_not_copied() -> None:
    column = pa.array(range(1000), pa.int64())
    cells = ingestor({"i": "int"}).take({"i": column}).cells[0]
    assert cells.ctypes.data == column.buffers()[1].address


# ---- errors about the shape of a call ----


def test_an_unknown_column_is_named_with_its_nearest() -> None:
    into = ingestor(READINGS)
    for rows in ({"sensor": [1], "tmep": [1.0]}, [{"sensor": 1, "tmep": 1.0}], pa.table({"tmep": [1.0]})):
        with pytest.raises(RowError) as caught:
            into.take(rows)
        assert caught.value.code == "unknown_column" and caught.value.column == "tmep"
        assert caught.value.fact == 'column "tmep" does not exist' and caught.value.hint == 'did you mean "temp"?'


def test_an_unknown_column_of_a_list_of_dicts_names_its_row() -> None:
    with pytest.raises(RowError) as caught:
        ingestor({"a": "int"}).take([{"a": 1}, {"a": 1}, {"b": 1}])
    assert caught.value.row == 2


@pytest.mark.parametrize("rows", [{"a": [1], "A": [2]}, [{"a": 1, "A": 2}], pa.table([[1], [2]], names=["a", "a"])])
def test_a_column_given_twice_is_refused(rows: Any) -> None:
    with pytest.raises(RowError) as caught:
        ingestor({"a": "int", "b": "int"}).take(rows)
    assert caught.value.code == "duplicate_column"


def test_ragged_columns_are_refused() -> None:
    with pytest.raises(RowError) as caught:
        ingestor({"a": "int", "b": "int", "c": "string"}).take({"a": [1, 2], "b": [1, 2], "c": ["x"]})
    assert caught.value.code == "ragged_columns" and caught.value.column == "c"
    assert caught.value.fact == 'column "c" has 1 values, the columns before it have 2'


@pytest.mark.parametrize(
    "value", [1, "a", b"a", None, 1.5, np.int64(1), {"k": 1}, {1, 2}, np.array(5), np.zeros((2, 2)), (v for v in [1])]
)
def test_one_row_as_a_dict_of_scalars_is_refused_with_a_hint(value: Any) -> None:
    for kind in ("int", "string", "timestamp"):
        error = refused(kind, value)
        assert error.code == "not_a_column" and '[{"a": 1}]' in error.hint


@pytest.mark.parametrize("rows", [5, None, "rows", (v for v in [{}]), np.zeros(2, [("a", int)]), object(), b"", pa.array([1])])
def test_what_holds_no_rows_is_refused(rows: Any) -> None:
    with pytest.raises(RowError) as caught:
        ingestor({"a": "int"}).take(rows)
    assert caught.value.code == "not_rows"


def test_a_list_with_something_else_than_a_dict_names_it() -> None:
    with pytest.raises(RowError) as caught:
        ingestor({"a": "int"}).take([{"a": 1}, 7])
    assert (caught.value.code, caught.value.row, caught.value.fact) == ("not_rows", 1, "7 is not a dict")


def test_a_call_has_a_limit_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ingest_module.MAX_ROWS == 10_000_000
    monkeypatch.setattr(ingest_module, "MAX_ROWS", 3)
    into = ingestor({"a": "int"})
    table = pa.table({"a": range(4)})
    for rows in ({"a": range(4)}, [{"a": 1}] * 4, table, table.to_reader(1), pl.DataFrame(table)):
        with pytest.raises(LimitError, match="4 rows in one call, more than 3") as caught:
            into.take(rows)
        assert caught.value.code == "too_many_rows"
    assert into.take({"a": range(3)}).n_rows == 3


def test_a_missing_time_column_is_refused() -> None:
    into = ingestor(READINGS, "ts")
    with pytest.raises(RowError) as caught:
        into.take({"sensor": [1]})
    assert (caught.value.code, caught.value.column) == ("missing_time", "ts")


@pytest.mark.parametrize("n_rows", LENGTHS)
def test_a_time_that_is_null_is_refused(n_rows: int) -> None:
    into = ingestor({"a": "int", "ts": "timestamp"}, "ts")
    times: list[Any] = [1000] * n_rows
    good = {"a": [1] * n_rows, "ts": times}
    assert into.take(good).n_rows == n_rows
    for null in (None, pd.NaT, pd.NA, np.datetime64("NaT")):
        for rows in (
            {"a": [1] * (n_rows + 2), "ts": [*times, null, "abc"]},
            [{"ts": 1000}] * n_rows + [{"ts": null}, {"ts": None}],
        ):
            with pytest.raises(RowError) as caught:
                into.take(rows)
            assert (caught.value.code, caught.value.row, caught.value.column) == ("null_time", n_rows, "ts")
    for column in (
        pa.array([*times, None]),
        np.array([*times, "NaT"], "M8[ms]"),
        pd.Series([*times, None]),
        pa.nulls(n_rows + 1),
    ):
        with pytest.raises(RowError) as caught:
            into.take({"ts": column})
        assert caught.value.code == "null_time"
    with pytest.raises(RowError) as caught:
        into.take([{"a": 1}] * n_rows)
    assert (caught.value.code, caught.value.row) == ("null_time", 0)


# ---- any accepted input comes back ----

MOMENTS = st.datetimes() | st.datetimes(timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-7, minutes=-30))]))
ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**53), 2**53).map(float) | st.integers(-128, 127).map(np.int8),
    "float": st.floats(allow_nan=False) | st.integers(-(2**70), 2**70) | st.floats(width=32, allow_nan=False).map(np.float32),
    "bool": st.booleans() | st.booleans().map(np.bool_),
    "string": st.text(st.characters(codec="utf-8"), max_size=4),
    "timestamp": st.integers(-(10**13), 10**13) | MOMENTS.filter(lambda moment: 2 <= moment.year < 9999) | st.floats(-1e12, 1e12),
}


def meaning(kind: str, value: Any) -> Any:
    if value is None:
        return None
    return {"int": int, "float": float, "bool": bool, "string": str, "timestamp": to_us}[kind](value)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(ELEMENTS)), st.sampled_from([1, SMALL + 1]))
def test_any_good_column_comes_back_in_every_form(data: st.DataObject, kind: str, times: int) -> None:
    column = data.draw(st.lists(ELEMENTS[kind] | st.none(), max_size=5)) * times
    expected = [meaning(kind, value) for value in column]
    assert take(kind, column) == expected
    assert take(kind, np.array([*column, None], object)[:-1]) == expected
    arrow_type = {
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "string": pa.string(),
        "timestamp": pa.timestamp("us"),
    }[kind]
    plain = (
        [None if value is None else to_datetime(value).replace(tzinfo=None) for value in expected]
        if kind == "timestamp"
        else expected
    )
    arrow = pa.array(plain, arrow_type)
    assert take(kind, arrow) == expected
    assert take(kind, pa.chunked_array([arrow.slice(0, 2), arrow.slice(2)])) == expected
    assert take(kind, pl.Series(plain, dtype=pl.from_arrow(arrow).dtype)) == expected
    into = ingestor({"x": kind})
    assert values(into.take([{"x": value} for value in column]), into, 0) == expected
