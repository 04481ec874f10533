"""One column of user values, in any form, as cells: what the converters of all column types share.

`scalar(value)` is the definition: it takes one value and returns what the cell holds, or raises `RowError`. Whole columns
go through array conversions that either agree with it on every row or give up, in which case `_loop` applies it row by
row and names the first bad one. So for every column given in any form:

    convert(values) == ([scalar(v) for v in values], [v is missing for v in values])

Missing is None, an Arrow null, pandas' NA and NaT, a masked element; NaN is a value of a float column and an error in all
others (but a pandas Series says NaN where it means missing, and is taken at its word). Columns of up to `SMALL` rows are
looped over; longer lists are split by the exact type of their elements, each part an array conversion.

Results are arrays of any dtype that assigns exactly into the engine's 64-bit cells, or, for strings, an `EncodingPlan` that
becomes codes once every column is known to be good. Arrays that need no change are given back as they are: the caller
copies at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lineage.dictionary import SMALL, joined_dictionaries
from lineage.errors import RowError
from lineage.schema import Column
from lineage.times import show

Array = np.ndarray[Any, Any]
#: The cells and, unless no row is NULL, True where the row is.
Converted = tuple[Any, Array | None]

_INT64 = np.dtype(np.int64)
_NULL_HINT = "NULL is None"

#: Whether a type means NULL, for the types seen so far.
_MISSING: dict[type, bool] = {type(None): True, type(np.ma.masked): True}


def is_missing_type(kind: type) -> bool:
    """Whether all values of the type mean NULL; pandas is looked at by name, never imported."""
    known = _MISSING.get(kind)
    if known is None:
        known = kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas.")
        _MISSING[kind] = known
    return known


class Converter:
    """Base of the five converters; `convert` takes a column in any accepted form."""

    #: what the column holds, for "... is not ..."
    noun = ""
    dtype: np.dtype[Any] = _INT64

    def __init__(self, column: Column, required: bool) -> None:
        self.name = column.name
        self.unit = column.unit
        #: True iff this is the time column, which may not be NULL
        self.required = required

    def convert(self, values: Any) -> Converted:
        """Cells and NULLs of the column; raises `RowError` naming the first bad row."""
        kind = type(values)
        if kind is list or kind is tuple:
            return self._from_list(values)
        if kind is np.ndarray:
            return self._from_numpy(values, None)
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            return self._from_arrow(values)
        if isinstance(values, np.ma.MaskedArray):
            return self._from_masked(values)
        if isinstance(values, np.ndarray):
            return self._from_numpy(np.asarray(values), None)
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(values, (pandas.Series, pandas.Index)):
            return self._from_pandas(values)
        if hasattr(values, "__arrow_c_array__"):
            return self._from_arrow(pa.array(values))
        if hasattr(values, "__arrow_c_stream__"):
            return self._from_arrow(pa.chunked_array(values))
        if isinstance(values, (str, bytes, bytearray, np.generic, Mapping)) or values is None:
            raise self._not_a_column(values)
        if hasattr(values, "__array__"):
            return self._from_numpy(np.asarray(values), None)
        if isinstance(values, Sequence):
            return self._from_list(list(values))
        raise self._not_a_column(values)

    def scalar(self, value: Any) -> Any:
        """What the cell of one value holds, None for NULL; raises `RowError` without row and column."""
        raise NotImplementedError  # each type of column has its own

    def _array(self, values: Array) -> Any:
        """The cells of a numpy array, or None when some element is not plainly good."""
        raise NotImplementedError

    def _same_type(self, values: list[Any], kind: type) -> Any:
        """The cells of a list whose elements all have this exact type, or None when some are not plainly good."""
        raise NotImplementedError

    # ---- forms ----

    def _from_list(self, values: Sequence[Any]) -> Converted:
        if len(values) <= SMALL:
            return self._loop(values, None)
        kinds = set(map(type, values))
        if len(kinds) == 1:
            kind = kinds.pop()
            cells = None if is_missing_type(kind) else self._same_type(list(values), kind)
            if cells is not None:
                return cells, None
            kinds.add(kind)
        return self._from_mixed(values, kinds)

    def _from_mixed(self, values: Sequence[Any], kinds: set[type]) -> Converted:
        parts = {kind: i for i, kind in enumerate(kinds)}
        which = np.fromiter(map(parts.__getitem__, map(type, values)), np.intp, len(values))
        objects = np.empty(len(values), object)
        try:
            objects[:] = values
        except ValueError:
            # nested sequences: none of them is a value
            return self._loop(values, None)
        cells = np.zeros(len(values), self.dtype)
        nulls = np.zeros(len(values), np.bool_)
        for kind, i in parts.items():
            rows = which == i
            if is_missing_type(kind):
                nulls |= rows
                continue
            part = self._same_type(objects[rows].tolist(), kind)
            if part is None:
                return self._loop(values, None)
            cells[rows] = part
        return self._nulled(cells, nulls)

    def _from_numpy(self, values: Array, nulls: Array | None) -> Converted:
        if values.ndim != 1:
            raise self._not_a_column(values)
        if values.dtype.kind == "O":
            if nulls is not None:
                values = values.copy()
                values[nulls] = None
            return self._from_list(values.tolist())
        if nulls is not None and not nulls.any():
            nulls = None
        if values.dtype.kind == "M" and self.dtype is _INT64:
            missing = np.isnat(values)
            if missing.any():
                nulls = missing if nulls is None else missing | nulls
        if nulls is not None:
            # what lies below a NULL is not looked at, and the cell is 0
            values = values.copy()
            values[nulls] = np.zeros(1, values.dtype)[0]
        cells = self._array(values)
        if cells is None:
            return self._loop(values, nulls)
        return self._nulled(cells, nulls)

    def _from_masked(self, values: Any) -> Converted:
        return self._from_numpy(np.asarray(values.data), np.ma.getmaskarray(values))

    def _from_pandas(self, values: Any) -> Converted:
        if isinstance(values.dtype, np.dtype):
            data = values.to_numpy()
            return self._from_numpy(data, np.asarray(values.isna()) if data.dtype.kind in "fO" else None)
        return self._from_arrow(pa.array(values, from_pandas=True))

    def _from_arrow(self, values: Any) -> Converted:
        if isinstance(values, pa.ChunkedArray):
            if values.num_chunks > 1 and pa.types.is_dictionary(values.type):
                values = joined_dictionaries(values)
            else:
                values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
            if isinstance(values, pa.ChunkedArray):
                values = pa.concat_arrays(values.chunks)
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        kind = values.type
        if pa.types.is_dictionary(kind):
            return self._from_dictionary(values)
        if values.null_count and values.null_count == len(values):
            return self._all_null(len(values))
        nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            if nulls is not None:
                values = values.fill_null(False if pa.types.is_boolean(kind) else 0)
            return self._from_numpy(values.to_numpy(zero_copy_only=False), nulls)
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return self._from_numpy(arrow_datetimes(values), nulls)
        return self._loop((value.as_py() for value in values), nulls)

    def _from_dictionary(self, values: Any) -> Converted:
        """The cells of entries, each converted once, in the order in which rows use them: so errors name the first bad row."""
        indices = values.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        # where each entry is used first; the last place is for NULL
        first = np.full(len(values.dictionary) + 1, -1)
        first[indices[::-1]] = np.arange(len(indices))[::-1]
        used = np.flatnonzero(first >= 0)
        order = used[np.argsort(first[used])]
        entries = values.dictionary
        if pa.types.is_string_view(entries.type):
            entries = entries.cast(pa.large_string())
        entries = entries.take(pa.array(order, mask=order == len(entries)))
        try:
            cells, nulls = self._from_arrow(entries)
        except RowError as error:
            if error.row is not None:
                error.row = int(first[order[error.row]])
            raise
        places = np.zeros(len(first), np.int64)
        places[order] = np.arange(len(order))
        rows = places[indices]
        return cells[rows], None if nulls is None else nulls[rows]

    def _all_null(self, n_rows: int) -> Converted:
        return self._nulled(np.zeros(n_rows, self.dtype), np.ones(n_rows, np.bool_))

    # ---- the definition, row by row ----

    def _loop(self, values: Iterable[Any], nulls: Array | None) -> Converted:
        cells: list[Any] = []
        missing: list[bool] = []
        row = -1
        try:
            for row, value in enumerate(values):
                null = is_missing_type(type(value)) or (nulls is not None and bool(nulls[row]))
                cell = None if null else self.scalar(value)
                if cell is None and self.required:
                    raise self._null_time(row)
                cells.append(cell)
                missing.append(cell is None)
        except RowError as error:
            error.row, error.column = row, self.name
            raise
        except UnicodeDecodeError:
            raise RowError("the text is not UTF-8", code="bad_value", row=row + 1, column=self.name) from None
        return self._joined(cells), np.array(missing, np.bool_) if True in missing else None

    def _joined(self, cells: list[Any]) -> Any:
        return np.array([0 if cell is None else cell for cell in cells], self.dtype)

    def _nulled(self, cells: Any, nulls: Array | None) -> Converted:
        if nulls is None or not nulls.any():
            return cells, None
        if self.required:
            raise self._null_time(int(nulls.argmax()))
        return cells, nulls

    # ---- errors ----

    def _null_time(self, row: int) -> RowError:
        return RowError("the time of the row is NULL", code="null_time", hint="every row needs a time", row=row, column=self.name)

    def _not_a_column(self, values: object) -> RowError:
        fact = f"{show(values)} is not a list of values"
        if isinstance(values, np.ndarray):
            fact = f"an array of {values.ndim} dimensions is not a column"
        hint = 'a dict holds columns, {"a": [1, 2]}; one row is a list with one dict, [{"a": 1}]'
        return RowError(fact, code="not_a_column", hint=hint, column=self.name)

    def _bad(self, value: object, hint: str = "") -> RowError:
        if isinstance(value, (float, np.floating)) and value != value:
            hint = _NULL_HINT
        return RowError(f"{show(value)} is not {self.noun}", code="bad_value", hint=hint)


def arrow_datetimes(values: Any) -> Array:
    """Arrow timestamps or dates as datetime64, 1970 below nulls."""
    kind = values.type
    unit = kind.unit if pa.types.is_timestamp(kind) else "D" if pa.types.is_date32(kind) else "ms"
    numbers = values.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    datetimes: Array = numbers.astype(np.int64, copy=False).view(f"M8[{unit}]")
    return datetimes
