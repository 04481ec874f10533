"""The window behind a stream in FROM, `[RANGE 5 MINUTES]` or `[NOW]`, and INTERVAL literals.

    window   : [ NOW ] | [ RANGE UNBOUNDED ] | [ RANGE width ]
    width    : count unit {count unit} | 'text' | INTERVAL interval | :param
    interval : 'count' unit | count unit | 'text'

A width is at least one microsecond and has no months. ROWS, PARTITION BY and SLIDE are refused by name.
"""

from __future__ import annotations

from filters.expression import Interval
from queries.durations import UNIT_MONTHS, UNITS_HINT, DurationError, add, find_unit, measure, parse_duration
from queries.source import Source
from queries.syntax import WindowParam
from queries.tokens import Cursor, Kind, Token
from queries.vocabulary import ARRAYS, WINDOWS
from windows.spec import FOREVER, WindowSpec

_FORMS = "windows are [RANGE 5 MINUTES], [RANGE UNBOUNDED] and [NOW]"


def parse_window(cursor: Cursor) -> WindowSpec | WindowParam:
    """Read the window at the cursor, which stands on its `[`."""
    cursor.expect_symbol("[")
    token = cursor.token
    window: WindowSpec | WindowParam
    if cursor.take_word("NOW"):
        window = WindowSpec.now()
    elif cursor.take_word("RANGE"):
        window = WindowSpec.unbounded() if cursor.take_word("UNBOUNDED") else _parse_width(cursor)
    elif token.kind is Kind.WORD and token.text in WINDOWS:
        raise cursor.refuse(WINDOWS[token.text])
    elif token.kind in (Kind.NUMBER, Kind.STRING):
        raise cursor.refuse(ARRAYS)
    else:
        raise cursor.unexpected(_FORMS)
    token = cursor.token
    if token.kind is Kind.WORD and token.text in WINDOWS:
        raise cursor.refuse(WINDOWS[token.text])
    if not token.is_symbol("]"):
        raise cursor.unexpected(f"the window needs a ]; {_FORMS}")
    cursor.advance()
    return window


def check_width(width: Interval, source: Source, start: int, end: int) -> WindowSpec:
    """The window of that width; raises `QueryError` for a width no window can have."""
    if width.months:
        raise source.error("a window cannot be months long", start, end, "bad_window", "months vary in length: use DAYS")
    if width.micros <= 0:
        raise source.error("a window must be longer than zero", start, end, "bad_window", "[NOW] holds the rows of this instant")
    if width.micros >= FOREVER:
        raise source.error("the window is too long", start, end, "bad_window", "write [RANGE UNBOUNDED]")
    return WindowSpec.range(width.micros)


def parse_interval(cursor: Cursor) -> Interval:
    """Read what stands behind the word INTERVAL."""
    first = cursor.token
    sign = "-" if cursor.take_symbol("-") else ""
    token = cursor.token
    if token.kind is Kind.NUMBER:
        cursor.advance()
        return _measure(cursor, sign + token.text, token, _take_unit(cursor))
    if token.kind is not Kind.STRING or sign:
        raise cursor.unexpected("an interval is INTERVAL '5' MINUTE or INTERVAL '1 hour 30 minutes'")
    cursor.advance()
    if _is_count(token.text):
        return _measure(cursor, "".join(token.text.split()), first, _take_unit(cursor))
    try:
        return parse_duration(token.text)
    except DurationError as error:
        raise cursor.error(str(error), token, "bad_interval", UNITS_HINT) from None


def _parse_width(cursor: Cursor) -> WindowSpec | WindowParam:
    first = cursor.token
    if first.is_symbol(":"):
        param = parse_param(cursor)
        if cursor.token.kind is Kind.WORD and find_unit(cursor.token.text):
            raise cursor.error(
                "a parameter for a window carries its own unit", cursor.token, hint="give a timedelta or '5 minutes'"
            )
        return WindowParam(first.start, param.end, cursor.name(param))
    if first.is_symbol("-"):
        raise cursor.error("a window must be longer than zero", first, "bad_window")
    if cursor.take_word("INTERVAL") or first.kind is Kind.STRING:
        width = parse_interval(cursor)
    elif first.kind is Kind.NUMBER:
        width = Interval(0, 0)
        while cursor.token.kind is Kind.NUMBER:
            count = cursor.advance()
            width = add(width, _measure(cursor, count.text, count, _take_unit(cursor)))
    else:
        raise cursor.unexpected(_FORMS)
    return check_width(width, cursor.source, first.start, cursor.peek(-1).end)


def parse_param(cursor: Cursor) -> Token:
    """Read `:name` and return the name's token."""
    colon = cursor.expect_symbol(":")
    token = cursor.token
    if token.kind is not Kind.WORD or token.start != colon.end or " " in token.text:
        raise cursor.error("a parameter needs a name", colon, hint="write :name")
    return cursor.advance()


def _take_unit(cursor: Cursor) -> str:
    token = cursor.token
    unit = find_unit(token.text) if token.kind is Kind.WORD else None
    if unit is None:
        if token.kind is Kind.WORD:
            raise cursor.error(f'"{cursor.name(token)}" is no unit of time', token, "bad_interval", UNITS_HINT)
        raise cursor.error("the duration needs a unit", token, "bad_interval", UNITS_HINT)
    cursor.advance()
    return unit


def _measure(cursor: Cursor, count: str, token: Token, unit: str) -> Interval:
    try:
        return measure(count, unit)
    except DurationError as error:
        hint = "months and years are whole" if unit in UNIT_MONTHS else ""
        raise cursor.error(str(error), token, "bad_interval", hint) from None


def _is_count(text: str) -> bool:
    digits = "".join(text.split()).lstrip("+-")
    return bool(digits) and digits.replace(".", "", 1).isdigit() and digits.isascii()
