"""Plans compared part by part: what stands where, not whether the classes say that it is equal."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from eddy.base.plans import TreePlan
from lineage.identity import ById

NUMBERS = [
    "0", "1", "2", "5", "7", "1.0", "2.5", "0.0", "1e3", "1.5e-3", "007", "5.", ".5", "9223372036854775807",
    "9223372036854775808", "99999999999999999999", "1e400", "100000000000000000", "9007199254740993", "3", "10",
]  # fmt: skip
TEXTS = [
    "''", "'a'", "'b'", "'it''s'", "'Zürich'", "'%a_'", "'-- no comment'", "'a\\b'", "'2024-05-01'", "'2024-05-01 00:00:00'",
    "'2024-05-01T12:00:00Z'", "'day'", "'hour'", "'1 second'", "'5'", "'{x}'", "'\N{GRINNING FACE}'", "'/*'", "'\"'", "'''''",
]  # fmt: skip
VALUES: list[Any] = [
    0, 1, 2, -3, 5, 1.0, 2.5, 0.0, -0.0, float("nan"), float("inf"), 2**63 - 1, -(2**63), 2**63, 2**53 + 1, "", "a", "it's", "ü",
    "2024-05-01", "5 seconds", None, True, False, "\ud800",
]  # fmt: skip
_LITERAL = re.compile(r"(?<![\w.])(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])|'(?:[^']|'')*'")


def other_literals(rng: random.Random, sql: str, often: float, kinds: float) -> str:
    """A text with other literals: `often` is the part that changes, `kinds` of those the part that may be of another kind."""

    def other(match: re.Match[str]) -> str:
        if rng.random() >= often:
            return match[0]
        is_text = match[0].startswith("'") != (rng.random() < kinds)
        if is_text:
            return rng.choice(TEXTS)
        if rng.random() < kinds:
            return rng.choice(NUMBERS)
        return str(rng.randint(0, 9)) if match[0].isdigit() else f"{rng.randint(0, 99) / 4}"

    return _LITERAL.sub(other, sql)


def differing(one: Any, other: Any, at: str = "plan") -> str | None:
    """Where two plans differ; None if they do not."""
    if isinstance(one, TreePlan) and isinstance(other, TreePlan):
        one, other = _tree(one), _tree(other)
    if type(one) is not type(other):
        return f"{at}: {one!r} and {other!r}"
    if isinstance(one, ById):
        return differing(list(one.items()), list(other.items()), at)
    if isinstance(one, Mapping):
        return differing(list(one.items()), list(other.items()), at)
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return f"{at}: {len(one)} and {len(other)}"
        found = (differing(a, b, f"{at}[{n}]") for n, (a, b) in enumerate(zip(one, other)))
        return next((place for place in found if place), None)
    if is_dataclass(one) and hash_by_value(one):
        names = [field.name for field in fields(one) if field.compare]
        found = (differing(getattr(one, name), getattr(other, name), f"{at}.{name}") for name in names)
        return next((place for place in found if place), None)
    same = repr(one) == repr(other) if isinstance(one, float) else one == other
    return None if same else f"{at}: {one!r} and {other!r}"


def hash_by_value(one: Any) -> bool:
    """Whether an object is its parts; a registered function is itself alone."""
    return type(one).__name__ != "UserFunction"


def _tree(plan: TreePlan) -> dict[str, Any]:
    trees = plan.trees
    return {
        "written": trees.written, "forms": trees.forms, "blocks": trees.blocks, "streams": plan.streams, "queries": plan.queries,
        "timeline": plan.timeline, "outputs": plan.outputs, "defaults": plan.defaults, "is_stream": plan.is_stream,
        "opens": plan.opens,
    }  # fmt: skip
