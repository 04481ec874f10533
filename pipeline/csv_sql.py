"""Cells of a CSV in Spark's SQL, with the meaning that `lineage/csv_cells.py` gives them.

    cell(column, type, form)     the text of a cell, NULL where it is NULL
    typed(text, type, ..)        the value of such a text, NULL also where it is bad

Columns come as texts. White space around numbers, bools and times does not count. Differences that remain: what Java takes for a
float, and ISO times with more than nine decimals.
"""

from __future__ import annotations

from lineage.csv_cells import FALSE, TRUE
from lineage.csv_form import CsvForm
from lineage.schema import UNIT_US, Type
from lineage.time_format import MONTHS, TimeFormat
from lineage.times import MAX_US, MIN_US, ZONED

_SPACE = " \t\r\n\f\v"
#: A date, or a date and a time, and a zone.
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$"


def literal(text: str) -> str:
    """A text as SQL writes it.

    >>> len(literal("it's"))
    7
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def cell(column: str, wanted: Type, form: CsvForm) -> str:
    """The expression of a cell's text; `column` is a quoted name."""
    text = column if wanted is Type.STRING else f"btrim({column}, {literal(_SPACE)})"
    words = ", ".join(map(literal, form.words("string" if wanted is Type.STRING else "int")))
    return f"IF({text} IN ({words}), NULL, {text})"


def made(form: CsvForm, columns: list[str]) -> str:
    """The expression of the column that is made of others."""
    cells = ", ' ', ".join(cell(column, Type.TIMESTAMP, form) for column in columns)
    return f"concat({cells})"


def typed(text: str, wanted: Type, unit: str, form: CsvForm, is_made: bool = False) -> str:
    """The expression of a cell's value, by that of its text."""
    if wanted is Type.STRING:
        return text
    if wanted is Type.INT:
        return f"IF({text} RLIKE '^[+-]?[0-9]+$', try_cast({text} AS BIGINT), NULL)"
    if wanted is Type.FLOAT:
        if form.decimal == ",":
            text = f"IF(contains({text}, '.'), NULL, replace({text}, ',', '.'))"
        return f"IF({text} RLIKE '[0-9.][dDfF]$', NULL, try_cast({text} AS DOUBLE))"
    if wanted is Type.BOOL:
        return f"CASE WHEN lower({text}) IN ({_list(TRUE)}) THEN true WHEN lower({text}) IN ({_list(FALSE)}) THEN false END"
    reader = form.reader(is_made)
    us = _number_or_iso(text, unit, form.tz) if reader is None else _formatted(text, reader, form.tz)
    return f"IF({us} BETWEEN {MIN_US}L AND {MAX_US}L, timestamp_micros({us}), NULL)"


def _list(words: tuple[str, ...]) -> str:
    return ", ".join(map(literal, words))


def _number_or_iso(text: str, unit: str, tz: str | None) -> str:
    whole = f"IF({text} RLIKE '^[+-]?[0-9]+$', try_cast({text} AS BIGINT), NULL)"
    broken = f"IF({text} RLIKE '[.eE]' AND NOT {text} RLIKE '[dDfF]$', try_cast({text} AS DOUBLE), NULL)"
    if unit == "ns":
        numbers = f"({whole} - pmod({whole}, 1000L)) div 1000L, try_cast(rint({broken} / 1000.0D) AS BIGINT)"
    else:
        numbers = f"try_multiply({whole}, {UNIT_US[unit]}L), try_cast(rint({broken} * {UNIT_US[unit]}.0D) AS BIGINT)"
    moment = f"try_cast({text} AS TIMESTAMP)"
    if tz is not None:
        moment = f"IF({text} RLIKE {literal(ZONED)}, {moment}, to_utc_timestamp({moment}, {literal(tz)}))"
    return f"coalesce({numbers}, IF({text} RLIKE {literal(_ISO)}, unix_micros({moment}), NULL))"


def _formatted(text: str, reader: TimeFormat, tz: str | None) -> str:
    pattern = literal(reader.pattern.replace("(?P<", "(?<"))

    def part(name: str, otherwise: str = "0") -> str:
        if name not in reader.parts:
            return otherwise
        return f"try_cast(regexp_extract({text}, {pattern}, {reader.parts.index(name) + 1}) AS INT)"

    def word(name: str) -> str:
        return f"lower(regexp_extract({text}, {pattern}, {reader.parts.index(name) + 1}))"

    year = part("Y") if "Y" in reader.parts else f"({part('y')} + IF({part('y')} < 69, 2000, 1900))"
    names = [name for name in ("b", "B") if name in reader.parts]
    months = ", ".join(map(literal, MONTHS))
    month = f"CAST(array_position(array({months}), substr({word(names[0])}, 1, 3)) AS INT)" if names else part("m", "1")
    hour = part("H") if "I" not in reader.parts else f"({part('I')} % 12 + IF({word('p')} = 'pm', 12, 0))"
    clock = f"{hour}, {part('M')}, CAST({part('S')} AS DECIMAL(16, 6))"
    if "j" in reader.parts:
        start = f"try_make_timestamp({year}, 1, 1, {clock})"
        moment = f"({start} + make_dt_interval({part('j')} - 1))"
        moment = f"IF(year({moment}) = {year}, {moment}, NULL)"
    else:
        moment = f"try_make_timestamp({year}, {month}, {part('d', '1')}, {clock})"
    if tz is not None and not reader.zoned:
        moment = f"to_utc_timestamp({moment}, {literal(tz)})"
    us = f"unix_micros({moment})"
    if "f" in reader.parts:
        us += f" + try_cast(rpad(substr({word('f')}, 1, 6), 6, '0') AS BIGINT)"
    if reader.zoned:
        zone = f"replace({word('z')}, ':', '')"
        minutes = f"(try_cast(substr({zone}, 2, 2) AS BIGINT) * 60 + try_cast(substr({zone}, 4, 2) AS BIGINT))"
        us += f" - IF({zone} = 'z', 0L, IF({zone} LIKE '-%', -1L, 1L) * {minutes} * 60000000L)"
    return f"IF({text} RLIKE {pattern}, {us}, NULL)"
