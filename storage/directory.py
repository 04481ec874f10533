"""A data directory: catalog, journal and snapshots on one disk, behind one lock.

    lock             one process at a time
    catalog.sqlite   definitions, and facts about the directory
    journal/         every call that changed state, in order
    snapshots/       the state after some of them

The way of a call is *apply, append, sync, release*: nothing leaves the service before the records it depends on are durable.
Coming back is the newest good snapshot and the records after it; one before it that cannot be read is passed over, and said.
What holds in between:

* snapshot and catalog never run ahead of the journal: both take only numbers that a sync has covered;
* segments go only when two good snapshots make them needless;
* after a failed sync, or an append that failed half way, nothing more is written (`storage/guarded_disk.py`).

Discarding state is one transaction of the catalog: it notes a *floor*, beyond every number that was used. Whatever belongs
to smaller numbers no longer counts, and is removed now or, after a crash, by the next opening. Replay then has to start from
the definitions in the catalog, and these change: so the state made of them is saved as a snapshot before the first record.

`append` and `sync` are for one thread; `save_snapshot` and `define` may run in others.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lineage.errors import StorageError
from storage.definition_catalog import CATALOG_FILE, CatalogEntry, DefinitionCatalog
from storage.disk import Data, Disk
from storage.guarded_disk import GuardedDisk
from storage.journal import SEGMENT_BYTES, Journal
from storage.records import RECORD_HEADER_SIZE, JournalRecord
from storage.segment import JOURNAL_DIRECTORY, RESTORE, newer_layout, segment_firsts, segment_path
from storage.snapshots import Snapshot, Snapshots

#: Of the directory as a whole; a larger one was written by a newer version.
LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recovered state of a directory: apply `records` to the state of `snapshot`, or to none."""

    snapshot: Snapshot | None
    #: Read while iterating, one piece in memory at a time.
    records: Iterator[JournalRecord]
    #: State was discarded: make the engine of the catalog's definitions and save its snapshot before anything is appended.
    discarded: bool = False
    #: What had to be mended, as sentences for the log.
    notes: list[str] = field(default_factory=list)


class DataDirectory:
    """A data directory: open it with `DataDirectory.open`, then `recover` once, then append."""

    def __init__(
        self, disk: GuardedDisk, catalog: DefinitionCatalog, journal: Journal, snapshots: Snapshots, *, is_new: bool
    ) -> None:
        self._disk = disk
        self._journal = journal
        self._snapshots = snapshots
        #: Least number that counts; beyond 1 once state was discarded.
        self._floor = int(catalog.meta("floor") or 1)
        self._recovered = False
        self._needs_snapshot = False
        #: To be read; definitions are written by `define`.
        self.catalog = catalog
        #: Whether this opening made it.
        self.is_new = is_new

    @classmethod
    def open(cls, disk: Disk, *, discard_state: bool = False, segment_bytes: int = SEGMENT_BYTES) -> DataDirectory:
        """Lock and open a directory, or make a new one; with `discard_state` only the definitions are kept."""
        guard = GuardedDisk(disk)
        guard.make_directory("")
        guard.lock()
        catalog = None
        try:
            has_catalog = guard.exists(CATALOG_FILE)
            has_journal = guard.exists(JOURNAL_DIRECTORY) and bool(segment_firsts(guard))
            if has_journal and not has_catalog:
                raise _lost_catalog()
            catalog = DefinitionCatalog(guard)
            is_new = catalog.meta("layout") is None
            if is_new and has_journal:
                raise _lost_catalog()
            if is_new:
                catalog.set_meta(layout=str(LAYOUT), created_us=str(time.time_ns() // 1000), floor="1")
            layout = int(catalog.meta("layout") or 0)
            if layout > LAYOUT:
                raise newer_layout("the data directory", layout, LAYOUT, "")
            if discard_state and not is_new:
                catalog.set_meta(floor=str(_number_beyond_all(guard, catalog)))
            floor = int(catalog.meta("floor") or 1)
            snapshots = Snapshots(guard, floor=floor - 1)
            journal = Journal(guard, floor=floor, segment_bytes=segment_bytes, covered=snapshots.covered)
            return cls(guard, catalog, journal, snapshots, is_new=is_new)
        except BaseException:
            try:
                if catalog is not None:
                    catalog.close()
            finally:
                guard.unlock()
            raise

    def recover(self) -> Recovery:
        """Return the newest good snapshot and the records after it."""
        snapshot = self._snapshots.newest()
        if snapshot is not None:
            self._journal.go_on_after(snapshot.number)
        notes = [*self._journal.notes, *self._snapshots.notes]
        discarded = snapshot is None and self._floor > 1
        if discarded and self._journal.last >= self._floor:
            raise StorageError(
                "the snapshot that the journal starts from is lost or damaged",
                detail="; ".join(notes),
                hint=RESTORE,
            )
        self._needs_snapshot = discarded
        self._recovered = True
        records = self._journal.read(self._floor - 1 if snapshot is None else snapshot.number)
        return Recovery(snapshot, records, discarded, notes)

    @property
    def last(self) -> int:
        """Return the number of the last appended record."""
        return self._journal.last

    @property
    def durable(self) -> int:
        """Return the number of the last record that survives a crash."""
        return self._journal.durable

    @property
    def stopped(self) -> StorageError | None:
        """Return the error that stopped all writing; None while the disk works."""
        return self._disk.stopped

    def append(self, kind: int, *parts: Data) -> int:
        """Write a record and return its number; it is durable after the next `sync`."""
        assert self._recovered and not self._needs_snapshot, "records follow a state that can be recovered"
        return self._journal.append(kind, *parts)

    def sync(self) -> None:
        """Make every record so far durable: one fdatasync for all of them."""
        self._journal.sync()

    def define(self, number: int, put: Iterable[CatalogEntry] = (), drop: Iterable[tuple[str, str]] = ()) -> None:
        """Write and remove definitions, all or none, for records up to `number`, which must be durable."""
        assert number <= self.durable, "the catalog may not know more than the journal"
        self.catalog.apply(number, put, drop)

    def save_snapshot(self, number: int, parts: Iterable[Data]) -> None:
        """Save the state after record `number`, which must be durable; then remove journal segments that are no longer needed.

        A snapshot that fails, because the disk is full for example, leaves everything as it was.
        """
        assert self._recovered, "what is kept is known only after recover()"
        assert number <= self.durable, "a snapshot may not know more than the journal"
        self._disk.check()
        self._snapshots.write(number, parts)
        self._needs_snapshot = False
        if (fallback := self._snapshots.fallback) is not None:
            self._journal.drop_before(fallback + 1)

    def close(self) -> None:
        """Close and unlock the directory; records that were not synced are not made durable."""
        try:
            self._journal.close()
            self.catalog.close()
        finally:
            self._disk.unlock()


def _lost_catalog() -> StorageError:
    return StorageError(
        "the data directory has a journal but no catalog",
        file=CATALOG_FILE,
        hint="restore the file from a copy, or name another data directory",
    )


def _number_beyond_all(disk: GuardedDisk, catalog: DefinitionCatalog) -> int:
    """Return two more than any used record number, without reading a journal that may be damaged.

    The number just below it is that of the snapshot from which the journal will go on.
    """
    beyond = max(catalog.number() + 2, int(catalog.meta("floor") or 1))
    if disk.exists(JOURNAL_DIRECTORY) and (firsts := segment_firsts(disk)):
        file = disk.open(segment_path(firsts[-1]))
        try:
            beyond = max(beyond, firsts[-1] + file.size() // RECORD_HEADER_SIZE + 2)
        finally:
            file.close()
    return beyond
