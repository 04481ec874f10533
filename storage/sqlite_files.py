"""SQLite's files through our disk: a VFS of apsw over a `GuardedDisk`.

SQLite does all its I/O here, so the simulated disk of the tests can lose and tear it, and a failed sync stops the catalog
and the journal alike. Three rules beyond passing calls on:

* A file is safe only with its name: the first sync of each is followed by one of the directory. Also of files that were
  found: a process that was killed may have made them, and a log whose name vanishes leaves a half-written database.
* A removal is synced at once. A rollback journal that came back after a crash would undo what was committed since.
* Errors reach SQLite as I/O errors or a full disk, which it knows how to survive; `failure` keeps the words.

The directory is locked as a whole and SQLite runs in exclusive mode, so locks are granted without asking and no shared
memory is needed. It is told nothing good about the device: no atomic writes, no order.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from lineage.errors import StorageError
from storage.disk import directory_of, read_at
from storage.guarded_disk import GuardedDisk, GuardedFile

_names = itertools.count(1)

_SECTOR = 4096


class SqliteFiles(apsw.VFS):
    """The VFS of one connection; `close` removes its name from SQLite's list."""

    def __init__(self, disk: GuardedDisk) -> None:
        self.disk = disk
        self.name = f"eddy-disk-{next(_names)}"
        #: The error behind the last I/O error that SQLite was given.
        self.failure: StorageError | None = None
        super().__init__(self.name, base="")

    @contextmanager
    def telling(self) -> Iterator[None]:
        try:
            yield
        except StorageError as error:
            self.failure = error
            cause = error.__cause__
            full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
            raise (apsw.FullError if full else apsw.IOError)(error.fact) from error

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> SqliteFile:  # type: ignore[override]  # a file by its methods
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        assert path is not None, "temporary files are kept in memory"
        flags[1] = flags[0]
        with self.telling():
            return SqliteFile(self, self.disk.open(path, create=not self.disk.exists(path)))

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self.telling():
            self.disk.remove(filename)
            self.disk.sync_directory(directory_of(filename))

    def xAccess(self, pathname: str, flags: int) -> bool:
        with self.telling():
            return self.disk.exists(pathname)

    def xFullPathname(self, name: str) -> str:
        return name

    def close(self) -> None:
        self.unregister()


class SqliteFile:
    """One file of SQLite: the methods are those of `apsw.VFSFile`."""

    def __init__(self, vfs: SqliteFiles, file: GuardedFile) -> None:
        self._vfs = vfs
        self._file = file
        self._name_safe = False

    def xRead(self, amount: int, offset: int) -> bytearray:
        with self._vfs.telling():
            return read_at(self._file, offset, amount)

    def xWrite(self, data: bytes, offset: int) -> None:
        with self._vfs.telling():
            self._file.write(offset, [data])

    def xTruncate(self, size: int) -> None:
        with self._vfs.telling():
            self._file.truncate(size)

    def xSync(self, flags: int) -> None:
        with self._vfs.telling():
            self._file.sync()
            if not self._name_safe:
                self._vfs.disk.sync_directory(directory_of(self._file.path))
                self._name_safe = True

    def xFileSize(self) -> int:
        with self._vfs.telling():
            return self._file.size()

    def xClose(self) -> None:
        with self._vfs.telling():
            self._file.close()

    def xLock(self, level: int) -> None:
        """Grant the lock: the data directory belongs to this process alone."""

    def xUnlock(self, level: int) -> None:
        """Release nothing: the data directory belongs to this process alone."""

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xDeviceCharacteristics(self) -> int:
        return 0

    def xSectorSize(self) -> int:
        return _SECTOR
