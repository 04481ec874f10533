"""Comparing with a text that says where and how two sides differ."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Mismatch(AssertionError):
    """Two sides differ; the text says where and how."""


def same(what: str, got: Any, expected: Any) -> None:
    if got == expected:
        return
    if isinstance(got, Counter) and isinstance(expected, Counter):
        missing, extra = expected - got, got - expected
        raise Mismatch(f"{what}\n  missing: {_few(missing)}\n  extra:   {_few(extra)}\n  of {expected.total()} expected")
    raise Mismatch(f"{what}\n  got:      {got}\n  expected: {expected}")


def _few(counts: Counter[Any]) -> str:
    shown = ", ".join(f"{value} x{n}" for value, n in list(counts.items())[:4])
    return shown + (f", ... ({len(counts)} distinct)" if len(counts) > 4 else "")
