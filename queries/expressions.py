"""The grammar of expressions: operators by precedence, on two stacks.

From loose to tight, as in DuckDB:

    OR   AND   NOT   IS NULL   = <> < <= > >=   BETWEEN IN LIKE   ||   + -   * / %   unary + -   ::

Operators wait on a stack until one that binds no tighter arrives, so a chain of any length costs no recursion; only
parentheses, function calls and CASE recurse, at most `MAX_DEPTH` deep with nine frames each. That is why sqlglot gives the
tokens but not the tree: its parser takes 23 to 33 frames a level, 1,087 for 32 levels, and Python allows 1,000 in all.
AND and OR collect all their terms in one node. Cost: linear in the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from queries.guards import MAX_DEPTH
from queries.lifting import negated
from queries.operand_parser import OperandParser
from queries.syntax import Apply, Constant, Param, Syntax
from queries.tokens import Cursor, TokenKind
from queries.vocabulary import ARRAYS, IN_QUERY, never

_OR, _AND, _NOT, _IS, _COMPARE, _RANGE, _CONCAT, _SUM, _PRODUCT, _SIGN = range(1, 11)
_BINARY = {
    "=": (_COMPARE, "="),
    "==": (_COMPARE, "="),
    "<>": (_COMPARE, "<>"),
    "!=": (_COMPARE, "<>"),
    "<": (_COMPARE, "<"),
    "<=": (_COMPARE, "<="),
    ">": (_COMPARE, ">"),
    ">=": (_COMPARE, ">="),
    "||": (_CONCAT, "||"),
    "+": (_SUM, "+"),
    "-": (_SUM, "-"),
    "*": (_PRODUCT, "*"),
    "/": (_PRODUCT, "/"),
    "%": (_PRODUCT, "%"),
}


@dataclass(slots=True)
class _Operator:
    """An operator that waits for its last operand."""

    precedence: int
    op: str
    #: where its own token starts
    start: int
    #: operands it takes off the stack
    arity: int
    negated: bool = False


class ExpressionParser(OperandParser):
    """Reads expressions from a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        super().__init__(cursor)
        self._depth = 0

    def parse(self) -> Syntax:
        """Read one expression; the cursor then stands on the first token that cannot belong to it."""
        return self._parse(words=True)

    def parse_without_words(self) -> Syntax:
        return self._parse(words=False)

    def _parse(self, words: bool) -> Syntax:
        cursor = self._cursor
        self._depth += 1
        if self._depth > MAX_DEPTH + 1:
            raise cursor.error(f"the query is nested deeper than {MAX_DEPTH} levels", cursor.token, "query_too_deep")
        operands: list[Syntax] = []
        waiting: list[_Operator] = []
        self._take_operand(operands, waiting)
        while (words or cursor.token.kind is TokenKind.SYMBOL) and self._take_operator(operands, waiting):
            pass
        self._reduce(operands, waiting, 0)
        self._depth -= 1
        return operands[0]

    def _take_operand(self, operands: list[Syntax], waiting: list[_Operator]) -> None:
        """Read prefix operators and then one operand."""
        cursor = self._cursor
        while True:
            token = cursor.token
            if token.is_word("NOT"):
                if waiting and waiting[-1].precedence > _NOT:
                    raise cursor.error("NOT needs parentheses here", token, hint="write (NOT ...)")
                waiting.append(_Operator(_NOT, "not", token.start, 1))
            elif token.is_symbol("-"):
                waiting.append(_Operator(_SIGN, "neg", token.start, 1))
            elif token.is_symbol("+"):
                waiting.append(_Operator(_SIGN, "plus", token.start, 1))
            else:
                break
            cursor.advance()
        operand = self.parse_operand(negative=bool(waiting) and waiting[-1].op == "neg")
        while cursor.token.is_symbol("::"):
            cursor.advance()
            operand = self.convert(operand, operand.start)
        operands.append(operand)

    def _take_operator(self, operands: list[Syntax], waiting: list[_Operator]) -> bool:
        """Read one operator and its right operand; False when the expression ends here."""
        cursor = self._cursor
        token = cursor.token
        if token.kind is TokenKind.SYMBOL:
            if token.text == "[":
                raise cursor.refuse(ARRAYS)
            if token.text not in _BINARY:
                return False
            precedence, op = _BINARY[token.text]
            if precedence == _COMPARE:
                self._reduce(operands, waiting, _COMPARE + 1)
                if waiting and waiting[-1].precedence == _COMPARE:
                    raise cursor.error("comparisons cannot be chained", token, hint="join them with AND: a < b AND b < c")
            self._push(operands, waiting, _Operator(precedence, op, token.start, 2))
            return True
        if token.kind is not TokenKind.WORD:
            return False
        if token.text == "AND":
            self._and(operands, waiting)
        elif token.text == "OR":
            self._chain(operands, waiting, _Operator(_OR, "or", token.start, 2))
        elif token.text == "IS":
            self._is_null(operands, waiting)
        elif token.text == "ESCAPE":
            self._escape(operands, waiting)
        else:
            return self._range(operands, waiting)
        return True

    def _push(self, operands: list[Syntax], waiting: list[_Operator], operator: _Operator) -> None:
        self._cursor.advance()
        self._reduce(operands, waiting, operator.precedence)
        waiting.append(operator)
        self._take_operand(operands, waiting)

    def _chain(self, operands: list[Syntax], waiting: list[_Operator], operator: _Operator) -> None:
        """AND and OR: one more term for the same operator if that is what waits."""
        self._cursor.advance()
        self._reduce(operands, waiting, operator.precedence + 1)
        if waiting and waiting[-1].op == operator.op:
            waiting[-1].arity += 1
        else:
            waiting.append(operator)
        self._take_operand(operands, waiting)

    def _and(self, operands: list[Syntax], waiting: list[_Operator]) -> None:
        self._reduce(operands, waiting, _RANGE + 1)
        if waiting and waiting[-1].op == "between" and waiting[-1].arity == 2:
            waiting[-1].arity = 3
            self._cursor.advance()
            self._take_operand(operands, waiting)
        else:
            self._chain(operands, waiting, _Operator(_AND, "and", self._cursor.token.start, 2))

    def _is_null(self, operands: list[Syntax], waiting: list[_Operator]) -> None:
        cursor = self._cursor
        cursor.advance()
        self._reduce(operands, waiting, _IS)
        negated = cursor.take_word("NOT")
        if not cursor.token.is_word("NULL"):
            if cursor.token.is_word("DISTINCT"):
                hint = "a = b OR (a IS NULL AND b IS NULL)" if negated else "a <> b OR (a IS NULL) <> (b IS NULL)"
                raise cursor.refuse(never(f"IS {'NOT ' if negated else ''}DISTINCT FROM", hint))
            if cursor.token.is_word("TRUE", "FALSE"):
                raise cursor.refuse(never(f"IS {cursor.token.text}", "write COALESCE(a, FALSE)"))
            raise cursor.unexpected("only IS NULL and IS NOT NULL")
        null = cursor.advance()
        value = operands.pop()
        found = self.apply("is_null", (value,), value.start, null.end)
        operands.append(self.negate(found, value.start) if negated else found)

    def _range(self, operands: list[Syntax], waiting: list[_Operator]) -> bool:
        """[NOT] BETWEEN, IN, LIKE."""
        cursor = self._cursor
        negated = cursor.token.is_word("NOT")
        token = cursor.peek() if negated else cursor.token
        if not token.is_word("BETWEEN", "IN", "LIKE"):
            if negated:
                cursor.advance()
                raise cursor.unexpected("behind an operand only NOT BETWEEN, NOT IN and NOT LIKE")
            return False
        if negated:
            cursor.advance()
        if token.text != "IN":
            self._push(operands, waiting, _Operator(_RANGE, token.text.lower(), token.start, 2, negated))
            return True
        cursor.advance()
        self._reduce(operands, waiting, _RANGE)
        if not cursor.token.is_symbol("("):
            raise cursor.unexpected("IN takes a list: x IN (1, 2, 3)")
        if cursor.peek().is_word("SELECT", "WITH", "VALUES", "FROM"):
            raise cursor.refuse(IN_QUERY, token)
        args, end = self.parse_arguments()
        if not args:
            raise cursor.error("the list of IN is empty", token, hint="x IN (1, 2, 3)")
        value = operands.pop()
        found = self._in(value, args, end)
        operands.append(self.negate(found, value.start) if negated else found)
        return True

    def _in(self, value: Syntax, args: tuple[Syntax, ...], end: int) -> Syntax:
        """A list of constants is one `in`; any other list is an OR of equations."""
        if all(isinstance(arg, Constant | Param) for arg in args):
            return self.apply("in", (value, *args), value.start, end)
        terms = tuple(self.apply("=", (value, arg), arg.start, arg.end) for arg in args)
        return terms[0] if len(terms) == 1 else self.apply("or", terms, value.start, end)

    def _escape(self, operands: list[Syntax], waiting: list[_Operator]) -> None:
        cursor = self._cursor
        self._reduce(operands, waiting, _RANGE + 1)
        if not waiting or waiting[-1].op != "like" or waiting[-1].arity != 2:
            raise cursor.unexpected("ESCAPE follows a LIKE pattern")
        waiting[-1].arity = 3
        cursor.advance()
        self._take_operand(operands, waiting)

    def _reduce(self, operands: list[Syntax], waiting: list[_Operator], precedence: int) -> None:
        """Give their operands to all waiting operators that bind at least as tight as `precedence`."""
        while waiting and waiting[-1].precedence >= precedence:
            operator = waiting.pop()
            args = tuple(operands[-operator.arity :])
            del operands[-operator.arity :]
            operands.append(self._finish(operator, args))

    def _finish(self, operator: _Operator, args: tuple[Syntax, ...]) -> Syntax:
        op, start, end = operator.op, min(operator.start, args[0].start), args[-1].end
        if op == "between":
            if len(args) == 2:
                raise self._cursor.unexpected("BETWEEN needs AND: x BETWEEN 1 AND 2")
            low = self.apply(">=", (args[0], args[1]), start, args[1].end)
            high = self.apply("<=", (args[0], args[2]), start, end)
            node: Syntax = self.apply("and", (low, high), start, end)
        elif op in ("and", "or"):
            terms: list[Syntax] = []
            for arg in args:
                terms.extend(arg.args if isinstance(arg, Apply) and arg.op == op else (arg,))
            node = self.apply(op, tuple(terms), start, end)
        elif op in ("neg", "plus"):
            return self._signed(op, args[0], start)
        else:
            node = self.apply(op, args, start, end)
        return self.negate(node, start) if operator.negated else node

    def _signed(self, op: str, arg: Syntax, start: int) -> Syntax:
        """A sign before a number belongs to the number; a plus elsewhere still asks for a number."""
        if isinstance(arg, Constant) and arg.literal.type.numeric:
            return Constant(start, arg.end, negated(arg.literal) if op == "neg" else arg.literal)
        return self.apply(op, (arg,), start, arg.end)
