"""Functions of timestamps, in UTC, vectorised over int64 microseconds since 1970.

    extract:<part>     an int, only `epoch` is float seconds; millisecond and microsecond include the seconds
    date_trunc:<unit>  the latest start of a unit that is <= the timestamp; weeks start on Monday
    + Interval         months first, the day clamped to the new month's last, then microseconds

Fields come from days = floor(us / day) and months counted from January 1970, so that every year int64 reaches works.
A result outside [TIMESTAMP_MIN, TIMESTAMP_MAX] is NULL and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from filters.expressions.expression import Interval
from filters.values.dates import DAY_US, TIMESTAMP_MAX, TIMESTAMP_MIN, date_of_days, days_of_date, time_of_micros
from filters.values.vector import Array, Frame, Vector, settle
from lineage.schema import Type

_SECOND_US = 1_000_000
_MINUTE_US = 60 * _SECOND_US
_HOUR_US = 60 * _MINUTE_US
_MAX_DAYS = TIMESTAMP_MAX // DAY_US
#: More months than lie between the first and the last timestamp; a larger shift is out of range from anywhere.
_MAX_MONTHS = 600_000 * 12

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = "January February March April May June July August September October November December".split()


def _days(us: Array) -> Array:
    return us // DAY_US


def _months(days: Array) -> Array:
    return days.view("M8[D]").astype("M8[M]").view(np.int64)


def _first_day(months: Array) -> Array:
    return months.view("M8[M]").astype("M8[D]").view(np.int64)


def _year(us: Array) -> Array:
    return _months(_days(us)) // 12 + 1970


def _month(us: Array) -> Array:
    return _months(_days(us)) % 12 + 1


def _day(us: Array) -> Array:
    days = _days(us)
    return days - _first_day(_months(days)) + 1


def _isodow(us: Array) -> Array:
    # Day 0 was a Thursday.
    return (_days(us) + 3) % 7 + 1


def _day_of_year(days: Array) -> Array:
    return days - _first_day(_months(days) // 12 * 12) + 1


def _week(us: Array) -> Array:
    # ISO 8601: a week belongs to the year of its Thursday.
    thursday = _days(us) - (_isodow(us) - 4)
    return (_day_of_year(thursday) - 1) // 7 + 1


_PARTS: dict[str, Callable[[Array], Array]] = {
    "year": _year,
    "quarter": lambda us: (_month(us) + 2) // 3,
    "month": _month,
    "day": _day,
    "hour": lambda us: us % DAY_US // _HOUR_US,
    "minute": lambda us: us % _HOUR_US // _MINUTE_US,
    "second": lambda us: us % _MINUTE_US // _SECOND_US,
    "millisecond": lambda us: us % _MINUTE_US // 1000,
    "microsecond": lambda us: us % _MINUTE_US,
    "dow": lambda us: _isodow(us) % 7,
    "isodow": _isodow,
    "doy": lambda us: _day_of_year(_days(us)),
    "week": _week,
    "epoch": lambda us: us / 1e6,
}

_UNITS: dict[str, Callable[[Array], Array]] = {
    "year": lambda us: _first_day(_months(_days(us)) // 12 * 12) * DAY_US,
    "quarter": lambda us: _first_day(_months(_days(us)) // 3 * 3) * DAY_US,
    "month": lambda us: _first_day(_months(_days(us))) * DAY_US,
    "week": lambda us: (_days(us) - (_isodow(us) - 1)) * DAY_US,
    "day": lambda us: us - us % DAY_US,
    "hour": lambda us: us - us % _HOUR_US,
    "minute": lambda us: us - us % _MINUTE_US,
    "second": lambda us: us - us % _SECOND_US,
    "millisecond": lambda us: us - us % 1000,
    "microsecond": lambda us: us,
}

#: What may follow `extract:` and `date_trunc:`.
EXTRACT_PARTS = tuple(_PARTS)
TRUNC_UNITS = tuple(_UNITS)


def extract(part: str, type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    (moment,) = args
    return Vector(type, _PARTS[part](moment.values), moment.nulls)


def date_trunc(unit: str, type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    (moment,) = args
    start = _UNITS[unit](moment.values)
    # A start before the smallest int64 wraps around to after the moment.
    return settle(type, start, moment.nulls, (start > moment.values) | (start < TIMESTAMP_MIN), frame)


def epoch_ms(type: Type, args: Sequence[Vector], frame: Frame) -> Vector:
    (moment,) = args
    return Vector(type, moment.values // 1000, moment.nulls)


def shift(moment: Vector, interval: Interval, sign: int, frame: Frame) -> Vector:
    """`moment + sign * interval`."""
    months, micros = sign * interval.months, sign * interval.micros
    us = moment.values
    failed = np.zeros(len(us), np.bool_)
    if abs(months) > _MAX_MONTHS or abs(micros) > TIMESTAMP_MAX:
        return settle(Type.TIMESTAMP, us, moment.nulls, ~failed, frame)
    if months:
        days = _days(us)
        target = _months(days) + months
        first = _first_day(target)
        last_day = _first_day(target + 1) - first
        days = first + np.minimum(_day(us), last_day) - 1
        failed = np.abs(days) > _MAX_DAYS
        moved = days * DAY_US + us % DAY_US
        # Only a positive day can overflow by its time of day.
        failed |= (days > 0) & (moved < 0)
        us = moved
    shifted = us + micros
    failed |= (shifted < us) if micros > 0 else (shifted > us)
    failed |= (shifted < TIMESTAMP_MIN) | (shifted > TIMESTAMP_MAX)
    return settle(Type.TIMESTAMP, shifted, moment.nulls, failed, frame)


class _Moment:
    """The fields of one timestamp that `strftime` writes."""

    __slots__ = ("year", "month", "day", "weekday", "day_of_year", "hour", "minute", "second", "micros")

    def __init__(self, us: int) -> None:
        days, of_day = divmod(us, DAY_US)
        self.year, self.month, self.day = date_of_days(days)
        #: Monday is 0
        self.weekday = (days + 3) % 7
        self.day_of_year = days - days_of_date(self.year, 1, 1) + 1
        self.hour, self.minute, self.second, self.micros = time_of_micros(of_day)


_CODES: dict[str, Callable[[_Moment], str]] = {
    "Y": lambda at: f"{at.year:04}" if at.year >= 0 else str(at.year),
    "m": lambda at: f"{at.month:02}",
    "d": lambda at: f"{at.day:02}",
    "H": lambda at: f"{at.hour:02}",
    "M": lambda at: f"{at.minute:02}",
    "S": lambda at: f"{at.second:02}",
    "f": lambda at: f"{at.micros:06}",
    "y": lambda at: f"{abs(at.year) % 100:02}",
    "j": lambda at: f"{at.day_of_year:03}",
    "a": lambda at: _WEEKDAYS[at.weekday][:3],
    "A": lambda at: _WEEKDAYS[at.weekday],
    "b": lambda at: _MONTHS[at.month - 1][:3],
    "B": lambda at: _MONTHS[at.month - 1],
    "p": lambda at: "PM" if at.hour >= 12 else "AM",
    "I": lambda at: f"{(at.hour - 1) % 12 + 1:02}",
    "u": lambda at: str(at.weekday + 1),
    "w": lambda at: str((at.weekday + 1) % 7),
    "%": lambda at: "%",
}


def check_format(format: str) -> str | None:
    """Return the fault of a `strftime` format in words; None if there is none.

    >>> check_format("%Q")
    'the format code "%Q" is not known'
    """
    letters = iter(format)
    for letter in letters:
        if letter == "%":
            code = next(letters, None)
            if code is None:
                return 'the format ends with a single "%"'
            if code not in _CODES:
                return f'the format code "%{code}" is not known'
    return None


def strftime(us: int, format: str) -> str | None:
    """One timestamp as text; None for a format that `check_format` refuses."""
    pieces = _split_format(format)
    if pieces is None:
        return None
    at = _Moment(us)
    return "".join(piece if isinstance(piece, str) else piece(at) for piece in pieces)


@lru_cache(256)
def _split_format(format: str) -> tuple[str | Callable[[_Moment], str], ...] | None:
    if check_format(format) is not None:
        return None
    letters = iter(format)
    return tuple(_CODES[next(letters)] if letter == "%" else letter for letter in letters)
