"""A dataset through the engine as a job of Spark's Structured Streaming, for `eddy replay --master`.

The source (`pipeline/spark_source.py`) cuts the dataset into micro-batches, Spark notes the rows of each one in its checkpoint,
and the engine in the driver takes them as Arrow tables and writes one file of results for each (`pipeline/batch_engine.py`).
After a kill the same command continues at the same place, and all files together equal those of a job that was not killed.

    OUT/checkpoint      Spark's; with results, snapshots and job.json beside it
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lineage.errors import EddyError
from pipeline.batch_engine import BatchEngine
from pipeline.dataset import Dataset, DatasetError
from pipeline.pace import parse_speed
from pipeline.session import telling_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows of one micro-batch, at most.
MAX_ROWS = 100_000
#: Seconds between two looks at a job that runs.
_LOOK = 0.2


def run_job(
    spark: SparkSession,
    dataset: Dataset,
    queries: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    speed: str = "max",
    max_rows: int = MAX_ROWS,
) -> int:
    """Run the job to the end of the dataset; return the number of batches of this run. Ctrl-C ends it between two batches."""
    from pipeline.spark_source import NAME, ReplaySource, wide_rows

    spark.dataSource.register(ReplaySource)
    with _interrupts() as stopped, BatchEngine(out, dataset, queries, wide_rows(dataset)) as engine, _Taking(engine) as taking:
        reader = spark.readStream.format(NAME).option("path", str(dataset.path))
        rows = reader.option("speed", speed).option("maxRows", str(max_rows)).load()
        writer = rows.writeStream.foreachBatch(taking).option("checkpointLocation", str(engine.out / "checkpoint"))
        end = {name: stored.rows for name, stored in dataset.streams.items()}
        with telling_spark(engine.out):
            query = (writer.trigger(availableNow=True) if parse_speed(speed) is None else writer).start()
            try:
                # not awaitTermination: a Ctrl-C in the middle of a call to Java leaves a page of text
                while query.isActive and not stopped.wait(_LOOK):
                    if engine.position == end:
                        query.processAllAvailable()
                        query.stop()
                error = query.exception()
                if error is not None:
                    raise taking.failed or _told(str(error)) or error
            finally:
                query.stop()
    if stopped.is_set():
        raise KeyboardInterrupt
    return taking.n_batches


class _Taking:
    """Callback of Spark for each micro-batch, in a thread of its own; after `with` the last call is over and none follows."""

    def __init__(self, engine: BatchEngine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._over = False
        self.n_batches = 0
        #: what the engine said, of which Spark would show the text of a stack trace
        self.failed: EddyError | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        table = rows.toArrow()
        with self._lock:
            if self._over:
                raise RuntimeError("the job has ended")
            try:
                self.n_batches += self._engine.take(batch, table)
            except EddyError as error:
                self.failed = error
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._over = True


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, in place of the exception that Spark would raise in the middle of anything."""
    found = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: found.set())
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)


def _told(text: str) -> DatasetError | None:
    """Return the `DatasetError` of the file reader that a long text of Spark contains, if any."""
    found = re.search(r"^pipeline\.dataset\.DatasetError: (.+)$", text, re.MULTILINE)
    return None if found is None else DatasetError(found[1])
