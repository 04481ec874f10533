"""The nodes of a bound query's tree: blocks at the foot, operators above them.

    Block          select-project-join over streams and tables (`queries/bound.py`); a plain query is a tree of one block
    NamedQuery     the result of a running query
    Slide          the extents of a [RANGE w SLIDE s], TUMBLE or HOP over a stream, shown at their boundaries
    Window         any other window over a stream that is itself the result of a query
    LMerge         one stream or relation out of several that present the same rows
    Select         rows that satisfy a condition, and expressions over them
    JoinNode       a FROM list of which at least one item is no stream or table as it is
    Distinct, SetOperation, GroupBy, ToStream

Each edge carries rows of `columns` (names and types; expressions address a child's column by its position), and says:

    is_stream        only +, each row counts once; else a relation, whose rows end
    update_pattern   the order in which rows end (`windows/patterns.py`)
    ends_known       whether every row's end is known when it begins
    cases            what a + or a - that comes in can do to the rows that go out
    grows            a relation that holds more and more rows, for ever
    end_order        equal for two weakest edges whose rows, merged, still end in order

Nodes are immutable values: equal nodes mean the same, so operators may be shared by them. Places in the text, and what the
binder assumed, do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from filters.expressions.expression import ColumnRef, Expression
from lineage.schema import Column, Schema, Type
from queries.bound import NOWHERE, OutputColumn, QueryProperties, Readable
from queries.bound import Block as Block
from queries.joins import Join
from windows import patterns
from windows.spec import WindowKind, WindowSpec

#: What a Slide with bounds appends to the columns of its child.
BOUNDS = (Column("window_start", Type.TIMESTAMP), Column("window_end", Type.TIMESTAMP))


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """The result of a running query: its answer, or the stream that it is."""

    #: as written
    name: str
    schema: Schema
    facts: QueryProperties
    span: tuple[int, int] = field(default=NOWHERE, compare=False)
    #: whether it is an input of a merge, which goes on while it is paused
    merged: bool = False

    @property
    def children(self) -> tuple[()]:
        return ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.schema.columns

    @property
    def is_stream(self) -> bool:
        return self.facts.is_stream

    @property
    def update_pattern(self) -> str:
        return self.facts.update_pattern

    @property
    def ends_known(self) -> bool:
        return self.facts.ends_known

    @property
    def cases(self) -> tuple[str, ...]:
        return patterns.OPERATORS["select"].cases

    @property
    def grows(self) -> bool:
        return not self.is_stream and self.update_pattern == patterns.MONOTONIC

    @property
    def end_order(self) -> object:
        return self.name.lower() if self.update_pattern == patterns.WEAKEST else None


class _ByKind:
    """What `windows/patterns.py` says of an operator by its kind, and by the patterns of its children."""

    __slots__ = ()
    kind: str

    @property
    def children(self) -> tuple[Node, ...]:
        raise NotImplementedError  # each has its own

    @property
    def update_pattern(self) -> str:
        return patterns.OPERATORS[self.kind].pattern([child.update_pattern for child in self.children])

    @property
    def ends_known(self) -> bool:
        found = [child.update_pattern for child in self.children]
        return patterns.ends_known(self.kind, found, [child.ends_known for child in self.children])

    @property
    def cases(self) -> tuple[str, ...]:
        return patterns.OPERATORS[self.kind].cases


class _Over(_ByKind):
    """The common part of operators over one child: a relation with the child's columns and bounded state."""

    __slots__ = ()
    child: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)

    @property
    def columns(self) -> tuple[Column | OutputColumn, ...]:
        return self.child.columns

    @property
    def is_stream(self) -> bool:
        return False

    @property
    def grows(self) -> bool:
        return False

    @property
    def end_order(self) -> object:
        return None


@dataclass(frozen=True, slots=True)
class LMerge(_ByKind):
    """LMERGE(a, b, ..): the rows that several inputs of equal columns present, each once (semantics 36).

    Of streams a stream: its inputs are blocks and running queries. Else a relation, of relations: a window that stands behind it
    is already in its inputs.
    """

    inputs: tuple[Node, ...]
    #: of the inputs, as written
    names: tuple[str, ...]
    is_stream: bool
    #: of a stream, whether a window stands right above: it holds rows by their own times, and ends those that are taken back
    windowed: bool = False
    kind = "lmerge"

    @property
    def children(self) -> tuple[Node, ...]:
        return self.inputs

    @property
    def columns(self) -> tuple[Column | OutputColumn, ...]:
        return self.inputs[0].columns

    @property
    def update_pattern(self) -> str:
        return patterns.MONOTONIC if self.is_stream else patterns.OPERATORS[self.kind].pattern([])

    @property
    def ends_known(self) -> bool:
        return self.is_stream

    @property
    def cases(self) -> tuple[str, ...]:
        return patterns.STREAM_CASES if self.is_stream else patterns.OPERATORS[self.kind].cases

    @property
    def grows(self) -> bool:
        return not self.is_stream and any(item.grows for item in self.inputs)

    @property
    def end_order(self) -> object:
        return None


def _takes_back(node: Node) -> bool:
    """Whether a stream takes back rows that it gave: a merge does, to the window that stands right above it."""
    return isinstance(node, LMerge) and node.windowed


@dataclass(frozen=True, slots=True)
class Window(_Over):
    """[RANGE w], [NOW], [RANGE UNBOUNDED] or [ROWS n] over a stream-valued child; a row's time is that of its change.

    Over a merge of streams a row has the time that it has there.
    """

    child: Node
    window: WindowSpec

    @property
    def update_pattern(self) -> str:
        return patterns.window_pattern(self.window, _takes_back(self.child))

    @property
    def ends_known(self) -> bool:
        return self.update_pattern != patterns.STRICT

    @property
    def cases(self) -> tuple[str, ...]:
        return patterns.window_cases(self.window, has_end=_takes_back(self.child))

    @property
    def grows(self) -> bool:
        return self.window.kind is WindowKind.UNBOUNDED

    @property
    def end_order(self) -> object:
        return self if self.update_pattern == patterns.WEAKEST else None


@dataclass(frozen=True, slots=True)
class Slide(_Over):
    """The extent of a SLIDE window over a stream-valued child at its last boundary."""

    child: Node
    window: WindowSpec
    #: whether it appends `window_start` and `window_end`
    bounds: bool
    #: whether the child is a query's stream, whose rows are timed by their change and never end, or a merge; else a stream as it
    #: is pushed
    of_query: bool = False

    @property
    def columns(self) -> tuple[Column | OutputColumn, ...]:
        return (*self.child.columns, *BOUNDS) if self.bounds else self.child.columns

    @property
    def update_pattern(self) -> str:
        """Weakest, unless rows of the stream end by themselves; what a query gives as a stream does not."""
        own = self._stream()
        taken_back = _takes_back(self.child)
        return patterns.window_pattern(self.window, taken_back) if own is None else own.window_pattern(self.window)

    def _stream(self) -> Readable | None:
        """The stream as it is pushed; None if it is that of a query."""
        return self.child.inputs[0].readable if isinstance(self.child, Block) and not self.of_query else None

    @property
    def ends_known(self) -> bool:
        return self.update_pattern != patterns.STRICT

    @property
    def cases(self) -> tuple[str, ...]:
        own = self._stream()
        taken_back = _takes_back(self.child)
        return patterns.window_cases(self.window, has_end=taken_back) if own is None else own.window_cases(self.window)

    @property
    def end_order(self) -> object:
        if self.update_pattern != patterns.WEAKEST:
            return None
        if not isinstance(self.child, Block) or self.of_query:
            return self
        return self.child.inputs[0].name.lower(), self.window


@dataclass(frozen=True, slots=True)
class Select(_Over):
    """`SELECT columns FROM child WHERE condition`, also for HAVING; a stream if the child is one."""

    child: Node
    condition: Expression | None
    columns: tuple[OutputColumn, ...]
    defaults: tuple[str, ...] = field(default=(), compare=False)
    kind = "select"

    @property
    def is_stream(self) -> bool:
        return self.child.is_stream

    @property
    def update_pattern(self) -> str:
        return self.child.update_pattern

    @property
    def ends_known(self) -> bool:
        return self.child.ends_known

    @property
    def grows(self) -> bool:
        return self.child.grows

    @property
    def end_order(self) -> object:
        return self.child.end_order


@dataclass(frozen=True, slots=True)
class JoinNode(_ByKind):
    """A FROM list over other nodes: the combinations of their rows that satisfy the condition.

    What reads one input alone is already done below, so `condition` and `join` hold only what joins inputs, and `join.own` is
    empty. Expressions address the concatenation of the inputs' columns. A table is a block over it; a *frozen* input is one
    that counts as it was when the last row of the others came; beside tables alone there is none. A stream iff one input is: all
    others are then frozen tables.
    """

    inputs: tuple[Node, ...]
    frozen: tuple[bool, ...]
    condition: Expression | None
    join: Join
    columns: tuple[OutputColumn, ...]
    defaults: tuple[str, ...] = field(default=(), compare=False)
    #: what each input is called in the text
    aliases: tuple[str, ...] = field(default=(), compare=False)
    kind = "join"

    @property
    def children(self) -> tuple[Node, ...]:
        return self.inputs

    @property
    def is_stream(self) -> bool:
        return any(item.is_stream for item in self.inputs)

    @property
    def update_pattern(self) -> str:
        found = [item.update_pattern for item in self._counted()]
        return found[0] if len(found) == 1 else patterns.OPERATORS["join"].pattern(found)

    @property
    def ends_known(self) -> bool:
        return all(item.ends_known for item in self._counted())

    @property
    def grows(self) -> bool:
        return any(item.grows for item in self.inputs)

    @property
    def end_order(self) -> object:
        counted = self._counted()
        return counted[0].end_order if len(counted) == 1 else None

    def _counted(self) -> list[Node]:
        """The inputs whose ends are ends of the result."""
        return [item for item, frozen in zip(self.inputs, self.frozen) if not frozen]


@dataclass(frozen=True, slots=True)
class Distinct(_Over):
    """Each row once, however often the child has it; NULL equals NULL. It holds what DISTINCT has to hold anyway."""

    child: Node
    kind = "distinct"


@dataclass(frozen=True, slots=True)
class SetOperation(_ByKind):
    """UNION, EXCEPT or INTERSECT of two relations with columns of the same types; names are those of the left."""

    #: "union", "except" or "intersect"
    kind: str
    #: whether copies count
    all: bool
    left: Node
    right: Node
    #: found once: each asks for both of its inputs, and unions stand above each other
    update_pattern: str = field(init=False, compare=False)
    end_order: object = field(init=False, compare=False)

    def __post_init__(self) -> None:
        pattern, order = self._merged() if self.kind == "union" else (self._pattern(), None)
        if self.kind == "union" and not self.all:
            pattern, order = patterns.OPERATORS["distinct"].pattern([pattern]), None
        object.__setattr__(self, "update_pattern", pattern)
        object.__setattr__(self, "end_order", order)

    def _pattern(self) -> str:
        return patterns.OPERATORS[self.kind].pattern([self.left.update_pattern, self.right.update_pattern])

    def _merged(self) -> tuple[str, object]:
        """Pattern and order of the rows of both inputs together; those of a monotonic one never end."""
        pattern = self._pattern()
        if pattern != patterns.WEAKEST:
            return pattern, None
        order, *others = [side.end_order for side in self.children if side.update_pattern == patterns.WEAKEST]
        return (pattern, order) if all(other == order for other in others) else (patterns.WEAK, None)

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def columns(self) -> tuple[Column | OutputColumn, ...]:
        return self.left.columns

    @property
    def is_stream(self) -> bool:
        return False

    @property
    def grows(self) -> bool:
        return self.all and (self.left.grows or self.right.grows)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate over the rows of a group."""

    #: "count", "sum", "avg", "min", "max", "stddev", "variance", "median", "first" or "last"
    kind: str
    #: position of its argument in the child's columns; None iff it is COUNT(*)
    argument: int | None
    #: COUNT(DISTINCT x)
    distinct: bool
    #: position of the bool column that says which rows count; None: all
    filter: int | None
    type: Type


@dataclass(frozen=True, slots=True)
class GroupBy(_Over):
    """One row for each group that has rows: its keys, then its aggregates.

    The child's columns are the `n_keys` keys, then arguments and filters; NULL is a key like any other. A *scalar* one, without
    keys, has one row always, from the start.
    """

    child: Node
    n_keys: int
    aggregates: tuple[Aggregate, ...]
    scalar: bool
    #: of the output columns
    names: tuple[str, ...]
    kind = "group-by"

    @property
    def columns(self) -> tuple[Column, ...]:
        types = [column.type for column in self.child.columns[: self.n_keys]] + [item.type for item in self.aggregates]
        return tuple(Column(name, kind) for name, kind in zip(self.names, types, strict=True))


@dataclass(frozen=True, slots=True)
class ToStream(_Over):
    """ISTREAM, DSTREAM or RSTREAM: the changes of a relation, or its answers, as a stream."""

    #: "istream", "dstream" or "rstream"
    kind: str
    child: Node

    @property
    def is_stream(self) -> bool:
        return True

    @property
    def ends_known(self) -> bool:
        return True


Node = Block | NamedQuery | LMerge | Window | Slide | Select | JoinNode | Distinct | SetOperation | GroupBy | ToStream


def schema_of(node: Node) -> Schema:
    """The columns of a node as a schema, for what reads it."""
    return Schema(tuple(Column(column.name, column.type) for column in node.columns))


def column_refs(columns: Sequence[Column | OutputColumn], offset: int = 0) -> list[ColumnRef]:
    """Expressions that are the columns of a child."""
    return [ColumnRef(column.type, column.name, offset + at) for at, column in enumerate(columns)]
