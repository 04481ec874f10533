"""When a merge gives out what it knows (the paper's §V-A): words, and the numbers that kernels read.

    insert   "first"        when the first input gives the event
             "leader"       when the input that last moved the merge's point gives it
             "highest"      when an input gives it that has given as large a start as any
             "unfrozen"     when an input gives it that has as many events not below its own point as any
             "half-frozen"  when it is below the point of an input that has it
             "fraction:f"   when that part of the inputs has it
             "stable"       when the merge's point passes its start, so it is never taken back
    adjust   "lazy"         when the merge's point would freeze a wrong end
             "every"        also whenever an input gives another end
             "leader"       also whenever the input that last moved the merge's point does
    missing  "leader"       what the deciding input lacks when the point passes its start goes
             "any"          what an input has then stays; the deciding input has the first word on its end, then the furthest one
    lag      how far the merge's point stays behind the largest of its inputs

Inputs are joined ones here, but for "first". Whatever the words, an event is out once the point has passed its start.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from lineage.errors import EddyError

FIRST, LEADER, HIGHEST, UNFROZEN, HALF_FROZEN, FRACTION, AT_STABLE = range(7)
LAZY, EVERY, FOLLOW = range(3)

_INSERTS = {
    "first": FIRST,
    "leader": LEADER,
    "highest": HIGHEST,
    "unfrozen": UNFROZEN,
    "half-frozen": HALF_FROZEN,
    "stable": AT_STABLE,
}
_ADJUSTS = {"lazy": LAZY, "every": EVERY, "leader": FOLLOW}
_MISSING = {"leader": 0, "any": 1}


class Policies(NamedTuple):
    """The words as numbers."""

    insert: int
    adjust: int
    keep_any: int
    lag: int
    #: the fraction of `insert="fraction:f"`
    numerator: int
    denominator: int


def parse_policies(insert: str, adjust: str, missing: str, lag: int) -> Policies:
    """Return the numbers of some words; a word that is none is an error."""
    part = Fraction(1)
    if insert.startswith("fraction:"):
        part = _parse_fraction(insert)
        code = FRACTION
    else:
        code = _one_of(_INSERTS, "insert", insert, ', or "fraction:" and a number')
    if lag < 0:
        raise EddyError(
            f"a lag of {lag} is negative", code="bad_policy", hint="a merge's point is behind its inputs, or with them"
        )
    kind = _one_of(_ADJUSTS, "adjust", adjust)
    return Policies(code, kind, _one_of(_MISSING, "missing", missing), lag, part.numerator, part.denominator)


def _parse_fraction(word: str) -> Fraction:
    try:
        part = Fraction(word.removeprefix("fraction:"))
    except (ValueError, ZeroDivisionError):
        part = Fraction(0)
    if not 0 < part <= 1:
        raise EddyError(
            f'"{word}" is no fraction of the inputs', code="bad_policy", hint='more than 0 and at most 1, as in "fraction:0.5"'
        )
    return part


def _one_of(words: dict[str, int], what: str, word: str, more: str = "") -> int:
    if word not in words:
        raise EddyError(f'"{word}" is no word for {what}', code="bad_policy", hint=f"one of {', '.join(words)}{more}")
    return words[word]
