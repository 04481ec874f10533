"""Import of files into a dataset: checked, sorted by event time, refused rows put aside with their reason.

Rows of one instant keep the order in which the files, as they were named, have them; so the result is the same however Spark
cuts the input. Chunks are made of whole stretches of time (a 4,096th of the span) and hold up to `CHUNK_ROWS` rows; where one
stretch has more, its chunk is larger and Spark sorts it on disk.

    DIR/quarantine/STREAM.parquet     file, reason and text of each row that was refused
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.chunks import CHUNK_ROWS, write_chunks, write_one
from pipeline.cleaning import clean, columns_of, read_raw
from pipeline.dataset import DatasetError
from pipeline.draft import Declared, Draft
from pipeline.session import telling_spark
from pipeline.source_files import StreamFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STRETCHES = 4096


@dataclass(frozen=True, slots=True)
class IngestedStream:
    """A written stream, and the number of refused rows by reason."""

    declared: Declared
    quarantined: Mapping[str, int]


def ingest(
    spark: SparkSession, draft: Draft, source: StreamFiles, columns: Mapping[str, str] | None, time: str | None,
    chunk_rows: int = CHUNK_ROWS, types: Mapping[str, str] | None = None,
) -> IngestedStream:  # fmt: skip
    """Write one stream into a draft."""
    with telling_spark(draft.out):
        raw = read_raw(spark, source, draft.scratch)
        schema, time = columns_of(raw, source, columns, time, types)
        cleaned = clean(raw, source, schema, time)
        declared = Declared({c.name: c.type.value for c in schema.columns}, time)
        good, refused = _counted(cleaned)
        if refused and good is None:
            reason, n_rows = max(refused.items(), key=lambda item: item[1])
            raise DatasetError(
                f'no row of stream "{source.stream}" can be used: the file does not fit its columns',
                code="bad_file",
                detail=f"{n_rows} rows: {reason}",
                hint="--types name=type says what a column is, --time which one is the time, --time-format how times are written",
            )
        if good is not None:
            chunks = _in_chunks(cleaned.where("_reason IS NULL"), good, chunk_rows)
            write_chunks(chunks, draft, source.stream, declared)
        if refused:
            write_one(_aside(cleaned, source), draft, f"quarantine/{source.stream}.parquet")
    return IngestedStream(declared, refused)


def _counted(cleaned: DataFrame) -> tuple[tuple[int, int, int] | None, dict[str, int]]:
    """Number, first and last time of the good rows, and the number of others by reason."""
    from pyspark.sql import functions as f

    good, refused = None, {}
    for row in (
        cleaned.groupBy("_reason").agg(f.count("*").alias("n"), f.min("_us").alias("a"), f.max("_us").alias("b")).collect()
    ):
        if row["_reason"] is None:
            good = (row["n"], row["a"], row["b"])
        else:
            refused[row["_reason"]] = row["n"]
    return good, dict(sorted(refused.items()))


def _aside(cleaned: DataFrame, source: StreamFiles) -> DataFrame:
    """Return the refused rows, for people to look at."""
    from pyspark.sql import functions as f

    names = f.array(*(f.lit(str(file)) for file in source.files))
    columns = (f.element_at(names, f.col("_file")).alias("file"), f.col("_reason").alias("reason"), f.col("_text").alias("text"))
    return cleaned.where("_reason IS NOT NULL").select(*columns)


def _in_chunks(rows: DataFrame, good: tuple[int, int, int], chunk_rows: int) -> DataFrame:
    """Return the rows with each chunk in a partition of its own, in order."""
    n_rows, first, last = good
    width = (last - first) // _STRETCHES + 1
    numbered = rows.selectExpr("*", f"CAST((_us - {first}L) div {width}L AS INT) AS _stretch")
    chunk_of = [0] * _STRETCHES
    if n_rows > chunk_rows:
        counts = {row["_stretch"]: row["count"] for row in numbered.groupBy("_stretch").count().collect()}
        chunk_of = packed([counts.get(n, 0) for n in range(_STRETCHES)], chunk_rows)
    lookup = f"element_at(array({', '.join(map(str, chunk_of))}), _stretch + 1)"
    placed = numbered.selectExpr("*", f"{lookup} AS _chunk").repartitionById(chunk_of[-1] + 1, "_chunk")
    return placed.sortWithinPartitions("_us", "_file", "_block", "_row")


def packed(counts: list[int], chunk_rows: int) -> list[int]:
    """For each stretch the chunk it goes to: one after the other, a new chunk where the old one would grow beyond its size.

    >>> packed([3, 4, 0, 2, 9, 1], 7)
    [0, 0, 0, 1, 2, 3]
    """
    chunks: list[int] = []
    held = 0
    for n, count in enumerate(counts):
        held += count
        full = n > 0 and held > chunk_rows and held > count
        if full:
            held = count
        chunks.append((chunks[-1] if chunks else 0) + full)
    return chunks
