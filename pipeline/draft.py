"""A dataset while it is written: published whole, or not at all.

All is made in a sibling of the wanted folder, `DIR.partial-<pid>`: the dataset in its `data`, what jobs need meanwhile in its
`scratch`. `publish` reads the footers of what was written, writes the manifest last, syncs everything, and renames: whatever
happens before (an error, Ctrl-C, a kill, a full disk), DIR does not exist. A draft locks its sibling while it lives; the next
draft of the same DIR removes those that nobody has locked.
"""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import glob
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lineage.errors import ConflictError
from pipeline.dataset import FORMAT, MANIFEST, Chunk, Dataset, DatasetError, StoredStream

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Declared:
    """A stream that a draft writes: columns by the contract's type words, the time column, and a key if rows have one."""

    columns: Mapping[str, str]
    time: str
    key: str | None = None


def chunk_name(number: int) -> str:
    """The file of a stretch of time; names order as numbers do.

    >>> chunk_name(7)
    'chunk=000007.parquet'
    """
    return f"chunk={number:06}.parquet"


class Draft:
    """A dataset that is being made in `folder`. Use it with `with`: leaving without `publish` removes it."""

    def __init__(self, out: str | Path, *, kind: str, seed: int | None, parameters: Mapping[str, Any]) -> None:
        self.out = Path(out).absolute()
        self._place = self.out.with_name(f"{self.out.name}.partial-{os.getpid()}")
        self.folder = self._place / "data"
        self.scratch = self._place / "scratch"
        self._about = {"format": FORMAT, "kind": kind, "seed": seed, "parameters": dict(parameters)}
        self._lock: int | None = None

    def __enter__(self) -> Self:
        if self.out.exists() and not (self.out.is_dir() and not any(self.out.iterdir())):
            raise ConflictError(f"{self.out} exists already", hint="name another folder with --out, or remove this one")
        with telling_disk(self.out):
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._remove_abandoned()
            self._place.mkdir()
            self._lock = os.open(self._place, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.folder.mkdir()
            self.scratch.mkdir()
        return self

    def __exit__(self, *error: object) -> None:
        # a job that was cut off may still be writing; the next draft removes what escapes here
        shutil.rmtree(self._place, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)

    def _remove_abandoned(self) -> None:
        """Remove the drafts of killed writers; a running one holds its lock."""
        for folder in self.out.parent.glob(f"{glob.escape(self.out.name)}.partial-*"):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConflictError(
                    f"{self.out} is being written by process {folder.name.rpartition('-')[2]}",
                    hint="wait for it or end it, or name another folder with --out",
                ) from None
            else:
                shutil.rmtree(folder)
            finally:
                os.close(lock)

    def publish(self, streams: Mapping[str, Declared], quarantined: Mapping[str, int]) -> Dataset:
        """Write the manifest, sync everything and rename the draft to its final name."""
        with telling_disk(self.out):
            described = {name: self._stored(name, stream).described() for name, stream in streams.items()}
            for path in self.folder.rglob("*"):
                sync(path)
            manifest = {**self._about, "streams": described, "quarantined": dict(quarantined)}
            temporary = self.folder / f"{MANIFEST}.new"
            temporary.write_text(json.dumps(manifest, indent=1) + "\n")
            sync(temporary)
            temporary.rename(self.folder / MANIFEST)
            sync(self.folder)
            self.folder.rename(self.out)
            sync(self.out.parent)
        return Dataset.open(self.out)

    def _stored(self, name: str, stream: Declared) -> StoredStream:
        """Return a stream as described by the footers of its files."""
        chunks = []
        for path in sorted((self.folder / name).glob("chunk=*.parquet")):
            first_last = _footer(path, stream.time)
            if first_last is None:
                path.unlink()
            else:
                chunks.append(Chunk(f"{name}/{path.name}", *first_last))
        return StoredStream(name, stream.columns, stream.time, stream.key, tuple(chunks))


@contextmanager
def telling_disk(where: Path) -> Iterator[None]:
    """Turn errors of the disk into `DatasetError`."""
    try:
        yield
    except OSError as error:
        raise disk_error(where, error.errno, error.strerror or str(error)) from error


def disk_error(where: Path, number: int | None, words: str) -> DatasetError:
    """Return the error of a dataset that cannot be written."""
    if number in _FULL:
        return DatasetError(
            f"the disk is full: {where} was not written",
            code="disk_full",
            hint="free some space or name a folder on another disk with --out; nothing was left behind",
        )
    return DatasetError(f"{where} cannot be written", detail=words, hint="name another folder with --out")


def _footer(path: Path, time: str) -> tuple[int, int, int] | None:
    """Return rows, first and last time of a file; None if it has no rows."""
    try:
        with pq.ParquetFile(path) as file:
            footer = file.metadata
            if not footer.num_rows:
                return None
            at = file.schema_arrow.names.index(time)
            groups = [footer.row_group(n).column(at).statistics for n in range(footer.num_row_groups)]
    except pa.ArrowException as error:
        raise DatasetError(f"{path} was not written whole", detail=str(error).split("\n", 1)[0]) from None
    return footer.num_rows, min(_us(group.min) for group in groups), max(_us(group.max) for group in groups)


def _us(time: dt.datetime) -> int:
    return (time - _EPOCH) // dt.timedelta(microseconds=1)


def sync(path: Path) -> None:
    """Make a file or folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
