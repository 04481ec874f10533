"""From the text of a query to its syntax tree.

    statement : query [;]
    query     : [WITH name AS (query) {, name AS (query)}] sets
    sets      : meets {UNION|EXCEPT [ALL] meets}
    meets     : primary {INTERSECT [ALL] primary}
    primary   : select | (query) | ISTREAM|DSTREAM|RSTREAM (query)
    select    : SELECT [DISTINCT] item {, item} FROM sources [WHERE expression]
                [GROUP BY expression {, expression}] [HAVING expression]
    item      : * | alias.* | expression [AS name]

`sources` is `queries/sources.py`, `expression` is `queries/expressions.py`. `parse` needs no schema and no parameters, so its
result is kept per text and bound many times. Everything else of SQL is refused by name with the place of its first token;
nothing is skipped or taken for an alias. Cost: linear in the text. The recursion is bounded: parentheses by
`guards.MAX_DEPTH`, queries inside each other by `syntax.MAX_LEVELS`.
"""

from __future__ import annotations

from collections.abc import Callable

from queries.guards import check_text
from queries.lifting import Lifting
from queries.sources import SourceParser, take_name
from queries.sql_text import SqlText
from queries.syntax import (
    MAX_LEVELS,
    MAX_SELECTS,
    Item,
    ParsedQuery,
    QuerySyntax,
    SelectQuery,
    SetQuery,
    Star,
    StreamQuery,
    Syntax,
    WithName,
    WithQuery,
)
from queries.tokens import Cursor, TokenKind, tokenize
from queries.vocabulary import (
    BY_NAME,
    CLAUSE_WORDS,
    COLUMN_LIST,
    DISTINCT_ON,
    FUNCTIONS,
    GROUP_BY_ALL,
    MANY_STATEMENTS,
    RECURSIVE,
    STATEMENTS,
    STREAM_OPERATORS,
    never,
)

_ALIAS_HINT = "write AS before a column's name: expr AS name"
_FORM = "SELECT ... FROM stream"


def parse(sql: str, lifting: Lifting | None = None) -> ParsedQuery:
    """Read a query's text, for others too with `lifting`; raises `QueryError` on anything that is no query of the language.

    >>> parse("SELECT a FROM s [NOW] WHERE b > :low").params
    frozenset({'low'})
    """
    source = SqlText(sql)
    check_text(source)
    cursor = Cursor(source, tokenize(source), lifting)
    _check_begin(cursor)
    parser = _QueryParser(cursor)
    query = parser.parse_query()
    _take_end(cursor)
    return ParsedQuery(source, query, frozenset(parser.params))


def _check_begin(cursor: Cursor) -> None:
    if cursor.token.kind is TokenKind.END:
        raise cursor.error("the query is empty", cursor.token, hint=_FORM)
    if cursor.token.is_symbol(";"):
        raise cursor.refuse(MANY_STATEMENTS)


def _take_end(cursor: Cursor) -> None:
    if cursor.take_symbol(";") and cursor.token.kind is not TokenKind.END:
        raise cursor.refuse(MANY_STATEMENTS)
    if cursor.token.kind is not TokenKind.END:
        raise cursor.unexpected()


class _QueryParser(SourceParser):
    """Reads queries from a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        super().__init__(cursor)
        self._level = 1
        #: queries that are being read: the statement, and those in parentheses around the cursor
        self._n_open = 0
        self._n_selects = 0

    @property
    def params(self) -> set[str]:
        """The names of all parameters met so far."""
        return self._expressions.params

    def parse_nested(self, primary: bool = False) -> QuerySyntax:
        self._level += 1
        if self._level > MAX_LEVELS:
            fact = f"queries stand inside each other deeper than {MAX_LEVELS} levels"
            raise self._cursor.error(fact, self._cursor.token, "query_too_deep", "submit an inner one by itself, with a name")
        query = self._primary() if primary else self.parse_query()
        self._level -= 1
        return query

    def parse_query(self) -> QuerySyntax:
        self._n_open += 1
        query = self._with() if self._cursor.token.is_word("WITH") else self._sets()
        self._n_open -= 1
        return query

    def _with(self) -> WithQuery:
        cursor = self._cursor
        first = cursor.advance()
        if cursor.token.is_word("RECURSIVE"):
            raise cursor.refuse(RECURSIVE)
        names = [self._with_name([])]
        while cursor.take_symbol(","):
            names.append(self._with_name(names))
        return WithQuery(first.start, first.end, tuple(names), self._sets())

    def _with_name(self, before: list[WithName]) -> WithName:
        """`name AS (query)`."""
        cursor = self._cursor
        token = cursor.token
        name = take_name(cursor, "query")
        if cursor.token.is_symbol("("):
            raise cursor.refuse(COLUMN_LIST)
        cursor.expect_word("AS")
        if cursor.token.is_word("MATERIALIZED", "NOT"):
            raise cursor.refuse(never("MATERIALIZED", "leave it out"))
        cursor.expect_symbol("(")
        query = self.parse_nested()
        cursor.expect_symbol(")")
        if any(other.name.lower() == name.lower() for other in before):
            raise cursor.error(f'two queries behind WITH are called "{name}"', token, "duplicate_alias", "rename one of them")
        return WithName(token.start, token.end, name, query)

    # -- set operators

    def _sets(self) -> QuerySyntax:
        left = self._meets()
        while self._cursor.token.is_word("UNION", "EXCEPT"):
            left = self._set_query(left, self._meets)
        return left

    def _meets(self) -> QuerySyntax:
        left = self._primary()
        while self._cursor.token.is_word("INTERSECT"):
            left = self._set_query(left, self._primary)
        return left

    def _set_query(self, left: QuerySyntax, parse_right: Callable[[], QuerySyntax]) -> SetQuery:
        cursor = self._cursor
        operator = cursor.advance()
        every = cursor.take_word("ALL")
        if cursor.token.is_word("DISTINCT"):
            raise cursor.refuse(never(f"{operator.text} DISTINCT", f"{operator.text} alone is distinct"))
        if cursor.token.is_word("BY") and cursor.peek().is_word("NAME"):
            raise cursor.refuse(BY_NAME)
        return SetQuery(operator.start, operator.end, operator.text.lower(), every, left, parse_right())

    def _primary(self) -> QuerySyntax:
        cursor = self._cursor
        token = cursor.token
        if token.is_symbol("("):
            cursor.advance()
            query = self.parse_query()
            cursor.expect_symbol(")")
            return query
        if token.is_word(*STREAM_OPERATORS):
            cursor.advance()
            if not cursor.token.is_symbol("("):
                hint = f"{token.text} (SELECT ...)"
                raise cursor.error(f"{token.text} takes a query in parentheses", token, hint=hint)
            cursor.advance()
            query = self.parse_query()
            cursor.expect_symbol(")")
            return StreamQuery(token.start, token.end, token.text.lower(), query)
        if token.kind is TokenKind.WORD and token.text in STATEMENTS:
            raise cursor.refuse(STATEMENTS[token.text])
        if token.is_word("WITH"):
            raise cursor.error("WITH stands first in its query", token, hint="put the query into parentheses: (WITH ...)")
        if not token.is_word("SELECT"):
            if token.kind is TokenKind.END:
                raise cursor.unexpected(_FORM)
            raise cursor.error("a query begins with SELECT", token, hint=_FORM)
        return self._select()

    # -- one SELECT

    def _select(self) -> SelectQuery:
        cursor, expressions = self._cursor, self._expressions
        first = cursor.advance()
        self._n_selects += 1
        if self._n_selects > MAX_SELECTS:
            fact = f"the query has more than {MAX_SELECTS} SELECTs"
            raise cursor.error(fact, first, "query_too_large", "submit a part by itself, with a name")
        distinct = cursor.take_word("DISTINCT")
        if distinct and cursor.token.is_word("ON") and cursor.peek().is_symbol("("):
            raise cursor.refuse(DISTINCT_ON)
        self._check_items()
        before = expressions.n_aggregates
        items = self._items()
        in_items = expressions.n_aggregates - before
        from_items = self.parse_sources()
        condition = expressions.parse() if cursor.take_word("WHERE") else None
        group_by = self._group_by()
        before = expressions.n_aggregates
        having = expressions.parse() if cursor.take_word("HAVING") else None
        has_aggregates = in_items + expressions.n_aggregates - before > 0
        end = cursor.peek(-1).end
        return SelectQuery(first.start, end, distinct, items, from_items, condition, group_by, having, has_aggregates)

    def _check_items(self) -> None:
        """Refuse select lists that can only be meant as something else."""
        cursor = self._cursor
        token, following = cursor.token, cursor.peek()
        if token.is_word(*STREAM_OPERATORS) and not following.is_word("FROM", "AS"):
            # A column may have that name: only an operand behind it, or a * that multiplies nothing, makes it the operator.
            star = following.is_symbol("*") and (cursor.peek(2).is_word("FROM") or cursor.peek(2).is_symbol(","))
            if star or following.is_symbol(":") or following.kind not in (TokenKind.SYMBOL, TokenKind.END):
                raise cursor.refuse(FUNCTIONS[token.text])
        if token.is_word("FROM"):
            raise cursor.error("the select list is empty", token, hint="SELECT * FROM stream")

    def _items(self) -> tuple[Item | Star, ...]:
        cursor = self._cursor
        items = [self._item()]
        while cursor.take_symbol(","):
            items.append(self._item())
        token = cursor.token
        if cursor.take_word("FROM"):
            return tuple(items)
        if token.kind is TokenKind.END or token.is_word("WHERE", *CLAUSE_WORDS) or (token.is_symbol(")") and self._n_open > 1):
            raise cursor.error("FROM is missing", token, hint=_FORM)
        raise cursor.unexpected(_ALIAS_HINT if token.named else "")

    def _item(self) -> Item | Star:
        cursor = self._cursor
        first = cursor.token
        if cursor.take_symbol("*"):
            return Star(first.start, first.end, None)
        if first.named and cursor.peek().is_symbol(".") and cursor.peek(2).is_symbol("*"):
            cursor.advance()
            cursor.advance()
            return Star(first.start, cursor.advance().end, cursor.name(first))
        expression = self._expressions.parse()
        alias = take_name(cursor, "column") if cursor.take_word("AS") else None
        return Item(first.start, expression.end, expression, alias)

    def _group_by(self) -> tuple[Syntax, ...]:
        cursor = self._cursor
        if cursor.take_word("GROUP"):
            cursor.expect_word("BY")
        elif not cursor.take_word("GROUP BY"):
            return ()
        if cursor.token.is_word("ALL"):
            raise cursor.refuse(GROUP_BY_ALL)
        keys = [self._expressions.parse()]
        while cursor.take_symbol(","):
            keys.append(self._expressions.parse())
        return tuple(keys)
