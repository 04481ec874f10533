"""Arrow IPC streams of strangers, as they lie in the bodies of requests, as tables.

Nothing of the bytes reaches pyarrow's own reader: messages are walked here, their metadata is read by `api/arrow/flatbuffer.py`,
schemas by `api/arrow/layout.py`, batches by `api/arrow/decoder.py`; arrays are made of checked buffers by `api/arrow/columns.py`.
What is refused is a `FormatError`, a `RowError` where a column is to blame, or a `TooLargeError`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from api.arrow.buffers import Room
from api.arrow.decoder import Decoder, damage, message_of, schema_of
from api.arrow.flatbuffer import INT32, FormatError

#: Messages of one body; what was let in before may have more.
MAX_MESSAGES = 65_536

CONTINUED = b"\xff\xff\xff\xff"


class Streamed(NamedTuple):
    """What one stream says."""

    table: Any
    #: the stream of rows that its schema names
    stream: str | None
    #: where the next one would begin
    end: int


def read_stream(body: bytes, start: int, room: Room) -> Streamed:
    """The stream that begins at a place of a body."""
    whole = pa.py_buffer(body)
    decoder: Decoder | None = None
    batches: list[list[Any]] = []
    at, n_messages = start, 0
    with damage():
        while at < len(body):
            if body[at : at + 4] == CONTINUED:
                at += 4
            (length,) = INT32.unpack_from(body, at)
            at += 4
            if length == 0:
                break
            if length < 0 or at + length > len(body):
                raise FormatError("the metadata of a message is cut off")
            message = message_of(body[at : at + length])
            at += length
            if at + message.n_bytes > len(body):
                raise FormatError("the body of a message is cut off")
            n_messages += 1
            if n_messages > MAX_MESSAGES and room.limit is not None:
                raise FormatError(f"more than {MAX_MESSAGES} messages")
            if decoder is None:
                decoder = Decoder(schema_of(message), room)
            else:
                arrays = decoder.feed(message, whole.slice(at, message.n_bytes))
                if arrays is not None:
                    batches.append(arrays)
            at += message.n_bytes
    if decoder is None:
        raise FormatError("there is no schema")
    return Streamed(_table(decoder.layout.schema, batches), decoder.layout.stream, at)


def _table(schema: Any, batches: list[list[Any]]) -> Any:
    if len(batches) == 1 and batches[0]:
        return pa.Table.from_arrays(batches[0], schema=schema)
    if not batches or not batches[0]:
        return schema.empty_table()
    columns = [pa.chunked_array(chunks, type_) for chunks, type_ in zip(zip(*batches, strict=True), schema.types, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)
