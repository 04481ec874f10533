"""Operands of an expression: literals, parameters, names, groups, CASE and function calls.

`OperandParser` reads one operand; what stands between operands is `queries/expressions.py`, which it calls back for
everything in parentheses. It also makes the nodes, because it is here that their height and size are bounded.
"""

from __future__ import annotations

import abc
import math
import re

from filters.expressions.expression import Literal
from lineage.errors import did_you_mean
from lineage.schema import Type
from queries.lifting import timed
from queries.syntax import MAX_HEIGHT, MAX_SIZE, Aggregated, Apply, Constant, Convert, Invoke, Name, Param, Syntax
from queries.tokens import Cursor, Token, TokenKind
from queries.vocabulary import AGGREGATES, ARRAYS, FUNCTIONS, OPERANDS, SUBQUERY, RefusedWord, never
from queries.windows import parse_interval, parse_param

#: Words the grammar itself uses: a column of that name must be quoted or qualified.
RESERVED = frozenset("SELECT FROM WHERE AND OR NOT IN IS LIKE BETWEEN ESCAPE CASE WHEN THEN ELSE END AS NULL TRUE FALSE".split())

TYPE_NAMES = (
    dict.fromkeys(("INT", "INTEGER", "BIGINT"), Type.INT)
    | dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "FLOAT", "REAL"), Type.FLOAT)
    | dict.fromkeys(("TEXT", "VARCHAR", "STRING"), Type.STRING)
    | dict.fromkeys(("BOOL", "BOOLEAN"), Type.BOOL)
    | {"TIMESTAMP": Type.TIMESTAMP}
)

_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_INT_MAX = 2**63 - 1
_ROW_VALUE = never("a row value (a, b)", "compare the columns one by one")
_TRIM = never("TRIM with FROM", "write TRIM(text), LTRIM(text) or RTRIM(text)")
_FROM_FORMS = {"TRIM": _TRIM, "SUBSTRING": never("SUBSTRING with FROM", "write SUBSTR(text, from, count)")}
_INTERVAL_PARAM = never("INTERVAL with a parameter", "give the parameter a timedelta and write ts - :name")


class OperandParser(abc.ABC):
    """Reads operands from a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        #: the names of the parameters met so far
        self.params: set[str] = set()
        #: how many aggregates were met so far
        self.n_aggregates = 0

    @abc.abstractmethod
    def parse(self) -> Syntax:
        """Read one expression."""

    @abc.abstractmethod
    def parse_without_words(self) -> Syntax:
        """Read one expression that ends before the first word between operands, such as IN or AND."""

    def parse_operand(self, negative: bool) -> Syntax:
        cursor = self._cursor
        token = cursor.token
        if token.kind is TokenKind.NUMBER or (token.is_symbol(".") and cursor.peek().kind is TokenKind.NUMBER):
            return self._number(negative)
        if token.kind is TokenKind.STRING:
            cursor.advance()
            return Constant(token.start, token.end, self._text_literal(token))
        if token.is_symbol(":"):
            return self._param()
        if token.is_symbol("("):
            return self._group()
        if token.is_symbol("["):
            raise cursor.refuse(ARRAYS)
        if not token.named:
            raise cursor.unexpected("a column, a value or an expression is missing")
        if cursor.peek().is_symbol("(") and not token.is_word(*RESERVED):
            return self._call()
        if token.kind is TokenKind.WORD:
            return self._word()
        return self._name()

    def _word(self) -> Syntax:
        cursor = self._cursor
        token, following = cursor.token, cursor.peek()
        if token.text in ("NULL", "TRUE", "FALSE"):
            cursor.advance()
            literal = Literal(Type.NULL, None) if token.text == "NULL" else Literal(Type.BOOL, token.text == "TRUE")
            return Constant(token.start, token.end, literal)
        if token.text == "CASE":
            return self._case()
        if token.text == "INTERVAL" and (following.kind in (TokenKind.STRING, TokenKind.NUMBER) or following.is_symbol("-")):
            cursor.advance()
            interval = parse_interval(cursor)
            return Constant(token.start, cursor.peek(-1).end, Literal(Type.INTERVAL, interval))
        if token.text == "INTERVAL" and following.is_symbol(":"):
            raise cursor.refuse(_INTERVAL_PARAM)
        if following.kind is TokenKind.STRING and token.text not in RESERVED:
            return self._typed_text()
        if token.text in OPERANDS:
            raise cursor.refuse(OPERANDS[token.text])
        if token.text in RESERVED or " " in token.text:
            raise cursor.unexpected("a column, a value or an expression is missing")
        return self._name()

    def _typed_text(self) -> Syntax:
        """TIMESTAMP 'text'."""
        cursor = self._cursor
        word = cursor.advance()
        if word.text != "TIMESTAMP":
            raise cursor.error(
                f'unexpected text behind "{cursor.name(word)}"', word, hint="only TIMESTAMP 'text' and INTERVAL 'text'"
            )
        text = cursor.advance()
        literal = timed(self._text_literal(text))
        if literal is None:
            raise cursor.error(f"'{text.text[:40]}' is no time", text, "bad_timestamp", "write 2024-05-01T12:00:00Z")
        return Constant(word.start, text.end, literal)

    def _text_literal(self, token: Token) -> Literal:
        return self._cursor.literal(token.start, token.end, Literal(Type.STRING, token.text))

    def _number(self, negative: bool) -> Syntax:
        cursor = self._cursor
        first = cursor.advance()
        last, text = first, first.text
        if first.is_symbol("."):
            last = cursor.advance()
            text = "." + last.text
        if not _NUMBER.match(text):
            raise cursor.source.error(f'"{text[:40]}" is no number', first.start, last.end, "syntax_error")
        value: int | float
        if text.isdigit():
            # int() of a long text is quadratic, and refused by Python from 4,300 digits on.
            value = int(text) if len(text.lstrip("0")) <= 19 else 2**64
            fits = value <= _INT_MAX or (value == _INT_MAX + 1 and negative and not cursor.token.is_symbol("::"))
        else:
            value = float(text)
            fits = math.isfinite(value)
        if not fits:
            hint = "integers are 64 bits wide; write 1e20 for a float"
            raise cursor.source.error("the number is too large", first.start, last.end, "number_too_large", hint)
        literal = Literal(Type.INT if isinstance(value, int) else Type.FLOAT, value)
        return Constant(first.start, last.end, cursor.literal(first.start, last.end, literal))

    def _param(self) -> Syntax:
        start = self._cursor.token.start
        token = parse_param(self._cursor)
        name = self._cursor.name(token)
        self.params.add(name)
        return Param(start, token.end, name)

    def _name(self) -> Syntax:
        cursor = self._cursor
        first = cursor.advance()
        if not cursor.take_symbol("."):
            return Name(first.start, first.end, None, cursor.name(first))
        second = cursor.token
        if not second.named:
            raise cursor.unexpected("a column name is missing")
        cursor.advance()
        if cursor.token.is_symbol("."):
            raise cursor.refuse(never("a name of three parts (nested types)", "write alias.column"))
        if cursor.token.is_symbol("("):
            raise cursor.refuse(never("a method call", "write function(column)"))
        return Name(first.start, second.end, cursor.name(first), cursor.name(second))

    def _group(self) -> Syntax:
        cursor = self._cursor
        cursor.advance()
        if cursor.token.is_word("SELECT", "WITH", "VALUES", "FROM"):
            raise cursor.refuse(SUBQUERY)
        inner = self.parse()
        if cursor.token.is_symbol(","):
            raise cursor.refuse(_ROW_VALUE)
        cursor.expect_symbol(")")
        return inner

    def _case(self) -> Syntax:
        cursor = self._cursor
        case = cursor.advance()
        subject = None if cursor.token.is_word("WHEN") else self.parse()
        args: list[Syntax] = []
        while cursor.take_word("WHEN"):
            when = self.parse()
            args.append(when if subject is None else self.apply("=", (subject, when), when.start, when.end))
            cursor.expect_word("THEN")
            args.append(self.parse())
        if not args:
            raise cursor.unexpected("CASE needs WHEN ... THEN ...")
        default: Syntax = Constant(case.start, case.end, Literal(Type.NULL, None))
        if cursor.take_word("ELSE"):
            default = self.parse()
        end = cursor.expect_word("END")
        return self.apply("case", (*args, default), case.start, end.end)

    # -- calls

    def _call(self) -> Syntax:
        """A function call; the forms with words between their arguments become plain calls."""
        cursor = self._cursor
        name = cursor.advance()
        upper = name.text if name.kind is TokenKind.WORD else name.text.upper()
        if upper in FUNCTIONS:
            raise cursor.refuse(FUNCTIONS[upper], name)
        if name.kind is TokenKind.WORD and upper in OPERANDS:
            raise cursor.refuse(OPERANDS[upper], name)
        if upper in AGGREGATES:
            return self._aggregate(name, upper)
        if name.is_word("CAST", "TRY_CAST"):
            cursor.advance()
            value = self.parse()
            cursor.expect_word("AS")
            node = self.convert(value, name.start)
            cursor.expect_symbol(")")
            return node
        if name.is_word("EXTRACT"):
            return self._extract(name)
        if name.is_word("POSITION"):
            return self._position(name)
        if name.is_word("TRIM") and cursor.peek().is_word("LEADING", "TRAILING", "BOTH"):
            raise cursor.refuse(_TRIM, cursor.peek())
        args, end = self.parse_arguments(_FROM_FORMS.get(upper))
        return self._invoke(cursor.name(name).lower(), args, name.start, end)

    def _aggregate(self, name: Token, upper: str) -> Syntax:
        cursor = self._cursor
        cursor.expect_symbol("(")
        usage = "write COUNT(*), COUNT(x) or COUNT(DISTINCT x)" if upper == "COUNT" else f"write {upper}(x)"
        distinct_token = cursor.token
        distinct = cursor.take_word("DISTINCT")
        arg: Syntax | None = None
        if upper == "COUNT" and not distinct and cursor.token.is_symbol("*"):
            cursor.advance()
        elif cursor.token.is_symbol(")") or cursor.token.is_symbol("*"):
            raise cursor.error(f"{upper} takes one argument", cursor.token, "wrong_arguments", usage)
        else:
            arg = self.parse()
        if cursor.token.is_symbol(","):
            raise cursor.error(f"{upper} takes one argument", cursor.token, "wrong_arguments", usage)
        if distinct and upper != "COUNT":
            raise cursor.refuse(never(f"DISTINCT in {upper}", "only COUNT(DISTINCT x)"), distinct_token)
        end = cursor.expect_symbol(")").end
        condition = None
        if cursor.token.is_word("FILTER"):
            condition, end = self._filter()
        self.n_aggregates += 1
        parts = tuple(part for part in (arg, condition) if part is not None)
        return Aggregated(name.start, end, upper.lower(), arg, distinct, condition, *self._measure(parts, name.start, end))

    def _filter(self) -> tuple[Syntax, int]:
        """FILTER (WHERE p) at the cursor: the condition, and the offset behind it."""
        cursor = self._cursor
        cursor.advance()
        cursor.expect_symbol("(")
        cursor.expect_word("WHERE")
        condition = self.parse()
        return condition, cursor.expect_symbol(")").end

    def _extract(self, name: Token) -> Syntax:
        cursor = self._cursor
        cursor.advance()
        part = cursor.token
        if part.kind not in (TokenKind.WORD, TokenKind.STRING):
            raise cursor.unexpected("write EXTRACT(hour FROM ts)")
        cursor.advance()
        cursor.expect_word("FROM")
        value = self.parse()
        end = cursor.expect_symbol(")")
        unit = Constant(part.start, part.end, Literal(Type.STRING, cursor.name(part)))
        return self._invoke("extract", (unit, value), name.start, end.end)

    def _position(self, name: Token) -> Syntax:
        """POSITION(a IN b): `a IN b` would be an operator, so `a` is one operand."""
        cursor = self._cursor
        cursor.advance()
        what = self.parse_without_words()
        if not cursor.take_word("IN"):
            raise cursor.unexpected("write POSITION(text IN text)")
        whole = self.parse()
        end = cursor.expect_symbol(")")
        return self._invoke("position", (what, whole), name.start, end.end)

    def parse_arguments(self, from_form: RefusedWord | None = None) -> tuple[tuple[Syntax, ...], int]:
        """The list in parentheses at the cursor, and the offset behind it; `from_form` refuses a FROM in it."""
        cursor = self._cursor
        cursor.expect_symbol("(")
        args: list[Syntax] = []
        if not cursor.token.is_symbol(")"):
            args.append(self.parse())
            while cursor.take_symbol(","):
                args.append(self.parse())
        if from_form is not None and cursor.token.is_word("FROM"):
            raise cursor.refuse(from_form)
        return tuple(args), cursor.expect_symbol(")").end

    def convert(self, value: Syntax, start: int) -> Syntax:
        """The type name at the cursor, applied to `value`."""
        cursor = self._cursor
        token = cursor.token
        if token.kind is not TokenKind.WORD:
            raise cursor.unexpected("a type is missing: int, float, string, bool or timestamp")
        kind = TYPE_NAMES.get(token.text)
        if kind is None:
            hint = did_you_mean(token.text.lower(), ["int", "float", "string", "bool", "timestamp"])
            raise cursor.error(f'type "{cursor.name(token)}" does not exist', token, "unknown_type", hint)
        cursor.advance()
        if cursor.token.is_symbol("("):
            raise cursor.refuse(never("a length behind a type", f"write {token.text} alone"))
        if cursor.token.is_symbol("["):
            raise cursor.refuse(ARRAYS)
        depth, size = self._measure((value,), start, token.end)
        return Convert(start, token.end, kind, value, depth, size)

    # -- nodes

    def negate(self, node: Syntax, start: int) -> Syntax:
        return self.apply("not", (node,), start, node.end)

    def apply(self, op: str, args: tuple[Syntax, ...], start: int, end: int) -> Apply:
        return Apply(start, end, op, args, *self._measure(args, start, end))

    def _invoke(self, name: str, args: tuple[Syntax, ...], start: int, end: int) -> Invoke:
        return Invoke(start, end, name, args, *self._measure(args, start, end))

    def _measure(self, args: tuple[Syntax, ...], start: int, end: int) -> tuple[int, int]:
        """Height and size of a node over `args`, both within their bounds."""
        depth, size = 1, 1
        for arg in args:
            depth = max(depth, arg.depth + 1)
            size += arg.size
        if depth > MAX_HEIGHT:
            hint = "AND, OR and IN take any number of terms; other chains do not"
            raise self._cursor.source.error(
                f"the expression is deeper than {MAX_HEIGHT} operators", start, end, "query_too_deep", hint
            )
        if size > MAX_SIZE:
            hint = "BETWEEN, CASE x WHEN and IN repeat their first operand: keep it simple"
            raise self._cursor.source.error(
                f"the expression has more than {MAX_SIZE} operators", start, end, "too_many_tokens", hint
            )
        return depth, size
