"""Comparing answers with those of a model, an oracle or a twin: where and how they differ, and how many were compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.reference.values import Value

#: Comparisons that this process has made; `tests/reference/tally.py` adds up those of all.
n_compared = 0
#: How far two right values of an inexact aggregate may be apart.
TOLERANCE = 1e-9


class Mismatch(AssertionError):
    """Two sides differ; the text says where and how."""


def compared(n: int = 1) -> None:
    """Count answers that were compared with those of a model, an oracle or a twin."""
    global n_compared
    n_compared += n


def same(what: str, got: Any, expected: Any) -> None:
    compared()
    if got == expected:
        return
    if isinstance(got, Counter) and isinstance(expected, Counter):
        missing, extra = expected - got, got - expected
        raise Mismatch(f"{what}\n  missing: {_few(missing)}\n  extra:   {_few(extra)}\n  of {expected.total()} expected")
    raise Mismatch(f"{what}\n  got:      {got}\n  expected: {expected}")


def same_bag(what: str, got: Sequence[Value], expected: Sequence[Value], *, exactly: bool) -> None:
    """The same rows in any order; unless exactly, floats within the tolerance of an inexact aggregate."""
    if exactly:
        same(what, Counter(got), Counter(expected))
        return
    compared()
    if not near(got, expected):
        raise Mismatch(f"{what}\n  got:      {got}\n  expected: {expected}")


def near(found: Sequence[Value], expected: Sequence[Value]) -> bool:
    """The same bag, floats within the tolerance of an inexact aggregate."""

    def order(value: Value) -> list[tuple[str, str]]:
        # floats last, and only to seven digits: what differs in the last one stays in its place
        parts = [(type(part).__name__, f"{part:.7g}" if isinstance(part, float) else str(part)) for part in value]
        return sorted(parts, key=lambda part: part[0] == "float")

    def same_part(a: Any, b: Any) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return a == b or math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return type(a) is type(b) and a == b

    pairs = zip(sorted(found, key=order), sorted(expected, key=order))
    return len(found) == len(expected) and all(len(a) == len(b) and all(map(same_part, a, b)) for a, b in pairs)


def _few(counts: Counter[Any]) -> str:
    shown = ", ".join(f"{value} x{n}" for value, n in list(counts.items())[:4])
    return shown + (f", ... ({len(counts)} distinct)" if len(counts) > 4 else "")
