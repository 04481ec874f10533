"""The catalog: definitions of streams, tables and queries, and a few facts about the data directory, in SQLite.

It is what is left when state is discarded. Every change is one transaction: after `apply` or `set_meta` returns it is durable,
and after a crash it is there wholly or not at all.

WAL in exclusive mode: one sync a transaction where a rollback journal needs three, and no shared memory. Opening writes
the log again (`storage/renewal.py`) and folds it into the database: so what it shows is safe, whatever the process before it
had failed to sync.

Definitions come back in the order in which they were last written. A query that others read cannot be replaced, so whatever
a definition needs stands before it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import apsw

from lineage.errors import StorageError
from storage.guarded_disk import GuardedDisk
from storage.renewal import renew
from storage.segment import newer_layout
from storage.sqlite_files import SqliteFiles

#: Of the tables below (`PRAGMA user_version`).
SCHEMA = 1

CATALOG_FILE = "catalog.sqlite"

#: "Eddy", so that `file` and SQLite's shell can tell whose it is.
_APPLICATION_ID = 0x45646479

_PRAGMAS = (
    "PRAGMA locking_mode = exclusive",
    "PRAGMA journal_mode = wal",
    "PRAGMA synchronous = full",
    "PRAGMA temp_store = memory",
    "PRAGMA journal_size_limit = 16777216",
)

_TABLES = f"""
CREATE TABLE definitions (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    definition TEXT NOT NULL,
    number INTEGER NOT NULL,
    UNIQUE (kind, name)
);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA};
"""


class CatalogEntry(NamedTuple):
    """One definition: `kind` is a word like "stream", `definition` JSON text, `number` the journal number of its call."""

    kind: str
    name: str
    definition: str
    number: int


class DefinitionCatalog:
    """One connection to the catalog; calls from several threads take turns."""

    def __init__(self, disk: GuardedDisk) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self._files = SqliteFiles(disk)
        self._connection: apsw.Connection | None = None
        try:
            for path in (f"{CATALOG_FILE}-wal", f"{CATALOG_FILE}-journal"):
                if disk.exists(path):
                    renew(disk, path)
            with self._telling():
                self._connection = apsw.Connection(CATALOG_FILE, vfs=self._files.name)
                for pragma in _PRAGMAS:
                    self._connection.execute(pragma).fetchall()
                self._prepare(self._connection)
                self._connection.execute("PRAGMA wal_checkpoint(truncate)").fetchall()
        except StorageError:
            self.close()
            raise

    def definitions(self) -> list[CatalogEntry]:
        """Return all definitions, in the order in which they were last written."""
        with self._reading() as connection:
            rows = connection.execute("SELECT kind, name, definition, number FROM definitions ORDER BY position")
            return [CatalogEntry(*row) for row in rows]

    def number(self) -> int:
        """Return the journal number of the last `apply`; 0 before the first."""
        return int(self.meta("number") or 0)

    def apply(self, number: int, put: Iterable[CatalogEntry] = (), drop: Iterable[tuple[str, str]] = ()) -> None:
        """Remove the definitions `drop`, as (kind, name), write those of `put` and note the number, in one transaction."""
        with self._writing() as connection:
            connection.executemany("DELETE FROM definitions WHERE kind = ? AND name = ?", drop)
            connection.executemany("INSERT OR REPLACE INTO definitions (kind, name, definition, number) VALUES (?, ?, ?, ?)", put)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('number', ?)", (str(number),))

    def meta(self, key: str) -> str | None:
        with self._reading() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

    def set_meta(self, **values: str) -> None:
        """Write facts about the directory in one transaction."""
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def close(self) -> None:
        """Close the connection; after a stop of the disk without writing to it."""
        connection, self._connection = self._connection, None
        was_stopped = self._disk.stopped is not None
        try:
            with self._telling():
                if connection is not None:
                    connection.close()
        except StorageError:
            if not was_stopped:
                raise
        finally:
            self._files.close()

    def _prepare(self, connection: apsw.Connection) -> None:
        version = int(connection.execute("PRAGMA user_version").get)
        if version > SCHEMA:
            raise newer_layout("the catalog", version, SCHEMA, CATALOG_FILE)
        if version == 0:
            with connection:
                connection.execute(_TABLES)

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        with self._lock, self._telling():
            assert self._connection is not None, "the catalog is closed"
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        self._disk.check()
        with self._reading() as connection, connection:
            yield connection

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turn SQLite's errors into `StorageError`; an I/O error gets the message of the disk."""
        self._files.failure = None
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise StorageError(
                "the catalog is damaged",
                detail=str(error),
                file=CATALOG_FILE,
                hint="restore the data directory from a copy, or name another one",
            ) from error
        except apsw.Error as error:
            raise self._files.failure or StorageError(
                "the catalog cannot be used", detail=str(error), file=CATALOG_FILE, hint="restore the data directory from a copy"
            ) from error
