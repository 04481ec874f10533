"""Batches of Arrow IPC files and pipes, decoded by the same checked reader as the bodies of requests.

    stream_batches(source)     the batches of a stream, each read when it is asked for
    file_batches(source)       the batches of a file that can be read at any place, as its footer lists them

A file is as large as it is, so what a batch stands for is bounded by its own length: a good deal of compression is what people
have, gigabytes out of nothing are not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

from api.arrow.buffers import ByteBudget
from api.arrow.decoder import Decoder, IpcMessage, damage, message_of, stream_head
from api.arrow.flatbuffer import INT32, FormatError, Slots, child, root, slots, vector
from api.arrow.layout import layout_of
from api.arrow.stream import CONTINUED

#: Bytes that any batch may stand for, and how many more for each byte that it has.
BATCH_BYTES = 1 << 30
RATIO = 64
#: Bytes of the metadata of one message.
MAX_METADATA_BYTES = 256 << 20

MAGIC = b"ARROW1"
#: Bytes that are read at a time: a file may say that a message is longer than it is.
_STEP = 16 << 20
_BLOCK = struct.Struct("<qi4xq")


def stream_batches(source: IO[bytes]) -> Iterator[Any]:
    """Yield the batches of a stream, each read on demand."""
    metadata = _metadata(source)
    if metadata is None:
        raise FormatError("there is no schema")
    with damage():
        layout, n_bytes = stream_head(metadata)
    _exactly(source, n_bytes)
    decoder = Decoder(layout, ByteBudget(None))
    while (message := _message(source)) is not None:
        batch = _batch(decoder, message, _exactly(source, message.n_bytes))
        if batch is not None:
            yield batch


def file_batches(source: IO[bytes]) -> Iterator[Any]:
    """Yield the batches of a seekable file, in the order of its footer."""
    size = source.seek(0, 2)
    if size < 2 * len(MAGIC) + 12:
        raise FormatError("the file is cut off")
    source.seek(size - len(MAGIC) - 4)
    tail = _exactly(source, len(MAGIC) + 4)
    (length,) = INT32.unpack_from(tail)
    if not tail.endswith(MAGIC) or not 0 < length <= size - 2 * len(MAGIC) - 4:
        raise FormatError("the file has no footer")
    source.seek(size - len(MAGIC) - 4 - length)
    footer = _exactly(source, length)
    with damage():
        found = slots(footer, root(footer))
        decoder = Decoder(layout_of(footer, child(footer, found, 1)), ByteBudget(None))
        dictionaries, batches = _blocks(footer, found, 2), _blocks(footer, found, 3)
    for offset, n_metadata, n_bytes in dictionaries + batches:
        if offset < 0 or n_metadata < 8 or n_bytes < 0 or offset + n_metadata + n_bytes > size:
            raise FormatError("a batch lies outside the file")
        source.seek(offset)
        message = _message(source)
        if message is None:
            raise FormatError("there is no batch where the footer says")
        source.seek(offset + n_metadata)
        batch = _batch(decoder, message, _exactly(source, message.n_bytes))
        if batch is not None:
            yield batch


def _blocks(footer: bytes, found: Slots, n: int) -> list[Any]:
    first, count = vector(footer, found, n, _BLOCK.size)
    return [_BLOCK.unpack_from(footer, first + _BLOCK.size * i) for i in range(count)]


def _message(source: IO[bytes]) -> IpcMessage | None:
    """Return the next message; None at the end."""
    metadata = _metadata(source)
    if metadata is None:
        return None
    with damage():
        return message_of(metadata)


def _metadata(source: IO[bytes]) -> bytes | None:
    head = source.read(4)
    if head == CONTINUED:
        head = source.read(4)
    if not head:
        return None
    if len(head) < 4:
        raise FormatError("a message is cut off")
    (length,) = INT32.unpack_from(head)
    if length == 0:
        return None
    if not 0 < length <= MAX_METADATA_BYTES:
        raise FormatError("the metadata of a message has no length that can be")
    return _exactly(source, length)


def _exactly(source: IO[bytes], n_bytes: int) -> bytes:
    """Return `n_bytes` bytes; memory is allocated for bytes that exist, not for the stated length."""
    pieces = []
    left = n_bytes
    while left:
        piece = source.read(min(left, _STEP))
        if not piece:
            raise FormatError("a message is cut off")
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _batch(decoder: Decoder, message: IpcMessage, body: bytes) -> Any:
    """Return the batch of a message; None if it is a dictionary."""
    decoder.budget = ByteBudget(BATCH_BYTES + RATIO * len(body))
    with damage():
        arrays = decoder.feed(message, pa.py_buffer(body))
    return None if arrays is None else pa.RecordBatch.from_arrays(arrays, schema=decoder.layout.schema)
