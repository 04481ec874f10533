"""The syntax tree of a query: what `parse` makes once per text and `bind` only walks.

Names, parameters and functions are still words here; literals are already typed. Every node carries its span
`[start, end)` in the text, the height of its tree (`depth`, at most `MAX_HEIGHT`) and its `size` (at most `MAX_SIZE`). All
nodes are immutable, so one tree serves any number of bindings.

Operators use the canonical names of `filters/expression.py` from the start: BETWEEN, NOT IN, IS NOT NULL and both
forms of CASE are written out, and AND / OR are flat however many terms they have.
"""

from __future__ import annotations

from dataclasses import dataclass

from filters.expression import Literal
from lineage.errors import QueryError
from lineage.schema import Type
from queries.source import Source
from windows.spec import WindowSpec

#: Height of an expression tree: bounds the recursion of everything that walks one.
MAX_HEIGHT = 64
#: Nodes of an expression tree, repeated ones counted each time: BETWEEN, CASE and IN repeat their first operand, and nested
#: they would grow a short text exponentially.
MAX_SIZE = 8_000
#: FROM items of a query.
MAX_INPUTS = 8


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


Syntax = Constant | Param | Name | Apply | Invoke | Convert


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


#: A window that needs nothing more, or one that is finished by the binder.
Window = WindowSpec | WindowParam | RowsWindow


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One FROM item: a stream or a table, its window and its alias."""

    start: int
    end: int
    name: str
    alias: str | None
    window: Window
    #: what stands between the brackets of the window; None iff there are none
    window_span: tuple[int, int] | None
    #: the condition of `JOIN this ON condition`; None behind FROM or a comma
    on: Syntax | None = None


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query whose text is in order; `bind` gives it a meaning. Immutable: one serves every query of the same text."""

    source: Source
    items: tuple[Item | Star, ...]
    #: in the order of the text, 1 to `MAX_INPUTS`; no two answer to the same alias
    from_items: tuple[SourceItem, ...]
    #: the WHERE clause; ON conditions are with their FROM items
    condition: Syntax | None
    #: names of all parameters in the text, as written
    params: frozenset[str]

    def error_at_input(self, number: int, fact: str, code: str, hint: str = "") -> QueryError:
        """The error for one FROM item, counted from 0; the caller raises it."""
        item = self.from_items[number]
        return self.source.error(fact, item.start, item.end, code, hint)

    def error_at_window(self, number: int, fact: str, code: str, hint: str = "") -> QueryError:
        """The error for the window of one FROM item, counted from 0; the caller raises it."""
        item = self.from_items[number]
        start, end = item.window_span or (item.start, item.end)
        return self.source.error(fact, start, end, code, hint)
