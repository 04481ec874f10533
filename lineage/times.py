"""Times and durations as users give them, as int64 microseconds since 1970 UTC.

One time at a time goes through `to_us`, which is the definition; `numbers_to_us`, `datetime64_to_us` and `strings_to_us`
do the same for whole columns and return None as soon as one value is not plainly fine, so that the caller finds and
names it with `to_us`. For every array `a` they accept:

    numbers_to_us(a, unit)[i] == to_us(a[i], unit)

A bare number is in the unit of its column (milliseconds unless declared otherwise), a text is ISO 8601, a value without
a zone is UTC. What is finer than a microsecond is cut off downwards; a float is rounded to the nearest microsecond.
Only the years 1 to 9999 exist, because every time must come out again as a `datetime`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lineage.errors import RowError, SchemaError
from lineage.kernels import READ_ONLY_INT64, kernel
from lineage.schema import UNIT_US

Array = np.ndarray[Any, Any]

#: The first and the last microsecond that a `datetime` can hold.
MIN_US = -62_135_596_800_000_000
MAX_US = 253_402_300_799_999_999

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_DAY_US = 86_400_000_000
_BOUNDS = (np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us"))
#: How many of a unit are in a microsecond.
_PARTS = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}

_DATE = r"\d{4}-\d\d-\d\d"
_ZONE = r"(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_ISO = re.compile(rf"({_DATE})(?:[T ]((?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d+)?)?)?)({_ZONE})?)?", re.ASCII)
#: A text with a zone; a date alone ends in "-01" too, so the time must be there.
ZONED = rf"^{_DATE}[T ].*{_ZONE}$"
_TIME_HINT = "a time is a number of {unit}, ISO 8601 text such as 2024-05-01T12:00:00Z, or a datetime"


def to_us(value: object, unit: str = "ms") -> int:
    """One time as microseconds; bare numbers are in `unit` ("s", "ms", "us" or "ns"). Raises `RowError`.

    >>> to_us(1000), to_us(1.5, "s"), to_us("1970-01-01T00:00:01Z"), to_us("1970-01-02")
    (1000000, 1500000, 1000000, 86400000000)
    """
    kind = type(value)
    if kind is int:
        us = value // 1000 if unit == "ns" else value * UNIT_US[unit]  # type: ignore[operator]  # the exact type was tested
    elif isinstance(value, str):
        us = _from_text(value)
    elif isinstance(value, dt.datetime) and kind.__name__ != "NaTType":
        # subtraction of aware datetimes is exact; a pandas Timestamp would give a pandas Timedelta
        us = _between(_plain(value) - _EPOCH)
    elif isinstance(value, dt.date) and kind.__name__ != "NaTType":
        us = (value.toordinal() - _EPOCH_DAY) * _DAY_US
    elif isinstance(value, np.datetime64):
        us = _from_datetime64(value)
    elif isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
        return to_us(int(value), unit)
    elif isinstance(value, (float, np.floating)):
        us = _from_float(float(value), unit)
    else:
        raise _not_a_time(value, unit)
    if not MIN_US <= us <= MAX_US:
        raise RowError(
            f"{show(value)} is not within the years 1 to 9999",
            code="time_out_of_range",
            hint=f"bare numbers are {_UNIT_WORDS[unit]} here; timestamp[s], [ms], [us] and [ns] declare the unit",
        )
    return us


def ahead_hint(time_us: int, now_us: int) -> str:
    """Return a hint about a time that is too far past the clock.

    >>> ahead_hint(to_us("2030-01-01"), to_us("2026-11-18T05:00:00Z"))
    'the clock here says 2026-11-18T05:00:00Z: correct the time, its zone or the clock, or raise max_ahead'
    """
    hint = f"the clock here says {to_iso(now_us)}: correct the time, its zone or the clock, or raise max_ahead"
    if time_us - now_us < _CENTURIES_US:
        return hint
    return f"{hint}; a bare number is in milliseconds unless the column is timestamp[s], [us] or [ns]"


#: So far ahead no time is meant, and a number may be in another unit: those of today a thousand times too large are out of range.
_CENTURIES_US = 200 * 366 * _DAY_US

_UNIT_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def show(value: object) -> str:
    """A user's value for a message: text in double quotes, long values cut, numpy scalars as plain numbers."""
    if isinstance(value, str):
        # no quotes inside out: a message must not depend on what the text holds
        text = value if len(value) <= 40 else value[:40] + "..."
        return '"' + text.encode("utf-8", "backslashreplace").decode() + '"'
    if isinstance(value, np.generic):
        value = str(value)
        return value if len(value) <= 60 else value[:60] + "..."
    try:
        text = repr(value)
    except ValueError:
        # an int of more than 4300 digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:60] + "..."


def _not_a_time(value: object, unit: str) -> RowError:
    return RowError(f"{show(value)} is not a time", code="bad_value", hint=_TIME_HINT.format(unit=_UNIT_WORDS[unit]))


def _plain(value: dt.datetime) -> dt.datetime:
    zone = value.tzinfo
    if zone is not None and value.utcoffset() is None:
        zone = None
    if type(value) is not dt.datetime:
        value = dt.datetime(
            value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, zone, fold=value.fold
        )
    return value.replace(tzinfo=dt.UTC) if zone is None else value


def _between(delta: dt.timedelta) -> int:
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _from_text(value: str) -> int:
    match = _ISO.fullmatch(value)
    if match is not None:
        date, time, zone = match.groups()
        try:
            parsed = dt.datetime.fromisoformat(date if time is None else f"{date}T{time}{zone or ''}")
        except ValueError:
            pass
        else:
            return _between(_plain(parsed) - _EPOCH)
    hint = "ISO 8601, such as 2024-05-01T12:00:00.5Z or 2024-05-01"
    raise RowError(f"{show(value)} is not a time", code="bad_value", hint=hint)


def _from_float(value: float, unit: str) -> int:
    if not math.isfinite(value):
        raise RowError(f"{show(value)} is not a time", code="bad_value", hint="a time is finite; NULL is None")
    us = value / 1000.0 if unit == "ns" else value * UNIT_US[unit]
    return round(us) if math.isfinite(us) else MAX_US + 1


def _from_datetime64(value: np.datetime64) -> int:
    if np.isnat(value):
        raise RowError("NaT is not a time", code="bad_value", hint="NULL is None")
    us = datetime64_to_us(np.array([value]))
    if us is None:
        raise RowError(f"{value} is not within the years 1 to 9999", code="time_out_of_range")
    return int(us[0])


def to_datetime(us: int) -> dt.datetime:
    """The `datetime`, in UTC.

    >>> to_datetime(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return _EPOCH + dt.timedelta(microseconds=us)


def to_iso(us: int) -> str:
    """ISO 8601 in UTC, with a fraction only where there is one; `to_us` reads it back.

    >>> to_iso(1_000_000), to_iso(1_500_000)
    ('1970-01-01T00:00:01Z', '1970-01-01T00:00:01.500000Z')
    """
    return to_datetime(us).isoformat()[:-6] + "Z"


def duration_us(value: object) -> int:
    """A length of time as microseconds: a number of milliseconds, a `timedelta` or a `timedelta64`; never negative.

    >>> duration_us(1.5), duration_us(dt.timedelta(minutes=1))
    (1500, 60000000)
    """
    us: int | None = None
    if isinstance(value, (bool, np.bool_)):
        pass
    elif isinstance(value, dt.timedelta) and type(value).__name__ != "NaTType":
        us = _between(value)
    elif isinstance(value, np.timedelta64):
        # before np.integer, of which timedelta64 is a subclass; months and years have no fixed length
        unit, count = np.datetime_data(value.dtype)
        if not np.isnat(value) and unit not in ("Y", "M", "generic"):
            us = int(value.astype(np.int64)) * count * _LENGTH_AS[unit] // 10**12
    elif isinstance(value, (int, np.integer)):
        us = int(value) * 1000
    elif isinstance(value, (float, np.floating)):
        number = float(value)
        if abs(number) < 1e300 and number == number:
            us = round(number * 1000.0)
    if us is None:
        raise SchemaError(
            f"{show(value)} is not a duration", code="bad_duration", hint="a number of milliseconds or a timedelta, such as 5000"
        )
    if not 0 <= us <= MAX_US - MIN_US:
        fact = "is negative" if us < 0 else "is longer than 9998 years"
        raise SchemaError(f"the duration {show(value)} {fact}", code="bad_duration", hint="0 or more milliseconds")
    return us


#: Attoseconds x 10^-12 in each unit of a timedelta64, so that one product and one division give microseconds.
_LENGTH_AS = {
    "W": 604_800 * 10**18, "D": 86_400 * 10**18, "h": 3_600 * 10**18, "m": 60 * 10**18, "s": 10**18,
    "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1,
}  # fmt: skip


@kernel((READ_ONLY_INT64, numba.int64, numba.int64))
def all_between(values: np.ndarray, low: int, high: int) -> bool:
    outside = 0
    for i in range(len(values)):
        outside |= (values[i] < low) | (values[i] > high)
    return outside == 0


def numbers_to_us(values: Array, unit: str) -> Array | None:
    """An array of numbers in `unit` as int64 microseconds; None when one of them is no time. O(n), no Python loop."""
    if len(values) == 0:
        return np.zeros(0, np.int64)
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.rint(values / 1000.0 if unit == "ns" else values * float(UNIT_US[unit]))
        # both bounds are beyond 2^53: as floats they are the multiples of 32 just outside
        if not (rounded.min() >= MIN_US and rounded.max() < MAX_US):
            return None
        return rounded.astype(np.int64)
    if values.dtype.kind == "u" and values.max() > np.iinfo(np.int64).max:
        return None
    values = np.ascontiguousarray(values, np.int64)
    if unit == "ns":
        # the range of int64 nanoseconds is within the years 1677 to 2262
        return values // 1000
    factor = UNIT_US[unit]
    if not all_between(values, -(-MIN_US // factor), MAX_US // factor):
        return None
    return values if factor == 1 else values * factor


def datetime64_to_us(values: Array) -> Array | None:
    """An array of datetime64 without NaT, of any unit, as int64 microseconds; None when one is out of range. O(n)."""
    unit, count = np.datetime_data(values.dtype)
    if len(values) == 0:
        return np.zeros(0, np.int64)
    if unit == "generic":
        return None
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    numbers = values.view(np.int64)
    if unit in _PARTS:
        if _PARTS[unit] % count:
            return _scaled(numbers, unit, count)
        us = numbers // (_PARTS[unit] // count)
        # a multiple such as [250ns] reaches beyond the years that int64 nanoseconds cover
        return us if us.min() >= MIN_US and us.max() <= MAX_US else None
    # the bounds are checked in the array's own unit: numpy wraps around silently
    low, high = (int(bound.astype(f"M8[{unit}]").astype(np.int64)) // count for bound in _BOUNDS)
    if numbers.min() < low or numbers.max() > high:
        return None
    if unit == "us" and count == 1:
        return numbers
    us = values.astype("datetime64[us]").view(np.int64)
    # a multiple such as [7D] may begin just before the year 1
    return us if us.min() >= MIN_US else None


def _scaled(numbers: Array, unit: str, count: int) -> Array | None:
    """Odd multiples such as datetime64[3ns]: the product may not fit 64 bits."""
    exact = [number * count // _PARTS[unit] for number in numbers.tolist()]
    return np.array(exact, np.int64) if MIN_US <= min(exact) and max(exact) <= MAX_US else None


def strings_to_us(values: Any) -> Array | None:
    """A pyarrow array of ISO 8601 texts without nulls as int64 microseconds; None when one is no time. No Python loop."""
    if not len(values):
        return np.zeros(0, np.int64)
    # a cast that fails costs ten times one that works, so the first text says which to try
    try:
        zone = "UTC" if re.search(ZONED, values[0].as_py()) else None
    except UnicodeDecodeError:
        return None
    try:
        us = _cast(values, zone)
    except pa.ArrowInvalid:
        try:
            us = _cast_mixed(values)
        except pa.ArrowInvalid:
            return None
    return us if us.min() >= MIN_US and us.max() <= MAX_US else None


def _cast(values: Any, zone: str | None) -> Array:
    numbers: Array = pc.cast(values, pa.timestamp("us", zone)).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _cast_mixed(values: Any) -> Array:
    # Arrow takes at most six digits for microseconds, and zones in all texts or in none
    values = pc.replace_substring_regex(values, r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(values, ZONED).to_numpy(zero_copy_only=False)
    us = np.empty(len(values), np.int64)
    us[zoned] = _cast(values.filter(pa.array(zoned)), "UTC")
    us[~zoned] = _cast(values.filter(pa.array(~zoned)), None)
    return us
