"""Times in a form that a strptime format describes, for whole columns of texts.

A format becomes one regular expression whose groups are parts of a time; Arrow takes the groups out of all texts at once, and
numpy makes microseconds of them. So a text means the same on every platform, and to Spark (`pipeline/csv_sql.py`).

    %Y %m %d %H %M %S %f %y %b %B %I %p %j %z %% %T %F %D    and %a %A, which are read and not looked at

Fields may have fewer digits where strptime allows it; a fraction may have up to nine digits, of which six count. Year, month
and day must be there, the time of day may be missing. What a format does not fit, and the 30th of February, is no time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lineage.errors import SchemaError

Array = np.ndarray[Any, Any]

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"

#: The expression of each directive; a group bears the letter of its directive.
_DIRECTIVES = {
    "Y": r"(?P<Y>[0-9]{4})",
    "m": r"(?P<m>1[0-2]|0?[1-9])",
    "d": r"(?P<d>3[01]|[12][0-9]|0?[1-9])",
    "H": r"(?P<H>2[0-3]|[01]?[0-9])",
    "M": r"(?P<M>[0-5]?[0-9])",
    "S": r"(?P<S>[0-5]?[0-9])",
    "f": r"(?P<f>[0-9]{1,9})",
    "y": r"(?P<y>[0-9]{2})",
    "b": rf"(?P<b>{'|'.join(MONTHS)})",
    "B": rf"(?P<B>{'|'.join(_LONG_MONTHS)})",
    "I": r"(?P<I>1[0-2]|0?[1-9])",
    "p": r"(?P<p>am|pm)",
    "j": r"(?P<j>36[0-6]|3[0-5][0-9]|[12][0-9][0-9]|0?[1-9][0-9]|0?0?[1-9])",
    "z": r"(?P<z>z|[+-][0-9]{2}:?[0-9]{2})",
    "a": "(?:mon|tue|wed|thu|fri|sat|sun)",
    "A": f"(?:{_DAYS})",
    "%": "%",
}
_SHORT = {"T": "%H:%M:%S", "F": "%Y-%m-%d", "D": "%m/%d/%y"}
_HINT = "as in strptime: %d/%m/%Y %H:%M:%S; there are %Y %m %d %H %M %S %f %y %b %B %I %p %j %z %T %F %D %a %A %%"
#: The first day of each month of a year that is no leap year, from 0.
_BEFORE = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334], np.int64)
_LENGTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


class TimeFormat:
    """A format, checked.

    >>> TimeFormat("%d/%m/%Y %H:%M").read(pa.array(["1/5/2024 12:30", "31/2/2024 0:00"])).to_pylist()
    [1714566600000000, None]
    """

    def __init__(self, text: str) -> None:
        self.text = text
        for short, long in _SHORT.items():
            text = text.replace(f"%{short}", long)
        pieces, at = [], 0
        for found in re.finditer("%(.?)", text, re.DOTALL):
            if found[1] not in _DIRECTIVES:
                raise _bad(f'"%{found[1]}" is no part of a time')
            pieces += [_literal(text[at : found.start()]), _DIRECTIVES[found[1]]]
            at = found.end()
        pieces.append(_literal(text[at:]))
        #: for Arrow and for Spark; case does not matter
        self.pattern = f"(?i)^{''.join(pieces)}$"
        self.parts = re.findall(r"\(\?P<(\w)>", self.pattern)
        if len(set(self.parts)) < len(self.parts):
            raise _bad(f'the format "{self.text}" has a part twice')
        has = set(self.parts)
        if not has & {"Y", "y"} or not (has & {"j"} or (has & {"m", "b", "B"} and "d" in has)):
            raise _bad(f'the format "{self.text}" has no year, month and day')
        if len(has & {"m", "b", "B", "j"}) > 1 or {"Y", "y"} <= has or {"H", "I"} <= has or ("I" in has) != ("p" in has):
            raise _bad(f'the format "{self.text}" says a part in two ways, or %I without %p')

    @property
    def zoned(self) -> bool:
        """Whether the texts say their zone."""
        return "z" in self.parts

    def read(self, texts: Any) -> Any:
        """Microseconds since 1970 of texts, in their zone or in none; null for what does not fit, and below nulls."""
        found = pc.extract_regex(texts, self.pattern)
        fits = found.is_valid().to_numpy(zero_copy_only=False)
        groups = {name: found.field(n) for n, name in enumerate(self.parts)}
        number = {name: _numbers(groups[name], fits) for name in self.parts if name in "YmdHMSyIj"}
        n = len(texts)
        year = number["Y"] if "Y" in number else number["y"] + np.where(number["y"] < 69, 2000, 1900)
        leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
        if "j" in number:
            of_year = number["j"] - 1
            fits = fits & (of_year < 365 + leap)
        else:
            month = number["m"] if "m" in number else _months(groups.get("b", groups.get("B")), fits)
            month = np.where(fits, month, 1)
            day = number["d"]
            fits = fits & (day <= _LENGTHS[month] + (leap & (month == 2)))
            of_year = _BEFORE[month] + (leap & (month > 2)) + day - 1
        fits = fits & (year > 0)
        before = year - 1
        days = before * 365 + before // 4 - before // 100 + before // 400 + of_year - 719_162
        hour = number.get("H", np.zeros(n, np.int64))
        if "I" in number:
            after = pc.equal(pc.ascii_lower(groups["p"]), "pm").fill_null(False).to_numpy(zero_copy_only=False)
            hour = number["I"] % 12 + 12 * after
        zero = np.zeros(n, np.int64)
        seconds = days * 86_400 + hour * 3_600 + number.get("M", zero) * 60 + number.get("S", zero)
        us = seconds * 1_000_000
        if "f" in groups:
            padded = pc.utf8_slice_codeunits(pc.utf8_rpad(groups["f"], 6, "0"), 0, 6)
            us = us + _numbers(padded, found.is_valid().to_numpy(zero_copy_only=False))
        if self.zoned:
            us = us - _offsets(groups["z"], found.is_valid().to_numpy(zero_copy_only=False)) * 60_000_000
        return pa.array(us, pa.int64(), mask=~fits)


@lru_cache(64)
def time_format(text: str) -> TimeFormat:
    """A format; the same object for the same text."""
    return TimeFormat(text)


def _literal(text: str) -> str:
    """Text that stands for itself; white space for any."""
    return "".join(r"\s+" if piece.isspace() else re.escape(piece) for piece in re.split(r"(\s+)", text) if piece)


def _bad(fact: str) -> SchemaError:
    return SchemaError(fact, code="bad_time_format", hint=_HINT)


def _numbers(texts: Any, fits: Array) -> Array:
    """The numbers of a group, 1 where there is none."""
    numbers: Array = pc.cast(pc.if_else(pa.array(fits), texts, "1"), pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _months(texts: Any, fits: Array) -> Array:
    short = pc.utf8_slice_codeunits(pc.ascii_lower(texts), 0, 3)
    found: Array = pc.index_in(short, pa.array(MONTHS)).fill_null(0).to_numpy(zero_copy_only=False) + 1
    return np.where(fits, found, 1).astype(np.int64)


def _offsets(texts: Any, fits: Array) -> Array:
    """Minutes east of Greenwich; Z is none."""
    plain = pc.replace_substring(pc.if_else(pa.array(fits), texts, "z"), ":", "")
    plain = pc.if_else(pc.equal(pc.ascii_lower(plain), "z"), "+0000", plain)
    sign = np.where(pc.starts_with(plain, "-").to_numpy(zero_copy_only=False), -1, 1)
    every = np.ones(len(plain), np.bool_)
    hours = _numbers(pc.utf8_slice_codeunits(plain, 1, 3), every)
    minutes: Array = sign * (hours * 60 + _numbers(pc.utf8_slice_codeunits(plain, 3, 5), every))
    return minutes
