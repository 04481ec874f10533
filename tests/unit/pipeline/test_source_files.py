"""Files are refused by name before Spark starts, or become the rows that `eddy push` would take."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage.csv_cells import read
from lineage.csv_form import CsvForm
from lineage.csv_rows import decode
from lineage.errors import EddyError, SchemaError
from lineage.schema import Column, Type
from pipeline import csv_sql
from pipeline.dataset import DatasetError
from pipeline.draft import Draft
from pipeline.ingest import ingest
from pipeline.source_files import naive_times, sources_of
from tests.reference.csv_styles import ROWS, styled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


# -- CSV files in all forms become the rows that `eddy push` would take: Spark's cells are those of `lineage/csv_cells.py` ---


FORMS: dict[str, tuple[dict[str, Any], str | None]] = {
    "weather.csv": ({"time": "ts=year,month,day,hour"}, None),
    "air.csv": ({"time": "ts=year,month,day,hour", "rename": ["PM2.5=pm25"], "tz": "Asia/Shanghai"}, None),
    "conn.log": (
        {
            "names": "ts,uid,id.orig_h,id.orig_p,id.resp_h,id.resp_p,proto,service,duration,local_orig,state",
            "null": ["-"],
            "delimiter": "tab",
        },
        "ts",
    ),
    "stock.csv": ({"time_format": "%d.%m.%Y", "decimal": ","}, "Datum"),
    "trips.csv": ({"tz": "America/New_York"}, "pickup"),
    "flights.csv": ({}, "time"),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", [name if name == "trips.csv" else pytest.param(name, marks=pytest.mark.slow) for name in FORMS])
def test_a_styled_file_gives_the_rows_that_a_push_takes(name: str, spark: SparkSession, tmp_path: Path) -> None:
    texts, time = FORMS[name]
    (tmp_path / name).write_bytes(styled(name))
    (source,) = sources_of([f"s={tmp_path}/{name}"], "csv", texts)
    with Draft(tmp_path / "d", kind="ingested", seed=None, parameters={}) as draft:
        done = ingest(spark, draft, source, None, time)
        dataset = draft.publish({"s": done.declared}, {})
    assert done.quarantined == {}
    found = pa.Table.from_batches(dataset.batches("s")).to_pylist()
    assert len(found) == ROWS
    types = dict(dataset.stream("s").columns)
    if name == "conn.log":
        types["ts"] = "timestamp[s]"
    wanted = decode(styled(name), types, source.form).table
    key = dataset.stream("s").time
    rows = sorted(wanted.to_pylist(), key=lambda row: row[key])
    for one, other in zip(found, rows):
        for column, value in other.items():
            value = value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value
            assert one[column] == value, column


CELLS = [
    "", " ", "NA", " NA ", "-", "n/a", "1", " 1", "1.5", "1e3", "+1", "0x1", "nan", "inf", "-inf", "1f", "1d", "true",
    "T", "f", "Yes", "y",
    "1700000000", "1700000000.25", "2024-05-01", "2024-05-01 10:00", "2024-05-01T10:00:00+02:00",
    "2024-05-01T10:00:00.123456Z", "12:30",
    "2024", "2024-5-1", "9" * 30, "x", "1,5", "-5", "-5.5", "2024-03-31 02:30", "2024-10-27 02:30", "31/12/2024",
    "1/2/2024", "30/2/2024",
    "it's", "back\\slash", "2024-02-30",
]  # fmt: skip


FORMS_OF_CELLS: list[dict[str, Any]] = [
    {},
    {"tz": "Europe/Berlin", "null": ["n/a", "it's"]},
    {"time_format": "%d/%m/%Y", "tz": "Europe/Berlin"},
    {"decimal": ",", "delimiter": ";"},
]
COLUMNS = [
    Column("i", Type.INT), Column("f", Type.FLOAT), Column("s", Type.STRING), Column("b", Type.BOOL), Column("t", Type.TIMESTAMP),
    Column("u", Type.TIMESTAMP, "s"),
]  # fmt: skip


def _sql(column: Column, form: CsvForm, text: str = "value") -> str:
    value = csv_sql.typed(csv_sql.cell(text, column.type, form), column.type, column.unit, form)
    return f"unix_micros({value})" if column.type is Type.TIMESTAMP else value


def _read(texts: list[str], column: Column, form: CsvForm) -> list[Any]:
    cells, _ = read(pa.array(texts), column.declared, form)
    found: list[Any] = (cells.view(pa.int64()) if column.type is Type.TIMESTAMP else cells).to_pylist()
    return found


@pytest.mark.spark
def test_a_cell_means_in_spark_what_it_means_to_a_push(spark: SparkSession) -> None:
    forms = [CsvForm.parse(**texts) for texts in FORMS_OF_CELLS]
    values = [f"{_sql(column, form)} AS {column.name}{n}" for n, form in enumerate(forms) for column in COLUMNS]
    found = spark.createDataFrame([(text,) for text in CELLS], "value STRING").selectExpr(*values).collect()
    for n, form in enumerate(forms):
        for column in COLUMNS:
            for text, wanted, row in zip(CELLS, _read(CELLS, column, form), found):
                assert str(row[f"{column.name}{n}"]) == str(wanted), (text, column.declared, form)


FORMATS = [
    ("%Y-%m-%d %H:%M:%S", "2024-05-01 10:11:12"), ("%b %d, %Y %I:%M %p", "May 1, 2024 12:05 am"), ("%Y-%j", "2024-366"),
    ("%Y-%j", "2023-366"), ("%d/%b/%Y:%H:%M:%S %z", "01/May/2024:10:11:12 -0330"), ("%m/%d/%y", "5/1/70"), ("%d %B %Y",
     "1 may 2024"),
    ("%Y-%m-%dT%H:%M:%S.%f", "2024-05-01T10:11:12.5"), ("%Y-%m-%d", "2023-02-29"), ("%F %T%z", "2024-05-01 10:11:12Z"),
]  # fmt: skip


@pytest.mark.spark
def test_a_format_reads_in_spark_what_it_reads_in_a_push(spark: SparkSession) -> None:
    moment = COLUMNS[4]
    forms = [CsvForm.parse(time_format=format_) for format_, _ in FORMATS]
    values = [f"{_sql(moment, form, csv_sql.literal(text))} AS t{n}" for n, (form, (_, text)) in enumerate(zip(forms, FORMATS))]
    row = spark.range(1).selectExpr(*values).first()
    assert row is not None
    for n, (form, (_, text)) in enumerate(zip(forms, FORMATS)):
        assert row[f"t{n}"] == _read([text], moment, form)[0], text


@pytest.mark.spark
def test_what_makes_no_sense_is_refused_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a;b\n1;2\n")
    assert sources_of([f"{tmp_path}/s.csv"], None)[0].stored == {"a": "text", "b": "text"}
    for texts, words in (
        ({"tz": "Mars/Olympus"}, "no zone"),
        ({"rename": ["x=y"]}, 'no column "x"'),
        ({"time": "a=b"}, "already"),
    ):
        with pytest.raises(EddyError, match=words):
            sources_of([f"{tmp_path}/s.csv"], None, texts)


@pytest.mark.spark
def test_times_without_a_zone_are_seen_before_spark_starts(tmp_path: Path) -> None:
    for name, (texts, _) in FORMS.items():
        (tmp_path / name).write_bytes(styled(name))
        (source,) = sources_of([f"s={tmp_path}/{name}"], "csv", texts)
        assert naive_times(source) == {"weather.csv": ["ts"], "stock.csv": ["Datum"]}.get(name, []), name
