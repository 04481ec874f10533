"""The journal: numbered records, appended in groups, that are there after a crash once `sync` has returned.

    append, append, .. , sync        one fdatasync for the whole group

* Numbers run without gaps. `durable` is the last number that a sync has covered; a record is acknowledged when
  `number <= durable`.
* Opening finds every record that was acknowledged, in order and bit by bit, and perhaps later ones that were written but not
  acknowledged; never one that was not appended, and never one after a gap.
* Opening writes the last segment again without its torn tail (`storage/renewal.py`), so what it shows stays, whatever the
  process before it had failed to sync. Damage before the tail is an error, unless a good snapshot covers it.
* Segments are born in one order: the old one is synced, the new file is made, its header synced, its name synced; only then
  is a record written into it. So records never stand in a file whose name may vanish, and all segments but the last are whole.

One thread appends and syncs; `drop_before` may be called by another.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator

from lineage.errors import LimitError, StorageError
from storage.disk import Data, as_bytes
from storage.guarded_disk import GuardedDisk, GuardedFile
from storage.records import (
    MAX_PAYLOAD,
    RECORD_HEADER_SIZE,
    SEGMENT_HEADER_SIZE,
    JournalRecord,
    RecordHeader,
    SegmentHeader,
    payload_checksum,
)
from storage.renewal import renew
from storage.segment import JOURNAL_DIRECTORY, JournalSegment, damage, segment_firsts, segment_path

#: A segment is closed before it grows beyond this, unless one record alone does.
SEGMENT_BYTES = 64 << 20


class Journal:
    """A journal; `floor` is the least number that counts: segments that begin before it were discarded and are removed.

    `covered` says up to which number a good snapshot makes records needless. It is asked only where one cannot be read.
    """

    def __init__(
        self, disk: GuardedDisk, *, floor: int = 1, segment_bytes: int = SEGMENT_BYTES, covered: Callable[[], int] = lambda: 0
    ) -> None:  # fmt: skip
        self._disk = disk
        self._covered = covered
        self._segment_bytes = segment_bytes
        #: Guards `_firsts`: first numbers of the segments, ascending; the last one is being written.
        self._lock = threading.Lock()
        self._firsts: list[int] = []
        #: What opening had to mend, as sentences.
        self.notes: list[str] = []
        self._file: GuardedFile
        self._seed = 0
        self._end = 0
        self._synced = 0
        self._next = floor
        self._open(floor)
        #: The last number that survives a crash.
        self.durable = self._next - 1

    @property
    def last(self) -> int:
        """Return the number of the last appended record, durable or not."""
        return self._next - 1

    @property
    def first(self) -> int:
        """Return the number of the first record that is kept; one more than `last` if there is none."""
        with self._lock:
            return self._firsts[0]

    def append(self, kind: int, *parts: Data) -> int:
        """Write one record at the end and return its number; it is durable only after `sync`."""
        views = [as_bytes(part) for part in parts]
        length = sum(len(view) for view in views)
        if length > MAX_PAYLOAD:
            raise LimitError(f"a record of {length:,} bytes is too large: the limit is {MAX_PAYLOAD:,}", hint="send less at once")
        try:
            whole = RECORD_HEADER_SIZE + length
            if self._end + whole > self._segment_bytes and self._end > SEGMENT_HEADER_SIZE:
                self.sync()
                self._file.close()
                self._start_segment()
            header = RecordHeader(kind, length, payload_checksum(views, self._seed), self._next, self._synced)
            self._file.write(self._end, [header.pack(self._seed), *views])
        except StorageError as error:
            # half a record may stand there; only opening the journal again can cut it
            self._disk.stop(error)
            raise
        self._end += whole
        self._next += 1
        return self._next - 1

    def sync(self) -> None:
        """Make every record so far survive a crash."""
        self._disk.check()
        if self._synced < self._end:
            self._file.sync()
            self._synced = self._end
            self.durable = self._next - 1

    def read(self, after: int) -> Iterator[JournalRecord]:
        """Yield the records after a number, up to the last one at the start of reading; one piece is in memory at a time."""
        with self._lock:
            firsts = list(self._firsts)
        last = self._next - 1
        if after + 1 < firsts[0]:
            raise damage(segment_path(firsts[0]), 0, f"records {after + 1} to {firsts[0] - 1} are missing")
        if after > last:
            raise damage(segment_path(firsts[-1]), self._end, f"records {last + 1} to {after} are missing")
        for at in range(bisect_right(firsts, after + 1) - 1, len(firsts)):
            segment = JournalSegment(self._disk, firsts[at])
            try:
                if not segment.born():
                    raise damage(segment.path, 0, "the segment has no valid header")
                while True:
                    for record in segment.records():
                        if record.number > last:
                            return
                        if record.number > after:
                            yield record
                    if segment.skip(after) is None:
                        break
                if at + 1 < len(firsts):
                    segment.check_end(firsts[at + 1])
                elif segment.next <= last:
                    raise damage(segment.path, segment.end, f"record {segment.next} cannot be read")
            finally:
                segment.close()

    def go_on_after(self, number: int) -> None:
        """Continue after a number whose record was lost: a good snapshot covers it."""
        if number > self.last:
            self.notes.append(f"records {self.last + 1} to {number} cannot be read; the snapshot of record {number} covers them")
            self.sync()
            self._file.close()
            self._next = number + 1
            self._start_segment()
            self.durable = number

    def drop_before(self, number: int) -> None:
        """Remove the segments that hold only smaller numbers; the one being written always stays."""
        with self._lock:
            n_dropped = max(0, bisect_right(self._firsts, number) - 1)
            dropped, self._firsts = self._firsts[:n_dropped], self._firsts[n_dropped:]
        self._remove(dropped)

    def close(self) -> None:
        self._file.close()

    def _open(self, floor: int) -> None:
        self._disk.make_directory(JOURNAL_DIRECTORY)
        self._disk.sync_directory("")
        firsts = segment_firsts(self._disk)
        self._remove([first for first in firsts if first < floor])
        self._firsts = [first for first in firsts if first >= floor]
        # names that were found may not be safe yet: this process may follow one that was killed
        self._disk.sync_directory(JOURNAL_DIRECTORY)
        if self._firsts and not self._continue_segment(sealed=False):
            unborn = self._firsts.pop()
            self._next = unborn
            self._remove([unborn])
            if self._firsts and not self._continue_segment(sealed=True):
                raise damage(segment_path(self._firsts[-1]), 0, "the segment has no valid header")
        if not self._firsts:
            self._start_segment()

    def _continue_segment(self, *, sealed: bool) -> bool:
        """Continue at the end of the last segment; return False if its header was never synced. A sealed one is whole."""
        segment = JournalSegment(self._disk, self._firsts[-1])
        try:
            if not segment.born() or segment.header is None:
                return False
            while True:
                for _ in segment.records():
                    pass
                if segment.end == segment.size or (skipped := segment.skip(self._covered())) is None:
                    break
                self.notes.append(skipped)
            if sealed and self._next - 1 > self._covered():
                segment.check_end(self._next)
            segment.check_tail()
        finally:
            segment.close()
        if segment.end < segment.size:
            self.notes.append(f"{segment.path}: cut {segment.size - segment.end:,} bytes after record {segment.next - 1}")
        renew(self._disk, segment.path, segment.end)
        self._file = self._disk.open(segment.path)
        self._seed = segment.header.seed
        self._end = self._synced = segment.end
        self._next = segment.next
        return True

    def _start_segment(self) -> None:
        header = SegmentHeader(self._next, int.from_bytes(self._disk.random_bytes(8), "little"))
        path = segment_path(self._next)
        self._file = self._disk.open(path, create=True)
        self._file.write(0, [header.pack()])
        self._file.sync()
        self._disk.sync_directory(JOURNAL_DIRECTORY)
        self._seed = header.seed
        self._end = self._synced = SEGMENT_HEADER_SIZE
        with self._lock:
            self._firsts.append(self._next)

    def _remove(self, firsts: list[int]) -> None:
        for first in firsts:
            self._disk.remove(segment_path(first))
        if firsts:
            self._disk.sync_directory(JOURNAL_DIRECTORY)
