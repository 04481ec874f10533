"""From the text of a query to its syntax tree.

    query  : SELECT item {, item} FROM source {, source | [INNER] JOIN source ON expression} [WHERE expression] [;]
    item   : * | alias.* | expression [AS name]
    source : stream [window] [[AS] alias] | table [[AS] alias]

`parse` needs no schema and no parameters, so its result is kept per text and bound many times. Everything else of SQL is
refused by name with the place of its first token; nothing is skipped or taken for an alias. Cost: linear in the text.
"""

from __future__ import annotations

from lineage.errors import SchemaError
from lineage.schema import check_name
from queries.expressions import ExpressionParser
from queries.guards import check_text
from queries.operands import RESERVED
from queries.source import Source
from queries.syntax import MAX_INPUTS, Item, ParsedQuery, SourceItem, Star, Syntax, Window
from queries.tokens import Cursor, Kind, Token, tokenize
from queries.vocabulary import (
    CLAUSES,
    MANY_STATEMENTS,
    OPERANDS,
    PARENTHESES_IN_FROM,
    SOURCES,
    STATEMENTS,
    SUBQUERY_IN_FROM,
    USING,
    never,
)
from queries.windows import params_of, parse_window
from windows.spec import WindowSpec

#: Words between FROM items: not an alias unless behind AS.
_JOIN_WORDS = ("JOIN", "INNER", "ON")
_STREAM_OPERATORS = ("ISTREAM", "DSTREAM", "RSTREAM")
_ALIAS_HINT = "write AS before a column's name: expr AS name"
_WINDOW_ORDER = "the window stands right behind the stream: FROM s [RANGE 5 MINUTES] AS a"


def parse(sql: str) -> ParsedQuery:
    """Read a query's text; raises `QueryError` on anything that is not a query of the language.

    >>> parse("SELECT a FROM s [NOW] WHERE b > :low").params
    frozenset({'low'})
    """
    source = Source(sql)
    check_text(source)
    cursor = Cursor(source, tokenize(source))
    expressions = ExpressionParser(cursor)
    _take_select(cursor)
    items = _parse_items(cursor, expressions)
    from_items = _parse_sources(cursor, expressions)
    condition = expressions.parse() if cursor.take_word("WHERE") else None
    _take_end(cursor)
    params = expressions.params.union(*(params_of(item.window) for item in from_items))
    return ParsedQuery(source, items, from_items, condition, frozenset(params))


def _take_select(cursor: Cursor) -> None:
    token = cursor.token
    if token.kind is Kind.END:
        raise cursor.error("the query is empty", token, hint="SELECT ... FROM stream")
    if token.is_symbol(";"):
        raise cursor.refuse(MANY_STATEMENTS)
    if token.kind is Kind.WORD and token.text in STATEMENTS:
        raise cursor.refuse(STATEMENTS[token.text])
    if not token.is_word("SELECT"):
        raise cursor.error("a query begins with SELECT", token, hint="SELECT ... FROM stream")
    cursor.advance()
    token, following = cursor.token, cursor.peek()
    if token.is_word(*_STREAM_OPERATORS) and not following.is_word("FROM", "AS"):
        # A column may have that name: only an operand behind it, or a * that multiplies nothing, makes it the operator.
        star = following.is_symbol("*") and (cursor.peek(2).is_word("FROM") or cursor.peek(2).is_symbol(","))
        if star or following.is_symbol(":") or following.kind not in (Kind.SYMBOL, Kind.END):
            raise cursor.refuse(STATEMENTS[token.text])
    if token.is_word("FROM"):
        raise cursor.error("the select list is empty", token, hint="SELECT * FROM stream")


def _parse_items(cursor: Cursor, expressions: ExpressionParser) -> tuple[Item | Star, ...]:
    items: list[Item | Star] = []
    while True:
        items.append(_parse_item(cursor, expressions))
        if not cursor.take_symbol(","):
            break
    token = cursor.token
    if token.is_word("FROM"):
        cursor.advance()
        return tuple(items)
    if token.kind is Kind.END or token.is_word("WHERE"):
        raise cursor.error("FROM is missing", token, hint="SELECT ... FROM stream")
    raise cursor.unexpected(_ALIAS_HINT if token.named else "")


def _parse_item(cursor: Cursor, expressions: ExpressionParser) -> Item | Star:
    first = cursor.token
    if cursor.take_symbol("*"):
        return Star(first.start, first.end, None)
    if first.named and cursor.peek().is_symbol(".") and cursor.peek(2).is_symbol("*"):
        cursor.advance()
        cursor.advance()
        return Star(first.start, cursor.advance().end, cursor.name(first))
    expression = expressions.parse()
    alias = _parse_alias(cursor, "column") if cursor.take_word("AS") else None
    return Item(first.start, expression.end, expression, alias)


def _parse_sources(cursor: Cursor, expressions: ExpressionParser) -> tuple[SourceItem, ...]:
    """All FROM items; the cursor then stands behind the last one."""
    found = [_parse_source(cursor, expressions, [], joined=False)]
    while True:
        joined = cursor.token.is_word("JOIN", "INNER")
        if cursor.take_word("INNER"):
            cursor.expect_word("JOIN")
        elif not cursor.take_word("JOIN") and not cursor.take_symbol(","):
            return tuple(found)
        found.append(_parse_source(cursor, expressions, found, joined))


def _parse_source(cursor: Cursor, expressions: ExpressionParser, before: list[SourceItem], joined: bool) -> SourceItem:
    token = _take_source_name(cursor)
    name = cursor.name(token)
    window: Window = WindowSpec.none()
    span = None
    if cursor.token.is_symbol("["):
        window, span = parse_window(cursor)
    alias = None
    alias_token = cursor.token
    if cursor.take_word("AS") or (alias_token.named and not (alias_token.kind is Kind.WORD and _is_keyword(alias_token))):
        alias = _parse_alias(cursor, "stream")
    if cursor.token.is_symbol("["):
        fact = "the alias stands before the window" if span is None else "a stream has one window"
        raise cursor.error(fact, alias_token if alias else cursor.token, hint=_WINDOW_ORDER)
    if len(before) == MAX_INPUTS:
        hint = "read fewer, or join some of them outside"
        raise cursor.error(f"the query has more than {MAX_INPUTS} FROM items", token, "too_many_inputs", hint)
    _check_alias(cursor, token, cursor.peek(-1) if alias else None, name, alias, before)
    on = _parse_on(cursor, expressions) if joined else None
    return SourceItem(token.start, token.end, name, alias, window, span, on)


def _take_source_name(cursor: Cursor) -> Token:
    token, following = cursor.token, cursor.peek()
    if token.is_symbol("("):
        nested = following.named and not following.is_word("SELECT", "WITH", "VALUES", "FROM")
        raise cursor.refuse(PARENTHESES_IN_FROM if nested else SUBQUERY_IN_FROM)
    if not token.named:
        raise cursor.unexpected("the name of a stream is missing")
    if token.kind is Kind.WORD:
        if token.text in SOURCES and (following.is_symbol("(") or following.named):
            raise cursor.refuse(SOURCES[token.text])
        if token.text in RESERVED or token.text in OPERANDS or " " in token.text:
            raise cursor.unexpected("the name of a stream is missing")
    if following.is_symbol("("):
        raise cursor.refuse(never("a table function", "FROM takes the name of a stream"))
    cursor.advance()
    if cursor.token.is_symbol("."):
        raise cursor.refuse(never("a name of two parts in FROM", "stream names have no prefix"))
    return token


def _check_alias(
    cursor: Cursor, name_token: Token, alias_token: Token | None, name: str, alias: str | None, before: list[SourceItem]
) -> None:
    """No two FROM items answer to the same word."""
    called = (alias or name).lower()
    other = next((item for item in before if (item.alias or item.name).lower() == called), None)
    if other is None:
        return
    if alias is None and other.alias is None:
        fact, hint = f'"{name}" stands twice in FROM', f"give each an alias: {name} AS a, {name} AS b"
    else:
        fact, hint = f'two FROM items are called "{alias or name}"', f"give one another alias: {name} AS a"
    raise cursor.error(fact, alias_token or name_token, "duplicate_alias", hint)


def _parse_on(cursor: Cursor, expressions: ExpressionParser) -> Syntax:
    if cursor.token.is_word("USING"):
        raise cursor.refuse(USING)
    if not cursor.take_word("ON"):
        raise cursor.unexpected("JOIN needs ON: a JOIN b ON a.x = b.x")
    return expressions.parse()


def _is_keyword(token: Token) -> bool:
    text = token.text
    return text in RESERVED or text in _JOIN_WORDS or text in CLAUSES or text in OPERANDS or " " in text


def _parse_alias(cursor: Cursor, what: str) -> str:
    token = cursor.token
    if not token.named or (token.kind is Kind.WORD and (token.text in RESERVED or " " in token.text)):
        raise cursor.unexpected("a name is missing behind AS")
    cursor.advance()
    try:
        return check_name(cursor.name(token), what)
    except SchemaError as error:
        raise cursor.error(error.fact, token, error.code, error.hint) from None


def _take_end(cursor: Cursor) -> None:
    if cursor.take_symbol(";") and cursor.token.kind is not Kind.END:
        raise cursor.refuse(MANY_STATEMENTS)
    if cursor.token.kind is not Kind.END:
        raise cursor.unexpected()
