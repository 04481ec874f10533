"""The grammar of FROM.

    sources : source {, source | [INNER] JOIN source ON expression}
    source  : name [window] [[AS] alias]
            | (query) [window] [AS] alias | ISTREAM|DSTREAM|RSTREAM (query) [window] [AS] alias
            | TUMBLE(name, [column,] width) [[AS] alias] | HOP(name, [column,] width, width) [[AS] alias]
            | LMERGE(name, name {, name}) [window] [AS] alias

`SourceParser` reads the items of one FROM and is called back by `queries/parser.py` for the queries in them. No two items
answer to the same word.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

from lineage.errors import SchemaError
from lineage.schema import check_name
from queries.expressions import ExpressionParser
from queries.operand_parser import RESERVED
from queries.syntax import MAX_INPUTS, Name, QuerySyntax, SourceItem, Syntax, Window
from queries.tokens import Cursor, Token, TokenKind
from queries.vocabulary import (
    CLAUSE_WORDS,
    CLAUSES,
    COLUMN_LIST,
    OPERANDS,
    PARENTHESES_IN_FROM,
    SLIDE_FUNCTIONS,
    SOURCES,
    STATEMENTS,
    STREAM_OPERATORS,
    USING,
    never,
)
from queries.windows import make_slide, params_of, parse_width, parse_window
from windows.spec import WindowSpec

#: Words between FROM items: not an alias unless behind AS.
_JOIN_WORDS = ("JOIN", "INNER", "ON")
_WINDOW_ORDER = "the window stands right behind the stream: FROM s [RANGE 5 MINUTES] AS a"
_NAME_MISSING = "the name of a stream is missing"
_MERGE = "write FROM LMERGE(a, b) [RANGE 5 MINUTES] AS r"


@dataclass(frozen=True, slots=True)
class _What:
    """The source of one FROM item, before its alias."""

    start: int
    end: int
    #: None iff it is a query or a merge
    name: str | None
    query: QuerySyntax | None = None
    window: Window = WindowSpec.none()
    window_span: tuple[int, int] | None = None
    time: Name | None = None
    merged: tuple[Name, ...] = ()


class SourceParser(abc.ABC):
    """Reads FROM items from a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._expressions = ExpressionParser(cursor)

    @abc.abstractmethod
    def parse_nested(self, primary: bool = False) -> QuerySyntax:
        """Read the query that begins at the cursor, one level further in; a primary ends before a set operator."""

    def parse_sources(self) -> tuple[SourceItem, ...]:
        """All FROM items; the cursor then stands behind the last one."""
        cursor = self._cursor
        found = [self._source([], joined=False)]
        while True:
            joined = cursor.token.is_word("JOIN", "INNER")
            if cursor.take_word("INNER"):
                cursor.expect_word("JOIN")
            elif not cursor.take_word("JOIN") and not cursor.take_symbol(","):
                return tuple(found)
            found.append(self._source(found, joined))

    def _source(self, before: list[SourceItem], joined: bool) -> SourceItem:
        cursor = self._cursor
        token = cursor.token
        what = self._what()
        window, span = what.window, what.window_span
        if span is None and cursor.token.is_symbol("["):
            window, span = parse_window(cursor)
        self._expressions.params.update(params_of(window))
        alias_token, alias = cursor.token, self._alias(what)
        if cursor.token.is_symbol("["):
            fact = "the alias stands before the window" if span is None else "a stream has one window"
            raise cursor.error(fact, alias_token if alias and span is None else cursor.token, hint=_WINDOW_ORDER)
        if len(before) == MAX_INPUTS:
            hint = "read fewer, or join some of them outside"
            raise cursor.error(f"the query has more than {MAX_INPUTS} FROM items", token, "too_many_inputs", hint)
        name = what.name or alias
        assert name is not None, "a query or a merge in FROM has an alias"
        self._check_alias(cursor.peek(-1) if alias else token, name, alias, before)
        on = self._on() if joined else None
        return SourceItem(what.start, what.end, name, alias, window, span, on, what.query, what.time, what.merged)

    def _what(self) -> _What:
        """The name, the query or the function at the cursor."""
        cursor = self._cursor
        token, following = cursor.token, cursor.peek()
        if token.is_symbol("("):
            return self._query_in_parentheses()
        if token.is_word(*STREAM_OPERATORS) and (following.is_symbol("(") or following.is_word("SELECT", "WITH")):
            return self._stream_operator()
        if token.is_word(*SLIDE_FUNCTIONS) and following.is_symbol("("):
            return self._slide_function()
        if token.is_word("LMERGE") and following.is_symbol("("):
            return self._merge()
        name = self._name()
        return _What(name.start, name.end, cursor.name(name))

    def _name(self) -> Token:
        cursor = self._cursor
        token, following = cursor.token, cursor.peek()
        if not token.named:
            raise cursor.unexpected(_NAME_MISSING)
        if token.kind is TokenKind.WORD:
            if token.text in SOURCES and (following.is_symbol("(") or following.named):
                raise cursor.refuse(SOURCES[token.text])
            if token.text in RESERVED or token.text in OPERANDS or " " in token.text:
                raise cursor.unexpected(_NAME_MISSING)
        if following.is_symbol("("):
            raise cursor.refuse(never("a table function", "FROM takes the name of a stream"))
        cursor.advance()
        if cursor.token.is_symbol("."):
            raise cursor.refuse(never("a name of two parts in FROM", "stream names have no prefix"))
        return token

    def _query_in_parentheses(self) -> _What:
        cursor = self._cursor
        ahead = 1
        while cursor.peek(ahead).is_symbol("("):
            ahead += 1
        first = cursor.peek(ahead)
        if first.is_word("VALUES", "FROM"):
            raise cursor.refuse(STATEMENTS[first.text], first)
        operator = first.is_word(*STREAM_OPERATORS) and cursor.peek(ahead + 1).is_symbol("(")
        if first.named and not operator and not first.is_word("SELECT", "WITH"):
            raise cursor.refuse(PARENTHESES_IN_FROM)
        start = cursor.advance().start
        query = self.parse_nested()
        return _What(start, cursor.expect_symbol(")").end, None, query)

    def _stream_operator(self) -> _What:
        start = self._cursor.token.start
        query = self.parse_nested(primary=True)
        return _What(start, self._cursor.peek(-1).end, None, query)

    def _slide_function(self) -> _What:
        """TUMBLE(name, [column,] size) or HOP(name, [column,] slide, size)."""
        cursor = self._cursor
        function = cursor.advance()
        usage = f"write {SLIDE_FUNCTIONS[function.text]}"
        cursor.expect_symbol("(")
        if cursor.token.is_symbol("(") or cursor.token.is_word("SELECT", "WITH"):
            raise cursor.error(f"{function.text} takes a name", cursor.token, hint="name the query: WITH a AS (...)")
        token = self._name()
        name = cursor.name(token)
        self._comma(usage)
        time = None
        if cursor.token.named and cursor.peek().is_symbol(","):
            column = cursor.advance()
            time = Name(column.start, column.end, None, cursor.name(column))
            cursor.advance()
        first = cursor.token
        slide = width = parse_width(cursor)
        if function.text == "HOP":
            self._comma(usage)
            width = parse_width(cursor)
        span = (first.start, cursor.peek(-1).end)
        if not cursor.token.is_symbol(")"):
            raise cursor.unexpected(usage)
        cursor.advance()
        return _What(token.start, token.end, name, None, make_slide(*span, width, slide), span, time)

    def _merge(self) -> _What:
        """LMERGE(name, name, ..): streams and running queries."""
        cursor = self._cursor
        word = cursor.advance()
        cursor.expect_symbol("(")
        found: list[Name] = []
        more = not cursor.token.is_symbol(")")
        while more:
            if cursor.token.is_symbol("(") or cursor.token.is_word("SELECT", "WITH"):
                hint = "submit the query with a name, and merge that"
                raise cursor.error("LMERGE takes names", cursor.token, hint=hint)
            token = self._name()
            if cursor.token.is_symbol("["):
                raise cursor.error("a window stands behind LMERGE", cursor.token, hint=_MERGE)
            found.append(Name(token.start, token.end, None, cursor.name(token)))
            if len(found) > MAX_INPUTS:
                hint = "merge some of them by a query of their own, with a name"
                raise cursor.error(f"LMERGE has more than {MAX_INPUTS} inputs", token, "too_many_inputs", hint)
            more = cursor.take_symbol(",")
        if not cursor.token.is_symbol(")"):
            raise cursor.unexpected(_MERGE)
        end = cursor.advance().end
        self._check_merged(found, word)
        return _What(word.start, end, None, merged=tuple(found))

    def _check_merged(self, inputs: list[Name], word: Token) -> None:
        """A merge has at least two inputs, each once."""
        source = self._cursor.source
        if len(inputs) < 2:
            fact, end = ("LMERGE has one input", inputs[0].end) if inputs else ("LMERGE has no inputs", word.end)
            raise source.error(fact, word.start, end, "too_few_inputs", f"at least two give the same rows: {_MERGE}")
        seen: set[str] = set()
        for name in inputs:
            if name.name.lower() in seen:
                fact = f'"{name.name}" stands twice in LMERGE'
                raise source.error(fact, name.start, name.end, "duplicate_input", "an input merged with itself is that input")
            seen.add(name.name.lower())

    def _comma(self, usage: str) -> None:
        if not self._cursor.take_symbol(","):
            raise self._cursor.unexpected(usage)

    def _alias(self, what: _What) -> str | None:
        cursor = self._cursor
        token = cursor.token
        if not cursor.take_word("AS") and (not token.named or (token.kind is TokenKind.WORD and _is_keyword(token))):
            if what.query is None and not what.merged:
                return None
            called, usage = ("LMERGE", "LMERGE(a, b) AS r") if what.merged else ("a query in FROM", "(SELECT ...) AS a")
            hint = f"write AS behind it: {usage}"
            raise cursor.source.error(f"{called} needs a name", what.start, what.end, "missing_alias", hint)
        alias = take_name(cursor, "stream")
        if cursor.token.is_symbol("("):
            raise cursor.refuse(COLUMN_LIST)
        return alias

    def _check_alias(self, token: Token, name: str, alias: str | None, before: list[SourceItem]) -> None:
        """No two FROM items answer to the same word."""
        called = (alias or name).lower()
        other = next((item for item in before if (item.alias or item.name).lower() == called), None)
        if other is None:
            return
        if alias is None and other.alias is None:
            fact, hint = f'"{name}" stands twice in FROM', f"give each an alias: {name} AS a, {name} AS b"
        else:
            fact, hint = f'two FROM items are called "{alias or name}"', f"give one another alias: {name} AS a"
        raise self._cursor.error(fact, token, "duplicate_alias", hint)

    def _on(self) -> Syntax:
        cursor = self._cursor
        if cursor.token.is_word("USING"):
            raise cursor.refuse(USING)
        if not cursor.take_word("ON"):
            raise cursor.unexpected("JOIN needs ON: a JOIN b ON a.x = b.x")
        return self._expressions.parse()


def take_name(cursor: Cursor, what: str) -> str:
    """The new name at the cursor, for a column or a FROM item."""
    token = cursor.token
    if not token.named or (token.kind is TokenKind.WORD and (token.text in RESERVED or " " in token.text)):
        raise cursor.unexpected("a name is missing behind AS")
    cursor.advance()
    try:
        return check_name(cursor.name(token), what)
    except SchemaError as error:
        raise cursor.error(error.fact, token, error.code, error.hint) from None


def _is_keyword(token: Token) -> bool:
    text = token.text
    return " " in text or any(text in words for words in (RESERVED, _JOIN_WORDS, CLAUSES, OPERANDS, CLAUSE_WORDS))
