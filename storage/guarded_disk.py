"""A disk that raises `StorageError` with a clear message, and stops all writing once it can no longer be trusted.

`GuardedDisk` wraps any `Disk`. An `OSError` becomes a `StorageError` that names the file, says in one sentence what
happened and shows a way out. After a sync that failed, the kernel may have dropped the data and will report the next sync
as fine, so no later sync proves anything: every later change raises, until a new process has read the directory again.

    stopped is not None  =>  nothing is written, synced, renamed or removed any more

Reading goes on: it cannot make anything worse.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from types import TracebackType

from lineage.errors import StorageError
from storage.disk import Data, Disk, File

_WAYS_OUT = {
    errno.ENOSPC: ("the disk is full", "free some space and start again; nothing that was acknowledged is lost"),
    errno.EDQUOT: ("the disk quota is used up", "free some space and start again; nothing that was acknowledged is lost"),
    errno.EACCES: ("no permission", "give this user the right to read and write there, or name another data directory"),
    errno.EPERM: ("no permission", "give this user the right to read and write there, or name another data directory"),
    errno.EROFS: ("the file system is read-only", "mount it for writing, or name another data directory"),
    errno.EIO: ("the disk reports an input/output error", "look into the system log for the disk's errors before starting again"),
    errno.ENOTDIR: ("a part of the path is a file, not a directory", "name another data directory"),
    errno.EMFILE: ("too many files are open", "raise the limit of open files (ulimit -n) and start again"),
    errno.ENOENT: ("a file is missing", "put the data directory back as it was, or name another one"),
}


def storage_error(error: OSError, action: str, disk: str, path: str) -> StorageError:
    """Return the error for an `OSError` while doing `action` to `path`."""
    if isinstance(error, BlockingIOError):
        return StorageError(
            f"the data directory {disk} is in use by {error.args[1]}", hint="stop it first, or name another data directory"
        )
    known = _WAYS_OUT.get(error.errno or 0)
    reason, hint = known or (error.strerror or str(error), "see that the data directory is on a disk that works")
    return StorageError(f"cannot {action} {disk}{f'/{path}' if path else ''}: {reason}", hint=hint)


class _Attempt:
    """Context of one disk call: refuses changes after a stop, words the errors, and stops the disk on some of them."""

    __slots__ = ("_action", "_changes", "_guard", "_path", "_stops")

    def __init__(self, guard: GuardedDisk, action: str, path: str, changes: bool, stops: bool) -> None:
        self._guard = guard
        self._action = action
        self._path = path
        self._changes = changes
        self._stops = stops

    def __enter__(self) -> None:
        if self._changes:
            self._guard.check()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, OSError):
            told = storage_error(error, self._action, self._guard.display_path, self._path)
            if self._stops:
                self._guard.stop(told)
            raise told from error


class GuardedFile:
    """A file of a guarded disk."""

    def __init__(self, guard: GuardedDisk, file: File, path: str) -> None:
        self._guard = guard
        self._file = file
        self.path = path

    def read_into(self, offset: int, target: memoryview) -> int:
        with self._guard.telling("read", self.path):
            return self._file.read_into(offset, target)

    def write(self, offset: int, parts: Sequence[Data]) -> None:
        with self._guard.changing("write", self.path):
            self._file.write(offset, parts)

    def truncate(self, size: int) -> None:
        with self._guard.changing("truncate", self.path):
            self._file.truncate(size)

    def size(self) -> int:
        with self._guard.telling("look at", self.path):
            return self._file.size()

    def sync(self) -> None:
        with self._guard.syncing(self.path):
            self._file.sync()

    def close(self) -> None:
        with self._guard.telling("close", self.path):
            self._file.close()


class GuardedDisk:
    """A disk that raises only `StorageError`, and refuses every change after `stop`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: Why nothing may be changed any more.
        self.stopped: StorageError | None = None

    def stop(self, error: StorageError) -> None:
        """Refuse every later change; the first reason stays."""
        self.stopped = self.stopped or error

    def check(self) -> None:
        """Raise if the disk has stopped."""
        if self.stopped is not None:
            raise StorageError(
                "storage has stopped after an error: nothing more is written",
                detail=f"the error was: {self.stopped.fact}",
                hint=f"restart the service: it recovers all that was acknowledged. Before that: {self.stopped.hint}",
            )

    def telling(self, action: str, path: str) -> _Attempt:
        return _Attempt(self, action, path, changes=False, stops=False)

    def changing(self, action: str, path: str) -> _Attempt:
        return _Attempt(self, action, path, changes=True, stops=False)

    def syncing(self, path: str) -> _Attempt:
        return _Attempt(self, "sync", path, changes=True, stops=True)

    @property
    def display_path(self) -> str:
        return self._disk.display_path

    def open(self, path: str, *, create: bool = False) -> GuardedFile:
        with self.changing("create", path) if create else self.telling("open", path):
            return GuardedFile(self, self._disk.open(path, create=create), path)

    def exists(self, path: str) -> bool:
        with self.telling("look for", path):
            return self._disk.exists(path)

    def list(self, directory: str) -> list[str]:
        with self.telling("list", directory):
            return self._disk.list(directory)

    def make_directory(self, path: str) -> None:
        with self.changing("make", path):
            self._disk.make_directory(path)

    def rename(self, old: str, new: str) -> None:
        with self.changing("rename", old):
            self._disk.rename(old, new)

    def remove(self, path: str) -> None:
        with self.changing("remove", path):
            self._disk.remove(path)

    def sync_directory(self, path: str) -> None:
        with self.syncing(path):
            self._disk.sync_directory(path)

    def lock(self) -> None:
        with self.telling("lock", ""):
            self._disk.lock()

    def unlock(self) -> None:
        with self.telling("unlock", ""):
            self._disk.unlock()

    def random_bytes(self, n_bytes: int) -> bytes:
        return self._disk.random_bytes(n_bytes)
