"""A dataset through the engine as a job of Spark's Structured Streaming, for `python -m pipeline.stream_job`.

The source (`pipeline/source.py`) cuts the dataset into micro-batches, Spark takes down in its checkpoint which rows each one has,
and the engine in the driver takes them as Arrow tables and leaves one file of results for each (`pipeline/batch_engine.py`).
Whatever kills the job, the same command goes on where it was, and all files together are those of a job that ran through.

    OUT/checkpoint      Spark's; with results, snapshots and job.json beside it
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lineage.errors import EddyError
from pipeline.batch_engine import BatchEngine
from pipeline.dataset import Dataset, DatasetError
from pipeline.pace import parse_speed
from pipeline.session import LOCAL, spark_session, telling_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows of one micro-batch, at most.
MAX_ROWS = 100_000
#: Seconds between two looks whether a paced job has come to the end.
_LOOK = 1.0


def run_job(
    spark: SparkSession,
    dataset: Dataset,
    queries: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    speed: str = "max",
    max_rows: int = MAX_ROWS,
    tell: Callable[[int, int], object] = lambda batch, rows: None,
) -> int:
    """Run the job to the end of the dataset; gives how many batches it took now. `tell` hears of each, with the rows so far."""
    from pyspark.errors import StreamingQueryException

    from pipeline.source import NAME, ReplaySource, wide_rows

    spark.dataSource.register(ReplaySource)
    failed: list[EddyError] = []
    n_batches = 0
    with BatchEngine(out, dataset, queries, wide_rows(dataset)) as engine:

        def take(rows: DataFrame, batch: int) -> None:
            nonlocal n_batches
            try:
                n_batches += engine.take(batch, rows.toArrow())
            except EddyError as error:
                # Spark would show the text of a stack trace of it
                failed.append(error)
                raise
            tell(batch, sum(engine.position.values()))

        reader = spark.readStream.format(NAME).option("path", str(dataset.path))
        rows = reader.option("speed", speed).option("maxRows", str(max_rows)).load()
        writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(engine.out / "checkpoint"))
        with telling_spark(engine.out):
            query = (writer.trigger(availableNow=True) if parse_speed(speed) is None else writer).start()
            try:
                end = {name: stored.rows for name, stored in dataset.streams.items()}
                while not query.awaitTermination(_LOOK):
                    if engine.position == end:
                        query.processAllAvailable()
                        query.stop()
            except StreamingQueryException as error:
                # what the engine or a reader of files said, out of the middle of a page of text
                told = re.search(r"^pipeline\.dataset\.DatasetError: (.+)$", str(error), re.MULTILINE)
                if failed:
                    raise failed[0] from None
                if told is not None:
                    raise DatasetError(told[1]) from None
                raise
            finally:
                query.stop()
    return n_batches


_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A dataset, as eddy generate writes it.")]
_Queries = Annotated[Path, typer.Option(help="The queries: .ndjson, .csv or .sql.", exists=True, dir_okay=False)]
_Out = Annotated[Path, typer.Option(help="Where results, state and checkpoint go.")]
_Speed = Annotated[str, typer.Option(help="60x plays a minute in a second; max does not wait.")]
_MaxRows = Annotated[int, typer.Option(min=1, help="Rows of a micro-batch, at most.")]
_Master = Annotated[str, typer.Option(help="Spark's master.")]


def command(
    folder: _Folder, queries: _Queries, out: _Out, speed: _Speed = "max", max_rows: _MaxRows = MAX_ROWS,
    master: _Master = LOCAL,
) -> None:  # fmt: skip
    """Run queries over a dataset as a Structured Streaming job that can be killed and started again."""
    from queries.rules import read_rules

    try:
        parse_speed(speed)
        dataset = Dataset.open(folder)
        rules = read_rules(queries, {"tags": []})
        named = [{"name": f"replay_{n}"} | rule.definition for n, rule in enumerate(rules, 1)]
        with spark_session(out.absolute() / "spark", master=master) as spark:
            n_batches = run_job(spark, dataset, named, out, speed=speed, max_rows=max_rows)
    except EddyError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("stopped; the same command goes on from there", file=sys.stderr)
        raise typer.Exit(130) from None
    print(f"{n_batches} batches, results in {out / 'results'}")


def main() -> None:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    app(prog_name="python -m pipeline.stream_job")


if __name__ == "__main__":
    main()
