"""The window behind a stream in FROM, such as `[RANGE 5 MINUTES]`, and INTERVAL literals.

    window   : [ NOW ] | [ RANGE UNBOUNDED ] | [ RANGE width [SLIDE width] ]
             | [ [PARTITION BY name {, name}] ROWS count [RANGE width] ]
    width    : count unit {count unit} | 'text' | INTERVAL interval | :param
    interval : 'count' unit | count unit | 'text'

A width is at least one microsecond and has no months; a count is 1 to `MAX_ROWS`, or a parameter.
"""

from __future__ import annotations

from filters.expressions.expression import Interval
from queries.durations import UNIT_MONTHS, UNITS_HINT, DurationError, add, find_unit, measure, parse_duration
from queries.sql_text import SqlText
from queries.syntax import Name, RowsWindow, SlideWindow, Window, WindowParam
from queries.tokens import Cursor, Token, TokenKind
from queries.vocabulary import ARRAYS, WINDOWS
from windows.spec import FOREVER, MAX_ROWS, WindowSpec

_FORMS = "windows are [RANGE 5 MINUTES], [ROWS 100], [RANGE UNBOUNDED] and [NOW]"
_SLIDE_FORM = "write [RANGE 5 MINUTES SLIDE 1 MINUTE]"
_ROWS_FORMS = "[ROWS 100], [PARTITION BY key ROWS 100], [ROWS 100 RANGE 5 MINUTES]"


def parse_window(cursor: Cursor) -> tuple[Window, tuple[int, int]]:
    """Read the window at the cursor, which stands on its `[`; also the span between the brackets."""
    cursor.expect_symbol("[")
    token = first = cursor.token
    window: Window
    if cursor.take_word("NOW"):
        window = WindowSpec.now()
    elif cursor.take_word("RANGE"):
        window = WindowSpec.unbounded() if cursor.take_word("UNBOUNDED") else _parse_range(cursor)
        if cursor.token.is_word("ROWS", "PARTITION BY", "PARTITION"):
            raise cursor.error("RANGE stands behind ROWS", cursor.token, hint=_ROWS_FORMS)
    elif token.is_word("ROWS", "PARTITION BY", "PARTITION"):
        window = _parse_rows(cursor)
    elif token.kind is TokenKind.WORD and token.text in WINDOWS:
        raise cursor.refuse(WINDOWS[token.text])
    elif token.kind in (TokenKind.NUMBER, TokenKind.STRING):
        raise cursor.refuse(ARRAYS)
    else:
        raise cursor.unexpected(_FORMS)
    token = cursor.token
    if token.is_word("SLIDE"):
        raise cursor.error("SLIDE stands behind RANGE alone", token, hint=_SLIDE_FORM)
    if token.kind is TokenKind.WORD and token.text in WINDOWS:
        raise cursor.refuse(WINDOWS[token.text])
    if not token.is_symbol("]"):
        raise cursor.unexpected(f"the window needs a ]; {_FORMS}")
    span = (first.start, cursor.peek(-1).end)
    cursor.advance()
    return window, span


def params_of(window: Window) -> list[str]:
    """The names of the parameters in a window."""
    parts: tuple[object, ...] = (window,)
    if isinstance(window, RowsWindow):
        parts = (window.rows, window.width)
    elif isinstance(window, SlideWindow):
        parts = (window.width, window.slide)
    return [part.name for part in parts if isinstance(part, WindowParam)]


def make_slide(start: int, end: int, width: WindowSpec | WindowParam, slide: WindowSpec | WindowParam) -> Window:
    """The window of that width which moves in steps of `slide`; both as `parse_width` reads them."""
    if isinstance(width, WindowSpec) and isinstance(slide, WindowSpec):
        return WindowSpec.sliding(width.width_us, slide.width_us)
    return SlideWindow(start, end, width, slide)


def _parse_range(cursor: Cursor) -> Window:
    """Read the part behind RANGE, but UNBOUNDED."""
    first = cursor.token
    width = parse_width(cursor)
    if not cursor.take_word("SLIDE"):
        return width
    if cursor.token.is_word("UNBOUNDED"):
        raise cursor.unexpected(_SLIDE_FORM)
    return make_slide(first.start, cursor.peek(-1).end, width, parse_width(cursor))


def _parse_rows(cursor: Cursor) -> RowsWindow:
    first = cursor.token
    partition: list[Name] = []
    if cursor.take_word("PARTITION BY", "PARTITION"):
        if first.text == "PARTITION":
            cursor.expect_word("BY")
        partition.append(_parse_key(cursor))
        while cursor.take_symbol(","):
            partition.append(_parse_key(cursor))
        if not cursor.token.is_word("ROWS"):
            raise cursor.unexpected(f"PARTITION BY needs ROWS; {_ROWS_FORMS}")
    cursor.expect_word("ROWS")
    rows = _parse_count(cursor)
    width: WindowSpec | WindowParam | None = None
    if cursor.take_word("RANGE"):
        if cursor.token.is_word("UNBOUNDED"):
            raise cursor.error("ROWS has no UNBOUNDED beside it", cursor.token, hint="leave RANGE UNBOUNDED out")
        width = parse_width(cursor)
    return RowsWindow(first.start, cursor.peek(-1).end, rows, tuple(partition), width)


def _parse_key(cursor: Cursor) -> Name:
    token = cursor.token
    if not token.named or token.is_word("ROWS", "RANGE") or (token.kind is TokenKind.WORD and " " in token.text):
        raise cursor.unexpected("a column is missing behind PARTITION BY")
    cursor.advance()
    if cursor.token.is_symbol("."):
        raise cursor.error("a key of PARTITION BY has no prefix", cursor.token, hint="name the stream's column alone")
    return Name(token.start, token.end, None, cursor.name(token))


def _parse_count(cursor: Cursor) -> int | WindowParam:
    token = cursor.token
    if token.is_symbol(":"):
        param = parse_param(cursor)
        return WindowParam(token.start, param.end, cursor.name(param))
    if token.kind is not TokenKind.NUMBER:
        if token.is_symbol("-"):
            raise cursor.error("a window holds at least one row", token, "bad_window", _ROWS_FORMS)
        raise cursor.unexpected(f"the number of rows is missing; {_ROWS_FORMS}")
    cursor.advance()
    if not token.text.isdigit():
        raise cursor.error(f'"{token.text[:40]}" is no number of rows', token, "bad_window", _ROWS_FORMS)
    # int() of a long text is quadratic, and any count of 11 digits is too large.
    return check_rows(int(token.text.lstrip("0")[:11] or "0"), cursor.source, token.start, token.end)


def check_rows(rows: int, source: SqlText, start: int, end: int) -> int:
    """The count of `[ROWS count]`; raises `QueryError` for one no window can have."""
    if rows < 1:
        raise source.error("a window holds at least one row", start, end, "bad_window", _ROWS_FORMS)
    if rows > MAX_ROWS:
        hint = f"at most {MAX_ROWS}; [RANGE 5 MINUTES] has no such bound"
        raise source.error("the window holds too many rows", start, end, "bad_window", hint)
    return rows


def check_width(width: Interval, source: SqlText, start: int, end: int) -> WindowSpec:
    """The window of that width; raises `QueryError` for a width no window can have."""
    if width.months:
        raise source.error("a window cannot be months long", start, end, "bad_window", "months vary in length: use DAYS")
    if width.micros <= 0:
        raise source.error("a window must be longer than zero", start, end, "bad_window", "[NOW] holds the rows of this instant")
    if width.micros >= FOREVER:
        raise source.error("the window is too long", start, end, "bad_window", "write [RANGE UNBOUNDED]")
    return WindowSpec.range(width.micros)


def parse_interval(cursor: Cursor) -> Interval:
    """Read the part behind the word INTERVAL."""
    first = cursor.token
    sign = "-" if cursor.take_symbol("-") else ""
    token = cursor.token
    if token.kind is TokenKind.NUMBER:
        cursor.advance()
        return _measure(cursor, sign + token.text, token, _take_unit(cursor))
    if token.kind is not TokenKind.STRING or sign:
        raise cursor.unexpected("an interval is INTERVAL '5' MINUTE or INTERVAL '1 hour 30 minutes'")
    cursor.advance()
    if _is_count(token.text):
        return _measure(cursor, "".join(token.text.split()), first, _take_unit(cursor))
    try:
        return parse_duration(token.text)
    except DurationError as error:
        raise cursor.error(str(error), token, "bad_interval", UNITS_HINT) from None


def parse_width(cursor: Cursor) -> WindowSpec | WindowParam:
    """Read a length of time, as a [RANGE] window of that length."""
    first = cursor.token
    if first.is_symbol(":"):
        param = parse_param(cursor)
        if cursor.token.kind is TokenKind.WORD and find_unit(cursor.token.text):
            raise cursor.error(
                "a parameter for a window carries its own unit", cursor.token, hint="give a timedelta or '5 minutes'"
            )
        return WindowParam(first.start, param.end, cursor.name(param))
    if first.is_symbol("-"):
        raise cursor.error("a window must be longer than zero", first, "bad_window", "[NOW] holds the rows of this instant")
    if cursor.take_word("INTERVAL") or first.kind is TokenKind.STRING:
        width = parse_interval(cursor)
    elif first.kind is TokenKind.NUMBER:
        width = Interval(0, 0)
        while cursor.token.kind is TokenKind.NUMBER:
            count = cursor.advance()
            width = add(width, _measure(cursor, count.text, count, _take_unit(cursor)))
    else:
        raise cursor.unexpected(_FORMS)
    return check_width(width, cursor.source, first.start, cursor.peek(-1).end)


def parse_param(cursor: Cursor) -> Token:
    """Read `:name` and return the name's token."""
    colon = cursor.expect_symbol(":")
    token = cursor.token
    if token.kind is not TokenKind.WORD or token.start != colon.end or " " in token.text:
        raise cursor.error("a parameter needs a name", colon, hint="write :name")
    return cursor.advance()


def _take_unit(cursor: Cursor) -> str:
    token = cursor.token
    unit = find_unit(token.text) if token.kind is TokenKind.WORD else None
    if unit is None:
        if token.kind is TokenKind.WORD:
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
