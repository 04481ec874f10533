"""The buffers of one batch: inside the body of their message, decompressed, aligned, and within a budget of bytes.

The size of the values is charged to the `ByteBudget` of the body before memory is allocated. A value counts as eight bytes, its
size in the engine; bytes that are decompressed or copied, and texts shared by views, are counted in addition.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from api.arrow.flatbuffer import INT64, FormatError
from api.base.refusals import TooLargeError

_CODECS = ("lz4", "zstd")


class ByteBudget:
    """The bytes that a body may still use: one count for values, one for buffers made of it; a limit of None is unlimited."""

    __slots__ = ("_bytes", "_values", "limit")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._values = self._bytes = limit or 0

    def charge_values(self, count: int) -> None:
        """Subtract eight bytes for each value, or raise `TooLargeError`."""
        if self.limit is not None:
            self._values -= 8 * count
            if self._values < 0:
                fact = f"the Arrow stream has more than {self.limit // 8:,} values"
                raise TooLargeError(fact, hint="send it in parts; NULLs count, and columns that are left out")

    def charge_bytes(self, count: int) -> None:
        """Subtract bytes of a buffer, or raise `TooLargeError`."""
        if self.limit is not None:
            self._bytes -= count
            if self._bytes < 0:
                fact = f"the buffers of the Arrow stream stand for more than {self.limit:,} bytes"
                raise TooLargeError(fact, hint="send it in parts; compressed buffers count as what they stand for")


class BatchBuffers:
    """The buffers of a batch, taken one after the other."""

    __slots__ = ("_at", "_body", "_codec", "_numbers", "_budget")

    def __init__(self, body: Any, numbers: tuple[int, ...], codec: int | None, budget: ByteBudget) -> None:
        self._body = body
        #: offset and length of each
        self._numbers = numbers
        self._at = 0
        self._codec = codec
        self._budget = budget

    def skip(self) -> None:
        """Pass over the next buffer without reading it."""
        self._at += 2

    def take_plain(self, n_bytes: int) -> Any:
        """Skip the bitmap of NULLs and return the buffer of values of a column without NULLs."""
        self._at += 2
        return self.take(n_bytes)

    def take(self, n_bytes: int, *, aligned: bool = True) -> Any:
        """Return the next buffer; raise `FormatError` if it has fewer than `n_bytes` bytes."""
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
            self._budget.charge_bytes(found.size)
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
        self._budget.charge_bytes(size)
        return decompressed(packed, size, _CODECS[self._codec or 0])


def decompressed(packed: Any, size: int, codec: str) -> Any:
    """Return the `size` bytes of a compressed buffer; raise `FormatError` if it holds more or fewer."""
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
