"""The layout of an Arrow stream, read from its schema: for each column, how its values lie in the buffers of a batch.

Only types that some column of a stream takes are known: numbers, truth values, times, texts, and dictionaries of these; all
others are refused by name, before anything of a batch is looked at. Extension types are what they are stored as, and a time with
a zone is an instant, whatever the zone is called: so it is UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from api.arrow.flatbuffer import (
    INT16,
    INT32,
    INT64,
    FormatError,
    Slots,
    child,
    flag,
    number,
    place,
    slots,
    tables,
    text,
)  # fmt: skip
from eddy import RowError

#: Columns of a schema; the service has a smaller bound for streams.
MAX_COLUMNS = 4096
#: Entries of the metadata of a schema.
MAX_METADATA = 4096

#: How values lie.
NULL, BITS, FIXED, TEXT, VIEW = range(5)
#: Buffers of each, but for the data of views.
_BUFFERS = (0, 2, 2, 3, 2)

_UNITS = ("s", "ms", "us", "ns")
_FLOATS: tuple[tuple[Any, str], ...] = ((pa.float16(), "f2"), (pa.float32(), "f4"), (pa.float64(), "f8"))
_INTS = {
    (width, signed): (getattr(pa, f"{'' if signed else 'u'}int{width}")(), f"{'i' if signed else 'u'}{width // 8}")
    for width in (8, 16, 32, 64)
    for signed in (False, True)
}
#: Types by their number in the format.
_NAMES = (
    "none", "null", "int", "float", "binary", "string", "bool", "decimal", "date", "time of day", "timestamp", "interval", "list",
    "struct", "union", "fixed-size binary", "fixed-size list", "map", "duration", "large binary", "large string", "large list",
    "run-end encoded", "binary view", "string view", "list view", "large list view",
)  # fmt: skip
_HINT = "numbers, texts, booleans, times, and dictionaries of these; cast the column first"


@dataclass(frozen=True, slots=True)
class ValueLayout:
    """How the values of one type lie in buffers."""

    kind: int
    type: Any
    #: of the elements of the second buffer: values, offsets; None where there are none or they are no numbers
    dtype: Any = None


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """One column: the layout of its values, or of indices into the dictionary with that number."""

    name: str
    values: ValueLayout
    dictionary: int | None = None
    ordered: bool = False

    @property
    def plain_bits(self) -> int:
        """Return the bits of a value if only the length of the buffer needs a check, else 0."""
        if self.values.kind == BITS:
            return 1
        return 8 * self.values.dtype.itemsize if self.values.kind == FIXED and self.dictionary is None else 0


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a batch and their number of buffers."""

    columns: tuple[ColumnLayout, ...]
    #: the bits of their values if they are plain, else 0
    plain: tuple[int, ...]
    #: but for the data of views
    n_buffers: int
    n_views: int


@dataclass(frozen=True, slots=True)
class SchemaLayout:
    """The layout of a stream: of its batches and of its dictionaries."""

    rows: Shape
    #: what each dictionary is: a batch of one column
    dictionaries: dict[int, Shape]
    schema: Any
    #: the stream for whose rows it says it is
    stream: str | None


def layout_of(metadata: bytes, table: int) -> SchemaLayout:
    """Return the layout that the schema at a place of the metadata describes."""
    found = slots(metadata, table)
    if number(metadata, found, 0, INT16):
        raise FormatError("the numbers are big-endian")
    entries: dict[int, ColumnLayout] = {}
    columns = tuple([_column(metadata, at, entries) for at in tables(metadata, found, 1, MAX_COLUMNS, "columns")])
    fields = [pa.field(column.name, _arrow_type(column, entries)) for column in columns]
    dictionaries = {key: _shape((column,)) for key, column in entries.items()}
    return SchemaLayout(_shape(columns), dictionaries, pa.schema(fields), _stream(metadata, found))


def _shape(columns: tuple[ColumnLayout, ...]) -> Shape:
    kinds = [column.values.kind for column in columns]
    return Shape(
        columns, tuple([column.plain_bits for column in columns]), sum(_BUFFERS[kind] for kind in kinds), kinds.count(VIEW)
    )


def _arrow_type(column: ColumnLayout, entries: dict[int, ColumnLayout]) -> Any:
    if column.dictionary is None:
        return column.values.type
    return pa.dictionary(column.values.type, entries[column.dictionary].values.type, column.ordered)


def _column(metadata: bytes, table: int, entries: dict[int, ColumnLayout]) -> ColumnLayout:
    """Return the layout of one column; the type of its dictionary, if any, goes into `entries`."""
    found = slots(metadata, table)
    name = text(metadata, found, 0) or ""
    values = _values(metadata, found, name)
    encoding = child(metadata, found, 4)
    if not encoding:
        return ColumnLayout(name, values)
    coded = slots(metadata, encoding)
    if number(metadata, coded, 3, INT16):
        raise FormatError("a dictionary is of a kind that is not known")
    at = child(metadata, coded, 1)
    indices = _int(metadata, slots(metadata, at)) if at else ValueLayout(FIXED, pa.int32(), np.dtype("<i4"))
    key = number(metadata, coded, 0, INT64)
    if entries.setdefault(key, ColumnLayout(name, values)).values != values:
        raise FormatError(f"dictionary {key} has entries of two types")
    return ColumnLayout(name, indices, key, flag(metadata, coded, 2))


def _values(metadata: bytes, found: Slots, name: str) -> ValueLayout:
    """Return the layout of a field's values; raise `RowError` for a type that no column takes."""
    at = place(found, 2)
    kind = metadata[at] if 0 < at < len(metadata) else 0
    word = _NAMES[kind] if kind < len(_NAMES) else f"unknown ({kind})"
    within = slots(metadata, child(metadata, found, 3)) if child(metadata, found, 3) else ()
    match word:
        case "null":
            return ValueLayout(NULL, pa.null())
        case "bool":
            return ValueLayout(BITS, pa.bool_())
        case "int":
            return _int(metadata, within)
        case "float":
            precision = number(metadata, within, 0, INT16)
            if not 0 <= precision < len(_FLOATS):
                raise FormatError("a float is of a size that is not known")
            type_, dtype = _FLOATS[precision]
            return ValueLayout(FIXED, type_, np.dtype(f"<{dtype}"))
        case "string":
            return ValueLayout(TEXT, pa.string(), np.dtype("<i4"))
        case "large string":
            return ValueLayout(TEXT, pa.large_string(), np.dtype("<i8"))
        case "string view":
            return ValueLayout(VIEW, pa.string_view())
        case "date":
            day = number(metadata, within, 0, INT16, 1) == 0
            return ValueLayout(FIXED, pa.date32(), np.dtype("<i4")) if day else ValueLayout(FIXED, pa.date64(), np.dtype("<i8"))
        case "timestamp":
            unit = number(metadata, within, 0, INT16)
            if not 0 <= unit < len(_UNITS):
                raise FormatError("a time is in a unit that is not known")
            zone = child(metadata, within, 1) and INT32.unpack_from(metadata, child(metadata, within, 1))[0]
            return ValueLayout(FIXED, pa.timestamp(_UNITS[unit], "UTC" if zone else None), np.dtype("<i8"))
    raise RowError(f"no column takes the Arrow type {word}", code="bad_type", hint=_HINT, column=name)


def _int(metadata: bytes, found: Slots) -> ValueLayout:
    key = (number(metadata, found, 0, INT32), flag(metadata, found, 1))
    if key not in _INTS:
        raise FormatError("an int is of a size that is not known")
    type_, dtype = _INTS[key]
    return ValueLayout(FIXED, type_, np.dtype(f"<{dtype}"))


def _stream(metadata: bytes, found: Slots) -> str | None:
    """Return the stream name in the metadata of a schema, if there is one."""
    name = None
    for table in tables(metadata, found, 2, MAX_METADATA, "entries of metadata"):
        pair = slots(metadata, table)
        at = child(metadata, pair, 0)
        if at and metadata[at : at + 10] == b"\x06\x00\x00\x00stream":
            name = text(metadata, pair, 1)
    return name
