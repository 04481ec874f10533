"""Update patterns: in which order the rows of an edge of a plan end, and whether their ends are known when they begin.

From simple to complex (update-patterns paper, section 3):

    monotonic   nothing ends
    weakest     rows end in the order in which they began, at times known when they begin
    weak        rows end in another order, at times known when they begin (but see `ends_known`)
    strict      a row may end at any time: an end is told by a negative tuple

Leaves have the pattern of their window and their stream; every operator makes one of those of its inputs (section 5.2), by the
table `OPERATORS`. Where it departs from the paper: a union of two weakest edges whose ends interleave is weak, and group-by,
whose output is weak whatever comes in, has `ends_known` false: its rows end when the group changes, and what stands above it
may not count on an end.

    ends_known = every row's end is known when it begins, so that no negative tuple need travel

The cases say what an operator can do with a + or a - that comes in, `came->went`:

    +->+   a new row gives a new row             -->+   a row that ends lets another one in
    +->-   a new row takes a result back         -->-   a row that ends takes a result back
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lineage.elements import FOREVER
from windows.spec import WindowSpec

MONOTONIC, WEAKEST, WEAK, STRICT = "monotonic", "weakest", "weak", "strict"
#: All patterns, the simplest first.
PATTERNS = (MONOTONIC, WEAKEST, WEAK, STRICT)

#: The cases of a stream: nothing is taken back.
STREAM_CASES: tuple[str, ...] = ("+->+",)
_PASS = ("+->+", "-->-")
_HAND_OVER = ("+->+", "-->+", "-->-")
_ALL = ("+->+", "+->-", "-->+", "-->-")
#: Those of a DISTINCT or an INTERSECT that counts copies: which of several equal rows stands for a value is not seen, so that
#: nothing is handed over from one to another (`windows/operators/set_operation.py`).
COUNTED_CASES = _PASS


@dataclass(frozen=True, slots=True)
class OperatorRule:
    """The pattern of one kind of operator's output, from the patterns of its inputs."""

    pattern: Callable[[Sequence[str]], str]
    cases: tuple[str, ...]
    #: whether the end of a result follows from the ends of the rows it is made of
    keeps_ends: bool = True


def _keep(patterns: Sequence[str]) -> str:
    (only,) = patterns
    return only


def _largest(patterns: Sequence[str]) -> str:
    return max(patterns, key=PATTERNS.index)


def _reorder(patterns: Sequence[str]) -> str:
    """Return the pattern of results that end in their own order: strict if any input is, monotonic if all are, else weak."""
    if STRICT in patterns:
        return STRICT
    return MONOTONIC if all(pattern == MONOTONIC for pattern in patterns) else WEAK


def _always(pattern: str) -> Callable[[Sequence[str]], str]:
    return lambda patterns: pattern


#: Every operator by its name. A table that is *frozen* counts as it was when the row came, one that is *live* as it is.
OPERATORS = {
    "select": OperatorRule(_keep, _PASS),
    "join with a frozen table": OperatorRule(_keep, _PASS),
    "join with a live table": OperatorRule(_always(STRICT), _PASS, keeps_ends=False),
    "join": OperatorRule(_reorder, _PASS),
    "union": OperatorRule(_largest, _PASS),
    "distinct": OperatorRule(_reorder, _HAND_OVER),
    "intersect": OperatorRule(_reorder, _HAND_OVER),
    "except": OperatorRule(_always(STRICT), _ALL, keeps_ends=False),
    "group-by": OperatorRule(_always(WEAK), _ALL, keeps_ends=False),
    "lmerge": OperatorRule(_always(STRICT), _PASS, keeps_ends=False),
    "istream": OperatorRule(_always(MONOTONIC), STREAM_CASES),
    "dstream": OperatorRule(_always(MONOTONIC), ("-->+",)),
    "rstream": OperatorRule(_always(MONOTONIC), ("+->+", "-->+")),
}


def window_pattern(window: WindowSpec, keyed: bool = False, has_end: bool = False) -> str:
    """Return the pattern of a leaf: a window over a stream, whose rows may have a key or an end of their own."""
    if window.is_stream:
        return MONOTONIC
    if keyed:
        return STRICT
    return _largest((window.update_pattern, WEAK)) if has_end else window.update_pattern


def window_cases(window: WindowSpec, keyed: bool = False, has_end: bool = False) -> tuple[str, ...]:
    """The cases of a leaf: a window that counts rows, and a key, end an older row by a newer one; a - is an end by the clock, or
    a retraction."""
    if window.is_stream:
        return STREAM_CASES
    replaces = bool(window.rows) or keyed
    passes = window.width_us < FOREVER or keyed or has_end
    return ("+->+", *(("+->-",) if replaces else ()), *(("-->-",) if passes else ()))


def all_cases(parts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the cases of a join of leaves: the union of theirs."""
    found = {case for part in parts for case in part}
    return tuple(case for case in _ALL if case in found)


def ends_known(operator: str, patterns: Sequence[str], known: Sequence[bool]) -> bool:
    """Whether the ends of an operator's results are known, from the patterns of its inputs and whether their ends are known."""
    rule = OPERATORS[operator]
    pattern = rule.pattern(patterns)
    return pattern == MONOTONIC or (rule.keeps_ends and pattern != STRICT and all(known))
