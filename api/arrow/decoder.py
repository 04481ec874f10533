"""A decoder of Arrow messages into columns: batches, and the dictionaries before or between them.

A dictionary that comes again takes the place of the one before, unless it says that it goes on. What batches, dictionaries and
what is put together of them stand for is charged to one room.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from api.arrow.buffers import BatchBuffers, ByteBudget
from api.arrow.columns import read_column
from api.arrow.flatbuffer import (
    INT8,
    INT16,
    INT64,
    FormatError,
    Slots,
    child,
    flag,
    longs_of,
    number,
    root,
    slots,
    vector,
)  # fmt: skip
from api.arrow.layout import VIEW, SchemaLayout, Shape, layout_of

_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_V4, _V5 = 3, 4
#: Schemas that are remembered, the longest metadata for which that is done, and how many bytes of it each column must have: in a
#: hostile one many columns may be one and the same.
REMEMBERED = 256
REMEMBERED_BYTES = 32 << 10
COLUMN_BYTES = 32
_remembered: dict[bytes, StreamHead] = {}


class IpcMessage(NamedTuple):
    """One Arrow message: its metadata, the places of its fields, and the length of the body that follows."""

    metadata: bytes
    kind: int
    fields: Slots
    n_bytes: int


@contextmanager
def damage() -> Iterator[None]:
    """Turn reads outside the metadata into a `FormatError`."""
    try:
        yield
    except struct.error:
        raise FormatError("the metadata of a message is damaged") from None


def message_of(metadata: bytes) -> IpcMessage:
    """Return the message that metadata describes."""
    found = slots(metadata, root(metadata))
    version = number(metadata, found, 0, INT16)
    if version not in (_V4, _V5):
        raise FormatError(f"the version of the metadata is {version + 1}, neither 4 nor 5")
    n_bytes = number(metadata, found, 3, INT64)
    if n_bytes < 0:
        raise FormatError("the body of a message has a negative length")
    return IpcMessage(metadata, number(metadata, found, 1, INT8), found, n_bytes)


class StreamHead(NamedTuple):
    """The schema message of a stream: the layout of its batches, and the length of a body that is ignored."""

    layout: SchemaLayout
    n_bytes: int


def stream_head(metadata: bytes) -> StreamHead:
    """Return the head of a stream; heads are cached, because clients send the same schema with every batch."""
    found = _remembered.get(metadata)
    if found is None:
        found = _read_head(metadata)
        n_columns = len(found.layout.rows.columns)
        if len(metadata) <= REMEMBERED_BYTES and n_columns * COLUMN_BYTES <= len(metadata):
            if len(_remembered) == REMEMBERED:
                _remembered.clear()
            _remembered[metadata] = found
    return found


def _read_head(metadata: bytes) -> StreamHead:
    message = message_of(metadata)
    if message.kind != _SCHEMA:
        raise FormatError("there is no schema before the first batch")
    return StreamHead(layout_of(metadata, child(metadata, message.fields, 2)), message.n_bytes)


class Decoder:
    """Decodes the messages after a schema into the columns of batches."""

    def __init__(self, layout: SchemaLayout, budget: ByteBudget) -> None:
        self.layout = layout
        self.budget = budget
        #: the entries of each dictionary, in the pieces in which they came
        self._pieces: dict[int, list[Any]] = {}
        self.n_rows = 0

    def feed(self, message: IpcMessage, body: Any) -> list[Any] | None:
        """Return the columns of a batch; None for a dictionary, which is kept for later batches."""
        metadata = message.metadata
        table = child(metadata, message.fields, 2)
        if message.kind == _BATCH:
            dictionaries = self.layout.dictionaries
            entries = {key: self._entries(key) for key in dictionaries} if dictionaries else {}
            columns, n_rows = self._read(metadata, table, body, self.layout.rows, entries, self.n_rows)
            self.n_rows += n_rows
            return columns
        if message.kind != _DICTIONARY:
            raise FormatError("a message is neither a batch nor a dictionary")
        found = slots(metadata, table)
        key = number(metadata, found, 0, INT64)
        shape = self.layout.dictionaries.get(key)
        if shape is None:
            raise FormatError(f"no column has dictionary {key}")
        (piece,), _ = self._read(metadata, child(metadata, found, 1), body, shape, {}, None)
        if flag(metadata, found, 2) and key in self._pieces:
            self._pieces[key].append(piece)
        else:
            self._pieces[key] = [piece]
        return None

    def _entries(self, key: int) -> Any:
        pieces = self._pieces.get(key)
        if pieces is None:
            raise FormatError(f"dictionary {key} has not come before the batch")
        if len(pieces) > 1:
            self.budget.charge_bytes(sum(piece.nbytes for piece in pieces))
            try:
                pieces[:] = [pa.concat_arrays(pieces)]
            except pa.ArrowException as error:
                raise FormatError(f"dictionary {key} cannot be put together: {error}") from None
        return pieces[0]

    def _read(
        self, metadata: bytes, table: int, body: Any, shape: Shape, entries: dict[int, Any], first_row: int | None
    ) -> tuple[list[Any], int]:  # fmt: skip
        """Return the columns of a batch and its number of rows."""
        found = slots(metadata, table)
        n_rows = number(metadata, found, 0, INT64)
        if n_rows < 0:
            raise FormatError("a batch has a negative number of rows")
        self.budget.charge_values(n_rows * len(shape.columns))
        first, count = vector(metadata, found, 1, 16)
        if count != len(shape.columns):
            raise FormatError(f"a batch has {count} columns, its schema {len(shape.columns)}")
        nodes = longs_of(2 * count).unpack_from(metadata, first)
        # neither views nor compression, most of the time
        plain = len(found) <= 3 and not shape.n_views
        n_data = () if plain else _counts(metadata, found, shape.n_views)
        first, count = vector(metadata, found, 2, 16)
        if count != shape.n_buffers + sum(n_data):
            raise FormatError(f"a batch has {count} buffers, which is not what its columns need")
        codec = None if plain else _codec(metadata, found)
        buffers = BatchBuffers(body, longs_of(2 * count).unpack_from(metadata, first), codec, self.budget)
        views = iter(n_data)
        arrays = []
        from_buffers = pa.Array.from_buffers
        for column, bits, length, n_nulls in zip(shape.columns, shape.plain, nodes[::2], nodes[1::2], strict=True):
            if length != n_rows:
                raise FormatError(f'column "{column.name}" has {length} rows, its batch {n_rows}')
            if bits and not n_nulls:
                # most columns are no more than this
                arrays.append(from_buffers(column.values.type, n_rows, [None, buffers.take_plain((n_rows * bits + 7) >> 3)], 0))
                continue
            own = next(views) if column.values.kind == VIEW else 0
            dictionary = None if column.dictionary is None else entries[column.dictionary]
            arrays.append(read_column(column, n_rows, n_nulls, buffers, own, self.budget, dictionary, first_row))
        return arrays, n_rows


def _counts(metadata: bytes, found: Slots, n_views: int) -> tuple[int, ...]:
    """Return the number of data buffers of each column of views."""
    first, count = vector(metadata, found, 4, 8)
    if count != n_views:
        raise FormatError(f"a batch has {count} columns of views, its schema {n_views}")
    counts = longs_of(count).unpack_from(metadata, first) if count else ()
    if any(one < 0 for one in counts):
        raise FormatError("a column has a negative number of buffers")
    return tuple(counts)


def _codec(metadata: bytes, found: Slots) -> int | None:
    at = child(metadata, found, 3)
    if not at:
        return None
    within = slots(metadata, at)
    codec, method = number(metadata, within, 0, INT8), number(metadata, within, 1, INT8)
    if codec not in (0, 1) or method != 0:
        raise FormatError("the compression is not known")
    return codec
