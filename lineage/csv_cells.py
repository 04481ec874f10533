"""Columns of CSV cells as columns of a type: the one place that says what a cell means.

`_int`, `_float`, `_time` and `_formatted_one` define it, one cell at a time. Whole columns go through Arrow, which takes a column
only if every cell plainly means what the definition says; else the cells of that column are read one by one. So a cell never
means something because of another.

    read(texts, kind, form)     cells by their type, null where they are NULL or bad, and which are bad
    infer(texts, form)          the narrowest type that all cells have: int, float, bool, timestamp, else string

In numbers, bools and times white space around a cell does not count; a text is as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lineage.csv_form import CsvForm
from lineage.errors import RowError
from lineage.time_format import TimeFormat
from lineage.times import MAX_US, MIN_US, ZONED, numbers_to_us, show, strings_to_us, to_us

Array = np.ndarray[Any, Any]

TRUE = ("true", "t", "1", "yes")
FALSE = ("false", "f", "0", "no")
#: Cells that are tried before a whole column is.
SAMPLE = 64

_TIME = pa.timestamp("us")
_INT_MAX = 2**63 - 1
_UNITS = (("s", 1e9, 1e11), ("us", 1e14, 1e17), ("ns", 1e17, 1e20))


def read(texts: Any, kind: str, form: CsvForm, made: bool = False) -> tuple[Any, Array | None]:
    """Cells by their type (times as timestamps of microseconds) and True where one is bad; None if none is.

    `made` is said of the column that is made of others.
    """
    if kind == "string":
        return _without(texts, _words(texts, form.words(kind))), None
    if kind == "bool":
        return _bools(texts, form)
    convert, define = _reader(kind, form, made)
    for trim in (False, True):
        given = pc.ascii_trim_whitespace(texts) if trim else texts
        found = convert(_without(given, _words(given, form.words(kind))))
        if found is not None:
            return found, None
    return _one_by_one(
        texts, form.words(kind), define, pa.int64() if kind == "int" else pa.float64() if kind == "float" else _TIME
    )


def error_of(text: str, kind: str, form: CsvForm, made: bool = False) -> RowError:
    """Return the fault of a bad cell in words."""
    noun = {"int": "an int", "float": "a float", "bool": "a bool"}.get(kind, "a time")
    hint = (
        f"NULL is an empty cell, NA or -; null={text} (--null) if that is meant" if re.fullmatch(r"[^\d=,]{1,20}", text) else ""
    )
    if kind == "int" and re.fullmatch(r"\s*[+-]?\d+\s*", text):
        return RowError(f"{show(text)} does not fit 64 bits", code="out_of_range", hint="a float or a string may be longer")
    if kind == "float" and form.decimal == "." and re.fullmatch(r"\s*[+-]?\d+,\d+\s*", text):
        hint = "decimal=, (--decimal ,) if the comma stands before decimals"
    if noun == "a time":
        try:
            _reader(kind, form, made)[1](text.strip())
        except RowError as error:
            if error.code == "time_out_of_range":
                return error
        except ValueError:
            pass
        fmt = form.reader(made)
        hint = (
            f'the format of times is "{fmt.text}"' if fmt else
            "ISO 8601 such as 2024-05-01T12:00:00Z, or a number; time_format=%d/%m/%Y (--time-format) says another form"
        )  # fmt: skip
    elif kind == "bool":
        hint = "true or false, t or f, yes or no, 1 or 0"
    elif kind == "int" and not hint and re.fullmatch(r"\s*[+-]?[\d.,eE+-]+\s*", text):
        hint = "declare the column float (--types with push --create)"
    if not hint:
        hint = "a column that is not of numbers is declared string (--types with push --create)"
    return RowError(f"{show(text)} is not {noun}", code="bad_value", hint=hint)


def infer(texts: Any, form: CsvForm) -> str | None:
    """The narrowest type of a column; None if all cells are NULL."""
    present = texts.filter(pc.invert(_words(pc.ascii_trim_whitespace(texts), form.words("int"))))
    if not len(present):
        return None
    for kind in ("int", "float", "bool", "timestamp"):
        if not _fits(present[:SAMPLE], kind, form) or not _fits(present, kind, form):
            continue
        if kind == "bool" and not _both(present):
            continue
        return kind
    return "string"


def is_naive(texts: Any, form: CsvForm, made: bool = False) -> bool:
    """Whether a timestamp column has texts that do not say their zone, and nobody else says it."""
    fmt = form.reader(made)
    if form.tz is not None:
        return False
    if fmt is not None:
        return not fmt.zoned
    written = pc.match_substring_regex(texts, r"^\s*\d{4}-\d\d")
    return bool(pc.any(pc.and_not(written, pc.match_substring_regex(pc.ascii_trim_whitespace(texts), ZONED))).as_py())


def unit_of(number: float) -> str:
    """The unit of bare times: the one that puts a number into the years from 2001 on, else milliseconds.

    >>> unit_of(1_700_000_000), unit_of(1_700_000_000_000), unit_of(1000)
    ('s', 'ms', 'ms')
    """
    return next((unit for unit, low, high in _UNITS if low <= number < high), "ms")


def _fits(texts: Any, kind: str, form: CsvForm) -> bool:
    return read(texts, kind, form)[1] is None


def _both(texts: Any) -> bool:
    """Whether words are plainly bools: true and false, or of others both kinds."""
    kinds = set(pc.unique(pc.ascii_lower(pc.ascii_trim_whitespace(texts))).to_pylist())
    return kinds <= {"true", "false"} or bool(kinds & set(TRUE) and kinds & set(FALSE))


# ---- NULL


def _words(texts: Any, words: tuple[str, ...]) -> Any:
    """True where a cell is one of the words, or null."""
    if words == ("",):
        return pc.equal(pc.binary_length(texts), 0).fill_null(True)
    return pc.or_(pc.is_in(texts, pa.array(words, pa.string())), pc.is_null(texts))


def _without(texts: Any, nulls: Any) -> Any:
    return pc.if_else(nulls, pa.scalar(None, pa.string()), texts) if pc.any(nulls).as_py() else texts


# ---- types: whole columns, and one cell


def _reader(kind: str, form: CsvForm, made: bool) -> tuple[Callable[[Any], Any], Callable[[str], Any]]:
    """For a type: what reads a column, or gives up with None, and what reads one cell, or raises."""
    if kind == "int":
        return _ints, _int
    if kind == "float":
        return (lambda texts: _floats(texts, form.decimal)), (lambda text: _float(text, form.decimal))
    unit = kind[len("timestamp[") : -1] if kind.startswith("timestamp[") else "ms"
    fmt = form.reader(made)
    if fmt is not None:
        return (lambda texts: _formatted(texts, fmt, form.tz)), (lambda text: _formatted_one(text, fmt, form.tz))
    return (lambda texts: _times(texts, unit, form.tz)), (lambda text: _time(text, unit, form.tz))


def _cast(texts: Any, kind: Any) -> Any:
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return None


def _ints(texts: Any) -> Any:
    found = _cast(texts, pa.int64())
    # Arrow reads 0x1F
    return None if found is None or _any(texts, "x", ignore_case=True) else found


def _int(text: str) -> int:
    number = int(text)
    if not -_INT_MAX - 1 <= number <= _INT_MAX:
        raise ValueError
    return number


def _floats(texts: Any, decimal: str) -> Any:
    if decimal == ",":
        if _any(texts, "."):
            return None
        texts = pc.replace_substring(texts, ",", ".")
    found = _cast(texts, pa.float64())
    # Arrow reads nan(anything)
    return None if found is None or _any(texts, "(") else found


def _float(text: str, decimal: str) -> float:
    if decimal == ",":
        if "." in text:
            raise ValueError
        text = text.replace(",", ".")
    return float(text)


def _any(texts: Any, part: str, ignore_case: bool = False) -> bool:
    return bool(pc.any(pc.match_substring(texts, part, ignore_case=ignore_case)).as_py())


def _bools(texts: Any, form: CsvForm) -> tuple[Any, Array | None]:
    trimmed = pc.ascii_trim_whitespace(texts)
    words = pc.ascii_lower(trimmed)
    true, false = pc.is_in(words, pa.array(TRUE)), pc.is_in(words, pa.array(FALSE))
    nulls = _words(trimmed, form.words("bool"))
    known = pc.and_not(pc.or_(true, false), nulls)
    found = pc.if_else(known, true, pa.scalar(None, pa.bool_()))
    bad = pc.invert(pc.or_(known, nulls)).to_numpy(zero_copy_only=False)
    return found, bad if bad.any() else None


def _times(texts: Any, unit: str, tz: str | None) -> Any:
    """Times that are numbers, or ISO 8601."""
    present = texts.drop_null()
    if not len(present):
        return pa.nulls(len(texts), _TIME)
    us = _iso(present, tz) if "-" in present[0].as_py()[1:] else _numbers(present, unit)
    return None if us is None else _placed(texts, us)


def _placed(texts: Any, us: Array) -> Any:
    """Microseconds of the cells that are not NULL, in their places."""
    if not texts.null_count:
        return pa.array(us, pa.int64()).view(_TIME)
    valid = texts.is_valid().to_numpy(zero_copy_only=False)
    cells = np.zeros(len(texts), np.int64)
    cells[valid] = us
    return pa.array(cells, pa.int64(), mask=~valid).view(_TIME)


def _numbers(texts: Any, unit: str) -> Array | None:
    ints = _ints(texts)
    if ints is not None:
        return numbers_to_us(ints.to_numpy(zero_copy_only=False), unit)
    broken = pc.match_substring_regex(texts, "[.eE]")
    mask = broken.to_numpy(zero_copy_only=False)
    floats, ints = _floats(texts.filter(broken), "."), _ints(texts.filter(pc.invert(broken)))
    if floats is None or ints is None:
        return None
    parts = [numbers_to_us(part.to_numpy(zero_copy_only=False), unit) for part in (floats, ints)]
    if parts[0] is None or parts[1] is None:
        return None
    us = np.empty(len(texts), np.int64)
    us[mask] = parts[0]
    us[~mask] = parts[1]
    return us


def _iso(texts: Any, tz: str | None) -> Array | None:
    us = strings_to_us(texts)
    if us is None or tz is None:
        return us
    zoned = pc.match_substring_regex(texts, ZONED).to_numpy(zero_copy_only=False)
    us = np.where(zoned, us, local_to_us(us, tz))
    return us if us.min() >= MIN_US and us.max() <= MAX_US else None


def _time(text: str, unit: str, tz: str | None) -> int:
    try:
        number: int | float = int(text)
    except ValueError:
        if "." not in text and "e" not in text.lower():
            number = float("nan")
        else:
            try:
                number = float(text)
            except ValueError:
                number = float("nan")
    if number == number:
        return to_us(number, unit)
    us = to_us(text, unit)
    if tz is not None and re.search(ZONED, text) is None:
        us = _within(int(local_to_us(np.array([us]), tz)[0]), text)
    return us


def _formatted(texts: Any, fmt: TimeFormat, tz: str | None) -> Any:
    us = fmt.read(texts)
    if us.null_count != texts.null_count:
        return None
    present = us.drop_null().to_numpy(zero_copy_only=False)
    if tz is not None and not fmt.zoned:
        present = local_to_us(present, tz)
    if len(present) and not (present.min() >= MIN_US and present.max() <= MAX_US):
        return None
    return _placed(texts, present)


def _formatted_one(text: str, fmt: TimeFormat, tz: str | None) -> int:
    us = fmt.read(pa.array([text], pa.string()))[0].as_py()
    if us is None:
        raise ValueError
    return _within(int(local_to_us(np.array([us]), tz)[0]) if tz is not None and not fmt.zoned else us, text)


def _within(us: int, text: str) -> int:
    if not MIN_US <= us <= MAX_US:
        raise RowError(f"{show(text)} is not within the years 1 to 9999", code="time_out_of_range")
    return us


def local_to_us(us: Array, tz: str) -> Array:
    """Times of a zone's clocks as UTC, as Python and Java have it: of two moments the first; in a gap by the offset before it."""
    local = pa.array(us, pa.int64()).view(_TIME)
    try:
        return _assumed(local, tz, "raise")
    except pa.ArrowInvalid:
        pass
    after, before = _assumed(local, tz, "latest"), _assumed(local, tz, "earliest")
    missing = after != before
    edge = pa.array(before[missing], pa.int64()).view(pa.timestamp("us", tz))
    offset = pc.local_timestamp(edge).view(pa.int64()).to_numpy(zero_copy_only=False) - before[missing]
    after[missing] = us[missing] - offset
    return after


def _assumed(local: Any, tz: str, nonexistent: str) -> Array:
    found: Array = pc.assume_timezone(local, tz, ambiguous="earliest", nonexistent=nonexistent).view(pa.int64()).to_numpy().copy()
    return found


def _one_by_one(texts: Any, words: tuple[str, ...], define: Callable[[str], Any], kind: Any) -> tuple[Any, Array | None]:
    """The cells of a column by the definition."""
    found: list[Any] = []
    bad = np.zeros(len(texts), np.bool_)
    for n, text in enumerate(texts.to_pylist()):
        text = "" if text is None else text.strip()
        try:
            found.append(None if text in words else define(text))
        except (ValueError, RowError):
            found.append(None)
            bad[n] = True
    array = pa.array(found, pa.int64()).view(_TIME) if kind == _TIME else pa.array(found, kind)
    return array, bad if bad.any() else None
