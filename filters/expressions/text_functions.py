"""Text functions on Python strings, one call per distinct combination of arguments.

All positions and lengths count code points from 1, as DuckDB does. A function here takes and gives plain Python values;
None as its result means "cannot be computed": NULL and counted. `filters/expressions/functions.py` lifts them over vectors.
"""

from __future__ import annotations

import re
from functools import lru_cache

#: Letters whose one-letter counterpart Python's full case mapping does not give.
_UPPER = {"ß": "ẞ"}
_LOWER = {"İ": "i"}
#: What trim takes off: Unicode's space separators, so neither tabs nor line ends.
_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def lower(text: str) -> str:
    """Letter by letter, without the special rules for word ends and for letters that would become two."""
    return text.lower() if text.isascii() else "".join(map(_lower_letter, text))


def upper(text: str) -> str:
    return text.upper() if text.isascii() else "".join(map(_upper_letter, text))


@lru_cache(4096)
def _lower_letter(letter: str) -> str:
    lowered = letter.lower()
    return lowered if len(lowered) == 1 else _LOWER.get(letter, letter)


@lru_cache(4096)
def _upper_letter(letter: str) -> str:
    # A letter that would become two may have a one-letter title form, which is what DuckDB takes.
    for raised in (letter.upper(), letter.title()):
        if len(raised) == 1:
            return raised
    return _UPPER.get(letter, letter)


def substr(text: str, start: int, count: int | None = None) -> str:
    """`count` letters from `start`; a negative start counts from the end, a negative count goes left."""
    first = start - 1 if start >= 0 else len(text) + start
    if count is None:
        return text[max(first, 0) :]
    low, high = (first, first + count) if count >= 0 else (first + count, first)
    return text[max(low, 0) : max(high, 0)]


def trim(text: str) -> str:
    return text.strip(_SPACES)


def ltrim(text: str) -> str:
    return text.lstrip(_SPACES)


def rtrim(text: str) -> str:
    return text.rstrip(_SPACES)


def replace(text: str, what: str, by: str) -> str:
    return text.replace(what, by) if what else text


def position(what: str, text: str) -> int:
    return text.find(what) + 1


def split_part(text: str, separator: str, n: int) -> str:
    """The n-th part, from the end if n is negative; an empty separator parts the letters, and no such part is ''."""
    parts = text.split(separator) if separator else list(text)
    if n > 0:
        return parts[n - 1] if n <= len(parts) else ""
    return parts[n] if -len(parts) <= n < 0 else ""


def concatenate(left: str, right: str) -> str:
    return left + right


def like(text: str, pattern: str, escape: str = "") -> bool | None:
    """`text LIKE pattern`; None if the escape is no single letter or ends the pattern."""
    compiled = compile_like(pattern, escape)
    return None if compiled is None else compiled.matches(text)


class LikePattern:
    """A LIKE pattern as the runs between its `%`, each of fixed length.

    Taking the leftmost place of each run in turn is right, because it leaves most text for the later ones; so the
    matcher never goes back over a run once placed: O(text * longest run) at worst.
    """

    __slots__ = ("_runs",)

    def __init__(self, runs: list[list[str | None]]) -> None:
        #: one more than there are `%`; None stands for `_`
        self._runs = [_PlainRun("".join(map(str, run))) if None not in run else _GappedRun(run) for run in runs]

    def matches(self, text: str) -> bool:
        first, last = self._runs[0], self._runs[-1]
        if len(self._runs) == 1:
            return len(text) == first.length and first.find(text, 0, len(text)) == 0
        at, tail = first.length, len(text) - last.length
        if at > tail or first.find(text, 0, at) < 0 or last.find(text, tail, len(text)) < 0:
            return False
        for run in self._runs[1:-1]:
            at = run.find(text, at, tail)
            if at < 0:
                return False
            at += run.length
        return True


class _PlainRun:
    """Letters to be found as they are."""

    __slots__ = ("length", "_letters")

    def __init__(self, letters: str) -> None:
        self.length = len(letters)
        self._letters = letters

    def find(self, text: str, start: int, end: int) -> int:
        return text.find(self._letters, start, end)


class _GappedRun:
    """Letters with gaps (None) that any letter fills; the expression has no quantifier, so it cannot backtrack."""

    __slots__ = ("length", "_search")

    def __init__(self, letters: list[str | None]) -> None:
        self.length = len(letters)
        self._search = re.compile("".join("." if one is None else re.escape(one) for one in letters), re.DOTALL).search

    def find(self, text: str, start: int, end: int) -> int:
        found = self._search(text, start, end)
        return -1 if found is None else found.start()


@lru_cache(1024)
def compile_like(pattern: str, escape: str) -> LikePattern | None:
    if len(escape) > 1:
        return None
    runs: list[list[str | None]] = [[]]
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, None)
            if escaped is None:
                return None
            runs[-1].append(escaped)
        elif letter == "%":
            runs.append([])
        else:
            runs[-1].append(None if letter == "_" else letter)
    return LikePattern(runs)
