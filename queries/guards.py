"""Bounds on the text of a query, checked before anything else reads it.

A query is a small text from an untrusted client, so its cost is bounded first:

    length   <= 64 KiB of UTF-8
    lexemes  <= 2,000
    depth    <= 32, where depth = open parentheses + open CASEs + the run of NOT, + and - just before

One pass of a regular expression over at most 64 KiB, knowing strings, quoted names and comments; it stops at the first
bound that is passed. What the tokenizer would drop in silence (optimizer hints, template braces, a string or comment
without an end) is refused here too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lineage.errors import QueryError
from queries.sql_text import SqlText

MAX_BYTES = 64 * 1024
MAX_TOKENS = 2_000
MAX_DEPTH = 32

_LEXEME = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
      | (?P<comment>/\*)
      | (?P<string>'[^']*+(?:''[^']*+)*+' | "[^"]*+(?:""[^"]*+)*+")
      | (?P<open>['"])
      | (?P<word>[^\W\d]\w*)
      | (?P<number>\d[\w.]*)
      | (?P<symbol>.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def check_length(source: SqlText) -> None:
    """Raise `QueryError` if the text is too long; one that is much too long is not looked at."""
    if len(source.text) > MAX_BYTES or _count_bytes(source) > MAX_BYTES:
        raise source.error(
            f"the query is longer than {MAX_BYTES} bytes", 0, 0, "query_too_long", "put long lists into parameters"
        )


def check_lengths(texts: Sequence[str]) -> None:
    """Raise the `QueryError` of the first text that is too long, with its place as `item`."""
    for n, text in enumerate(texts):
        try:
            check_length(SqlText(text))
        except QueryError as error:
            error.item = n  # type: ignore[attr-defined]  # the answer says which one it was
            raise


def check_text(source: SqlText) -> None:
    """Raise `QueryError` unless the text is within all bounds. One pass, at most `MAX_BYTES` long."""
    check_length(source)
    text = source.text
    if "\0" in text:
        at = text.index("\0")
        raise source.error("the query holds a NUL character", at, at + 1, "syntax_error")
    # Plain loop over offsets rather than finditer: a comment is skipped by its own rule, because comments nest.
    at = n_lexemes = depth = run = 0
    while at < len(text):
        match = _LEXEME.match(text, at)
        assert match is not None, "the last alternative takes any character"
        kind, start, at = match.lastgroup, at, match.end()
        if kind == "space":
            continue
        if kind == "comment":
            at = _skip_comment(source, start)
            continue
        if kind == "open":
            raise source.error("the quote has no end", start, len(text), "syntax_error", "write a quote inside a text twice: ''")
        n_lexemes += 1
        if n_lexemes > MAX_TOKENS:
            raise source.error(f"the query has more than {MAX_TOKENS} tokens", start, at, "too_many_tokens")
        word = match[0].upper() if kind == "word" else match[0]
        if word in ("{", "}"):
            raise source.error("nested types are not part of the language", start, at, "not_supported")
        if word in ("NOT", "-", "+"):
            run += 1
        else:
            run = 0
            depth += 1 if word in ("(", "CASE") else -1 if word in (")", "END") else 0
            depth = max(depth, 0)
        if depth + run > MAX_DEPTH:
            raise source.error(f"the query is nested deeper than {MAX_DEPTH} levels", start, at, "query_too_deep")


def _count_bytes(source: SqlText) -> int:
    try:
        return len(source.text.encode())
    except UnicodeEncodeError as error:
        raise source.error("the query is no UTF-8 text", error.start, error.start, "syntax_error") from None


def _skip_comment(source: SqlText, start: int) -> int:
    """The offset behind the block comment at `start`."""
    text = source.text
    if text.startswith("/*+", start):
        raise source.error(
            "optimizer hints are not part of the language", start, start + 3, "not_supported", "leave the hint out"
        )
    level = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        level += 1 if edge[0] == "/*" else -1
        if level == 0:
            return edge.end()
    raise source.error("the comment has no end", start, start + 2, "syntax_error", "close it with */")
