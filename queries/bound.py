"""A bound query: what the binder hands to the engine.

Everything is resolved: the stream, the window, a boolean condition and the output columns, all over that stream's
schema. No text of the query is interpreted after this point.
"""

from __future__ import annotations

from dataclasses import dataclass

from filters.expression import Expression
from lineage.schema import Type
from windows.spec import WindowSpec


@dataclass(frozen=True, slots=True)
class OutputColumn:
    name: str
    expression: Expression

    @property
    def type(self) -> Type:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """`SELECT columns FROM stream window WHERE condition`; a condition of None keeps every row."""

    stream: str
    window: WindowSpec
    condition: Expression | None
    columns: tuple[OutputColumn, ...]
    #: what the binder assumed for the user, in words, for `explain`
    defaults: tuple[str, ...] = ()
