"""Arrow IPC streams in the bodies of requests, decoded into tables.

Nothing of the bytes reaches pyarrow's own reader: messages are walked here, their metadata is read by `api/arrow/flatbuffer.py`,
schemas by `api/arrow/layout.py`, batches by `api/arrow/decoder.py`; arrays are made of checked buffers by `api/arrow/columns.py`.
What is refused is a `FormatError`, a `RowError` where a column is to blame, or a `TooLargeError`.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pyarrow as pa

from api.arrow.buffers import ByteBudget
from api.arrow.decoder import Decoder, message_of, stream_head
from api.arrow.flatbuffer import INT32, FormatError

#: Messages of one body; what was let in before may have more.
MAX_MESSAGES = 65_536

CONTINUED = b"\xff\xff\xff\xff"


class Streamed(NamedTuple):
    """One decoded stream: its rows, their number, and where it ends in the body."""

    #: of one batch its columns by name, which the engine takes quickest; else a table
    rows: Any
    n_rows: int
    n_columns: int
    #: the stream of rows that its schema names
    stream: str | None
    #: where the next one would begin
    end: int


def read_stream(body: bytes, start: int, budget: ByteBudget) -> Streamed:
    """Decode the stream that begins at `start` in a body."""
    try:
        return _read(body, start, budget)
    except struct.error:
        raise FormatError("the metadata of a message is damaged") from None


def _read(body: bytes, start: int, budget: ByteBudget) -> Streamed:
    metadata, at = _metadata(body, start)
    if metadata is None:
        raise FormatError("there is no schema")
    layout, n_bytes = stream_head(metadata)
    decoder = Decoder(layout, budget)
    whole = pa.py_buffer(body)
    batches: list[list[Any]] = []
    n_messages = 1
    while True:
        at += n_bytes
        if at > len(body):
            raise FormatError("the body of a message is cut off")
        metadata, at = _metadata(body, at)
        if metadata is None:
            rows = _rows(layout.schema, batches)
            return Streamed(rows, decoder.n_rows, len(layout.rows.columns), layout.stream, at)
        n_messages += 1
        if n_messages > MAX_MESSAGES and budget.limit is not None:
            raise FormatError(f"more than {MAX_MESSAGES} messages")
        message = message_of(metadata)
        n_bytes = message.n_bytes
        if at + n_bytes > len(body):
            raise FormatError("the body of a message is cut off")
        arrays = decoder.feed(message, whole.slice(at, n_bytes))
        if arrays is not None:
            batches.append(arrays)


def _metadata(body: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the metadata of the message at a place and the start of its body; None at the end of the stream."""
    if at == len(body):
        return None, at
    if body[at : at + 4] == CONTINUED:
        at += 4
    (length,) = INT32.unpack_from(body, at)
    at += 4
    if length == 0:
        return None, at
    if length < 0 or at + length > len(body):
        raise FormatError("the metadata of a message is cut off")
    return body[at : at + length], at + length


def _rows(schema: Any, batches: list[list[Any]]) -> Any:
    names = schema.names
    if len(batches) == 1 and len(set(names)) == len(names):
        return dict(zip(names, batches[0], strict=True))
    if not batches or not names:
        return schema.empty_table()
    columns = [pa.chunked_array(chunks, type_) for chunks, type_ in zip(zip(*batches, strict=True), schema.types, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)
