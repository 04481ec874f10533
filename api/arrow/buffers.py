"""The buffers of one batch: within the body of its message, decompressed, aligned, and no more than there is room for.

What a body stands for is charged to its `Room` before anything is allocated. Values count as eight bytes each, which is what the
engine makes of them; bytes that are decompressed or copied, and texts that views share, count beside them as what they are.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from api.arrow.flatbuffer import INT64, FormatError
from api.base.refusals import TooLargeError

_CODECS = ("lz4", "zstd")


class Room:
    """Bytes that the values of a body may come to, and as many that may be made of its buffers; None is without a limit."""

    __slots__ = ("_bytes", "_values", "limit")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._values = self._bytes = limit or 0

    def charge_values(self, count: int) -> None:
        """Take room for values, or raise `TooLargeError`."""
        if self.limit is not None:
            self._values -= 8 * count
            if self._values < 0:
                fact = f"the Arrow stream has more than {self.limit // 8:,} values"
                raise TooLargeError(fact, hint="send it in parts; NULLs count, and columns that are left out")

    def charge_bytes(self, count: int) -> None:
        """Take room for bytes, or raise `TooLargeError`."""
        if self.limit is not None:
            self._bytes -= count
            if self._bytes < 0:
                fact = f"the buffers of the Arrow stream stand for more than {self.limit:,} bytes"
                raise TooLargeError(fact, hint="send it in parts; compressed buffers count as what they stand for")


class Buffers:
    """The buffers of a batch, one after the other."""

    __slots__ = ("_at", "_body", "_codec", "_numbers", "_room")

    def __init__(self, body: Any, numbers: tuple[int, ...], codec: int | None, room: Room) -> None:
        self._body = body
        #: offset and length of each
        self._numbers = numbers
        self._at = 0
        self._codec = codec
        self._room = room

    def skip(self) -> None:
        """Pass a buffer that nobody reads."""
        self._at += 2

    def take_plain(self, n_bytes: int) -> Any:
        """The values of a column without NULLs: the buffer after the one that says where they are."""
        self._at += 2
        return self.take(n_bytes)

    def take(self, n_bytes: int, *, aligned: bool = True) -> Any:
        """The next buffer, if it has so many bytes at least."""
        at = self._at
        self._at = at + 2
        body = self._body
        offset, length = self._numbers[at], self._numbers[at + 1]
        if offset < 0 or length < 0 or offset + length > body.size:
            raise FormatError("a buffer lies outside the body of its message")
        if self._codec is not None and length:
            found = self._decompressed(offset, length)
        else:
            found = body.slice(offset, length)
        if found.size < n_bytes:
            raise FormatError(f"a buffer has {found.size} bytes, its column needs {n_bytes}")
        if aligned and found.address & 7:
            self._room.charge_bytes(found.size)
            found = pa.py_buffer(found.to_pybytes())
        return found

    def _decompressed(self, offset: int, length: int) -> Any:
        if length < 8:
            raise FormatError("a compressed buffer does not say how long it is")
        (size,) = INT64.unpack_from(self._body, offset)
        packed = self._body.slice(offset + 8, length - 8)
        if size == -1:
            return packed
        if size < 0:
            raise FormatError("a compressed buffer has a negative length")
        self._room.charge_bytes(size)
        return decompressed(packed, size, _CODECS[self._codec or 0])


def decompressed(packed: Any, size: int, codec: str) -> Any:
    """So many bytes, and neither more nor fewer, out of a compressed buffer."""
    # as a stream: decompressing in one go would leave memory that was never written where there is less than was said
    found = pa.allocate_buffer(size)
    done = 0
    target = memoryview(found)
    try:
        with pa.CompressedInputStream(pa.BufferReader(packed), codec) as stream:
            while done < size:
                n = stream.readinto(target[done:])
                if not n:
                    break
                done += n
            if done < size or stream.read(1):
                raise FormatError("a compressed buffer does not hold as many bytes as it says")
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"a buffer cannot be decompressed: {str(error).split(chr(10), 1)[0]}") from None
    return found
