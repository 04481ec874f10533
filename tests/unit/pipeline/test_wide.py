"""Rows of several kinds in one table come back as they were."""

from __future__ import annotations

import pyarrow as pa

from pipeline.wide import Wide

KINDS = {
    "a": {"x": "int", "y": "string", "Z": "bool"},
    "b": {"x": "float", "y": "string", "row": "int"},
    "c": {"X": "int", "z": "bool", "x_int": "string"},
}


def test_every_column_of_every_kind_has_a_place_and_none_has_two_types() -> None:
    wide = Wide("stream", {"row": "int"}, KINDS)
    assert wide.columns == {
        "stream": "string", "row": "int", "x_int_": "int", "y": "string", "Z": "bool", "x_float": "float", "row_int": "int",
        "x_int": "string",
    }  # fmt: skip


def test_rows_come_back_from_the_wide_table_as_they_were() -> None:
    wide = Wide("stream", {"row": "int"}, KINDS)
    given = {
        "a": pa.table({"x": [1, None], "y": ["p", None], "Z": [True, None]}),
        "b": pa.table({"x": [1.5, None], "y": [None, "q"], "row": [7, 8]}),
        "c": pa.table({"X": [5], "z": [False], "x_int": ["s"]}),
    }
    tables = [wide.widen(kind, rows, {"row": pa.array(range(rows.num_rows))}) for kind, rows in given.items()]
    assert {table.schema for table in tables} == {wide.schema}
    for (kind, rows), table in zip(given.items(), tables):
        assert wide.narrow(kind, table).equals(rows)
        assert table.column("stream").to_pylist() == [kind] * rows.num_rows
        assert table.column("row").to_pylist() == list(range(rows.num_rows))
