"""A bounds-checked reader of flatbuffers from unknown clients.

A flatbuffer is a `bytes` object of its own, and every read goes through `struct`, which refuses what lies outside: a hostile
offset ends in an error or in other numbers of the same buffer, never beyond it. What numbers mean is checked by who reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache

_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_VTABLE = struct.Struct("<HH")
#: Fields of a table that are looked at: no table of the Arrow format has more.
_MAX_SLOTS = 16
_SLOTS = [struct.Struct(f"<{n}H") for n in range(_MAX_SLOTS + 1)]
_BOOL = struct.Struct("<?")
INT8 = struct.Struct("<b")
INT16 = struct.Struct("<h")
INT32 = _I32
INT64 = struct.Struct("<q")

#: Bytes of a text: all that are read are names.
MAX_TEXT = 4096
#: Where the fields of a table lie; 0 for those that are left out.
Slots = Sequence[int]


class FormatError(Exception):
    """The bytes do not follow the format; the message becomes the detail of an error."""


def root(data: bytes) -> int:
    """Return the place of the first table."""
    return int(_U32.unpack_from(data)[0])


def slots(data: bytes, table: int) -> Slots:
    """Return the absolute places of a table's fields, 0 for absent ones."""
    if table < 0:
        raise FormatError("a table lies outside the metadata")
    vtable = table - _I32.unpack_from(data, table)[0]
    if vtable < 0:
        raise FormatError("a table lies outside the metadata")
    size, _ = _VTABLE.unpack_from(data, vtable)
    if size < 4:
        raise FormatError("a table has no fields")
    found = _SLOTS[min(size // 2 - 2, _MAX_SLOTS)].unpack_from(data, vtable + 4)
    return [table + offset if offset else 0 for offset in found]


def place(found: Slots, n: int) -> int:
    """Return the place of a field; 0 if it is absent."""
    return found[n] if n < len(found) else 0


def number(data: bytes, found: Slots, n: int, form: struct.Struct, default: int = 0) -> int:
    """Return a number of a table."""
    at = found[n] if n < len(found) else 0
    return form.unpack_from(data, at)[0] if at else default


def flag(data: bytes, found: Slots, n: int) -> bool:
    """Return a boolean of a table."""
    at = place(found, n)
    return bool(_BOOL.unpack_from(data, at)[0]) if at else False


def child(data: bytes, found: Slots, n: int) -> int:
    """Return the place of the table, vector or text that a field points to; 0 if it is absent."""
    at = found[n] if n < len(found) else 0
    return at + _U32.unpack_from(data, at)[0] if at else 0


def vector(data: bytes, found: Slots, n: int, width: int) -> tuple[int, int]:
    """Return the place of the first element of a vector and the number of elements; all lie within the buffer."""
    at = child(data, found, n)
    if not at:
        return 0, 0
    count: int = _U32.unpack_from(data, at)[0]
    if at + 4 + count * width > len(data):
        raise FormatError("a vector is longer than the metadata")
    return at + 4, count


def text(data: bytes, found: Slots, n: int) -> str | None:
    """Return a text; None if it is absent."""
    if not place(found, n):
        return None
    first, count = vector(data, found, n, 1)
    if count > MAX_TEXT:
        raise FormatError(f"a name of {count} bytes, more than {MAX_TEXT}")
    try:
        return data[first : first + count].decode()
    except UnicodeDecodeError:
        raise FormatError("a name is not UTF-8") from None


def tables(data: bytes, found: Slots, n: int, at_most: int, what: str) -> list[int]:
    """Return the places of the tables in a vector."""
    first, count = vector(data, found, n, 4)
    if count > at_most:
        raise FormatError(f"{count} {what}, more than {at_most}")
    offsets = longs_of(count, "I").unpack_from(data, first) if count else ()
    return [first + 4 * i + offset for i, offset in enumerate(offsets)]


@cache
def _cached(count: int, letter: str) -> struct.Struct:
    return struct.Struct(f"<{count}{letter}")


def longs_of(count: int, letter: str = "q") -> struct.Struct:
    """Return the `struct.Struct` that unpacks `count` numbers at once."""
    return _cached(count, letter) if count <= 1024 else struct.Struct(f"<{count}{letter}")
