"""Durations as users write them: `5 MINUTES`, `'1 hour 30 minutes'`, a `timedelta`.

All arithmetic is exact: a decimal count times a unit is a whole number of microseconds or it is refused. Months and
years vary in length, so they are kept apart (`Interval.months`) and are no width for a window.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Context

from filters.expressions.expression import Interval

#: Microseconds of each unit of fixed length, by its singular.
UNIT_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
UNIT_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SHORT = {
    "US": "MICROSECOND",
    "MS": "MILLISECOND",
    "S": "SECOND",
    "SEC": "SECOND",
    "SECS": "SECOND",
    "MIN": "MINUTE",
    "MINS": "MINUTE",
    "H": "HOUR",
    "HR": "HOUR",
    "HRS": "HOUR",
    "D": "DAY",
    "W": "WEEK",
}
UNITS_HINT = "units are MICROSECONDS MILLISECONDS SECONDS MINUTES HOURS DAYS WEEKS"

_MAX_MICROS = 2**62
_COUNT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?\Z", re.ASCII)
_COUNT_CHARACTERS = 40
#: Wide enough for a count of 40 characters times the longest unit, so that no product is rounded.
_EXACT = Context(prec=100, Emax=99_999, Emin=-99_999)
_PART = re.compile(r"\s*([+-]?\s*(?:\d+(?:\.\d*)?|\.\d+))\s*([A-Za-z]+)\s*,?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class DurationError(ValueError):
    """The text is no duration; its words are the fact for the user."""


def find_unit(word: str) -> str | None:
    """The singular of a unit in any spelling, or None.

    >>> find_unit("minutes"), find_unit("ms"), find_unit("fortnights")
    ('MINUTE', 'MILLISECOND', None)
    """
    upper = word.upper()
    upper = _SHORT.get(upper, upper)
    for name in (upper, upper.removesuffix("S")):
        if name in UNIT_MICROS or name in UNIT_MONTHS:
            return name
    return None


def measure(count: str, unit: str) -> Interval:
    """`count` of a unit from `find_unit`, exactly; raises `DurationError` when it is no whole number of microseconds."""
    if not _COUNT.match(count) or len(count) > _COUNT_CHARACTERS:
        raise DurationError(f'"{_shorten(count)}" is no count')
    months = UNIT_MONTHS.get(unit)
    amount = _EXACT.multiply(_EXACT.create_decimal(count), months or UNIT_MICROS[unit])
    # Compared before int(): '1e9999' would otherwise be written out in full.
    if abs(amount) >= _MAX_MICROS:
        raise DurationError(f"{count} {unit.lower()}s is too long")
    if amount != int(amount):
        raise DurationError(f"{count} {unit.lower()}s is no whole number of {'months' if months else 'microseconds'}")
    return Interval(int(amount), 0) if months else Interval(0, int(amount))


def add(left: Interval, right: Interval) -> Interval:
    return Interval(left.months + right.months, left.micros + right.micros)


def parse_duration(text: str) -> Interval:
    """Read `'1 hour 30 minutes'`.

    >>> parse_duration("1.5 hours"), parse_duration("1 month, 2 days")
    (Interval(months=0, micros=5400000000), Interval(months=1, micros=172800000000))
    """
    total, at = Interval(0, 0), 0
    stripped = text.rstrip()
    while at < len(stripped) or at == 0:
        match = _PART.match(stripped, at)
        if match is None:
            raise DurationError(f"'{_shorten(text)}' is no duration")
        unit = find_unit(match[2])
        if unit is None:
            raise DurationError(f'"{_shorten(match[2])}" is no unit of time')
        total, at = add(total, measure("".join(match[1].split()), unit)), match.end()
    if abs(total.micros) >= _MAX_MICROS or abs(total.months) >= _MAX_MICROS:
        raise DurationError(f"'{_shorten(text)}' is too long")
    return total


def timestamp_micros(moment: datetime) -> int:
    """Microseconds since 1970 UTC of a datetime; a naive one is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def timedelta_micros(span: timedelta) -> int:
    return span // _MICROSECOND


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
