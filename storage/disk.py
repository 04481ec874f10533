"""The interface to the disk: a directory tree in which files are read, written, synced, renamed and removed.

Everything in this package does its I/O through a `Disk`, so tests can put a simulated one in its place that loses, tears
and reorders what was not synced. What a disk promises, and all that we rely on:

* `File.sync` returns -> the bytes and the size of the file survive a power loss.
* `sync_directory` returns -> the names created, renamed and removed in that directory survive it.
* Nothing else survives for certain, and what was not synced may survive in part and out of order.
* `rename` is atomic: afterwards the new name means the old file or the new one, never a mixture.
* A write never damages bytes that it does not cover.

Disks raise `OSError` and nothing else; `storage/guarded_disk.py` words the errors. Paths are relative to the root, with `/`.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

#: What may be written: anything contiguous. Arrays come as `array.data`.
Data = bytes | bytearray | memoryview

#: Parts of one system call; Linux takes 1,024.
_MAX_PARTS = 512

_LOCK_FILE = "lock"


class File(Protocol):
    """An open file. Offsets and sizes are bytes."""

    def read_into(self, offset: int, target: memoryview) -> int:
        """Fill `target` from `offset`; return the number of bytes, less than its length only at the end of the file."""

    def write(self, offset: int, parts: Sequence[Data]) -> None:
        """Write all parts, one after the other; after an error any piece of them may have been written."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Disk(Protocol):
    """A directory tree; `""` is its root."""

    @property
    def display_path(self) -> str:
        """Return the path of the root, for messages."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; with `create` the file must not exist."""

    def exists(self, path: str) -> bool: ...

    def list(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def make_directory(self, path: str) -> None:
        """Make a directory unless it is there. The root is made with its parents."""

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def lock(self) -> None:
        """Keep other processes out until `unlock` or the end of this one; `BlockingIOError` names the process that has it."""

    def unlock(self) -> None: ...

    def random_bytes(self, n_bytes: int) -> bytes: ...


def as_bytes(data: Data) -> memoryview:
    """Return the bytes of a buffer of any shape, without a copy."""
    view = memoryview(data)
    # an empty view of several dimensions cannot be cast
    return view.cast("B") if view.nbytes else memoryview(b"")


def read_at(file: File, offset: int, size: int) -> bytearray:
    """Return up to `size` bytes; fewer only at the end of the file."""
    target = bytearray(size)
    n_read = file.read_into(offset, memoryview(target))
    del target[n_read:]
    return target


def directory_of(path: str) -> str:
    return path.rpartition("/")[0]


class LocalFile:
    """A file of this machine."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read_into(self, offset: int, target: memoryview) -> int:
        done = 0
        while done < len(target):
            n_read = os.preadv(self._descriptor, [target[done:]], offset + done)
            if n_read == 0:
                break
            done += n_read
        return done

    def write(self, offset: int, parts: Sequence[Data]) -> None:
        left = [view for part in parts if (view := as_bytes(part)).nbytes]
        while left:
            written = os.pwritev(self._descriptor, left[:_MAX_PARTS], offset)
            if not written:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            offset += written
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if written:
                left[0] = left[0][written:]

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: its fsync leaves the data in the drive's cache
            fcntl.fcntl(self._descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class LocalDisk:
    """A directory of this machine; its files are readable by their owner alone."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()
        self._lock = -1

    @property
    def display_path(self) -> str:
        return str(self.root)

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        return LocalFile(os.open(self.root / path, flags, 0o600))

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def list(self, directory: str) -> list[str]:
        return sorted(os.listdir(self.root / directory))

    def make_directory(self, path: str) -> None:
        if path:
            (self.root / path).mkdir(mode=0o700, exist_ok=True)
            return
        missing = [parent for parent in (self.root, *self.root.parents) if not parent.exists()]
        for directory in reversed(missing):
            directory.mkdir(mode=0o700, exist_ok=True)
            _sync_directory(directory.parent)
        if not self.root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self.root))

    def rename(self, old: str, new: str) -> None:
        os.rename(self.root / old, self.root / new)

    def remove(self, path: str) -> None:
        os.remove(self.root / path)

    def sync_directory(self, path: str) -> None:
        _sync_directory(self.root / path)

    def lock(self) -> None:
        descriptor = os.open(self.root / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise BlockingIOError(errno.EAGAIN, f"process {holder}" if holder else "another process") from None
        except OSError:
            os.close(descriptor)
            raise
        self._lock = descriptor

    def unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def random_bytes(self, n_bytes: int) -> bytes:
        return os.urandom(n_bytes)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
