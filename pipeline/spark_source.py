"""A dataset as a stream of Spark: a Python data source whose offset is the position in the merged order.

    spark.dataSource.register(ReplaySource)
    spark.readStream.format("eddy-replay").option("path", DIR).option("speed", "60x").option("maxRows", 100000).load()

Each row has its `stream`, its number `row` in that stream, and the columns of all streams side by side (`pipeline/wide.py`). A
micro-batch holds what has become due since the last one, `maxRows` rows at most, also with the trigger availableNow, which does
not wait for the clock and ends with the dataset. Offsets are row numbers of files that never change, so a batch that is asked
for again has the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StringType, StructType, TimestampType

from lineage.errors import EddyError
from pipeline.dataset import Dataset
from pipeline.pace import parse_speed
from pipeline.replay_steps import ReplaySteps
from pipeline.wide import Wide

NAME = "eddy-replay"
MAX_ROWS = 100_000

_SPARK_TYPES: dict[str, DataType] = {
    "int": LongType(),
    "float": DoubleType(),
    "string": StringType(),
    "bool": BooleanType(),
    "timestamp": TimestampType(),
}


def wide_rows(dataset: Dataset) -> Wide:
    """The schema of the rows of all streams of a dataset."""
    return Wide("stream", {"row": "int"}, {name: stored.columns for name, stored in dataset.streams.items()})


class RowRange(InputPartition):
    """Rows of one stream, by their numbers; of each micro-batch one partition a stream."""

    def __init__(self, stream: str, first: int, end: int) -> None:
        super().__init__((stream, first, end))
        self.stream = stream
        self.first = first
        self.end = end


class ReplaySource(DataSource):
    """The data source; options `path`, `speed` (max) and `maxRows` (100000)."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def _dataset(self) -> Dataset:
        path = self.options.get("path")
        if path is None:
            raise EddyError("the source does not say which dataset", code="bad_option", hint='.option("path", DIR)')
        return Dataset.open(path)

    def schema(self) -> StructType:
        found = StructType()
        for name, word in wide_rows(self._dataset()).columns.items():
            found = found.add(name, _SPARK_TYPES[word])
        return found

    def streamReader(self, schema: StructType) -> ReplayReader:
        text = self.options.get("maxRows", str(MAX_ROWS))
        if not text.isdecimal() or int(text) < 1:
            raise EddyError(f'maxRows is "{text}"', code="bad_option", hint="a whole number from 1 on")
        return ReplayReader(self._dataset(), int(text), parse_speed(self.options.get("speed", "max")))


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans and reads micro-batches."""

    def __init__(self, dataset: Dataset, max_rows: int, speed: float | None) -> None:
        self._dataset = dataset
        self._max_rows = max_rows
        self._steps = ReplaySteps(dataset, max_rows, speed)

    def initialOffset(self) -> dict[str, int]:
        return self._steps.begin()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        # the dataset is whole, so all of it is there now: the clock has no say
        self._steps = ReplaySteps(self._dataset, self._max_rows, None)

    def latestOffset(self, start: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
        return self._steps.next(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def reportLatestOffset(self) -> dict[str, int]:
        return self._steps.end()

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[RowRange]:
        return [RowRange(name, start[name], end[name]) for name in self._dataset.streams if start[name] < end[name]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RowRange)
        wide = wide_rows(self._dataset)
        row = partition.first
        for batch in self._dataset.batches(partition.stream, from_row=row):
            batch = batch.slice(0, min(batch.num_rows, partition.end - row))
            numbers = pa.array(np.arange(row, row + batch.num_rows))
            yield from wide.widen(partition.stream, pa.Table.from_batches([batch]), {"row": numbers}).to_batches()
            row += batch.num_rows
            if row == partition.end:
                return

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker needs: without the walk, whose files are open."""
        return {"_dataset": self._dataset, "_max_rows": self._max_rows}
