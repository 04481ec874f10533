"""Real files become a dataset: sorted by time, ties as they stood, bad rows put aside with their reason."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage.errors import SchemaError
from pipeline.dataset import Dataset, DatasetError
from pipeline.draft import Draft
from pipeline.ingest import IngestedStream, ingest
from pipeline.session import SparkError
from pipeline.source_files import sources_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def ingested(
    spark: SparkSession, out: Path, words: list[str], columns: dict[str, str] | None = None, time: str | None = None, **more: Any
) -> tuple[Dataset, dict[str, IngestedStream]]:  # fmt: skip
    with Draft(out, kind="ingested", seed=None, parameters={}) as draft:
        done = {source.stream: ingest(spark, draft, source, columns, time, **more) for source in sources_of(words, None)}
        return draft.publish({name: one.declared for name, one in done.items()}, {}), done


def rows(dataset: Dataset, stream: str) -> list[dict[str, Any]]:
    return [row for batch in dataset.batches(stream) for row in batch.to_pylist()]


def at(second: float) -> dt.datetime:
    return dt.datetime(2004, 2, 28, tzinfo=dt.UTC) + dt.timedelta(seconds=second)


LAB = """2004-02-28 00:00:03.5 3 1 19.9884 37.0933 45.08 2.69964
2004-02-28 00:00:01.25 2 54 19.3 38.4629  2.68742
2004-02-28 00:00:02 2 65407 294.251   0.0130561
2004-02-28 00:00:02 2 7 19.3
2004-02-99 00:00:02 2 7 19.3 38.4 45.08 2.68
2004-02-28 00:00:02 2 7 warm 38.4 45.08 2.68
"""


def test_the_text_of_the_intel_lab_is_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lab.txt").write_text(LAB)
    dataset, done = ingested(spark, tmp_path / "d", [f"{tmp_path}/lab.txt"])
    assert rows(dataset, "lab") == [
        {"ts": at(1.25), "epoch": 2, "moteid": 54, "temperature": 19.3, "humidity": 38.4629, "light": None, "voltage": 2.68742},
        {"ts": at(3.5), "epoch": 3, "moteid": 1, "temperature": 19.9884, "humidity": 37.0933, "light": 45.08, "voltage": 2.69964},
    ]
    reasons = {"no such mote": 1, "temperature is not float": 1, "ts is not a time": 1, "wrong number of fields": 1}
    assert done["lab"].quarantined == reasons
    aside = pq.read_table(tmp_path / "d" / "quarantine" / "lab.parquet").to_pylist()
    assert {(row["file"], row["reason"], row["text"]) for row in aside} == {
        (str(tmp_path / "lab.txt"), "no such mote", LAB.split("\n")[2]),
        (str(tmp_path / "lab.txt"), "wrong number of fields", LAB.split("\n")[3]),
        (str(tmp_path / "lab.txt"), "ts is not a time", LAB.split("\n")[4]),
        (str(tmp_path / "lab.txt"), "temperature is not float", LAB.split("\n")[5]),
    }


def test_types_of_a_csv_are_those_of_nearly_all_values(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"{1_700_000_000 + n},{n},{n / 4},{'true' if n % 2 else 'false'},r{n},{'' if n == 5 else n}" for n in range(300)]
    lines[7] = "1700000007,seven,1,true,r7,7"
    lines[8] = ",8,2,true,r8,8"
    lines[9] = "1700000009,9"
    (tmp_path / "a b[1].csv").write_text("at,n,x,on,room,gap\n" + "\n".join(lines) + "\n")
    dataset, done = ingested(spark, tmp_path / "d", [f"s={tmp_path}/a b[1].csv"], time="at")
    assert dict(dataset.stream("s").columns) == {
        "at": "timestamp", "n": "int", "x": "float", "on": "bool", "room": "string", "gap": "int",
    }  # fmt: skip
    found = rows(dataset, "s")
    assert [row["n"] for row in found] == [n for n in range(300) if n not in (7, 8, 9)]
    assert found[5]["gap"] is None and found[0]["at"] == dt.datetime.fromtimestamp(1_700_000_000, dt.UTC)
    assert done["s"].quarantined == {"n is not int": 1, "no time": 1, "wrong number of fields": 1}


def test_rows_are_sorted_and_ties_keep_the_order_of_the_files_however_it_is_cut(spark: SparkSession, tmp_path: Path) -> None:
    draw = random.Random(1)
    times = [draw.randrange(50) * 1000 for _ in range(3000)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us")), "n": range(3000)})
    pq.write_table(table.slice(0, 2000), tmp_path / "z.parquet", row_group_size=300)
    pq.write_table(table.slice(2000), tmp_path / "a.parquet", row_group_size=300)
    words = [f"s={tmp_path}/z.parquet", f"s={tmp_path}/a.parquet"]
    expected = sorted(range(3000), key=lambda n: times[n])
    for number, (part_bytes, chunk_rows, n_chunks) in enumerate(((1 << 27, 10**6, 1), (4096, 500, 7))):
        spark.conf.set("spark.sql.files.maxPartitionBytes", part_bytes)
        try:
            dataset, _ = ingested(spark, tmp_path / f"d{number}", words, chunk_rows=chunk_rows)
        finally:
            spark.conf.unset("spark.sql.files.maxPartitionBytes")
        assert [row["n"] for row in rows(dataset, "s")] == expected
        assert len(dataset.stream("s").chunks) == n_chunks


def test_times_may_be_nanoseconds_or_numbers(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([2_000_999, -1], pa.timestamp("ns"))}), tmp_path / "ns.parquet")
    pq.write_table(pa.table({"ts": [1_700_000_000_001, 1_700_000_000_000]}), tmp_path / "ms.parquet")
    dataset, _ = ingested(spark, tmp_path / "d", [f"{tmp_path}/ns.parquet", f"{tmp_path}/ms.parquet"], time="ts")
    assert (dataset.stream("ns").first, dataset.stream("ns").last) == (-1, 2000)
    assert (dataset.stream("ms").first, dataset.stream("ms").last) == (1_700_000_000_000_000, 1_700_000_000_001_000)


def test_declared_columns_are_taken_alone_and_as_they_are_declared(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("at,code,x\n1000,007,1\n2000,008,oops\n")
    columns = {"at": "timestamp", "code": "string", "x": "float"}
    dataset, done = ingested(spark, tmp_path / "d", [f"{tmp_path}/s.csv"], columns)
    assert rows(dataset, "s") == [{"at": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), "code": "007", "x": 1.0}]
    assert done["s"].quarantined == {"x is not float": 1}


@pytest.mark.parametrize(
    ("columns", "time", "words"),
    [
        ({"ts": "timestamp", "on": "float"}, None, '"on" of stream "s" is bool, which is no float'),
        ({"ts": "timestamp", "onn": "bool"}, None, 'no column "onn"'),
        (None, "on", 'the time column "on" of stream "s" is bool'),
        (None, "tss", 'no column "tss"'),
        ({"on": "bool"}, None, "is the time is not plain"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    spark: SparkSession, tmp_path: Path, columns: dict[str, str] | None, time: str | None, words: str
) -> None:
    pq.write_table(pa.table({"ts": pa.array([1], pa.timestamp("us")), "on": [True]}), tmp_path / "s.parquet")
    with pytest.raises(SchemaError, match=words):
        ingested(spark, tmp_path / "d", [f"{tmp_path}/s.parquet"], columns, time)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.parquet"]


def test_a_file_of_which_no_row_fits_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("at,x\n1000,a\n2000,b\n")
    with pytest.raises(DatasetError, match="does not fit its columns") as caught:
        ingested(spark, tmp_path / "d", [f"{tmp_path}/s.csv"], {"at": "timestamp", "x": "float"})
    assert caught.value.detail == "2 rows: x is not float"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.csv"]


@pytest.mark.parametrize(
    ("failure", "words", "code"),
    [
        ("java.io.IOException: No space left on device", "the disk is full", "disk_full"),
        ("a plain failure", "a Spark job failed", "spark"),
    ],
)
def test_a_job_that_fails_is_told_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, failure: str, words: str, code: str
) -> None:
    from pipeline.chunks import write_chunks
    from pipeline.draft import Declared

    failing = spark.range(100).selectExpr(f"timestamp_micros(IF(id < 90, id, raise_error('{failure}'))) AS ts")
    with (
        pytest.raises((DatasetError, SparkError), match=words) as caught,
        Draft(tmp_path / "d", kind="sensors", seed=1, parameters={}) as draft,
    ):
        write_chunks(failing, draft, "s", Declared({"ts": "timestamp"}, "ts"))
    assert caught.value.code == code and list(tmp_path.iterdir()) == []
