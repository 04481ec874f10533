"""Micro-batches through an engine leave one file each, the same ones wherever the engine was killed between two steps."""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddy import Engine
from lineage.errors import ConflictError, EddyError, StorageError
from pipeline.batch_engine import BatchEngine
from pipeline.dataset import Dataset
from pipeline.merged import MergedSlices
from pipeline.targets import EngineTarget
from pipeline.wide import Wide
from storage.disk import LocalFile
from tests.unit.pipeline.streams import market, write_market
from tests.unit.pipeline.test_replay import QUERIES

RULES = [{"name": name, "sql": sql} for name, sql in QUERIES.items()]


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return write_market(tmp_path / "d", market(8, 300, 200))


def wide_of(dataset: Dataset) -> Wide:
    return Wide("stream", {"row": "int"}, {name: stored.columns for name, stored in dataset.streams.items()})


def batches(dataset: Dataset) -> Iterator[tuple[int, pa.Table]]:
    """The dataset as Spark would bring it: wide, partition after partition."""
    wide = wide_of(dataset)
    for number, some in enumerate(MergedSlices(dataset, slice_rows=60)):
        tables = [
            wide.widen(
                name,
                pa.Table.from_batches([rows]),
                {"row": pa.array(range(some.start[name], some.end[name]))},
            )
            for name, rows in some.rows.items()
        ]
        # the order of the partitions is nobody's business
        yield number, pa.concat_tables(tables[::-1])


def opened(out: Path, dataset: Dataset, rules: list[dict[str, str]] = RULES) -> BatchEngine:
    return BatchEngine(out, dataset, rules, wide_of(dataset))


def results(out: Path) -> dict[str, list[str]]:
    """The rows of every file, by name."""
    return {path.name: list(map(repr, pq.read_table(path).to_pylist())) for path in sorted((out / "results").iterdir())}


def run(out: Path, dataset: Dataset) -> dict[str, list[str]]:
    with opened(out, dataset) as engine:
        for number, rows in batches(dataset):
            engine.take(number, rows)
    return results(out)


def assert_equal_to_an_engine(out: Path, dataset: Dataset) -> int:
    """Every file has what an engine gives for the same rows; together they give the answers of one push. How many they are."""
    engine, whole = Engine(), Engine()
    for each in (engine, whole):
        EngineTarget(each, dataset)
        for name, sql in QUERIES.items():
            each.submit(sql, name=name)
            each.changes(name, "now")
    tables = {name: pa.Table.from_batches(dataset.batches(name)) for name in dataset.streams}
    bags: dict[str, Counter[str]] = {name: Counter() for name in QUERIES}
    at = dict.fromkeys(tables, 0)
    files = sorted((out / "results").glob("*.parquet"))
    for path in files:
        cut = json.loads(pq.read_schema(path).metadata[b"eddy"])
        assert cut["start"] == at
        since, at = engine.seq, cut["end"]
        cuts = {name: tables[name].slice(cut["start"][name], at[name] - cut["start"][name]) for name in tables}
        if given := {name: rows for name, rows in cuts.items() if rows.num_rows}:
            engine.push_many(given)
        expected = [repr({"query": name, **row}) for name in QUERIES for row in engine.changes(name, since).arrow().to_pylist()]
        rows = pq.read_table(path).to_pylist()
        columns = {name: list(engine.query(name).columns) for name in QUERIES}
        assert expected == [
            repr({name: row[name] for name in ["query", "seq", "time", "sign", *columns[row["query"]]]}) for row in rows
        ]
        for row in rows:
            bags[row["query"]][repr({name: row[name] for name in columns[row["query"]]})] += row["sign"]
    assert at == {name: table.num_rows for name, table in tables.items()}
    whole.push_many(tables)
    for name in QUERIES:
        assert not -bags[name]
        if whole.query(name).kind == "relation":
            assert +bags[name] == Counter(map(repr, whole.answer(name).to_pylist()))
    return len(files)


def test_the_files_have_the_changes_that_an_engine_gives(tmp_path: Path, dataset: Dataset) -> None:
    run(tmp_path / "out", dataset)
    assert assert_equal_to_an_engine(tmp_path / "out", dataset) > 4


@pytest.mark.parametrize("step", ["push", "results", "state"])
@pytest.mark.parametrize("killed", [0, 1, 3])
@pytest.mark.slow
def test_a_kill_between_any_two_steps_changes_no_file(
    tmp_path: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch, step: str, killed: int
) -> None:
    expected = run(tmp_path / "whole", dataset)
    out = tmp_path / "out"

    def die(*args: object) -> None:
        raise Killed

    with pytest.raises(Killed), opened(out, dataset) as engine:
        for number, rows in batches(dataset):
            if number == killed:
                if step == "push":
                    monkeypatch.setattr(engine, "_write_results", die)
                elif step == "results":
                    monkeypatch.setattr(engine._snapshots, "write", die)
            engine.take(number, rows)
            if number == killed:
                raise Killed
    with opened(out, dataset) as engine:
        # nobody but the killed process knew whether the batch was done: it comes again, and the one before it too
        done = [engine.take(number, rows) for number, rows in batches(dataset) if number >= killed - 1]
    assert done[: len(done) - (len(expected) - killed - 1)] == ([False] if killed else []) + [step in ("push", "results")]
    assert results(out) == expected


def test_a_batch_that_is_not_the_next_or_has_other_rows_is_refused(tmp_path: Path, dataset: Dataset) -> None:
    given = list(batches(dataset))
    with opened(tmp_path / "out", dataset) as engine:
        engine.take(*given[0])
        with pytest.raises(ConflictError, match="batch 2 does not go on"):
            engine.take(2, given[1][1])
        with pytest.raises(ConflictError, match="batch 1 does not go on"):
            engine.take(1, given[2][1])
        with pytest.raises(ConflictError, match="batch 0 does not go on"):
            engine.take(0, given[1][1])
        with pytest.raises(EddyError, match="are missing or come twice"):
            engine.take(1, pa.concat_tables([given[1][1], given[1][1]]))
        assert engine.take(*given[1])


def test_a_folder_of_another_job_is_refused(tmp_path: Path, dataset: Dataset) -> None:
    with opened(tmp_path / "out", dataset):
        pass
    with pytest.raises(ConflictError, match="other data or queries"), opened(tmp_path / "out", dataset, RULES[:1]):
        pass


def test_two_jobs_cannot_have_one_folder(tmp_path: Path, dataset: Dataset) -> None:
    with (
        opened(tmp_path / "out", dataset),
        pytest.raises(StorageError, match="is in use"),
        opened(tmp_path / "out", dataset),
    ):
        pass


def test_a_state_that_was_damaged_is_not_taken(tmp_path: Path, dataset: Dataset) -> None:
    out = tmp_path / "out"
    given = list(batches(dataset))
    with opened(out, dataset) as engine:
        engine.take(*given[0])
        engine.take(*given[1])
    newest = max((out / "snapshots").iterdir())
    newest.write_bytes(newest.read_bytes()[:-100])
    with opened(out, dataset) as engine:
        # the one before is good, and batch 1 is done again
        assert engine.last == 0
        with pytest.raises(ConflictError, match="does not go on"):
            engine.take(*given[2])
        assert engine.take(*given[1])


@pytest.mark.parametrize("step", ["results", "state"])
def test_a_full_disk_is_told_and_the_batch_is_done_when_there_is_room_again(
    tmp_path: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    expected = run(tmp_path / "whole", dataset)
    out = tmp_path / "out"
    given = list(batches(dataset))

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, opened(out, dataset) as engine:
        engine.take(*given[0])
        patch.setattr(pq if step == "results" else LocalFile, "write_table" if step == "results" else "sync", full)
        with pytest.raises(EddyError, match="the disk is full"):
            engine.take(*given[1])
    assert len(results(out)) == (1 if step == "results" else 2)
    with opened(out, dataset) as engine:
        assert all(engine.take(*batch) for batch in given[1:])
    assert results(out) == expected
