"""The syntax tree of a query, which `parse` makes once per text and `bind` only walks.

Names, parameters and functions are still words here; literals are already typed. Every node carries its span
`[start, end)` in the text, the height of its tree (`depth`, at most `MAX_HEIGHT`) and its `size` (at most `MAX_SIZE`). All
nodes are immutable, so one tree serves any number of bindings.

Operators use the canonical names of `filters/expressions/expression.py` from the start: BETWEEN, NOT IN, IS NOT NULL and both
forms of CASE are written out, and AND / OR are flat however many terms they have.
"""

from __future__ import annotations

from dataclasses import dataclass

from filters.expressions.expression import Literal
from lineage.schema import Type
from queries.sql_text import SqlText
from windows.spec import WindowSpec

#: Height of an expression tree: bounds the recursion of everything that walks one.
MAX_HEIGHT = 64
#: Nodes of an expression tree, repeated ones counted each time: BETWEEN, CASE and IN repeat their first operand, and nested
#: they would grow a short text exponentially.
MAX_SIZE = 8_000
#: FROM items of a SELECT.
MAX_INPUTS = 8
#: SELECTs inside each other, by parentheses in FROM or by the names of WITH.
MAX_LEVELS = 16
#: SELECTs of a query, those of a WITH name counted each time it is read: they bound the tree that is bound.
MAX_SELECTS = 64


@dataclass(frozen=True, slots=True)
class Constant:
    start: int
    end: int
    literal: Literal
    depth: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class Param:
    start: int
    end: int
    name: str
    depth: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class Name:
    """A column, perhaps with the alias or stream it belongs to."""

    start: int
    end: int
    qualifier: str | None
    name: str
    depth: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator; `op` is a canonical name."""

    start: int
    end: int
    op: str
    args: tuple[Syntax, ...]
    depth: int
    size: int


@dataclass(frozen=True, slots=True)
class Invoke:
    """A function by the name the user wrote, in lower case: built in or registered, the binder decides."""

    start: int
    end: int
    name: str
    args: tuple[Syntax, ...]
    depth: int
    size: int


@dataclass(frozen=True, slots=True)
class Convert:
    """CAST(arg AS type) and arg::type."""

    start: int
    end: int
    type: Type
    arg: Syntax
    depth: int
    size: int


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate: COUNT(*), SUM(arg), COUNT(DISTINCT arg), each perhaps with FILTER (WHERE filter)."""

    start: int
    end: int
    #: the function in lower case
    name: str
    #: None iff it is COUNT(*)
    arg: Syntax | None
    distinct: bool
    filter: Syntax | None
    depth: int
    size: int


Syntax = Constant | Param | Name | Apply | Invoke | Convert | Aggregated


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `alias.*` in the select list."""

    start: int
    end: int
    qualifier: str | None


@dataclass(frozen=True, slots=True)
class Item:
    """One expression of the select list with the name after AS."""

    start: int
    end: int
    expression: Syntax
    alias: str | None


@dataclass(frozen=True, slots=True)
class WindowParam:
    """`[RANGE :w]` or `[ROWS :n]`: the width or the count comes with the parameters."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """`[PARTITION BY keys ROWS rows RANGE width]`: its columns have no positions before the stream is known."""

    start: int
    end: int
    rows: int | WindowParam
    partition: tuple[Name, ...]
    #: None without RANGE
    width: WindowSpec | WindowParam | None


@dataclass(frozen=True, slots=True)
class SlideWindow:
    """`[RANGE width SLIDE slide]`, TUMBLE and HOP with a parameter in it."""

    start: int
    end: int
    width: WindowSpec | WindowParam
    slide: WindowSpec | WindowParam


#: A window that needs nothing more, or one that is finished by the binder.
Window = WindowSpec | WindowParam | RowsWindow | SlideWindow


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One FROM item: a name, a query in parentheses or a merge of names, its window and its alias."""

    start: int
    end: int
    #: of a stream, a table, a WITH name or a running query; the alias of a query in parentheses or of a merge
    name: str
    alias: str | None
    window: Window
    #: what stands between the brackets of the window, or behind the name in TUMBLE and HOP; None iff there is no window
    window_span: tuple[int, int] | None
    #: the condition of `JOIN this ON condition`; None behind FROM or a comma
    on: Syntax | None = None
    #: what stands in the parentheses; None iff the item is a name
    query: QuerySyntax | None = None
    #: the second argument of TUMBLE or HOP where that is a column
    time: Name | None = None
    #: the inputs of LMERGE, in the order of the text; empty iff the item is no merge
    merged: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """SELECT .. FROM .. WHERE .. GROUP BY .. HAVING."""

    start: int
    end: int
    distinct: bool
    items: tuple[Item | Star, ...]
    #: in the order of the text, 1 to `MAX_INPUTS`; no two answer to the same alias
    from_items: tuple[SourceItem, ...]
    #: the WHERE clause; ON conditions are with their FROM items
    condition: Syntax | None
    group_by: tuple[Syntax, ...] = ()
    having: Syntax | None = None
    #: whether an aggregate stands in the select list or HAVING
    has_aggregates: bool = False

    @property
    def is_grouped(self) -> bool:
        """Whether its rows are those of groups."""
        return bool(self.group_by) or self.having is not None or self.has_aggregates


@dataclass(frozen=True, slots=True)
class SetQuery:
    """`left UNION [ALL] right`, and the same for EXCEPT and INTERSECT; the span is that of the operator."""

    start: int
    end: int
    #: "union", "except" or "intersect"
    kind: str
    all: bool
    left: QuerySyntax
    right: QuerySyntax


@dataclass(frozen=True, slots=True)
class StreamQuery:
    """ISTREAM (query), DSTREAM (query) or RSTREAM (query); the span is that of the word."""

    start: int
    end: int
    #: "istream", "dstream" or "rstream"
    kind: str
    query: QuerySyntax


@dataclass(frozen=True, slots=True)
class WithName:
    """`name AS (query)` behind WITH; the span is that of the name."""

    start: int
    end: int
    name: str
    query: QuerySyntax


@dataclass(frozen=True, slots=True)
class WithQuery:
    """`WITH names query`: a name is seen by those behind it and by the query."""

    start: int
    end: int
    names: tuple[WithName, ...]
    query: QuerySyntax


QuerySyntax = SelectQuery | SetQuery | StreamQuery | WithQuery


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query whose text is in order; `bind` gives it a meaning. Immutable: one serves every query of the same text."""

    source: SqlText
    query: QuerySyntax
    #: names of all parameters in the text, as written
    params: frozenset[str]
