"""A disk in memory that forgets what it may: the twin of `storage.disk.LocalDisk` for tests of crashes.

It keeps apart what is durable and what is only written. Each file has its durable bytes and the writes and truncations since
its last sync; the tree has its durable names and the creations, renames and removals since the last sync of their directory.
Every operation that changes something is numbered, and with `recording` the state before each is kept: `points[n]` is the
disk when n operations were done. From a state comes the disk that a new process would find:

* `after_kill()`: the process died, the page cache did not. All is there, and what was unsynced still is.
* `after_power_loss(seed)`: of what was unsynced, the seed decides what is dropped, torn at a byte or a sector, kept without
  what came before it, left as zeros or garbage, or has a bit flipped. Names are changed or not, each for itself. Synced things
  always survive.

`fail` makes one operation raise. A write that fails has written some of its bytes; a sync that fails has saved some of what it
should have and given up the rest, as Linux does: reads still see it, and later syncs succeed without it.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from storage.disk import Data, as_bytes, directory_of

SECTOR = 512

#: In place of a file's number: the name is a directory.
_DIRECTORY = -1


class Change(NamedTuple):
    """A write of `data` at `offset`; with `data` None, a truncation to `offset`."""

    offset: int
    data: bytes | None

    def apply(self, content: bytearray) -> None:
        if self.data is None:
            if self.offset < len(content):
                del content[self.offset :]
            else:
                content.extend(bytes(self.offset - len(content)))
            return
        if len(content) < self.offset:
            content.extend(bytes(self.offset - len(content)))
        content[self.offset : self.offset + len(self.data)] = self.data


class NameChange(NamedTuple):
    """`new` now means `file`, and `old` nothing; either may be empty. A rename has both."""

    old: str
    new: str
    file: int

    @property
    def directory(self) -> str:
        return directory_of(self.new or self.old)

    def apply(self, names: dict[str, int]) -> None:
        if self.old and names.get(self.old) == self.file:
            del names[self.old]
        if self.new:
            names[self.new] = self.file


@dataclass(slots=True)
class _Node:
    """One file. `pending` is only ever appended to or replaced, so a length freezes it."""

    durable: bytes = b""
    pending: list[Change] = field(default_factory=list)
    #: What reads see.
    content: bytearray = field(default_factory=bytearray)
    #: A sync has failed: the content is no longer what is durable and pending.
    gave_up: bool = False


class FrozenFile(NamedTuple):
    durable: bytes
    changes: list[Change]
    n_changes: int
    #: The content where a sync has failed; else it follows from the others.
    content: bytes | None


class DiskState(NamedTuple):
    """A disk at one moment, before `operation` on `path`."""

    operation: str
    path: str
    names: dict[str, int]
    name_changes: tuple[NameChange, ...]
    files: dict[int, FrozenFile]

    def after_kill(self) -> SimulatedDisk:
        disk = SimulatedDisk()
        disk.durable_names = dict(self.names)
        disk.name_changes = list(self.name_changes)
        disk.names = dict(self.names)
        for name_change in self.name_changes:
            name_change.apply(disk.names)
        for number, file in self.files.items():
            pending = file.changes[: file.n_changes]
            content = bytearray(file.durable if file.content is None else file.content)
            for change in pending if file.content is None else ():
                change.apply(content)
            disk.files[number] = _Node(file.durable, pending, content, file.content is not None)
        disk.next_file = max(self.files, default=0) + 1
        return disk

    def after_power_loss(self, seed: int) -> SimulatedDisk:
        chance = random.Random(seed)
        disk = SimulatedDisk(seed)
        names = dict(self.names)
        for change in _surviving(list(self.name_changes), chance):
            change.apply(names)
        names = {path: file for path, file in names.items() if not (up := directory_of(path)) or up in names}
        for number in set(names.values()) - {_DIRECTORY}:
            file = self.files[number]
            changes = file.changes[: file.n_changes]
            content = _torn(file.durable, changes, chance) if changes else file.durable
            disk.files[number] = _Node(durable=content, content=bytearray(content))
        disk.names = names
        disk.durable_names = dict(names)
        disk.next_file = max(self.files, default=0) + 1
        return disk


def _surviving(changes: list[NameChange], chance: random.Random) -> list[NameChange]:
    """None, all, those up to some moment, or any of them."""
    if not changes:
        return []
    how = chance.randrange(4)
    if how == 0:
        return []
    if how == 1:
        return changes
    if how == 2:
        return changes[: chance.randrange(len(changes) + 1)]
    return [change for change in changes if chance.random() < 0.5]


def _torn(durable: bytes, changes: list[Change], chance: random.Random) -> bytes:
    """What is left of a file with unsynced changes."""
    how = chance.randrange(6)
    if how == 0:
        return durable
    content = bytearray(durable)
    if how == 1:
        for change in changes:
            change.apply(content)
        return bytes(content)
    if how in (2, 3):
        # up to some moment, the last write torn at a byte
        n_whole = chance.randrange(len(changes))
        for change in changes[:n_whole]:
            change.apply(content)
        last = changes[n_whole]
        if last.data is not None:
            _put(content, last.offset, last.data[: chance.randrange(len(last.data) + 1)], chance if how == 3 else None)
        return bytes(content)
    return _scattered(content, changes, chance)


def _scattered(content: bytearray, changes: list[Change], chance: random.Random) -> bytes:
    """Each sector of each write for itself; what is missing before the end is zeros or garbage."""
    whole = bytearray(content)
    for change in changes:
        change.apply(whole)
    end = len(content)
    if chance.random() < 0.3 and all(change.data is not None for change in changes):
        # blocks that another file had before
        content.extend(chance.randbytes(len(whole) - len(content)))
    kept = chance.choice((0.1, 0.5, 0.9))
    sectors: list[tuple[int, int]] = []
    for change in changes:
        if change.data is None:
            if chance.random() < kept:
                change.apply(content)
                end = min(end, change.offset)
                sectors.clear()
            continue
        at = 0
        while at < len(change.data):
            start = change.offset + at
            stop = min(len(change.data), start // SECTOR * SECTOR + SECTOR - change.offset)
            if chance.random() < kept:
                Change(start, change.data[at:stop]).apply(content)
                sectors.append((start, change.offset + stop))
                end = max(end, change.offset + stop)
            at = stop
    # the size may have reached the disk before the bytes
    Change(len(whole) if chance.random() < 0.5 else end, None).apply(content)
    if sectors and chance.random() < 0.3:
        start, stop = chance.choice(sectors)
        if (place := chance.randrange(start, stop)) < len(content):
            content[place] ^= 1 << chance.randrange(8)
    return bytes(content)


def _put(content: bytearray, offset: int, data: bytes, flip: random.Random | None) -> None:
    if data and flip is not None:
        place = flip.randrange(len(data))
        data = data[:place] + bytes([data[place] ^ (1 << flip.randrange(8))]) + data[place + 1 :]
    Change(offset, data).apply(content)


class SimulatedFile:
    """An open file of a simulated disk."""

    def __init__(self, disk: SimulatedDisk, node: _Node, path: str) -> None:
        self._disk = disk
        self._node = node
        self._path = path

    def read_into(self, offset: int, target: memoryview) -> int:
        found = self._node.content[offset : offset + len(target)]
        target[: len(found)] = found
        return len(found)

    def write(self, offset: int, parts: Sequence[Data]) -> None:
        data = b"".join(as_bytes(part) for part in parts)
        code = self._disk.begin("write", self._path)
        if code:
            data = data[: self._disk.chance.randrange(len(data) + 1)]
        if data:
            self._change(Change(offset, data))
        _raise(code)

    def truncate(self, size: int) -> None:
        _raise(self._disk.begin("truncate", self._path))
        self._change(Change(size, None))

    def size(self) -> int:
        return len(self._node.content)

    def sync(self) -> None:
        code = self._disk.begin("sync", self._path)
        node = self._node
        if code:
            if node.pending:
                node.durable = _torn(node.durable, node.pending, self._disk.chance)
                node.gave_up = True
        elif node.pending:
            durable = bytearray(node.durable)
            for change in node.pending:
                change.apply(durable)
            node.durable = bytes(durable)
        node.pending = []
        _raise(code)

    def close(self) -> None:
        pass

    def _change(self, change: Change) -> None:
        change.apply(self._node.content)
        self._node.pending.append(change)


class SimulatedDisk:
    """A `storage.disk.Disk` whose every choice follows from `seed`."""

    def __init__(self, seed: int = 0, *, recording: bool = False, fail: tuple[int, int] | None = None) -> None:
        self.chance = random.Random(seed)
        self.files: dict[int, _Node] = {}
        self.next_file = 1
        self.names: dict[str, int] = {}
        self.durable_names: dict[str, int] = {}
        self.name_changes: list[NameChange] = []
        #: What a failed sync of a directory gave up.
        self._lost_names: list[NameChange] = []
        self._locked = False
        self.recording = recording
        #: The operation with this number, from 0, raises an OSError with this errno.
        self.fail = fail
        self.n_operations = 0
        self.points: list[DiskState] = []

    @property
    def display_path(self) -> str:
        return "simulated"

    def state(self, operation: str = "end", path: str = "") -> DiskState:
        """The disk as it is now."""
        files = {
            number: FrozenFile(node.durable, node.pending, len(node.pending), bytes(node.content) if node.gave_up else None)
            for number, node in self.files.items()
        }
        return DiskState(operation, path, dict(self.durable_names), (*self._lost_names, *self.name_changes), files)

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        if create:
            if path in self.names:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            if (up := directory_of(path)) and up not in self.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            _raise(self.begin("create", path))
            self.files[self.next_file] = _Node()
            self._rename(NameChange("", path, self.next_file))
            self.next_file += 1
        return SimulatedFile(self, self.files[self._named(path)], path)

    def exists(self, path: str) -> bool:
        return path in self.names

    def list(self, directory: str) -> list[str]:
        if directory and directory not in self.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
        return sorted(path.rpartition("/")[2] for path in self.names if directory_of(path) == directory)

    def make_directory(self, path: str) -> None:
        if path and path not in self.names:
            _raise(self.begin("make", path))
            self._rename(NameChange("", path, _DIRECTORY))

    def rename(self, old: str, new: str) -> None:
        assert directory_of(old) == directory_of(new), "a rename between directories needs both synced"
        file = self._named(old)
        _raise(self.begin("rename", old))
        self._rename(NameChange(old, new, file))

    def remove(self, path: str) -> None:
        file = self._named(path)
        _raise(self.begin("remove", path))
        self._rename(NameChange(path, "", file))

    def sync_directory(self, path: str) -> None:
        code = self.begin("sync_directory", path)
        due = [change for change in self.name_changes if change.directory == path]
        self.name_changes = [change for change in self.name_changes if change.directory != path]
        if code:
            self._lost_names += due
        else:
            for change in due:
                change.apply(self.durable_names)
        _raise(code)

    def lock(self) -> None:
        if self._locked:
            raise BlockingIOError(errno.EAGAIN, "another process")
        self._locked = True

    def unlock(self) -> None:
        self._locked = False

    def random_bytes(self, n_bytes: int) -> bytes:
        return self.chance.randbytes(n_bytes)

    def _named(self, path: str) -> int:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.names[path]

    def _rename(self, change: NameChange) -> None:
        change.apply(self.names)
        self.name_changes.append(change)

    def begin(self, operation: str, path: str) -> int:
        """Count an operation, keep the state before it, and give the errno with which it is to fail, or 0."""
        if self.recording:
            self.points.append(self.state(operation, path))
        number = self.n_operations
        self.n_operations += 1
        return self.fail[1] if self.fail is not None and self.fail[0] == number else 0


def _raise(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))
