"""From a table of Spark to the files of a stream: one partition, one chunk.

Whoever calls has put the rows of each chunk into one partition, sorted by time, with the chunks in the order of the partitions.
Spark writes a file for each partition into the draft's scratch; they get their names at the end.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

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
    written = draft.scratch / stream
    with telling_spark(draft.out):
        typed.write.option("parquet.block.size", _GROUP_BYTES).option(
            "mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"
        ).parquet(written.as_uri())
    with telling_disk(draft.out):
        target = draft.folder / stream
        target.mkdir()
        for path in written.glob("part-*.parquet"):
            found = re.match(r"part-(\d+)-", path.name)
            assert found is not None, path
            path.rename(target / chunk_name(int(found[1])))
        shutil.rmtree(written)
