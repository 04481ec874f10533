"""Columns of a batch as pyarrow arrays, built from buffers whose every number was checked.

    nulls         as many as the batch says; a bitmap that no NULL needs is not read
    texts         offsets that never fall, within the data; UTF-8
    views         within their buffers; UTF-8; below a NULL empty, whatever lay there
    indices       within their dictionary; below a NULL 0, whatever lay there

So no array leaves this module in which pyarrow could read anything outside its buffers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from api.arrow.buffers import BatchBuffers, ByteBudget
from api.arrow.flatbuffer import FormatError
from api.arrow.layout import BITS, FIXED, NULL, TEXT, ColumnLayout
from eddy import RowError

Array = np.ndarray[Any, Any]

#: Bytes up to which a copy is cheaper than numpy.
_FEW = 4096
#: A text in a view that is no longer lies in the view itself.
_INLINE = 12
_NO_OFFSETS = pa.py_buffer(bytes(8))


def read_column(
    column: ColumnLayout, n_rows: int, n_nulls: int, buffers: BatchBuffers, n_data: int, budget: ByteBudget, dictionary: Any,
    first_row: int | None,
) -> Any:  # fmt: skip
    """Return one column of a batch; `n_data` buffers hold the data of its views, `dictionary` has the entries of its indices.

    `first_row` is how many rows came before the batch; None if these are the entries of a dictionary.
    """
    values = column.values
    if not 0 <= n_nulls <= n_rows:
        raise FormatError(f'column "{column.name}" has {n_nulls} NULLs in {n_rows} rows')
    if values.kind == NULL:
        return pa.nulls(n_rows)
    validity = None
    if n_nulls:
        validity = buffers.take((n_rows + 7) >> 3, aligned=False)
        if _count_nulls(validity, n_rows) != n_nulls:
            raise FormatError(f'column "{column.name}" does not have as many NULLs as it says')
    else:
        buffers.skip()
    if values.kind == FIXED:
        data = buffers.take(n_rows * values.dtype.itemsize)
        if column.dictionary is not None:
            return _coded(column, n_rows, n_nulls, validity, data, dictionary)
        return pa.Array.from_buffers(values.type, n_rows, [validity, data], n_nulls)
    if values.kind == BITS:
        data = buffers.take((n_rows + 7) >> 3, aligned=False)
        return pa.Array.from_buffers(values.type, n_rows, [validity, data], n_nulls)
    if values.kind == TEXT:
        return _texts(column, n_rows, n_nulls, validity, buffers, first_row)
    return _views(column, n_rows, n_nulls, validity, buffers, n_data, budget, first_row)


def _valid(validity: Any, n_rows: int) -> Array:
    """Return a mask that is True for each row that is not NULL."""
    return np.unpackbits(np.frombuffer(validity, np.uint8, (n_rows + 7) >> 3), count=n_rows, bitorder="little").view(np.bool_)


def _count_nulls(validity: Any, n_rows: int) -> int:
    bits = np.frombuffer(validity, np.uint8, (n_rows + 7) >> 3)
    n_valid = int(np.bitwise_count(bits).sum(dtype=np.int64))
    if n_rows & 7:
        n_valid -= (int(bits[-1]) >> (n_rows & 7)).bit_count()
    return n_rows - n_valid


def _texts(column: ColumnLayout, n_rows: int, n_nulls: int, validity: Any, buffers: BatchBuffers, first_row: int | None) -> Any:
    values = column.values
    width = values.dtype.itemsize
    # without rows there may be no offset at all
    places = buffers.take((n_rows + 1) * width if n_rows else 0)
    if places.size < width:
        places = _NO_OFFSETS
    data = buffers.take(0, aligned=False)
    offsets = np.frombuffer(places, values.dtype, n_rows + 1)
    first, last = int(offsets[0]), int(offsets[-1])
    if first < 0 or last > data.size or _falls(offsets):
        raise FormatError(f'the texts of column "{column.name}" lie outside their buffer')
    array = pa.Array.from_buffers(values.type, n_rows, [validity, places, data], n_nulls)
    if not _is_ascii(data, first, last):
        _check_text(column, array, first_row)
    return array


def _falls(offsets: Array) -> bool:
    """Return whether some offset is less than the one before it."""
    # looking for a byte is quicker than reducing, above all for few
    return b"\x01" in (offsets[1:] < offsets[:-1]).tobytes()


def _is_ascii(data: Any, first: int, last: int) -> bool:
    if last - first <= _FEW:
        return bool(data.slice(first, last - first).to_pybytes().isascii())
    return int(np.frombuffer(data, np.uint8, last - first, first).max()) < 128


def _views(
    column: ColumnLayout, n_rows: int, n_nulls: int, validity: Any, buffers: BatchBuffers, n_data: int, budget: ByteBudget,
    first_row: int | None,
) -> Any:  # fmt: skip
    places = buffers.take(16 * n_rows)
    data = [buffers.take(0, aligned=False) for _ in range(n_data)]
    views = np.frombuffer(places, np.dtype("<i4"), 4 * n_rows).reshape(n_rows, 4)
    if n_nulls:
        views = views.copy()
        views[~_valid(validity, n_rows)] = 0
        places = pa.py_buffer(views)
    lengths = views[:, 0]
    far = lengths > _INLINE
    ends, buffer, offset = lengths[far].astype(np.int64), views[far, 2], views[far, 3]
    inside = bool((lengths >= 0).all() and (buffer >= 0).all() and (buffer < n_data).all() and (offset >= 0).all())
    if inside:
        budget.charge_bytes(int(ends.sum()))
        ends += offset
        inside = bool((ends <= np.array([one.size for one in data], np.int64)[buffer]).all())
    if not inside:
        raise FormatError(f'the texts of column "{column.name}" lie outside their buffers')
    array = pa.Array.from_buffers(column.values.type, n_rows, [validity, places, *data], n_nulls)
    _check_text(column, array, first_row)
    return array


def _coded(column: ColumnLayout, n_rows: int, n_nulls: int, validity: Any, data: Any, dictionary: Any) -> Any:
    """Return a dictionary array: entries by their indices."""
    values = column.values
    n_entries = len(dictionary)
    if n_rows:
        indices = np.frombuffer(data, values.dtype, n_rows)
        if int(indices.max()) >= n_entries or int(indices.min()) < 0:
            # below a NULL there may be anything
            indices = np.where(_valid(validity, n_rows), indices, values.dtype.type(0)) if n_nulls else indices
            if n_nulls < n_rows and (int(indices.max()) >= n_entries or int(indices.min()) < 0):
                raise FormatError(f'column "{column.name}" has indices outside its dictionary')
            data = pa.py_buffer(indices)
            if not n_entries:
                # for those who look up what lies below a NULL
                dictionary = pa.nulls(1, dictionary.type)
    places = pa.Array.from_buffers(values.type, n_rows, [validity, data], n_nulls)
    return pa.DictionaryArray.from_arrays(places, dictionary, ordered=column.ordered, safe=False)


def _check_text(column: ColumnLayout, array: Any, first_row: int | None) -> None:
    """Raise unless the texts, whose offsets were checked, are UTF-8; `first_row` None means entries of a dictionary."""
    try:
        array.validate(full=True)
    except pa.ArrowException as error:
        if "UTF8" not in str(error):
            raise FormatError(f'column "{column.name}": {str(error).split(chr(10), 1)[0]}') from None
        bad = _first_bad(array)
        row, detail = (None, f"entry {bad} of its dictionary") if first_row is None else (first_row + bad, "")
        raise RowError("the text is not UTF-8", code="bad_value", detail=detail, row=row, column=column.name) from None


def _first_bad(array: Any) -> int:
    """Return the first row whose text is not UTF-8, by bisection."""
    first, last = 0, len(array)
    while last - first > 1:
        middle = (first + last) // 2
        if _is_text(array.slice(first, middle - first)):
            first = middle
        else:
            last = middle
    return first


def _is_text(array: Any) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowException:
        return False
    return True
