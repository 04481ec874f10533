"""Files that cannot be used are refused before Spark starts, by name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage.errors import EddyError, SchemaError
from pipeline.dataset import DatasetError
from pipeline.source_files import sources_of

INTEL = "2004-02-28 00:59:16.02785 3 1 19.9884 37.0933 45.08 2.69964\n"


def test_streams_are_named_by_words_or_by_files(tmp_path: Path) -> None:
    for name in ("a-1.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text("ts,x\n")
    found = sources_of([f"{tmp_path}/a-1.csv", f"z={tmp_path}/b.csv", f"z={tmp_path}/c.csv"], None)
    assert [(source.stream, [file.name for file in source.files]) for source in found] == [
        ("a_1", ["a-1.csv"]),
        ("z", ["b.csv", "c.csv"]),
    ]
    assert found[0].format == "csv" and found[0].stored == {"ts": "text", "x": "text"}


def test_a_compressed_file_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "lab.txt.gz").write_bytes(gzip.compress(INTEL.encode()))
    (found,) = sources_of([f"{tmp_path}/lab.txt.gz"], None)
    assert found.format == "intel" and list(found.stored)[:3] == ["ts", "epoch", "moteid"]


def test_types_of_parquet_are_known(tmp_path: Path) -> None:
    table = pa.table(
        {
            "a": pa.array([1], pa.timestamp("ns")),
            "b": pa.array([1], pa.timestamp("ms", "UTC")),
            "c": pa.array([1], pa.int16()),
            "d": pa.array([True]),
            "e": pa.array(["x"], pa.large_string()),
            "f": pa.array([1.5], pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    (found,) = sources_of([f"{tmp_path}/t.parquet"], None)
    assert list(found.stored.values()) == ["nanoseconds", "timestamp", "int", "bool", "text", "float"]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.98])
def test_a_truncated_parquet_is_named(tmp_path: Path, share: float) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"ts": pa.array([1, 2], pa.timestamp("us"))}), path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(DatasetError, match=r"t\.parquet cannot be read") as caught:
        sources_of([str(path)], None)
    assert caught.value.code == "bad_file" and caught.value.detail


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "", r"a\.csv is empty"),
        ("a.csv", "x,x\n", "two columns of one name"),
        ("a.csv", "my column,my_column\n", "would be one column"),
        ("a.txt", "hello\n", "not in the Intel lab's format"),
        ("a.xls", "x", 'the format of "a.xls" is not known'),
        ("b.csv", None, r"b\.csv cannot be read"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, name: str, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(EddyError, match=words):
        sources_of([str(tmp_path / name)], None)


def test_files_of_one_stream_have_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,x\n")
    (tmp_path / "b.csv").write_text("ts,y\n")
    with pytest.raises(SchemaError, match="do not have the same columns"):
        sources_of([f"s={tmp_path}/a.csv", f"s={tmp_path}/b.csv"], None)


def test_nested_columns_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1], "tags": [["a"]]}), tmp_path / "t.parquet")
    with pytest.raises(SchemaError, match=r'column "tags" of .*t\.parquet has type list'):
        sources_of([f"{tmp_path}/t.parquet"], None)


def test_a_format_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SchemaError, match='no format "xml"'):
        sources_of(["a.xml"], "xml")
