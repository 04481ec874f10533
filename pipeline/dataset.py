"""A dataset: streams on disk, as parquet files that give every stream in the order of event time when walked by name.

    DIR/dataset.json                      what there is; written last
    DIR/readings/chunk=000000.parquet     the rows of one stream in one stretch of time, sorted by its time column

A folder without its manifest `dataset.json` is no dataset. `pipeline/draft.py` writes them; this module only reads, and
needs no Spark. What a reader may rely on, because it is checked as it is read:

    every chunk has the columns, the types and the number of rows that the manifest says
    times never go back, neither in a chunk nor from one to the next

Anything else is a `DatasetError` that names the file. Times are microseconds since 1970 UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lineage.errors import EddyError, NotFoundError, SchemaError, did_you_mean
from lineage.schema import Schema

#: The number of the layout above; a reader takes no other.
FORMAT = 1
MANIFEST = "dataset.json"
#: How files are compressed: read a quarter faster than the usual one, and smaller.
COMPRESSION = "lz4"
#: Rows of one batch that is read.
BATCH_ROWS = 65_536

#: How a column of each type is stored.
ARROW_TYPES: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}

_AGAIN = "write the dataset again, with eddy generate"


class DatasetError(EddyError):
    """A dataset cannot be read or written; the fact names the file."""

    default_code = "bad_dataset"


@dataclass(frozen=True, slots=True)
class Chunk:
    """One file: the rows of a stream in one stretch of time. `path` is relative to the dataset."""

    path: str
    rows: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StoredStream:
    """One stream of a dataset, as `create_stream` would be told, and where its rows are."""

    name: str
    columns: Mapping[str, str]
    time: str
    key: str | None
    chunks: tuple[Chunk, ...]

    @property
    def rows(self) -> int:
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def first(self) -> int | None:
        """The time of the first row; None without rows."""
        return self.chunks[0].first if self.chunks else None

    @property
    def last(self) -> int | None:
        return self.chunks[-1].last if self.chunks else None

    def schema(self) -> pa.Schema:
        """How the rows are stored."""
        return pa.schema([(name, ARROW_TYPES[word]) for name, word in self.columns.items()])

    def described(self) -> dict[str, Any]:
        """The stream in the manifest."""
        return {
            "columns": dict(self.columns),
            "time": self.time,
            "key": self.key,
            "rows": self.rows,
            "first": self.first,
            "last": self.last,
            "chunks": [asdict(chunk) for chunk in self.chunks],
        }


@dataclass(frozen=True, slots=True)
class Dataset:
    """A whole dataset, opened for reading."""

    path: Path
    #: "sensors", "stocks" or "ingested"
    kind: str
    seed: int | None
    #: What the rows were made from: the options of the command that wrote them.
    parameters: Mapping[str, Any]
    streams: Mapping[str, StoredStream]
    #: Rows that were left out, by reason.
    quarantined: Mapping[str, int]

    @classmethod
    def open(cls, path: str | Path) -> Dataset:
        """Read and check the manifest; the rows are checked as they are read."""
        path = Path(path)
        file = path / MANIFEST
        try:
            text = file.read_bytes()
        except FileNotFoundError:
            if not path.is_dir():
                raise NotFoundError(f"there is no dataset {path}", hint="eddy generate writes one") from None
            raise DatasetError(
                f"{path} is no dataset: it has no {MANIFEST}",
                hint="eddy generate writes datasets; a folder without this file was never finished",
            ) from None
        except OSError as error:
            raise DatasetError(f"{file} cannot be read", detail=error.strerror or str(error)) from None
        try:
            return _from_manifest(path, json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, SchemaError) as error:
            raise DatasetError(f"{file} is damaged", detail=f"{type(error).__name__}: {error}", hint=_AGAIN) from None

    def stream(self, name: str) -> StoredStream:
        found = self.streams.get(name)
        if found is None:
            raise NotFoundError(f'the dataset {self.path} has no stream "{name}"', hint=did_you_mean(name, list(self.streams)))
        return found

    def batches(
        self,
        stream: str,
        *,
        from_us: int | None = None,
        from_row: int = 0,
        columns: list[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a stream in order: those from a time on, without the first `from_row` of the stream.

        Memory is bounded by a row group of one file. `columns` must have the time column among them.
        """
        stored = self.stream(stream)
        number, last = 0, None
        for chunk in stored.chunks:
            begin, number = number, number + chunk.rows
            if number <= from_row or (from_us is not None and chunk.last < from_us):
                continue
            skip = max(0, from_row - begin)
            for batch in self._chunk_batches(stored, chunk, columns, batch_rows):
                last = _checked(batch, stored.time, last, self.path / chunk.path)
                cut = min(skip, batch.num_rows)
                skip -= cut
                if from_us is not None:
                    cut = max(cut, int(np.searchsorted(times_of(batch, stored.time), from_us)))
                if cut < batch.num_rows:
                    yield batch.slice(cut)

    def _chunk_batches(
        self, stored: StoredStream, chunk: Chunk, columns: list[str] | None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        path = self.path / chunk.path
        try:
            with pq.ParquetFile(path) as file:
                _check_schema(file.schema_arrow, stored, path)
                if file.metadata.num_rows != chunk.rows:
                    raise DatasetError(f"{path} has {file.metadata.num_rows} rows instead of {chunk.rows}", hint=_AGAIN)
                yield from file.iter_batches(batch_rows, columns=columns, use_threads=False)
        except FileNotFoundError:
            raise DatasetError(f"{path} is missing", hint=_AGAIN) from None
        except (pa.ArrowException, OSError) as error:
            raise DatasetError(f"{path} cannot be read", detail=str(error).split("\n", 1)[0], hint=_AGAIN) from None


def times_of(batch: pa.RecordBatch, time: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The time column of a batch as microseconds, without a copy."""
    times: np.ndarray[Any, np.dtype[np.int64]] = batch.column(time).cast(pa.int64()).to_numpy()
    return times


def _checked(batch: pa.RecordBatch, time: str, last: int | None, path: Path) -> int | None:
    """Check the times of a batch that follows `last`; gives its last time."""
    if batch.column(time).null_count:
        raise DatasetError(f'{path} has a row without a time in column "{time}"', hint=_AGAIN)
    times = times_of(batch, time)
    if not len(times):
        return last
    if (last is not None and times[0] < last) or not np.all(times[1:] >= times[:-1]):
        raise DatasetError(f'{path} is not in the order of column "{time}"', hint=_AGAIN)
    return int(times[-1])


def _check_schema(found: pa.Schema, stored: StoredStream, path: Path) -> None:
    wanted = stored.schema()
    if found.names != wanted.names:
        raise DatasetError(f"{path} has the columns {', '.join(found.names)} instead of {', '.join(wanted.names)}", hint=_AGAIN)
    for field in wanted:
        if found.field(field.name).type != field.type:
            raise DatasetError(
                f'column "{field.name}" of {path} has type {found.field(field.name).type} instead of {field.type}', hint=_AGAIN
            )


def _from_manifest(path: Path, found: Any) -> Dataset:
    """A dataset from its parsed manifest; what does not fit raises any of the errors that `open` expects."""
    if found["format"] != FORMAT:
        raise ValueError(f"format {found['format']!r} is not {FORMAT}")
    streams = {str(name): _from_description(str(name), described) for name, described in found["streams"].items()}
    return Dataset(path, str(found["kind"]), found["seed"], dict(found["parameters"]), streams, dict(found["quarantined"]))


def _from_description(name: str, found: Any) -> StoredStream:
    columns = dict(found["columns"])
    schema = Schema.parse(columns, name)
    if unknown := [word for word in columns.values() if word not in ARROW_TYPES]:
        raise ValueError(f'stream "{name}" has a column of type {unknown[0]}')
    time = found["time"]
    if columns.get(time) != "timestamp" or schema.names != tuple(columns):
        raise ValueError(f'stream "{name}" has no timestamp column "{time}"')
    chunks = tuple(Chunk(str(c["path"]), int(c["rows"]), int(c["first"]), int(c["last"])) for c in found["chunks"])
    for chunk, after in zip(chunks, chunks[1:]):
        if after.first < chunk.last:
            raise ValueError(f"{after.path} begins before {chunk.path} ends")
    for chunk in chunks:
        if chunk.rows <= 0 or chunk.first > chunk.last or chunk.path.startswith("/") or ".." in chunk.path.split("/"):
            raise ValueError(f"{chunk.path} is described wrongly")
    stored = StoredStream(name, columns, time, found["key"], chunks)
    if (stored.rows, stored.first, stored.last) != (found["rows"], found["first"], found["last"]):
        raise ValueError(f'the chunks of stream "{name}" do not add up')
    return stored
