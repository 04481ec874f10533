"""Rewriting a file under a new name, so that its bytes are known to be synced.

A process that was killed leaves data in the kernel's cache that no sync has covered; one whose sync failed leaves data there
that no sync ever will cover, for the kernel takes it for written. A new process sees both like any other bytes. If it showed
them to anybody it would promise what the next power loss takes back, and would append behind a hole. So what is to be
continued is copied first: the copy is written and synced by this process, and then takes the place of the file.
"""

from __future__ import annotations

from storage.disk import directory_of, read_at
from storage.guarded_disk import GuardedDisk

#: Of the copy while it is written; one name a directory, so that the next renewal there removes what a crash left of this one.
_NEW = "new"

#: Bytes copied at once.
_PIECE = 1 << 20


def renew(disk: GuardedDisk, path: str, size: int | None = None) -> None:
    """Replace a file by a synced copy of its first `size` bytes, or of all; a crash leaves the one or the other."""
    directory = directory_of(path)
    copy_path = f"{directory}/{_NEW}".lstrip("/")
    if disk.exists(copy_path):
        disk.remove(copy_path)
    file = disk.open(path)
    try:
        size = file.size() if size is None else size
        copy = disk.open(copy_path, create=True)
        try:
            for start in range(0, size, _PIECE):
                copy.write(start, [read_at(file, start, min(_PIECE, size - start))])
            copy.sync()
        finally:
            copy.close()
    finally:
        file.close()
    disk.rename(copy_path, path)
    disk.sync_directory(directory)
