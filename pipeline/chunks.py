"""Writer of a Spark table as the files of a stream: one partition, one file.

Whoever calls has put the rows of each chunk into one partition, sorted by time, with the chunks in the order of the partitions.
Spark writes a file for each partition into the draft's scratch; they get their names at the end.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.dataset import COMPRESSION
from pipeline.draft import Declared, Draft, chunk_name, telling_disk
from pipeline.session import telling_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows of a chunk, about: what one task holds and sorts at once.
CHUNK_ROWS = 1 << 20
#: Bytes of a row group before compression: what a reader holds at once.
_GROUP_BYTES = 16 << 20

_SPARK_TYPES = {"int": "BIGINT", "float": "DOUBLE", "string": "STRING", "bool": "BOOLEAN", "timestamp": "TIMESTAMP"}


def write_chunks(rows: DataFrame, draft: Draft, stream: str, declared: Declared) -> None:
    """Write a stream's rows, partition by partition."""
    typed = rows.selectExpr(*(f"CAST(`{name}` AS {_SPARK_TYPES[word]}) AS `{name}`" for name, word in declared.columns.items()))
    with _written(typed, draft) as files, telling_disk(draft.out):
        target = draft.folder / stream
        target.mkdir()
        for number, path in files.items():
            path.rename(target / chunk_name(number))


def write_one(rows: DataFrame, draft: Draft, name: str) -> None:
    """Write rows into one parquet file of the draft."""
    with _written(rows.coalesce(1), draft) as files, telling_disk(draft.out):
        target = draft.folder / name
        target.parent.mkdir(exist_ok=True)
        (path,) = files.values()
        path.rename(target)


@contextmanager
def _written(rows: DataFrame, draft: Draft) -> Iterator[dict[int, Path]]:
    """The files that Spark writes, by the number of their partition."""
    folder = draft.scratch / "written"
    with telling_spark(draft.out):
        writer = rows.write.option("parquet.block.size", _GROUP_BYTES)
        # what pyarrow calls lz4
        writer = writer.option("compression", f"{COMPRESSION}_raw")
        writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(str(folder))
    try:
        yield {int(path.name.split("-")[1]): path for path in folder.glob("part-*.parquet")}
    finally:
        shutil.rmtree(folder)
