"""A dataset is read in order, and whatever is wrong with it is said with the file's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage.errors import NotFoundError
from pipeline.dataset import Dataset, DatasetError, times_of
from tests.unit.pipeline.writing import rows, write_dataset

CHUNKS = [[10, 20, 20], [30, 40], [55]]


def times(dataset: Dataset, **options: Any) -> list[int]:
    return [t for batch in dataset.batches("readings", **options) for t in times_of(batch, "ts").tolist()]


def test_streams_and_chunks_are_those_that_were_written(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", CHUNKS)
    dataset = Dataset.open(tmp_path / "d")
    stream = dataset.stream("readings")
    assert (dataset.kind, dataset.seed, dataset.parameters) == ("sensors", 7, {"sensors": 3})
    assert (stream.rows, stream.first, stream.last, stream.time, stream.key) == (6, 10, 55, "ts", None)
    assert [(chunk.path, chunk.rows, chunk.first, chunk.last) for chunk in stream.chunks] == [
        ("readings/chunk=000000.parquet", 3, 10, 20),
        ("readings/chunk=000001.parquet", 2, 30, 40),
        ("readings/chunk=000002.parquet", 1, 55, 55),
    ]


def test_batches_give_the_rows_in_order_whatever_their_size(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "d", CHUNKS)
    for batch_rows in (1, 2, 100):
        read = pa.Table.from_batches(dataset.batches("readings", batch_rows=batch_rows))
        assert read.equals(pa.concat_tables([rows(chunk) for chunk in CHUNKS]))


@pytest.mark.parametrize(("from_us", "expected"), [(0, 6), (20, 5), (21, 3), (40, 2), (41, 1), (56, 0)])
def test_reading_begins_at_a_time(tmp_path: Path, from_us: int, expected: int) -> None:
    dataset = write_dataset(tmp_path / "d", CHUNKS)
    assert times(dataset, from_us=from_us, batch_rows=2) == sum(CHUNKS, [])[6 - expected :]


@pytest.mark.parametrize("from_row", range(8))
def test_reading_begins_at_a_row(tmp_path: Path, from_row: int) -> None:
    dataset = write_dataset(tmp_path / "d", CHUNKS)
    assert times(dataset, from_row=from_row, batch_rows=2) == sum(CHUNKS, [])[from_row:]


def test_some_columns_can_be_read_alone(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "d", CHUNKS)
    assert next(dataset.batches("readings", columns=["ts", "temp"])).schema.names == ["ts", "temp"]


def test_a_stream_may_be_empty(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "d", [])
    stream = dataset.stream("readings")
    assert (stream.rows, stream.first, stream.last, times(dataset)) == (0, None, None, [])


def test_a_stream_that_is_not_there_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "d", CHUNKS)
    with pytest.raises(NotFoundError, match='no stream "reading"') as caught:
        next(dataset.batches("reading"))
    assert caught.value.hint == 'did you mean "readings"?'


def test_a_folder_without_a_manifest_is_no_dataset(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", CHUNKS)
    (tmp_path / "d" / "dataset.json").unlink()
    with pytest.raises(DatasetError, match="is no dataset"):
        Dataset.open(tmp_path / "d")


def test_a_folder_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no dataset"):
        Dataset.open(tmp_path / "d")


def edited(stream: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**stream, **changes}


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: "{",
        lambda m: [],
        lambda m: {**m, "format": 2},
        lambda m: {key: value for key, value in m.items() if key != "streams"},
        lambda m: {**m, "streams": {"readings": edited(m["streams"]["readings"], time="sensor")}},
        lambda m: {**m, "streams": {"readings": edited(m["streams"]["readings"], columns={"ts": "date"})}},
        lambda m: {**m, "streams": {"readings": edited(m["streams"]["readings"], rows=5)}},
        lambda m: {
            **m,
            "streams": {"readings": edited(m["streams"]["readings"], chunks=m["streams"]["readings"]["chunks"][::-1])},
        },
        lambda m: {
            **m,
            "streams": {
                "readings": edited(
                    m["streams"]["readings"],
                    chunks=[{**c, "path": f"../{c['path']}"} for c in m["streams"]["readings"]["chunks"]],
                )
            },
        },
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, edit: Any) -> None:
    write_dataset(tmp_path / "d", CHUNKS)
    file = tmp_path / "d" / "dataset.json"
    changed = edit(json.loads(file.read_text()))
    file.write_text(changed if isinstance(changed, str) else json.dumps(changed))
    with pytest.raises(DatasetError, match=r"dataset\.json is damaged"):
        Dataset.open(tmp_path / "d")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_chunk_is_named(tmp_path: Path, share: float) -> None:
    dataset = write_dataset(tmp_path / "d", CHUNKS)
    path = tmp_path / "d" / "readings" / "chunk=000001.parquet"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(DatasetError, match=r"chunk=000001\.parquet cannot be read"):
        times(dataset)


def test_a_missing_chunk_is_named(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "d", CHUNKS)
    (tmp_path / "d" / "readings" / "chunk=000001.parquet").unlink()
    with pytest.raises(DatasetError, match=r"chunk=000001\.parquet is missing"):
        times(dataset)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (rows([30]), "has 1 rows instead of 2"),
        (rows([30, 40]).drop_columns(["room"]), "has the columns ts, sensor, temp, on instead of"),
        (rows([30, 40]).set_column(1, "sensor", pa.array([1.0, 2.0])), '"sensor" of .* has type double instead of int64'),
        (rows([40, 30]), 'is not in the order of column "ts"'),
        (rows([15, 40]), 'is not in the order of column "ts"'),
        (rows([30, 40]).set_column(0, "ts", pa.array([30, None], pa.timestamp("us", "UTC"))), "a row without a time"),
    ],
)
def test_a_chunk_that_does_not_fit_the_manifest_is_named(tmp_path: Path, table: pa.Table, words: str) -> None:
    dataset = write_dataset(tmp_path / "d", CHUNKS)
    pq.write_table(table, tmp_path / "d" / "readings" / "chunk=000001.parquet")
    with pytest.raises(DatasetError, match=words) as caught:
        times(dataset)
    assert "chunk=000001.parquet" in caught.value.fact
