"""Small datasets for tests, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.dataset import ARROW_TYPES, Dataset
from pipeline.draft import Declared, Draft, chunk_name

READINGS = Declared({"ts": "timestamp", "sensor": "int", "temp": "float", "room": "string", "on": "bool"}, time="ts")


def rows(times: Sequence[int]) -> pa.Table:
    """One row of the stream of readings for each time in microseconds."""
    n = range(len(times))
    columns = [list(times), list(n), [i / 2 for i in n], [f"r{i % 3}" for i in n], [i % 2 == 0 for i in n]]
    return pa.table(
        [pa.array(values, ARROW_TYPES[word]) for values, word in zip(columns, READINGS.columns.values())], [*READINGS.columns]
    )


def write_chunk(draft: Draft, number: int, table: pa.Table, stream: str = "readings") -> Path:
    path = draft.folder / stream / chunk_name(number)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)
    return path


def write_dataset(out: Path, chunks: Sequence[Sequence[int]]) -> Dataset:
    """A dataset of one stream of readings, with a chunk for each list of times."""
    with Draft(out, kind="sensors", seed=7, parameters={"sensors": 3}) as draft:
        for number, times in enumerate(chunks):
            write_chunk(draft, number, rows(times))
        return draft.publish({"readings": READINGS}, {})
