"""Snapshots: the whole state after one journal number, in a file that is there completely or not at all.

    write a new file, sync it, rename it, sync the directory     -> the snapshot is durable
    then remove all but this one and the good one before it

Two are kept, so a snapshot that has gone bad on the disk costs only a longer replay. A name ending in `.snapshot` says
that every byte was synced before: a crash leaves at most a file named `new`, which is removed. Each part has its length
and a checksum of all parts so far, the end mark has their number, and all checksums start from the snapshot's number.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from lineage.errors import StorageError
from storage.disk import Data, as_bytes, read_at
from storage.guarded_disk import GuardedDisk, GuardedFile
from storage.segment import newer_layout

LAYOUT = 1

SNAPSHOT_DIRECTORY = "snapshots"
_SUFFIX = ".snapshot"
_NEW = f"{SNAPSHOT_DIRECTORY}/new"

_HEAD = struct.Struct("<8sIQI")  # magic, layout, number, checksum
_PART = struct.Struct(
    "<4sQII"
)  # magic, length (of the end mark: number of parts), checksum of all bytes so far, checksum of this
_CHECKSUM = struct.Struct("<I")
_HEAD_MAGIC = b"EDDYSNAP"
_PART_MAGIC = b"PART"
_END_MAGIC = b"DONE"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after record `number`; the parts are writable and belong to the caller."""

    number: int
    parts: list[bytearray]


def snapshot_path(number: int) -> str:
    return f"{SNAPSHOT_DIRECTORY}/{number:020d}{_SUFFIX}"


class Snapshots:
    """The snapshots of one data directory; those below the number `floor` were discarded and are removed."""

    def __init__(self, disk: GuardedDisk, *, floor: int = 0) -> None:
        self._disk = disk
        #: Numbers of the snapshots known to be good, ascending; at most two.
        self._good: list[int] = []
        #: The newest good one, if it was looked for and nobody has it yet.
        self._found: Snapshot | None = None
        self._looked = False
        #: What was found damaged, as sentences.
        self.notes: list[str] = []
        disk.make_directory(SNAPSHOT_DIRECTORY)
        disk.sync_directory("")
        if disk.exists(_NEW):
            disk.remove(_NEW)
        for number in self._numbers():
            if number < floor:
                disk.remove(snapshot_path(number))
        # a name that was found may not be safe yet: this process may follow one that was killed
        disk.sync_directory(SNAPSHOT_DIRECTORY)

    @property
    def fallback(self) -> int | None:
        """Return the number of the older of two good snapshots; None while there are not two."""
        return self._good[0] if len(self._good) == 2 else None

    def covered(self) -> int:
        """Return the number of the newest snapshot whose checksums hold; 0 if there is none."""
        if not self._looked:
            self._found = self.newest()
        return self._good[-1] if self._good else 0

    def newest(self) -> Snapshot | None:
        """Return the newest snapshot whose checksums hold; None if there is none."""
        if self._found is not None:
            found, self._found = self._found, None
            return found
        self._looked = True
        for number in reversed(self._numbers()):
            path = snapshot_path(number)
            file = self._disk.open(path)
            try:
                parts = _read(file, number)
            finally:
                file.close()
            if parts is not None:
                self._good = [number]
                return Snapshot(number, parts)
            self.notes.append(f"{path}: damaged, not used")
        return None

    def write(self, number: int, parts: Iterable[Data]) -> None:
        """Make a snapshot durable, then remove those older than the previous good one."""
        if number in self._good:
            return
        assert not self._good or number > self._good[-1], "snapshots are written in the order of their numbers"
        if self._disk.exists(_NEW):
            self._disk.remove(_NEW)
        try:
            file = self._disk.open(_NEW, create=True)
            try:
                _write(file, number, parts)
                file.sync()
            finally:
                file.close()
            self._disk.rename(_NEW, snapshot_path(number))
        except StorageError as error:
            self._remove_new(error)
            raise
        self._disk.sync_directory(SNAPSHOT_DIRECTORY)
        self._good = [*self._good[-1:], number]
        for old in self._numbers():
            if old not in self._good:
                self._disk.remove(snapshot_path(old))

    def _remove_new(self, error: StorageError) -> None:
        """Remove a half-written snapshot, so that it does not keep the disk full."""
        if self._disk.stopped is None:
            try:
                self._disk.remove(_NEW)
            except StorageError as second:
                error.add_note(str(second))

    def _numbers(self) -> list[int]:
        names = [name for name in self._disk.list(SNAPSHOT_DIRECTORY) if name.endswith(_SUFFIX)]
        return sorted(int(stem) for name in names if (stem := name.removesuffix(_SUFFIX)).isdecimal())


def _sealed(head: bytes, seed: int) -> bytes:
    """Return the packed head with its checksum in the last four bytes."""
    head = head[: -_CHECKSUM.size]
    return head + _CHECKSUM.pack(zlib.crc32(head, seed))


def _write(file: GuardedFile, number: int, parts: Iterable[Data]) -> None:
    seed = zlib.crc32(struct.pack("<Q", number))
    file.write(0, [_sealed(_HEAD.pack(_HEAD_MAGIC, LAYOUT, number, 0), seed)])
    offset = _HEAD.size
    n_parts = 0
    for part in parts:
        view = as_bytes(part)
        seed = zlib.crc32(view, seed)
        file.write(offset, [_sealed(_PART.pack(_PART_MAGIC, len(view), seed, 0), seed), view])
        offset += _PART.size + len(view)
        n_parts += 1
    file.write(offset, [_sealed(_PART.pack(_END_MAGIC, n_parts, seed, 0), seed)])


def _read(file: GuardedFile, number: int) -> list[bytearray] | None:
    """Return the parts; None if any byte differs from what was written."""
    size = file.size()
    seed = zlib.crc32(struct.pack("<Q", number))
    head = bytes(read_at(file, 0, _HEAD.size))
    if len(head) < _HEAD.size or head != _sealed(head, seed) or not head.startswith(_HEAD_MAGIC):
        return None
    layout = _HEAD.unpack(head)[1]
    if layout > LAYOUT:
        raise newer_layout("the snapshot", layout, LAYOUT, file.path)
    parts: list[bytearray] = []
    offset = _HEAD.size
    while offset + _PART.size <= size:
        head = bytes(read_at(file, offset, _PART.size))
        magic, length, checksum, _ = _PART.unpack(head)
        offset += _PART.size
        if head != _sealed(head, checksum):
            return None
        if magic == _END_MAGIC:
            return parts if length == len(parts) and checksum == seed and offset == size else None
        if magic != _PART_MAGIC or length > size - offset:
            return None
        part = bytearray(length)
        if file.read_into(offset, memoryview(part)) < length:
            return None
        seed = zlib.crc32(part, seed)
        if seed != checksum:
            return None
        parts.append(part)
        offset += length
    return None
