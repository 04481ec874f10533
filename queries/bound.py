"""A block: the part of a bound query that the shared eddy runs, select-project-join over streams and tables.

Everything is resolved: the inputs, their windows, a boolean condition and the output columns. Expressions address a column
by its position in the *concatenation* of the inputs' schemas, in the order of FROM:

    position of column p of input k  =  inputs[k].offset + p        offset of input 0 = 0

so the evaluator runs unchanged on a frame with all columns, and a block with one input has its stream's own positions. No
text of the query is interpreted after this point. A plain query is one block; what else a query can be is `queries/nodes.py`.

Blocks are values: equal ones mean the same, wherever they stand in a text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from filters.expressions.expression import Expression
from lineage.schema import Schema, Type
from queries.joins import Join
from windows import patterns
from windows.spec import WindowKind, WindowSpec

#: `[start, end)` in the text; the place of nothing.
NOWHERE = (0, 0)


@dataclass(frozen=True, slots=True)
class QueryProperties:
    """The facts about a running query that its readers need."""

    is_stream: bool
    update_pattern: str
    ends_known: bool
    #: whether a - may come for its rows all the same, as it runs now
    ends_early: bool = False
    #: how many running queries stand above each other, itself with them
    levels: int = 1
    #: bits that UNION ALLs take of the ids of its rows
    union_bits: int = 0
    #: whether its rows come in an order of their own
    ordered: bool = True
    #: whether it is paused, so that it cannot be read now
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Readable:
    """The thing that a name in FROM stands for: a stream, a table with its key, or a running query."""

    schema: Schema
    is_table: bool = False
    #: positions of the key columns of a table or a keyed stream; empty for any other stream
    key: tuple[int, ...] = ()
    #: whether an update of the table also touches results that already stand
    retroactive: bool = False
    #: position of a stream's time column; None iff its rows are timed as they arrive
    time: int | None = None
    #: position of the column with the end of a row's life; None iff only the window ends rows
    end: int | None = None
    #: None iff it is no running query
    query: QueryProperties | None = None
    #: whether single rows of the stream may be taken back: a merged one under some policies
    taken_back: bool = False

    @property
    def keyed(self) -> bool:
        """Whether it is a stream whose rows replace each other."""
        return not self.is_table and bool(self.key)

    def window_pattern(self, window: WindowSpec) -> str:
        """The update pattern of a window over the stream."""
        return patterns.window_pattern(window, self.keyed or self.taken_back, self.end is not None)

    def window_cases(self, window: WindowSpec) -> tuple[str, ...]:
        """The cases of a + or a - on rows of a window over the stream."""
        return patterns.window_cases(window, self.keyed, self.end is not None or self.taken_back)


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
    #: where its name and its window stand in the text
    span: tuple[int, int] = field(default=NOWHERE, compare=False)
    window_span: tuple[int, int] = field(default=NOWHERE, compare=False)

    @property
    def is_table(self) -> bool:
        return self.readable.is_table

    @property
    def schema(self) -> Schema:
        return self.readable.schema

    @property
    def kind(self) -> str:
        """The kind of the input in a word."""
        return "table" if self.is_table else "stream"

    @property
    def is_frozen(self) -> bool:
        """Whether it is a table that counts as it was when the row it is joined with came."""
        return self.is_table and not self.readable.retroactive

    @property
    def ends_early(self) -> bool:
        """Whether more than the clock ends rows of the stream: newer rows, a key, a column of ends, or its own retractions."""
        own = self.readable
        return self.window.kind is WindowKind.ROWS or own.keyed or own.taken_back or own.end is not None

    @property
    def update_pattern(self) -> str:
        """The pattern of this leaf; a table's rows are changed at any time."""
        if self.is_table:
            return patterns.STRICT
        return self.readable.window_pattern(self.window)

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases of a + or a - on the input's rows; a table's change is one case."""
        if self.is_table:
            return patterns.OPERATORS["join with a live table"].cases
        return self.readable.window_cases(self.window)

    @property
    def grows(self) -> bool:
        """Whether it holds more and more rows: no window, no key and no column ever ends one."""
        unbounded = self.window.kind is WindowKind.UNBOUNDED
        return unbounded and not self.is_table and not self.readable.key and self.readable.end is None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    name: str
    expression: Expression

    @property
    def type(self) -> Type:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class Block:
    """`SELECT columns FROM inputs WHERE condition`; a condition of None keeps every row or combination of rows.

    A block below an operator has the columns that the operator reads, and has none where it only counts rows.
    """

    inputs: tuple[BoundInput, ...]
    #: WHERE and all ON conditions
    condition: Expression | None
    columns: tuple[OutputColumn, ...]
    #: the condition in the parts a join runs; None iff the one input is a stream
    join: Join | None = None
    #: what the binder assumed for the user, in words, for `explain`
    defaults: tuple[str, ...] = field(default=(), compare=False)

    @property
    def children(self) -> tuple[()]:
        """A block stands at the foot of a tree."""
        return ()

    @property
    def stream(self) -> str:
        """The stream of a block with one input."""
        (only,) = self.inputs
        return only.name

    @property
    def window(self) -> WindowSpec:
        """The window of a block with one input."""
        (only,) = self.inputs
        return only.window

    @property
    def is_stream(self) -> bool:
        """Whether the result is a stream (only +): one stream without a window, alone or with tables."""
        return any(item.window.is_stream for item in self.inputs)

    @property
    def update_pattern(self) -> str:
        """The update pattern of the whole result (semantics, "Update patterns").

        A frozen table keeps the pattern of what it is joined with; without a window nothing is taken back, not even by a
        retroactive table. Tables alone count as they are: any change takes rows back.
        """
        if self.is_stream:
            return patterns.MONOTONIC
        found = [item.update_pattern for item in self._counted()]
        return found[0] if len(found) == 1 else patterns.OPERATORS["join"].pattern(found)

    @property
    def ends_known(self) -> bool:
        return self.update_pattern != patterns.STRICT

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases of a + or a - of an input on the result."""
        return patterns.STREAM_CASES if self.is_stream else patterns.all_cases(item.cases for item in self._counted())

    @property
    def end_order(self) -> object:
        """Equal for two weakest edges whose rows, merged, still end in order; None iff the pattern is not weakest."""
        if self.update_pattern != patterns.WEAKEST:
            return None
        (leaf,) = self._counted()
        return leaf.name.lower(), leaf.window

    @property
    def grows(self) -> bool:
        """Whether it holds more and more rows, for ever."""
        return any(item.grows for item in self.inputs)

    def _counted(self) -> list[BoundInput]:
        """The inputs whose ends are ends of the result; tables alone are live."""
        found = [item for item in self.inputs if not item.is_frozen]
        return found or list(self.inputs)
