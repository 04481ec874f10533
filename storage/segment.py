"""Reader of one journal segment: its header, its records in order, and the meaning of a damaged place.

Records are read in pieces of a megabyte, or one record at a time where it is larger, so memory stays bounded whatever the
segment holds. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from lineage.errors import StorageError
from storage.disk import read_at
from storage.guarded_disk import GuardedDisk, GuardedFile
from storage.records import (
    LAYOUT,
    MAX_PAYLOAD,
    RECORD_HEADER_SIZE,
    RECORD_MAGIC,
    SEGMENT_HEADER_SIZE,
    JournalRecord,
    RecordHeader,
    SegmentHeader,
    payload_checksum,
)

JOURNAL_DIRECTORY = "journal"
_SUFFIX = ".journal"

#: Bytes read at once.
_PIECE = 1 << 20

RESTORE = "restore the data directory from a copy, or start with --discard-state to keep the definitions without their rows"


def segment_path(first: int) -> str:
    return f"{JOURNAL_DIRECTORY}/{first:020d}{_SUFFIX}"


def segment_firsts(disk: GuardedDisk) -> list[int]:
    """Return the first numbers of the segments on disk, ascending."""
    names = [name for name in disk.list(JOURNAL_DIRECTORY) if name.endswith(_SUFFIX)]
    return sorted(int(stem) for name in names if (stem := name.removesuffix(_SUFFIX)).isdecimal())


def newer_layout(what: str, layout: int, known: int, path: str) -> StorageError:
    return StorageError(
        f"{what} has layout {layout}, and this version knows up to {known}",
        file=path,
        hint="start the version that wrote it, or a newer one, or name another data directory",
    )


def damage(path: str, offset: int, what: str) -> StorageError:
    return StorageError("the journal is damaged", detail=what, file=path, offset=offset, hint=RESTORE)


class JournalSegment:
    """One segment, open for reading; `end` is the end of the last good record read."""

    def __init__(self, disk: GuardedDisk, first: int) -> None:
        self.path = segment_path(first)
        self.file: GuardedFile = disk.open(self.path)
        self.size = self.file.size()
        self.header = SegmentHeader.unpack(read_at(self.file, 0, SEGMENT_HEADER_SIZE))
        self.end = SEGMENT_HEADER_SIZE
        #: Number of the next record.
        self.next = first

    def born(self) -> bool:
        """Return whether the header was ever synced: records are written only afterwards."""
        if self.header is None:
            if self.size > SEGMENT_HEADER_SIZE:
                raise damage(self.path, 0, "the segment has records but no valid header")
            return False
        if self.header.layout > LAYOUT:
            raise newer_layout("the journal", self.header.layout, LAYOUT, self.path)
        if self.header.first != self.next:
            raise damage(self.path, 0, f"the file's name says record {self.next}, its header says {self.header.first}")
        return True

    def records(self) -> Iterator[JournalRecord]:
        """Yield good records from the first on; stop at the end of the file or at a damaged place, which `end` gives."""
        assert self.header is not None, "records of a segment without header"
        seed = self.header.seed
        piece = memoryview(b"")
        start = self.end
        while True:
            offset = self.end - start
            if len(piece) - offset < RECORD_HEADER_SIZE:
                start, offset = self.end, 0
                piece = memoryview(read_at(self.file, start, min(_PIECE, self.size - start))).toreadonly()
            header = RecordHeader.unpack(piece, offset, seed)
            if header is None or header.number != self.next or header.length > MAX_PAYLOAD:
                return
            whole = RECORD_HEADER_SIZE + header.length
            if len(piece) - offset < whole:
                if start + offset + whole > self.size:
                    return
                start, offset = self.end, 0
                piece = memoryview(read_at(self.file, start, max(whole, min(_PIECE, self.size - start)))).toreadonly()
            payload = piece[offset + RECORD_HEADER_SIZE : offset + whole]
            if len(payload) < header.length or payload_checksum([payload], seed) != header.checksum:
                return
            self.end += whole
            self.next += 1
            yield JournalRecord(header.number, header.kind, payload)

    def skip(self, covered: int) -> str | None:
        """After `records`: skip damage up to a number that a snapshot covers, and return a sentence about it.

        None, and nothing passed over, if all was read, or if what comes next is not covered.
        """
        assert self.header is not None, "records of a segment without header"
        if self.next > covered or self.end == self.size:
            return None
        for place, header in self._headers(self.end + 1):
            if self.next < header.number <= covered + 1 and header.length <= MAX_PAYLOAD:
                start = place + RECORD_HEADER_SIZE
                payload = memoryview(read_at(self.file, start, min(header.length, self.size - start)))
                if len(payload) == header.length and payload_checksum([payload], self.header.seed) == header.checksum:
                    said = f"{self.path}: record {self.next} cannot be read; the snapshot of record {covered} covers it"
                    self.end, self.next = place, header.number
                    return said
        return None

    def _headers(self, start: int) -> Iterator[tuple[int, RecordHeader]]:
        """Yield the places of this segment's record headers from `start` on, whatever lies between them."""
        assert self.header is not None, "records of a segment without header"
        while start < self.size:
            # pieces overlap by a header, so that none is cut in two
            piece = read_at(self.file, start, _PIECE + RECORD_HEADER_SIZE)
            place = piece.find(RECORD_MAGIC)
            while 0 <= place < _PIECE:
                header = RecordHeader.unpack(piece, place, self.header.seed)
                if header is not None:
                    yield start + place, header
                place = piece.find(RECORD_MAGIC, place + 1)
            start += _PIECE

    def check_end(self, next_first: int) -> None:
        """After `records`: raise unless they reached the end of the file and the next segment goes on from there."""
        if self.end != self.size:
            raise damage(self.path, self.end, f"record {self.next} cannot be read")
        if self.next != next_first:
            raise damage(self.path, self.end, f"records {self.next} to {next_first - 1} are missing")

    def check_tail(self) -> None:
        """After `records`: raise if what follows their end was synced once, as a later record proves."""
        for _, header in self._headers(self.end):
            if header.synced > self.end:
                raise damage(self.path, self.end, f"record {self.next} cannot be read, but later ones can")

    def close(self) -> None:
        self.file.close()
