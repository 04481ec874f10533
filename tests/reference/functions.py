"""The user functions of generated queries: what is registered with the engine, and what DuckDB has in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def near(a: int | None, b: int | None) -> bool | None:
    """A user function: whether two numbers differ by one at most."""
    return None if a is None or b is None else abs(a - b) <= 1


def folded(text: str | None) -> str | None:
    """A user function: a text without its case."""
    return None if text is None else text.lower()


@dataclass(frozen=True)
class Function:
    """A user function: what is registered, and its meaning in DuckDB's SQL."""

    fn: Callable[..., Any]
    returns: str
    duck: str


FUNCTIONS = {
    "near": Function(near, "bool", "(abs({}::HUGEINT - {}::HUGEINT) <= 1)"),
    "folded": Function(folded, "string", "lower({})"),
}
