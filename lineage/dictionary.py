"""The strings of a column and their codes.

    strings[code(s)] == s      codes are 0, 1, 2, ... in the order in which the strings first came

A dictionary only grows, until `compact` throws out what nobody uses. Encoding a column takes two steps, so that a push
that fails on a later column leaves no trace here: `prepare_*` checks the strings and finds the distinct ones without
changing anything, `commit` gives out the codes and cannot fail. Two plans may be prepared before either is committed,
in any order, also against the same dictionary.

Cost: beyond `SMALL` rows no Python loop per row; pyarrow finds the distinct strings (about 50 ns a row) and only those
are looked up. `bytes` is a size model, exact to recompute: UTF-8 length plus `ENTRY_BYTES` for each string.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Up to this many rows a plain loop is quicker than building an Arrow array.
SMALL = 64

#: Longest string of a row, in UTF-8 bytes.
MAX_STRING_BYTES = 1 << 20

#: Overhead of one string in CPython 3.11: header 49 to 73, dict entry about 48 with its slack, code 32, list and array slots.
ENTRY_BYTES = 160

Array = np.ndarray[Any, Any]


class BadString(Exception):
    """A value of a column that no dictionary takes; `reason` is "type", "too_long" or "surrogate". `row` is its index."""

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


class EncodingPlan:
    """A checked column on its way into a dictionary: row i is `strings[inverse[i]]`, or NULL where `inverse[i] < 0`."""

    __slots__ = ("inverse", "nulls", "strings")

    def __init__(self, strings: list[Any], inverse: Array | None, nulls: Array | None) -> None:
        #: the distinct strings, or, iff `inverse` is None, one a row with None for NULL
        self.strings = strings
        self.inverse = inverse
        #: True where the row is NULL; None iff no row is
        self.nulls = nulls

    def __len__(self) -> int:
        return len(self.strings) if self.inverse is None else len(self.inverse)


def check_string(value: str) -> int:
    """The length in UTF-8 bytes; raises `BadString` for lone surrogates and for strings that are too long."""
    if len(value) > MAX_STRING_BYTES:
        raise BadString("too_long")
    if value.isascii():
        return len(value)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise BadString("surrogate") from None
    if size > MAX_STRING_BYTES:
        raise BadString("too_long")
    return size


def _size(value: str) -> int:
    """The length in UTF-8 bytes of a text that a dictionary has."""
    return len(value) if value.isascii() else len(value.encode())


class Dictionary:
    """String to code and back.

    >>> rooms = Dictionary()
    >>> rooms.commit(rooms.prepare_list(["a", "b", "a"])).tolist(), rooms.find("b"), rooms.find("c"), rooms.strings
    ([0, 1, 0], 1, -1, ['a', 'b'])
    """

    __slots__ = ("_array", "_codes", "_filled", "bytes", "strings")

    def __init__(self) -> None:
        #: every string, at its code
        self.strings: list[str] = []
        #: the size model of this dictionary's memory
        self.bytes = 0
        self._codes: dict[str, int] = {}
        #: capacity doubles, so the views given out stay right: a slot is written once
        self._array: Array = np.empty(16, object)
        #: how much of `_array` is filled; at most `len(strings)`
        self._filled = 0

    def __getstate__(self) -> tuple[object, ...]:
        """All but the array, which is made again of the strings when it is asked for."""
        return self.strings, self.bytes, self._codes

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.strings, self.bytes, self._codes = state
        self._array, self._filled = np.empty(16, object), 0

    def __len__(self) -> int:
        return len(self.strings)

    def __contains__(self, value: object) -> bool:
        return value in self._codes

    def find(self, value: str) -> int:
        """The code, or -1 when the string was never seen."""
        return self._codes.get(value, -1)

    def code(self, value: str) -> int:
        """The code, given now if the string is new; raises `BadString`."""
        found = self._codes.get(value)
        return self._add(value, check_string(value)) if found is None else found

    def computed(self, value: str) -> int:
        """The code of a text that an expression gave, which may be longer than any that is pushed."""
        found = self._codes.get(value)
        return self._add(value, _size(value)) if found is None else found

    def _add(self, value: str, size: int) -> int:
        code = len(self.strings)
        self._codes[value] = code
        self.strings.append(value)
        self.bytes += size + ENTRY_BYTES
        return code

    def prepare_list(self, values: Sequence[str | None]) -> EncodingPlan:
        """Check a column given as Python strings and Nones; raises `BadString` with the row. Changes nothing."""
        if len(values) > SMALL:
            return self._prepare_long_list(values)
        known = self._codes
        n_nulls = 0
        strings: list[str | None] = []
        for row, value in enumerate(values):
            if value is None:
                n_nulls += 1
            elif not isinstance(value, str):
                raise BadString("type", row)
            else:
                if type(value) is not str:
                    value = str.__str__(value)
                if value not in known:
                    _check_value(value, row)
            strings.append(value)
        nulls = np.fromiter((value is None for value in strings), np.bool_, len(strings)) if n_nulls else None
        return EncodingPlan(strings, None, nulls)

    def _prepare_long_list(self, values: Sequence[str | None]) -> EncodingPlan:
        try:
            kinds = set(map(type, values)) - {str, type(None)}
            if not all(issubclass(kind, str) for kind in kinds):
                raise TypeError
            if kinds:
                values = [value if value is None else str.__str__(value) for value in values]
            encoded = pa.array(values, pa.large_string())
        except (TypeError, UnicodeEncodeError, pa.ArrowException):
            _find_bad(values)
            raise
        return self.prepare_arrow(encoded)

    def prepare_arrow(self, values: Any) -> EncodingPlan:
        """Check a column given as an Arrow array of strings, plain or dictionary-encoded; raises `BadString`. Changes nothing."""
        if isinstance(values, pa.ChunkedArray):
            values = _one_chunk(values)
        if not pa.types.is_dictionary(values.type):
            if not is_text(values.type):
                raise BadString("type")
            if pa.types.is_string_view(values.type):
                values = values.cast(pa.large_string())
            values = values.dictionary_encode()
        inverse = values.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        strings = self._distinct(values.dictionary, inverse)
        inverse = _used_only(strings, inverse)
        nulls = inverse < 0
        return EncodingPlan([string for string in strings if string is not None], inverse, nulls if nulls.any() else None)

    def _distinct(self, entries: Any, inverse: Array) -> list[str | None]:
        """The entries as Python strings, None for those that no row uses; raises `BadString` with the first row that is bad."""
        if not is_text(entries.type):
            raise BadString("type")
        if pa.types.is_string_view(entries.type):
            entries = entries.cast(pa.large_string())
        used = np.zeros(len(entries) + 1, np.bool_)
        used[inverse] = True
        used = used[:-1]
        longest = pc.max(pc.binary_length(entries)).as_py() or 0
        try:
            strings: list[str | None] = entries.to_pylist()
        except UnicodeDecodeError:
            strings = [
                _decoded(entry) for entry in entries.cast(pa.binary() if entries.type == pa.string() else pa.large_binary())
            ]
        if longest > MAX_STRING_BYTES or _BAD_TEXT in strings:
            bad = (
                np.fromiter((s is _BAD_TEXT or (s is not None and _too_long(s)) for s in strings), np.bool_, len(strings)) & used
            )
            if bad.any():
                row = int(np.flatnonzero(np.append(bad, False)[inverse])[0])
                raise BadString("surrogate" if strings[int(inverse[row])] is _BAD_TEXT else "too_long", row)
        if not used.all():
            strings = [string if kept else None for string, kept in zip(strings, used.tolist())]
        return strings

    def commit(self, plan: EncodingPlan) -> Array:
        """The codes of a prepared column, one int64 a row, 0 below NULL; new strings get the next codes. Never fails."""
        known = self._codes
        if plan.inverse is None:
            codes = list(map(known.get, plan.strings))
            if None in codes:
                codes = [0 if value is None else self.code(value) for value in plan.strings]
            return np.array(codes, np.int64)
        table = list(map(known.get, plan.strings))
        if None in table:
            for i, found in enumerate(table):
                if found is None:
                    table[i] = self.code(plan.strings[i])
        # the last entry serves inverse == -1
        table.append(0)
        return np.array(table, np.int64)[plan.inverse]

    def as_array(self) -> Array:
        """All strings as an object array to take codes from; read-only, O(new strings since the last call)."""
        total = len(self.strings)
        if total > len(self._array):
            grown = np.empty(max(total, 2 * len(self._array)), object)
            grown[: self._filled] = self._array[: self._filled]
            self._array = grown
        if self._filled < total:
            self._array[self._filled : total] = self.strings[self._filled :]
            self._filled = total
        view = self._array[:total]
        view.flags.writeable = False
        return view

    def compact(self, used_codes: Array | Iterable[int]) -> Array:
        """Keep only these codes, renumbered in their old order; returns old code -> new code, -1 for what is gone. O(strings)."""
        codes = np.asarray(used_codes if isinstance(used_codes, np.ndarray) else list(used_codes), np.int64)
        kept = np.zeros(len(self.strings), np.bool_)
        kept[codes] = True
        remap = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int64)
        strings = self.strings
        self.strings, self._codes, self.bytes = [], {}, 0
        self._array, self._filled = np.empty(16, object), 0
        for old in np.flatnonzero(kept).tolist():
            self._add(strings[old], _size(strings[old]))
        return remap

    def check(self) -> None:
        """Assert the invariants; O(strings)."""
        assert len(self._codes) == len(self.strings), "a string has two codes, or a code no string"
        assert all(self._codes[string] == code for code, string in enumerate(self.strings)), "a code leads to another string"
        assert self.bytes == sum(_size(s) + ENTRY_BYTES for s in self.strings), "bytes is not the sum over the strings"
        assert self._filled <= len(self.strings) and list(self._array[: self._filled]) == self.strings[: self._filled]


class _BadText(str):
    """Stands for an Arrow entry that is not UTF-8."""


_BAD_TEXT = _BadText("\x00not utf-8")


def _decoded(entry: Any) -> str | None:
    try:
        data = entry.as_py()
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return _BAD_TEXT


def _too_long(value: str) -> bool:
    return len(value) > MAX_STRING_BYTES or len(value.encode()) > MAX_STRING_BYTES


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of its three types of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def joined_dictionaries(values: Any) -> Any:
    """One array of chunks that have dictionaries: the entries of each once, one after the other, so that some may come twice."""
    first: dict[object, int] = {}
    entries: list[Any] = []
    indices: list[Any] = []
    n_entries = 0
    for chunk in values.chunks:
        own = chunk.dictionary
        key = (len(own), own.offset, *(None if buffer is None else buffer.address for buffer in own.buffers()))
        if key not in first:
            first[key] = n_entries
            entries.append(own.cast(pa.large_string()) if is_text(own.type) else own)
            n_entries += len(own)
        indices.append(pc.add(chunk.indices.cast(pa.int64()), first[key]))
    return pa.DictionaryArray.from_arrays(pa.concat_arrays(indices), pa.concat_arrays(entries))


def _one_chunk(values: Any) -> Any:
    if values.num_chunks == 1:
        return values.chunk(0)
    if pa.types.is_dictionary(values.type):
        return joined_dictionaries(values) if values.num_chunks else pa.array([], values.type)
    # 32-bit offsets could overflow when the chunks are joined
    return values.cast(pa.large_string()).combine_chunks() if is_text(values.type) else values.combine_chunks()


def _used_only(strings: list[str | None], inverse: Array) -> Array:
    """Renumber `inverse` for the entries that are not None; entries that are None (unused, or NULL) become -1."""
    if None not in strings:
        return inverse
    kept = np.fromiter((string is not None for string in strings), np.bool_, len(strings))
    table = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return table[inverse]


def _find_bad(values: Sequence[object]) -> None:
    """Raise `BadString` for the first value that is neither a good string nor None."""
    for row, value in enumerate(values):
        if value is not None:
            _check_value(value, row)


def _check_value(value: object, row: int) -> None:
    if not isinstance(value, str):
        raise BadString("type", row)
    try:
        check_string(value)
    except BadString as bad:
        bad.row = row
        raise
