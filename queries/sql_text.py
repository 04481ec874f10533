"""The text of one query, and errors that point into it.

Offsets count characters from 0 and spans are half-open, `[start, end)`; lines and columns count from 1. Every
`QueryError` of this package is made here, so every one has a line, a column and an excerpt of the user's own text.
"""

from __future__ import annotations

from lineage.errors import QueryError

_EXCERPT_CHARACTERS = 40


class SqlText:
    """A query's text. Immutable; shared by the parsed query and all its bindings."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def place(self, start: int) -> tuple[int, int]:
        """Line and column of an offset.

        >>> SqlText("SELECT a\\nFROM s").place(9)
        (2, 1)
        """
        before = self.text[:start]
        return before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1

    def excerpt(self, start: int, end: int) -> str:
        shown = " ".join(self.text[start : min(end, start + 4 * _EXCERPT_CHARACTERS)].split())
        return shown if len(shown) <= _EXCERPT_CHARACTERS else shown[: _EXCERPT_CHARACTERS - 3] + "..."

    def error(self, fact: str, start: int, end: int, code: str = "bad_query", hint: str = "") -> QueryError:
        """The error for `text[start:end]`; the caller raises it."""
        line, column = self.place(start)
        return QueryError(fact, code=code, hint=hint, line=line, column=column, excerpt=self.excerpt(start, end))
