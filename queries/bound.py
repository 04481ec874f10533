"""A bound query: what the binder hands to the engine.

Everything is resolved: the inputs, their windows, a boolean condition and the output columns. Expressions address a column
by its position in the *concatenation* of the inputs' schemas, in the order of FROM:

    position of column p of input k  =  inputs[k].offset + p        offset of input 0 = 0

so the evaluator runs unchanged on a frame with all columns, and a query with one input has its stream's own positions. No
text of the query is interpreted after this point.
"""

from __future__ import annotations

from dataclasses import dataclass

from filters.expression import Expression
from lineage.schema import Schema, Type
from queries.joins import Join
from windows.spec import WindowSpec

#: The update patterns, from the one that promises most to the one that promises nothing.
PATTERNS = ("monotonic", "weakest", "weak", "strict")


@dataclass(frozen=True, slots=True)
class Readable:
    """What a name in FROM stands for: a stream, or a table with its key."""

    schema: Schema
    is_table: bool = False
    #: positions of a table's key columns; empty for a stream
    key: tuple[int, ...] = ()
    #: whether an update of the table also touches results that already stand
    retroactive: bool = False
    #: how rows of a stream end by themselves: "monotonic" if they do not, "weak" by an end of their own, "strict" also by a key
    pattern: str = "monotonic"

    def leaf_pattern(self, window: WindowSpec) -> str:
        """The update pattern of an input that reads a stream through a window."""
        return max(self.pattern, window.update_pattern, key=PATTERNS.index)


@dataclass(frozen=True, slots=True)
class BoundInput:
    """One FROM item; its number is its place in FROM, from 0."""

    #: what qualifies its columns: the alias, else the name, as written
    alias: str
    #: the stream or table, as written
    name: str
    readable: Readable
    #: of a table: `[RANGE UNBOUNDED]`, for its rows live until they are changed
    window: WindowSpec
    #: position of its first column in the concatenation
    offset: int

    @property
    def is_table(self) -> bool:
        return self.readable.is_table

    @property
    def schema(self) -> Schema:
        return self.readable.schema


@dataclass(frozen=True, slots=True)
class OutputColumn:
    name: str
    expression: Expression

    @property
    def type(self) -> Type:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """`SELECT columns FROM inputs WHERE condition`; a condition of None keeps every row or combination of rows."""

    inputs: tuple[BoundInput, ...]
    #: WHERE and all ON conditions
    condition: Expression | None
    columns: tuple[OutputColumn, ...]
    #: the condition in the parts a join runs; None iff the one input is a stream
    join: Join | None = None
    #: what the binder assumed for the user, in words, for `explain`
    defaults: tuple[str, ...] = ()

    @property
    def stream(self) -> str:
        """The stream of a query with one input."""
        (only,) = self.inputs
        return only.name

    @property
    def window(self) -> WindowSpec:
        """The window of a query with one input."""
        (only,) = self.inputs
        return only.window

    @property
    def is_stream(self) -> bool:
        """Whether the result is a stream (only +): one stream without a window, alone or with tables."""
        return any(item.window.is_stream for item in self.inputs)

    @property
    def update_pattern(self) -> str:
        """The update pattern of the whole result (semantics, "Update patterns").

        A non-retroactive table keeps the pattern of the one stream it is joined with; without a window nothing is taken back,
        not even by a retroactive table. Tables alone count as they are: any change takes rows back.
        """
        if self.is_stream:
            return "monotonic"
        if any(item.readable.retroactive for item in self.inputs) or all(item.is_table for item in self.inputs):
            return "strict"
        patterns = [item.readable.leaf_pattern(item.window) for item in self.inputs if not item.is_table]
        if len(patterns) == 1:
            return patterns[0]
        largest = max(patterns, key=PATTERNS.index)
        return "weak" if largest == "weakest" else largest
