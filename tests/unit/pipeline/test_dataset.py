"""A dataset appears whole or not at all, is read in order, and whatever is wrong with it is said with the file's name."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage.errors import ConflictError, NotFoundError
from pipeline.dataset import Dataset, DatasetError, times_of
from pipeline.draft import Draft
from tests.unit.pipeline.writing import READINGS, rows, write_chunk, write_dataset

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


# -- A dataset appears whole or not at all -----------------------------------------------------------------------------


def draft_of(out: Path) -> Draft:
    return Draft(out, kind="sensors", seed=1, parameters={})


def test_nothing_has_the_name_until_it_is_published(tmp_path: Path) -> None:
    out = tmp_path / "d"
    with draft_of(out) as draft:
        write_chunk(draft, 0, rows([1]))
        assert not out.exists()
        draft.publish({"readings": READINGS}, {"no_time": 3})
    assert Dataset.open(out).quarantined == {"no_time": 3}
    assert os.listdir(tmp_path) == ["d"]
    assert sorted(os.listdir(out)) == ["dataset.json", "readings"]


def test_leaving_a_draft_removes_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), draft_of(tmp_path / "d") as draft:
        write_chunk(draft, 0, rows([1]))
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", [[1]])
    with pytest.raises(ConflictError, match="exists already"), draft_of(tmp_path / "d"):
        raise AssertionError("unreachable")
    assert Dataset.open(tmp_path / "d").stream("readings").rows == 1


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    assert write_dataset(tmp_path / "d", [[1]]).stream("readings").rows == 1


def test_a_chunk_without_rows_is_left_out(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "d", [[1], [], [5]])
    assert [chunk.first for chunk in dataset.stream("readings").chunks] == [1, 5]
    assert len(os.listdir(tmp_path / "d" / "readings")) == 2


def test_a_chunk_that_was_cut_short_is_not_published(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="was not written whole"), draft_of(tmp_path / "d") as draft:
        path = write_chunk(draft, 0, rows([1]))
        path.write_bytes(path.read_bytes()[:-20])
        draft.publish({"readings": READINGS}, {})
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DatasetError, match="the disk is full") as caught, draft_of(tmp_path / "d") as draft:
        write_chunk(draft, 0, rows([1]))
        monkeypatch.setattr(os, "fsync", full)
        draft.publish({"readings": READINGS}, {})
    assert caught.value.code == "disk_full" and os.listdir(tmp_path) == []


#: Begins a draft, says so, and waits to be killed.
_WRITER = """
import sys
from pathlib import Path
from pipeline.draft import Draft
with Draft(Path(sys.argv[1]), kind="sensors", seed=1, parameters={}) as draft:
    (draft.folder / "readings").mkdir()
    print(draft.folder.parent, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_left_is_removed_but_not_what_a_live_one_has(tmp_path: Path) -> None:
    out = tmp_path / "d"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as writer:
        assert writer.stdout is not None
        folder = Path(writer.stdout.readline().strip())
        assert folder.is_dir()
        with pytest.raises(ConflictError, match=f"is being written by process {writer.pid}"), draft_of(out):
            raise AssertionError("unreachable")
        writer.send_signal(signal.SIGKILL)
    assert folder.is_dir() and not out.exists()
    write_dataset(out, [[1]])
    assert not folder.exists() and os.listdir(tmp_path) == ["d"]
