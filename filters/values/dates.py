"""Timestamps as calendar fields and text, one value at a time and for any year an int64 of microseconds can reach.

Python's `datetime` ends at year 9999 and starts at 1; int64 microseconds span about 292,000 years each way. The
conversions here are the proleptic Gregorian calendar on plain integers:

    days_of_date(*date_of_days(d)) == d          for every d
    parse_timestamp(timestamp_text(us)) == us    for every us in [TIMESTAMP_MIN, TIMESTAMP_MAX]

Text has DuckDB's form `YYYY-MM-DD HH:MM:SS[.ffffff]`, years before 1 as `(BC)`. Reading also takes ISO 8601's `T`,
`Z` and offsets. These run once per distinct value, so they are simple rather than vectorised.
"""

from __future__ import annotations

import re

DAY_US = 86_400_000_000
#: The range of a timestamp that is computed (DuckDB's): whole days from below, one less than its infinity above.
TIMESTAMP_MIN = -106_751_991 * DAY_US
TIMESTAMP_MAX = 2**63 - 2

_TIMESTAMP = re.compile(
    r"(?P<year>-?\d{1,6})(?P<separator>[-/])(?P<month>\d{1,2})(?P=separator)(?P<day>\d{1,2})(?P<bc> \(BC\))?"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?"
    r"(?:Z| UTC|(?P<sign>[+-])(?P<offset_hour>\d{2})(?::?(?P<offset_minute>\d{2}))?)?)?",
    re.ASCII,
)
_DAYS_BEFORE_1970 = 719_468
_DAYS_IN_ERA = 146_097


def date_of_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day counted from 1970-01-01; year 0 is 1 BC.

    >>> date_of_days(19782)
    (2024, 2, 29)
    """
    # Years start in March here, so that the leap day is the last of its year and months have one formula.
    era, day_of_era = divmod(days + _DAYS_BEFORE_1970, _DAYS_IN_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def days_of_date(year: int, month: int, day: int) -> int:
    """The inverse of `date_of_days`; the date must exist."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_IN_ERA + day_of_era - _DAYS_BEFORE_1970


def time_of_micros(micros: int) -> tuple[int, int, int, int]:
    """Hour, minute, second and microsecond of microseconds since midnight."""
    seconds, micros = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return minutes // 60, minutes % 60, second, micros


def timestamp_text(micros: int) -> str:
    """A timestamp as DuckDB prints it.

    >>> timestamp_text(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    days, of_day = divmod(micros, DAY_US)
    year, month, day = date_of_days(days)
    hour, minute, second, fraction = time_of_micros(of_day)
    date = f"{year:04}-{month:02}-{day:02}" if year > 0 else f"{1 - year:04}-{month:02}-{day:02} (BC)"
    text = f"{date} {hour:02}:{minute:02}:{second:02}"
    return text if fraction == 0 else f"{text}.{fraction:06}".rstrip("0")


def parse_timestamp(text: str) -> int | None:
    """Microseconds of an ISO 8601 date or date and time, UTC unless it has an offset; None if it is not one."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if match["bc"]:
        if year < 1:
            return None
        year = 1 - year
    if not 1 <= month <= 12 or day < 1:
        return None
    days = days_of_date(year, month, day)
    if date_of_days(days) != (year, month, day):
        return None
    hour, minute, second = int(match["hour"] or 0), int(match["minute"] or 0), int(match["second"] or 0)
    fraction = int((match["fraction"] or "")[:6].ljust(6, "0"))
    of_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    if minute > 59 or second > 59 or of_day > DAY_US:
        return None
    offset_minutes = int(match["offset_hour"] or 0) * 60 + int(match["offset_minute"] or 0)
    micros = days * DAY_US + of_day - (-offset_minutes if match["sign"] == "-" else offset_minutes) * 60_000_000
    return micros if TIMESTAMP_MIN <= micros <= TIMESTAMP_MAX else None
