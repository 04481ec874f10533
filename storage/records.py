"""The bytes of a journal: how a segment begins, and how a record stands in it.

    segment = segment header, then records to the end of the file
    record  = record header, then the payload

Each header ends with a checksum over its other bytes, and the record header holds the checksum of the payload: so one
checksum, seeded with the segment's random id, covers all. Bytes of another segment, even of the same number at the same
place, are never taken for a record. A length is believed only once its header's checksum is right.

A record also says how far its segment was *synced* when it was written. That is how damage is told from a torn tail: what
lies before the `synced` of any later record was durable once, so a hole there is damage; a hole that nothing proves to
have been synced was never acknowledged, or is the very last group.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: Of the bytes below; a directory with a larger number is refused.
LAYOUT = 1

#: Bytes of one payload.
MAX_PAYLOAD = 256 << 20

_SEGMENT = struct.Struct("<8sIQQI")  # magic, layout, first number, id, checksum
_RECORD = struct.Struct("<4sIIIQQI")  # magic, kind, length, checksum of payload, number, synced, checksum of header
_CHECKSUM = struct.Struct("<I")
_SEGMENT_MAGIC = b"EDDYJRNL"
RECORD_MAGIC = b"\xedREC"

SEGMENT_HEADER_SIZE = _SEGMENT.size
RECORD_HEADER_SIZE = _RECORD.size


class JournalRecord(NamedTuple):
    """One record of the journal: a call; numbers run without gaps."""

    number: int
    kind: int
    payload: memoryview


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    first: int
    id: int
    layout: int = LAYOUT

    def pack(self) -> bytes:
        head = _SEGMENT.pack(_SEGMENT_MAGIC, self.layout, self.first, self.id, 0)[: -_CHECKSUM.size]
        return head + _CHECKSUM.pack(zlib.crc32(head))

    @classmethod
    def unpack(cls, data: bytes | bytearray) -> SegmentHeader | None:
        """Return the header in these bytes; None unless it is whole."""
        if len(data) < SEGMENT_HEADER_SIZE:
            return None
        magic, layout, first, id, checksum = _SEGMENT.unpack_from(data)
        if magic != _SEGMENT_MAGIC or checksum != zlib.crc32(data[: _SEGMENT.size - _CHECKSUM.size]):
            return None
        return cls(first, id, layout)

    @property
    def seed(self) -> int:
        """Return the seed of the checksums of this segment's records."""
        return zlib.crc32(struct.pack("<QQ", self.id, self.first))


class RecordHeader(NamedTuple):
    kind: int
    length: int
    checksum: int
    number: int
    synced: int

    def pack(self, seed: int) -> bytes:
        head = _RECORD.pack(RECORD_MAGIC, self.kind, self.length, self.checksum, self.number, self.synced, 0)[: -_CHECKSUM.size]
        return head + _CHECKSUM.pack(zlib.crc32(head, seed))

    @classmethod
    def unpack(cls, data: bytearray | memoryview, offset: int, seed: int) -> RecordHeader | None:
        """Return the header at `offset`; None unless a whole one of the segment with this seed stands there."""
        if len(data) - offset < RECORD_HEADER_SIZE:
            return None
        magic, kind, length, checksum, number, synced, header_checksum = _RECORD.unpack_from(data, offset)
        head = data[offset : offset + RECORD_HEADER_SIZE - _CHECKSUM.size]
        if magic != RECORD_MAGIC or header_checksum != zlib.crc32(head, seed):
            return None
        return cls(kind, length, checksum, number, synced)


def payload_checksum(parts: Sequence[memoryview], seed: int) -> int:
    for part in parts:
        seed = zlib.crc32(part, seed)
    return seed
