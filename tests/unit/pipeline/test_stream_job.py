"""The job on a real Spark: what it leaves is what the engine gives, also when it is killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lineage.errors import EddyError
from pipeline.dataset import Dataset, DatasetError
from pipeline.stream_job import run_job
from tests.unit.pipeline.streams import market, write_market
from tests.unit.pipeline.test_batch_engine import RULES, assert_equal_to_an_engine, results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
#: Seconds for what takes a few, on a busy machine.
PATIENCE = 240.0


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return write_market(tmp_path / "d", market(10, 500, 300), chunk_rows=120)


@pytest.mark.spark
def test_the_job_leaves_what_the_engine_gives_and_a_batch_that_comes_again_changes_nothing(
    spark: SparkSession, tmp_path: Path, dataset: Dataset
) -> None:
    out = tmp_path / "out"
    n_batches = run_job(spark, dataset, RULES, out, max_rows=200)
    # the number of rows is obeyed though all is there at once
    assert n_batches >= 4
    assert assert_equal_to_an_engine(out, dataset) == n_batches
    before = results(out)
    # as if it had been killed when the last batch was done but not yet taken down
    last = out / "checkpoint" / "commits" / str(n_batches - 1)
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink()
    assert run_job(spark, dataset, RULES, out, max_rows=200) == 0
    assert results(out) == before and last.exists()


@pytest.mark.spark
def test_a_paced_job_gives_rows_when_they_are_due_and_ends_with_the_dataset(
    spark: SparkSession, tmp_path: Path, dataset: Dataset
) -> None:
    start = time.monotonic()
    n_batches = run_job(spark, dataset, RULES, tmp_path / "out", speed="30x", max_rows=1000)
    assert time.monotonic() - start > 1.5 and n_batches > 1
    assert assert_equal_to_an_engine(tmp_path / "out", dataset) == n_batches


@pytest.mark.spark
def test_a_truncated_file_stops_the_job_with_its_name_and_the_job_goes_on_when_it_is_whole_again(
    spark: SparkSession, tmp_path: Path, dataset: Dataset
) -> None:
    path = dataset.path / "trades" / "chunk=000003.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:300])
    with pytest.raises(DatasetError, match=r"chunk=000003\.parquet cannot be read"):
        run_job(spark, dataset, RULES, tmp_path / "out", max_rows=200)
    taken = len(results(tmp_path / "out"))
    path.write_bytes(whole)
    assert taken + run_job(spark, dataset, RULES, tmp_path / "out", max_rows=200) == assert_equal_to_an_engine(
        tmp_path / "out", dataset
    )


@pytest.mark.spark
def test_ctrl_c_ends_the_job_between_two_batches_and_it_goes_on_from_there(
    spark: SparkSession, tmp_path: Path, dataset: Dataset
) -> None:
    out = tmp_path / "out"

    def interrupt() -> None:
        deadline = time.monotonic() + PATIENCE
        while len(list(out.glob("results/*.parquet"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_job(spark, dataset, RULES, out, speed="1x", max_rows=100)
    thread.join()
    taken = len(results(out))
    assert taken + run_job(spark, dataset, RULES, out) == assert_equal_to_an_engine(out, dataset)


@pytest.mark.spark
def test_what_the_engine_refuses_is_told_as_the_engine_says_it(spark: SparkSession, tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(EddyError, match='column "nope" does not exist'):
        run_job(spark, dataset, [{"name": "q", "sql": "SELECT nope FROM trades"}], tmp_path / "out")


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_that_is_killed_and_started_again_leaves_the_same_files(tmp_path: Path) -> None:
    dataset = write_market(tmp_path / "d", market(11, 3000, 2000), chunk_rows=700)
    rules, out = tmp_path / "rules.ndjson", tmp_path / "out"
    rules.write_text("".join(json.dumps(rule) + "\n" for rule in RULES))
    words = [sys.executable, "-m", "pipeline.replay_command", str(dataset.path), "--queries", str(rules), "--out", str(out)]
    words += ["--max-rows", "400", "--master", "local[1]"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
        deadline = time.monotonic() + PATIENCE
        while len(list(out.glob("results/*.parquet"))) < 4:
            assert job.poll() is None, job.communicate()[1]
            assert time.monotonic() < deadline, "no results"
            time.sleep(0.01)
        job.kill()
    assert 4 <= len(list(out.glob("results/*.parquet"))) < 12
    done = subprocess.run(words, cwd=ROOT, capture_output=True, timeout=PATIENCE, text=True)
    assert done.returncode == 0, done.stderr
    assert assert_equal_to_an_engine(out, dataset) >= 12
