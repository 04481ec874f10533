"""The five converters: how values of each column type become cells.

Each says by `scalar` what one value means and by `_array` and `_same_type` how to do the same for a numpy array and for
a list whose elements all have one exact type. The overridden `convert`s are the early exits for what comes most often,
one row in Python lists and arrays that need no change; whatever they do not take goes the long way in
`lineage/ingest_columns.py`.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lineage.dictionary import MAX_STRING_BYTES, SMALL, BadString, Dictionary, EncodingPlan, check_string, is_text
from lineage.errors import RowError
from lineage.ingest_columns import Array, Converted, Converter, is_missing_type
from lineage.schema import UNIT_US, Column, Type
from lineage.times import MAX_US, MIN_US, datetime64_to_us, numbers_to_us, show, strings_to_us, to_us

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


class IntConverter(Converter):
    """64-bit integers; floats where they are integral."""

    noun = "an int"

    def convert(self, values: Any) -> Converted:
        kind = type(values)
        if kind is np.ndarray:
            if values.dtype is _INT64 and values.ndim == 1:
                return values, None
        elif kind is list:
            if len(values) == 1:
                if type(values[0]) is int:
                    cells = np.empty(1, _INT64)
                    try:
                        cells[0] = values[0]
                        return cells, None
                    except OverflowError:
                        pass
            elif len(values) <= SMALL:
                for value in values:
                    if type(value) is not int:
                        break
                else:
                    try:
                        return np.array(values, _INT64), None
                    except OverflowError:
                        pass
        return super().convert(values)

    def scalar(self, value: Any) -> int:
        number = None
        if isinstance(value, (float, np.floating)):
            if math.isfinite(value) and value == math.floor(value):
                number = int(value)
        elif isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
            number = int(value)
        if number is None:
            raise self._bad(value, _INT_HINTS.get(_family(value), ""))
        if not _INT_MIN <= number <= _INT_MAX:
            hint = "an int is -2^63 to 2^63-1; a float may be larger"
            raise RowError(f"{show(value)} does not fit 64 bits", code="out_of_range", hint=hint)
        return number

    def _array(self, values: Array) -> Any:
        kind = values.dtype.kind
        if kind == "i":
            return values
        if kind == "u":
            return values if values.dtype.itemsize < 8 or not len(values) or values.max() <= _INT_MAX else None
        if kind == "f":
            values = values.astype(_FLOAT64, copy=False)
            # NaN and infinity fail the bounds, and only then may the cast be made
            if len(values) and not (values.min() >= -(2.0**63) and values.max() < 2.0**63):
                return None
            numbers = values.astype(_INT64)
            return numbers if bool((numbers == values).all()) else None
        return None

    def _same_type(self, values: list[Any], kind: type) -> Any:
        if issubclass(kind, bool) or not issubclass(kind, (int, float, np.integer, np.floating)):
            return None
        if issubclass(kind, int):
            try:
                return np.array(values, _INT64)
            except OverflowError:
                return None
        return self._array(np.array(values))


class FloatConverter(Converter):
    """IEEE doubles; ints become the nearest one."""

    noun = "a float"
    dtype = _FLOAT64

    def convert(self, values: Any) -> Converted:
        kind = type(values)
        if kind is np.ndarray:
            if values.dtype is _FLOAT64 and values.ndim == 1:
                return values, None
        elif kind is list:
            if len(values) == 1:
                if type(values[0]) is float:
                    cells = np.empty(1, _FLOAT64)
                    cells[0] = values[0]
                    return cells, None
            elif len(values) <= SMALL:
                for value in values:
                    if type(value) is not float and type(value) is not int:
                        break
                else:
                    try:
                        return np.array(values, _FLOAT64), None
                    except OverflowError:
                        pass
        return super().convert(values)

    def scalar(self, value: Any) -> float:
        if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.timedelta64)):
            try:
                return float(value)
            except OverflowError:
                raise RowError(
                    f"{show(value)} does not fit a float", code="out_of_range", hint="a float is at most 1.8e308"
                ) from None
        raise self._bad(value, _FLOAT_HINTS.get(_family(value), ""))

    def _array(self, values: Array) -> Any:
        # a long double beyond the range becomes infinity, as float() makes it
        with np.errstate(over="ignore"):
            return values.astype(_FLOAT64, copy=False) if values.dtype.kind in "fiu" else None

    def _same_type(self, values: list[Any], kind: type) -> Any:
        if issubclass(kind, bool) or not issubclass(kind, (int, float, np.integer, np.floating)):
            return None
        try:
            return self._array(np.array(values, _FLOAT64 if issubclass(kind, (int, float)) else None))
        except OverflowError:
            return None


class BoolConverter(Converter):
    """Only true and false."""

    noun = "a bool"
    dtype = np.dtype(np.bool_)

    def convert(self, values: Any) -> Converted:
        if type(values) is list and len(values) <= SMALL:
            for value in values:
                if value is not True and value is not False:
                    break
            else:
                return np.array(values, self.dtype), None
        return super().convert(values)

    def scalar(self, value: Any) -> bool:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise self._bad(value, "true or false; numbers and texts are not converted")

    def _array(self, values: Array) -> Any:
        return values if values.dtype.kind == "b" else None

    def _same_type(self, values: list[Any], kind: type) -> Any:
        return np.array(values, np.bool_) if kind is bool or kind is np.bool_ else None


class TimestampConverter(Converter):
    """Times as int64 microseconds; bare numbers are in the unit of the column."""

    noun = "a time"

    def __init__(self, column: Column, required: bool) -> None:
        super().__init__(column, required)
        #: 0 iff the unit is ns, which divides
        self._factor = UNIT_US.get(column.unit, 0)

    def convert(self, values: Any) -> Converted:
        kind = type(values)
        if kind is np.ndarray and values.ndim == 1 and values.dtype is _INT64:
            if len(values) > 8:
                cells = numbers_to_us(values, self.unit)
                return (cells, None) if cells is not None else super().convert(values)
            values = values.tolist()
            kind = list
        if kind is list and self._factor:
            if len(values) == 1:
                if type(values[0]) is int:
                    us = values[0] * self._factor
                    if MIN_US <= us <= MAX_US:
                        cells = np.empty(1, _INT64)
                        cells[0] = us
                        return cells, None
            elif 0 < len(values) <= SMALL:
                for value in values:
                    if type(value) is not int:
                        break
                else:
                    factor = self._factor
                    if MIN_US <= min(values) * factor and max(values) * factor <= MAX_US:
                        return np.array([value * factor for value in values], _INT64), None
        return super().convert(values)

    def scalar(self, value: Any) -> int | None:
        if isinstance(value, np.datetime64) and np.isnat(value):
            return None
        return to_us(value, self.unit)

    def _array(self, values: Array) -> Any:
        kind = values.dtype.kind
        if kind in "iuf":
            return numbers_to_us(values, self.unit)
        if kind == "M":
            return datetime64_to_us(values)
        if kind == "U":
            return self._texts(values)
        return None

    def _texts(self, values: Any) -> Any:
        try:
            return strings_to_us(pa.array(values, pa.string()))
        except (UnicodeError, pa.ArrowException):
            return None

    def _same_type(self, values: list[Any], kind: type) -> Any:
        if issubclass(kind, str):
            return self._texts(values)
        if issubclass(kind, dt.datetime):
            return _python_datetimes(values, pa.timestamp("us", "UTC"))
        if issubclass(kind, dt.date):
            days = _python_datetimes(values, pa.date32())
            return None if days is None else datetime64_to_us(days.astype(np.int64).view("M8[D]"))
        if issubclass(kind, np.datetime64):
            units = {value.dtype for value in values}
            array = np.array(values)
            return datetime64_to_us(array) if len(units) == 1 and not np.isnat(array).any() else None
        if issubclass(kind, bool) or not issubclass(kind, (int, float, np.integer, np.floating)):
            return None
        try:
            return self._array(np.array(values, _INT64 if issubclass(kind, int) else None))
        except OverflowError:
            return None

    def _from_arrow(self, values: Any) -> Converted:
        if is_text(values.type):
            if isinstance(values, pa.ChunkedArray):
                values = values.cast(pa.large_string()).combine_chunks()
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            us = strings_to_us(values.drop_null().cast(pa.large_string()))
            if us is not None:
                cells = np.zeros(len(values), np.int64)
                cells[valid] = us
                return self._nulled(cells, ~valid)
        return super()._from_arrow(values)


class StringConverter(Converter):
    """Texts; the result is a `EncodingPlan`, for the dictionary changes only once all columns are good."""

    noun = "a string"
    dtype = np.dtype(object)

    def __init__(self, column: Column, required: bool, dictionary: Dictionary) -> None:
        super().__init__(column, required)
        self.dictionary = dictionary

    def convert(self, values: Any) -> Converted:
        if type(values) is list and len(values) <= SMALL:
            dictionary = self.dictionary
            for value in values:
                # what is known was checked when it came
                if type(value) is not str or value not in dictionary:
                    break
            else:
                return EncodingPlan(values, None, None), None
        return super().convert(values)

    def scalar(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self._bad(value, "texts only; convert the value first")
        try:
            check_string(value)
        except BadString as bad:
            raise self._bad_string(bad, value) from None
        return str.__str__(value)

    def _bad_string(self, bad: BadString, value: object) -> RowError:
        if bad.reason == "too_long":
            fact, hint = f"the string is longer than {MAX_STRING_BYTES} bytes", f"{MAX_STRING_BYTES} bytes of UTF-8 at most"
            return RowError(fact, code="too_long", hint=hint, row=bad.row, column=self.name)
        hint = "a lone surrogate or other bytes that are not UTF-8"
        return RowError(f"{show(value)} is not valid text", code="bad_value", hint=hint, row=bad.row, column=self.name)

    def _planned(self, values: Any, rows: Sequence[Any]) -> Converted:
        try:
            plan = self.dictionary.prepare_list(values)
        except BadString as bad:
            raise self._bad_string(bad, rows[bad.row or 0]) from None
        return plan, plan.nulls

    def _joined(self, cells: list[Any]) -> EncodingPlan:
        return self.dictionary.prepare_list(cells)

    def _array(self, values: Array) -> Any:
        return None

    def _from_list(self, values: Sequence[Any]) -> Converted:
        if len(values) <= SMALL:
            return self._loop(values, None)
        return self._from_mixed(values, set(map(type, values)))

    def _from_mixed(self, values: Sequence[Any], kinds: set[type]) -> Converted:
        missing = {kind for kind in kinds if is_missing_type(kind)}
        if not all(issubclass(kind, str) for kind in kinds - missing):
            return self._loop(values, None)
        if missing - {type(None)}:
            objects = np.array(values, object)
            objects[np.fromiter(map(missing.__contains__, map(type, values)), np.bool_, len(values))] = None
            values = objects.tolist()
        return self._planned(values, values)

    def _from_numpy(self, values: Array, nulls: Array | None) -> Converted:
        if values.ndim == 1 and values.dtype.kind in "UT":
            values = values.astype(object)
            if nulls is not None:
                values[nulls] = None
            return self._from_list(values.tolist())
        return super()._from_numpy(values, nulls)

    def _from_dictionary(self, values: Any) -> Converted:
        # its entries are no texts: all rows are NULL, or it is refused
        return self._from_arrow(values.dictionary_decode())

    def _all_null(self, n_rows: int) -> Converted:
        return self._nulled(EncodingPlan([], np.full(n_rows, -1), None), np.ones(n_rows, np.bool_))

    def _from_arrow(self, values: Any) -> Converted:
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if not is_text(kind):
            return super()._from_arrow(values)
        try:
            plan = self.dictionary.prepare_arrow(values)
        except BadString as bad:
            raise self._bad_string(bad, "") from None
        return plan, plan.nulls


def make_converter(column: Column, required: bool, dictionary: Dictionary | None) -> Converter:
    """The converter of a column; `required` for the time column, a dictionary for strings."""
    if column.type is Type.STRING:
        assert dictionary is not None, f"string column {column.name} without a dictionary"
        return StringConverter(column, required, dictionary)
    return _CONVERTERS[column.type](column, required)


_CONVERTERS: dict[Type, type[Converter]] = {
    Type.INT: IntConverter,
    Type.FLOAT: FloatConverter,
    Type.BOOL: BoolConverter,
    Type.TIMESTAMP: TimestampConverter,
}

_INT_HINTS = {
    "bool": "declare the column bool, or send 0 and 1",
    "float": "round it, or declare the column float",
    "string": "a number, not its text",
}
_FLOAT_HINTS = {"bool": "declare the column bool, or send 0 and 1", "string": "a number, not its text"}


def _family(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (float, np.floating)):
        return "float"
    return "string" if isinstance(value, str) else ""


def _python_datetimes(values: list[Any], kind: Any) -> Any:
    """Python dates or datetimes through Arrow, as numbers of the kind's unit; None when one does not go or is out of range."""
    try:
        array = pa.array(values, kind)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return None
    if array.null_count:
        return None
    numbers = array.view(pa.int64() if kind != pa.date32() else pa.int32()).to_numpy()
    return numbers if kind == pa.date32() or (numbers.min() >= MIN_US and numbers.max() <= MAX_US) else None
