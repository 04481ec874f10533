"""Vectors: what they hold, hand out, and how pieces of them are put together."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from filters.values.vector import ListFrame, Vector, assemble, strings_array
from lineage.schema import Type


def test_to_pylist_gives_python_values_and_utc_datetimes() -> None:
    moments = Vector(Type.TIMESTAMP, np.array([1_500_000, 0]), np.array([False, True]))
    assert moments.to_pylist() == [datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), None]
    assert Vector.of_strings(["a", None, "a"]).to_pylist() == ["a", None, "a"]
    assert Vector.constant(Type.NULL, None, 2).to_pylist() == [None, None]


def test_a_timestamp_beyond_datetime_is_text() -> None:
    assert Vector(Type.TIMESTAMP, np.array([10**18])).to_pylist() == ["33658-09-27 01:46:40"]


@pytest.mark.parametrize(
    ("type", "value", "arrow"),
    [
        (Type.INT, 5, pa.int64()),
        (Type.FLOAT, 0.5, pa.float64()),
        (Type.STRING, "é", pa.string()),
        (Type.BOOL, True, pa.bool_()),
        (Type.TIMESTAMP, 7, pa.timestamp("us", tz="UTC")),
        (Type.NULL, None, pa.null()),
    ],
)
def test_to_arrow_has_the_contracts_types(type: Type, value: object, arrow: pa.DataType) -> None:
    for n in (0, 2):
        array = Vector.constant(type, value, n).to_arrow()
        assert array.type == arrow
        assert len(array) == n
    nulls = Vector.constant(type, None, 2).to_arrow()
    assert nulls.type == arrow
    assert nulls.null_count == 2


def test_to_arrow_keeps_values_and_nulls() -> None:
    assert Vector.of_strings(["a", None, "b", "a"]).to_arrow().to_pylist() == ["a", None, "b", "a"]
    moments = Vector(Type.TIMESTAMP, np.array([5, 6]), np.array([False, True])).to_arrow()
    assert moments.cast(pa.int64()).to_pylist() == [5, None]


def test_take_accepts_positions_and_masks() -> None:
    vector = Vector.of_strings(["a", None, "c"])
    assert vector.take(np.array([2, 1, 2])).to_pylist() == ["c", None, "c"]
    assert vector.take(np.array([True, False, True])).to_pylist() == ["a", "c"]


@pytest.mark.parametrize("size", [4, 1000])
def test_compact_lists_only_the_strings_that_occur(size: int) -> None:
    dictionary = strings_array([str(n) for n in range(size)])
    vector = Vector(Type.STRING, np.array([3, 1, 3, 99_999]), np.array([False, False, False, True]), dictionary)
    texts, places = vector.compact()
    assert sorted(texts) == ["1", "3"]
    assert [texts[place] for place in places[:3]] == ["3", "1", "3"]


def test_assemble_fills_the_named_rows_and_leaves_the_rest_null() -> None:
    ints = Vector(Type.INT, np.array([1, 2]))
    found = assemble(Type.FLOAT, 4, [(np.array([3, 0]), ints), (np.array([1]), Vector.constant(Type.NULL, None, 1))])
    assert found.to_pylist() == [2.0, None, None, 1.0]


def test_assemble_keeps_a_shared_dictionary_and_merges_different_ones() -> None:
    text = Vector.of_strings(["a", "b"])
    shared = assemble(Type.STRING, 2, [(np.array([0]), text.take(np.array([1]))), (np.array([1]), text.take(np.array([0])))])
    assert shared.dictionary is text.dictionary
    assert shared.to_pylist() == ["b", "a"]
    with_null = assemble(Type.STRING, 3, [(np.array([0, 2]), text), (np.array([1]), Vector.constant(Type.STRING, None, 1))])
    assert with_null.dictionary is text.dictionary
    assert with_null.to_pylist() == ["a", None, "b"]
    mixed = assemble(Type.STRING, 3, [(np.array([0, 2]), text), (np.array([1]), Vector.of_strings(["b"]))])
    assert mixed.to_pylist() == ["a", "b", "b"]
    assert mixed.dictionary is not None and sorted(mixed.dictionary) == ["a", "b"]


def test_a_selection_gathers_columns_and_counts_its_own_errors() -> None:
    frame = ListFrame([Vector(Type.INT, np.array([10, 20, 30]))])
    selection = frame.select(np.array([2, 0])).select(np.array([1]))
    selection.errors += 1
    assert selection.n_rows == 1
    assert selection.column(0).to_pylist() == [10]
    assert frame.errors == 0
