"""The tokens of a query: sqlglot's tokenizer, reduced to six kinds.

sqlglot's DuckDB tokenizer knows the lexical rules (strings, quoted names, comments, numbers); its several hundred
keyword types are not used, so a column may be called `temp`, `index` or `first`. A *word* becomes a keyword only where
the grammar looks for it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from filters.expressions.expression import Literal
from lineage.errors import QueryError
from queries.guards import MAX_TOKENS
from queries.lifting import Lifting
from queries.sql_text import SqlText
from queries.vocabulary import CLAUSES, SYMBOLS, RefusedWord

_SYMBOLS = frozenset("( ) , . + - * / % || = == <> != < <= > >= :: : [ ] ;".split())
#: As in `lineage.schema.check_name`; a longer name is no one's, and would only fill an error's text.
_NAME_CHARACTERS = 128
_DIALECT = DuckDB()


class TokenKind(enum.Enum):
    WORD = "word"
    QUOTED = "quoted name"
    NUMBER = "number"
    STRING = "text"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` is upper case for a WORD, and without its quotes for a STRING or QUOTED."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is TokenKind.SYMBOL and self.text == symbol

    def is_word(self, *words: str) -> bool:
        return self.kind is TokenKind.WORD and self.text in words

    @property
    def named(self) -> bool:
        """Whether it can be a name: a word or a quoted name."""
        return self.kind is TokenKind.WORD or self.kind is TokenKind.QUOTED


def tokenize(source: SqlText) -> list[Token]:
    """All tokens, then one END; raises `QueryError` on a symbol the language does not have. Linear in the text."""
    text = source.text
    try:
        raw = _DIALECT.tokenize(text)
    except TokenError:
        raise source.error("the text cannot be split into tokens", 0, len(text), "syntax_error") from None
    if len(raw) > MAX_TOKENS:
        late = raw[MAX_TOKENS]
        raise source.error(f"the query has more than {MAX_TOKENS} tokens", late.start, late.end + 1, "too_many_tokens")
    tokens = []
    for item in raw:
        start, end = item.start, item.end + 1
        written = text[start:end]
        if item.token_type is TokenType.STRING and written.startswith("'"):
            tokens.append(Token(TokenKind.STRING, item.text, start, end))
        elif item.token_type is TokenType.IDENTIFIER and written.startswith('"'):
            tokens.append(Token(TokenKind.QUOTED, item.text, start, end))
        elif item.token_type is TokenType.NUMBER:
            tokens.append(Token(TokenKind.NUMBER, item.text, start, end))
        elif written[:1].isalpha() or written[:1] == "_":
            if "'" in written or '"' in written:
                raise source.error(
                    "a prefix before a quote is not part of the language", start, end, "not_supported", "write 'text'"
                )
            tokens.append(Token(TokenKind.WORD, " ".join(written.upper().split()), start, end))
        elif written in _SYMBOLS:
            tokens.append(Token(TokenKind.SYMBOL, written, start, end))
        else:
            refusal = SYMBOLS.get(written)
            if refusal is not None:
                raise source.error(refusal.fact, start, end, "not_supported", refusal.advice)
            raise source.error(f'"{source.excerpt(start, end)}" is not part of the language', start, end, "not_supported")
    for token in tokens:
        if token.named and len(token.text) > _NAME_CHARACTERS:
            fact = f"the name is longer than {_NAME_CHARACTERS} characters"
            raise source.error(fact, token.start, token.end, "bad_name")
    tokens.append(Token(TokenKind.END, "", len(text.rstrip()), len(text)))
    return tokens


class Cursor:
    """A position in the tokens of one query, moved forward by the grammar."""

    __slots__ = ("source", "_tokens", "_lifting", "_at")

    def __init__(self, source: SqlText, tokens: list[Token], lifting: Lifting | None = None) -> None:
        self.source = source
        self._tokens = tokens
        self._lifting = lifting
        self._at = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Step over the current token and return it; END is never passed."""
        token = self._tokens[self._at]
        if token.kind is not TokenKind.END:
            self._at += 1
        return token

    def take_symbol(self, symbol: str) -> bool:
        if self.token.is_symbol(symbol):
            self._at += 1
            return True
        return False

    def take_word(self, *words: str) -> bool:
        if self.token.is_word(*words):
            self._at += 1
            return True
        return False

    def expect_symbol(self, symbol: str) -> Token:
        if not self.token.is_symbol(symbol):
            raise self.unexpected(f'"{symbol}" is missing')
        return self.advance()

    def expect_word(self, word: str) -> Token:
        if not self.token.is_word(word):
            raise self.unexpected(f"{word} is missing")
        return self.advance()

    def name(self, token: Token) -> str:
        """A name as the user wrote it."""
        return self.source.text[token.start : token.end] if token.kind is TokenKind.WORD else token.text

    def literal(self, start: int, end: int, literal: Literal) -> Literal:
        """A literal that stands there, lifted if the text is read for others too."""
        return literal if self._lifting is None else self._lifting.lifted(start, end, literal)

    def error(self, fact: str, token: Token, code: str = "syntax_error", hint: str = "") -> QueryError:
        return self.source.error(fact, token.start, token.end, code, hint)

    def refuse(self, refusal: RefusedWord, token: Token | None = None) -> QueryError:
        at = token or self.token
        return self.source.error(refusal.fact, at.start, at.end, "not_supported", refusal.advice)

    def unexpected(self, hint: str = "") -> QueryError:
        """The error for the current token, which no rule takes; a known clause is refused by its name."""
        token = self.token
        if token.kind is TokenKind.END:
            return self.error("the query ends too early", token, hint=hint)
        if token.kind is TokenKind.WORD and token.text in CLAUSES:
            return self.refuse(CLAUSES[token.text])
        return self.error(f'unexpected "{self.source.excerpt(token.start, token.end)}"', token, hint=hint)
