"""From the text of a query to its syntax tree.

    query  : SELECT item {, item} FROM source [WHERE expression] [;]
    item   : * | alias.* | expression [AS name]
    source : stream [window] [[AS] alias]

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
from queries.syntax import Item, ParsedQuery, SourceItem, Star, WindowParam
from queries.tokens import Cursor, Kind, Token, tokenize
from queries.vocabulary import CLAUSES, MANY_STATEMENTS, OPERANDS, SECOND_SOURCE, SOURCES, STATEMENTS, SUBQUERY_IN_FROM, never
from queries.windows import parse_window
from windows.spec import WindowSpec

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
    from_item = _parse_source(cursor)
    condition = expressions.parse() if cursor.take_word("WHERE") else None
    _take_end(cursor)
    params = set(expressions.params)
    if isinstance(from_item.window, WindowParam):
        params.add(from_item.window.name)
    return ParsedQuery(source, items, from_item, condition, frozenset(params))


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


def _parse_source(cursor: Cursor) -> SourceItem:
    token, following = cursor.token, cursor.peek()
    if token.is_symbol("("):
        raise cursor.refuse(SUBQUERY_IN_FROM)
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
    window = parse_window(cursor) if cursor.token.is_symbol("[") else WindowSpec.none()
    alias = None
    alias_token = cursor.token
    if cursor.take_word("AS"):
        alias = _parse_alias(cursor, "stream")
    elif alias_token.named and not (alias_token.kind is Kind.WORD and _is_keyword(alias_token)):
        alias = _parse_alias(cursor, "stream")
    if cursor.token.is_symbol("["):
        fact = "the alias stands before the window" if window == WindowSpec.none() else "a stream has one window"
        raise cursor.error(fact, alias_token if alias else cursor.token, hint=_WINDOW_ORDER)
    return SourceItem(token.start, token.end, cursor.name(token), alias, window)


def _is_keyword(token: Token) -> bool:
    return token.text in RESERVED or token.text in CLAUSES or token.text in OPERANDS or " " in token.text


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
    token = cursor.token
    if token.is_symbol(","):
        raise cursor.refuse(SECOND_SOURCE)
    if cursor.take_symbol(";") and cursor.token.kind is not Kind.END:
        raise cursor.refuse(MANY_STATEMENTS)
    if cursor.token.kind is not Kind.END:
        raise cursor.unexpected()
