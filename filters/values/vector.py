"""Vectors of typed values and the frames of rows that expressions are computed over.

A vector is one column of some rows, in the shape numpy computes with:

    int, timestamp   `values` int64 (timestamps: microseconds since 1970 UTC)
    float            `values` float64
    bool             `values` bool
    string           `values` codes into `dictionary`, an object array of str
    null             every row is NULL; `values` are zeros

Invariants:

    nulls is None           no row is NULL
    nulls[i]                row i is NULL and values[i] is arbitrary, even a code outside the dictionary
    vectors never change    whoever wants other values makes a new vector; a constant may thus be one cell with stride 0

A frame gives the columns of a batch of rows and counts in `errors` the values that could not be computed. A selection
is the frame of some of its rows, so that a branch of CASE is computed only where it is reached. All steps cost
O(rows); the size of a dictionary matters only up to a small multiple of the rows.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from filters.values.dates import timestamp_text
from lineage.dictionary import Dictionary
from lineage.schema import Type

Array = NDArray[Any]
Mask = NDArray[np.bool_]

DTYPES: dict[Type, type[np.generic]] = {
    Type.INT: np.int64,
    Type.FLOAT: np.float64,
    Type.STRING: np.int64,
    Type.BOOL: np.bool_,
    Type.TIMESTAMP: np.int64,
    Type.NULL: np.int64,
}

_ARROW_TYPES = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.BOOL: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Type.NULL: pa.null(),
}

#: Up to so many rows a set in Python is faster than numpy's calls.
_FEW_ROWS = 16

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: What `datetime` can hold: the years 1 to 9999.
DATETIME_MIN_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
DATETIME_MAX_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


class Vector:
    """One typed column of some rows; see the module's invariants.

    >>> Vector.constant(Type.INT, 7, 3).to_pylist()
    [7, 7, 7]
    """

    __slots__ = ("type", "values", "nulls", "dictionary")

    def __init__(self, type: Type, values: Array, nulls: Mask | None = None, dictionary: Array | None = None) -> None:
        self.type = type
        self.values = values
        #: None only if no row is NULL; a mask without any True is allowed
        self.nulls = nulls
        #: not None iff `type` is STRING
        self.dictionary = dictionary

    @classmethod
    def constant(cls, type: Type, value: Any, n: int) -> Vector:
        """The same value on `n` rows, in constant time and space; None is NULL."""
        if value is None or type is Type.NULL:
            values = np.broadcast_to(np.zeros((), DTYPES[type]), n)
            nulls = np.broadcast_to(np.True_, n)
            return cls(type, values, nulls, strings_array([]) if type is Type.STRING else None)
        if type is Type.STRING:
            return cls(type, np.broadcast_to(np.int64(0), n), None, strings_array([value]))
        return cls(type, np.broadcast_to(DTYPES[type](value), n))

    @classmethod
    def of_strings(cls, texts: Sequence[str | None]) -> Vector:
        """Rows of text with a dictionary of the distinct ones."""
        places: dict[str, int] = {}
        codes = np.zeros(len(texts), np.int64)
        nulls = np.zeros(len(texts), np.bool_)
        for row, text in enumerate(texts):
            if text is None:
                nulls[row] = True
            else:
                codes[row] = places.setdefault(text, len(places))
        return cls(Type.STRING, codes, nulls if nulls.any() else None, strings_array(list(places)))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Vector({self.type.value}, {self.to_pylist()})"

    def take(self, indices: Array | slice) -> Vector:
        """The rows at these positions, or where a boolean mask is True; a slice shares their memory."""
        nulls = None if self.nulls is None else self.nulls[indices]
        return Vector(self.type, self.values[indices], nulls, self.dictionary)

    def null_mask(self) -> Mask:
        """True where NULL, always an array; not to be written to."""
        return np.broadcast_to(np.False_, len(self)) if self.nulls is None else self.nulls

    def widened(self, type: Type) -> Vector:
        """The same rows as `type`: NULL widens to anything, int to float."""
        if type is self.type:
            return self
        if self.type is Type.NULL:
            return Vector.constant(type, None, len(self))
        assert self.type is Type.INT and type is Type.FLOAT, f"the binder left {self.type} where {type} is needed"
        return Vector(type, self.values.astype(np.float64), self.nulls)

    def compact(self) -> tuple[list[str], Array]:
        """The strings that occur, and for each row its place among them (0 under NULL): O(rows), not O(dictionary)."""
        assert self.dictionary is not None
        codes = self.values
        if self.nulls is not None:
            valid = np.flatnonzero(~self.nulls)
            if len(valid) == 0:
                return [""], np.zeros(len(codes), np.int64)
            codes = np.where(self.nulls, codes[valid[0]], codes)
        if len(codes) == 0:
            return [""], np.zeros(0, np.int64)
        if codes.strides == (0,):
            return [self.dictionary[codes[0]]], np.zeros(len(codes), np.int64)
        if len(codes) <= _FEW_ROWS:
            present = codes.tolist()
            place_of = {code: place for place, code in enumerate(sorted(set(present)))}
            return [self.dictionary[code] for code in place_of], np.array([place_of[code] for code in present])
        if len(self.dictionary) > 2 * len(codes):
            occurring, places = np.unique(codes, return_inverse=True)
            return self.dictionary[occurring].tolist(), places
        occurs = np.zeros(len(self.dictionary), np.bool_)
        occurs[codes] = True
        occurring = np.flatnonzero(occurs)
        place_of_code = np.cumsum(occurs) - 1
        return self.dictionary[occurring].tolist(), place_of_code[codes]

    def cell(self, row: int) -> int | float | str | bool | None:
        """One value as a `Literal` holds it: a timestamp is its microseconds."""
        if self.nulls is not None and self.nulls[row]:
            return None
        value = self.values[row].item()
        found: int | float | str | bool = value if self.dictionary is None else self.dictionary[value]
        return found

    def to_pylist(self) -> list[Any]:
        """Python values; timestamps are `datetime` in UTC, or text where `datetime` cannot hold the year."""
        if self.type is Type.NULL:
            return [None] * len(self)
        if self.type is Type.STRING:
            texts, places = self.compact()
            found = [texts[place] for place in places.tolist()]
        elif self.type is Type.TIMESTAMP:
            found = [_datetime(value) for value in self.values.tolist()]
        else:
            found = self.values.tolist()
        if self.nulls is None:
            return found
        return [None if null else value for null, value in zip(self.nulls.tolist(), found, strict=True)]

    def to_arrow(self) -> pa.Array:
        """An Arrow array without a dictionary; timestamps are `timestamp[us, UTC]`."""
        if self.type is Type.NULL:
            return pa.nulls(len(self))
        mask = None if self.nulls is None else np.ascontiguousarray(self.nulls)
        if self.type is Type.STRING:
            texts, places = self.compact()
            return pa.array(texts, pa.string()).take(pa.array(places, pa.int64(), mask=mask))
        return arrow_cells(_ARROW_TYPES[self.type], self.values, mask)


def arrow_cells(type: pa.DataType, values: Array, nulls: Mask | None = None) -> pa.Array:
    """Numbers, times or booleans as an Arrow array of that type, which shares their memory where it can.

    From buffers: `pa.array` of anything but a pandas series imports pandas first, a third of a second in somebody's first answer.
    """
    assert values.dtype == np.bool_ or values.itemsize * 8 == type.bit_width, "cells are as wide as their type says"
    cells = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(type, len(values), [valid, pa.py_buffer(cells)])


def strings_array(texts: Sequence[str]) -> Array:
    """An object array of str, as `Vector.dictionary` wants it."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def union_nulls(vectors: Sequence[Vector]) -> Mask | None:
    """True where any of the vectors is NULL."""
    found: Mask | None = None
    for vector in vectors:
        if vector.nulls is not None:
            found = vector.nulls if found is None else found | vector.nulls
    return found


def merged_texts(vectors: Sequence[Vector]) -> tuple[list[str], list[Array]]:
    """The texts that occur in string vectors, each once, and for each vector the places of its rows among them: O(rows)."""
    places: dict[str, int] = {}
    found = []
    for vector in vectors:
        texts, at = vector.compact()
        found.append(np.array([places.setdefault(text, len(places)) for text in texts], np.int64)[at])
    return list(places), found


def assemble(type: Type, n: int, pieces: Sequence[tuple[Array | slice, Vector]]) -> Vector:
    """One vector of `n` rows from pieces, each with the rows it fills; rows in no piece are NULL."""
    nulls = np.ones(n, np.bool_)
    values = np.zeros(n, DTYPES[type])
    widened = [piece.widened(type) for _, piece in pieces]
    cells = [piece.values for piece in widened]
    dictionary = None
    if type is Type.STRING:
        # A vector of NULLs has an empty dictionary, which is no reason to merge.
        dictionaries = [piece.dictionary for piece in widened if piece.dictionary is not None and len(piece.dictionary)]
        shared = {id(one): one for one in dictionaries}
        if len(shared) == 1:
            (dictionary,) = shared.values()
        else:
            texts, cells = merged_texts(widened)
            dictionary = strings_array(texts)
    for (rows, _), piece, found in zip(pieces, widened, cells, strict=True):
        nulls[rows] = piece.null_mask()
        values[rows] = found
    return Vector(type, values, nulls if nulls.any() else None, dictionary)


def end_to_end(type: Type, vectors: Sequence[Vector]) -> Vector:
    """Return the rows of some vectors one after the other, as `type`; they may have different dictionaries."""
    if len(vectors) == 1:
        return vectors[0].widened(type)
    at = [0, *itertools.accumulate(len(vector) for vector in vectors)]
    return assemble(type, at[-1], [(slice(*span), vector) for span, vector in zip(itertools.pairwise(at), vectors)])


def settle(type: Type, values: Array, nulls: Mask | None, failed: Mask, frame: Frame) -> Vector:
    """A vector that is NULL also where the computation failed; those rows are counted unless already NULL."""
    if not failed.any():
        return Vector(type, values, nulls)
    if nulls is not None:
        failed = failed & ~nulls
    frame.fail(failed)
    return Vector(type, values, failed if nulls is None else nulls | failed)


class Frame(ABC):
    """Rows to compute over: their columns by schema position, and the count of what could not be computed."""

    __slots__ = ("n_rows", "errors", "failures")

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        #: values that became NULL because they could not be computed; grows only
        self.errors = 0
        #: how many of them each row has; None while there is none
        self.failures: Array | None = None

    @abstractmethod
    def column(self, position: int) -> Vector:
        """The column at that position of the schema, `n_rows` long."""

    def texts(self, position: int) -> tuple[Dictionary, Array] | None:
        """The dictionary of a column of texts, and for each row 0 under NULL, else its code and 1; None if none is kept."""
        return None

    def select(self, rows: Array) -> Frame:
        """The frame of these rows; it counts its own errors, which the caller adds back by `absorb`."""
        return Selection(self, rows)

    def fail(self, failed: Mask) -> None:
        """Count a value that could not be computed for each row of a mask."""
        self.errors += int(np.count_nonzero(failed))
        self.failures = failed.astype(np.int64) if self.failures is None else self.failures + failed

    def absorb(self, selection: Frame, rows: Array) -> None:
        """Add the errors of a frame of some rows, given in order."""
        self.errors += selection.errors
        if selection.failures is not None:
            failures = np.zeros(self.n_rows, np.int64) if self.failures is None else self.failures.copy()
            failures[rows] += selection.failures
            self.failures = failures


class ListFrame(Frame):
    """A frame over vectors held in a list, in schema order."""

    __slots__ = ("vectors",)

    def __init__(self, vectors: Sequence[Vector], n_rows: int | None = None) -> None:
        super().__init__(len(vectors[0]) if n_rows is None else n_rows)
        self.vectors = vectors

    def column(self, position: int) -> Vector:
        return self.vectors[position]


class Selection(Frame):
    """Some rows of another frame; a column is gathered when first read."""

    __slots__ = ("_parent", "_rows", "_gathered")

    def __init__(self, parent: Frame, rows: Array) -> None:
        super().__init__(len(rows))
        self._parent = parent
        self._rows = rows
        #: columns already gathered, by position
        self._gathered: dict[int, Vector] = {}

    def column(self, position: int) -> Vector:
        found = self._gathered.get(position)
        if found is None:
            found = self._gathered[position] = self._parent.column(position).take(self._rows)
        return found


def _datetime(micros: int) -> datetime | str:
    if DATETIME_MIN_US <= micros <= DATETIME_MAX_US:
        return _EPOCH + timedelta(microseconds=micros)
    return timestamp_text(micros)
