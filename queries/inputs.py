"""The inputs of a SELECT: the source and window of each FROM item, and whether they can be combined.

    one stream, any tables     any window; without one the query is a stream
    several                    each stream has a window that ends: [RANGE w], [ROWS n], [NOW] or SLIDE
    tables                     no window, with streams or alone
    relations                  no window: a query's answer, whose rows end by themselves

A stream or table as it is becomes a `BoundInput`, for the shared eddy; a query in parentheses, a WITH name, a running query, a
stream with a SLIDE window and a merge (`queries/merging.py`) become a `DerivedInput`, a node of the tree. The streams of one
query are of one timeline; the engine, which knows timelines, checks that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lineage.errors import QueryError, did_you_mean
from lineage.schema import Schema
from queries.bound import NOWHERE, Block, BoundInput, OutputColumn, Readable
from queries.literals import param_rows, param_value, param_window
from queries.merging import Merging, bind_merge
from queries.nodes import BOUNDS, NamedQuery, Node, Slide, column_refs, schema_of
from queries.nodes import Window as WindowNode
from queries.sql_text import SqlText
from queries.syntax import (
    MAX_LEVELS,
    Name,
    QuerySyntax,
    RowsWindow,
    SelectQuery,
    SlideWindow,
    SourceItem,
    Window,
    WindowParam,
)
from windows.spec import FOREVER, WindowKind, WindowSpec

_CHOICES = "choose [RANGE 5 MINUTES], [ROWS 100] or [NOW]"
_RENAME = (
    "give it another name below the window: FROM (SELECT {taken} AS began FROM {name}) [RANGE 5 MINUTES SLIDE 1 MINUTE] AS a"
)
_ISTREAM = "only a stream has a window: FROM (ISTREAM (SELECT ...)) [RANGE 5 MINUTES] AS a"


@dataclass(frozen=True, slots=True)
class Derived:
    """A bound query inside another, with the figures that bound the tree."""

    node: Node
    #: SELECTs inside each other, and in all
    levels: int
    n_selects: int
    #: if it is a stream: what makes it one, in words, and where
    stream: str = ""
    span: tuple[int, int] = NOWHERE


@dataclass(frozen=True, slots=True)
class DerivedInput:
    """A FROM item that is a node of the tree."""

    alias: str
    name: str
    #: what it is, in a word
    kind: str
    schema: Schema
    node: Node
    offset: int
    span: tuple[int, int]

    @property
    def is_table(self) -> bool:
        return False


Input = BoundInput | DerivedInput


class InputBinder:
    """Binds the FROM items of one text."""

    def __init__(
        self,
        source: SqlText,
        lookup: Callable[[str], Readable | None],
        params: Mapping[str, object],
        known_names: Callable[[], list[str]] | None,
    ) -> None:
        self._source = source
        self._lookup = lookup
        self._params = params
        self._known_names = known_names

    def bind(
        self, query: SelectQuery, names: Mapping[str, Derived], bind_query: Callable[[QuerySyntax], Derived]
    ) -> tuple[tuple[Input, ...], list[Derived]]:
        """The inputs in the order of FROM, and the queries among them; `names` are those of WITH, in lower case.

        Raises `QueryError` for names, windows and combinations that do not exist.
        """
        found: list[Input] = []
        derived: list[Derived] = []
        offset = 0
        for item in query.from_items:
            named = None if item.merged else names.get(item.name.lower())
            inner = bind_query(item.query) if item.query is not None else named
            bound: Input
            if item.merged:
                bound = self._merge(item, names, offset)
            elif inner is not None:
                derived.append(inner)
                bound = self._over_node(item, inner.node, offset)
            else:
                bound = self._named(item, names, offset)
            found.append(bound)
            offset += len(bound.schema)
        self._check_windows(query, found)
        return tuple(found), derived

    # -- one item

    def _named(self, item: SourceItem, names: Mapping[str, Derived], offset: int) -> Input:
        """A stream, a table or a running query."""
        readable = self._lookup(item.name)
        if readable is None:
            known = [*names, *self._known()]
            raise self._error(item, f'stream "{item.name}" does not exist', "unknown_stream", did_you_mean(item.name, known))
        if readable.query is not None:
            return self._over_node(item, self._running(item, readable), offset)
        span, window_span = (item.start, item.end), item.window_span or NOWHERE
        if readable.is_table:
            if item.window_span is not None:
                hint = "only a stream has a window; a table counts as it is"
                raise self._window_error(item, f'table "{item.name}" takes no window', "table_window", hint)
            window = WindowSpec.unbounded()
        else:
            window = self._window(item.window, readable.schema)
        if window.kind is WindowKind.SLIDE:
            return self._sliding(item, readable, window, offset)
        return BoundInput(item.alias or item.name, item.name, readable, window, offset, span, window_span)

    def _known(self) -> list[str]:
        return self._known_names() if self._known_names else []

    def _merge(self, item: SourceItem, names: Mapping[str, Derived], offset: int) -> DerivedInput:
        """A merge of streams and running queries."""
        binder = Merging(
            self._source, self._lookup, lambda: [*names, *self._known()],
            lambda name, readable: self._running(name, readable, merged=True),
            lambda over, node: self._window(over.window, schema_of(node)), self._slide,
        )  # fmt: skip
        node = bind_merge(binder, item, names)
        return DerivedInput(item.name, item.name, "merge", schema_of(node), node, offset, (item.start, item.end))

    def _running(self, item: SourceItem | Name, readable: Readable, merged: bool = False) -> NamedQuery:
        facts = readable.query
        assert facts is not None
        if facts.paused:
            raise self._error(item, f'query "{item.name}" is paused', "paused", "resume it first")
        if facts.levels >= MAX_LEVELS:
            fact = f"running queries stand above each other deeper than {MAX_LEVELS} levels"
            raise self._error(item, fact, "query_too_deep", f'read what "{item.name}" reads')
        return NamedQuery(item.name, readable.schema, facts, (item.start, item.end), merged)

    def _over_node(self, item: SourceItem, node: Node, offset: int) -> DerivedInput:
        """A node with the window behind it."""
        called = item.alias or item.name
        if item.window_span is not None:
            if not node.is_stream:
                fact = f'query "{called}" is a relation and takes no window'
                raise self._window_error(item, fact, "relation_window", _ISTREAM)
            if item.time is not None:
                fact, hint = f'query "{called}" has no time column', "its rows are timed by their change: leave the column out"
                raise self._source.error(fact, item.time.start, item.time.end, "bad_window", hint)
            window = self._window(item.window, schema_of(node))
            sliding = window.kind is WindowKind.SLIDE
            node = self._slide(item, node, window, of_query=True) if sliding else WindowNode(node, window)
        return DerivedInput(called, item.name, "query", schema_of(node), node, offset, (item.start, item.end))

    def _sliding(self, item: SourceItem, readable: Readable, window: WindowSpec, offset: int) -> DerivedInput:
        """A stream with a SLIDE window: its rows as they come, and the window above them."""
        if item.time is not None:
            self._check_time(item, readable)
        span = (item.start, item.end)
        leaf = BoundInput(item.name, item.name, readable, WindowSpec.none(), 0, span, item.window_span or NOWHERE)
        columns = tuple(OutputColumn(ref.name, ref) for ref in column_refs(readable.schema.columns))
        node = self._slide(item, Block((leaf,), None, columns), window, of_query=False)
        return DerivedInput(item.alias or item.name, item.name, "stream", schema_of(node), node, offset, span)

    def _slide(self, item: SourceItem, node: Node, window: WindowSpec, of_query: bool) -> Slide:
        """A window in steps, which gives its bounds as columns."""
        schema = schema_of(node)
        taken = next((column.name for column in BOUNDS if schema.find(column.name) is not None), None)
        if taken is not None:
            fact = f'"{item.name}" has a column "{taken}" already'
            raise self._error(item, fact, "duplicate_column", _RENAME.format(taken=taken, name=item.name))
        return Slide(node, window, True, of_query)

    def _check_time(self, item: SourceItem, readable: Readable) -> None:
        """The column in the second place of TUMBLE or HOP is the stream's time."""
        node, schema = item.time, readable.schema
        assert node is not None
        column = schema.find(node.name)
        if column is None:
            fact = f'column "{node.name}" does not exist in stream "{item.name}"'
            hint = did_you_mean(node.name, list(schema.names))
            raise self._source.error(fact, node.start, node.end, "unknown_column", hint)
        if readable.time is None or schema.position(column.name) != readable.time:
            time = "it has none" if readable.time is None else f'that is "{schema.names[readable.time]}"'
            fact = f'column "{column.name}" is not the time column of stream "{item.name}"'
            raise self._source.error(fact, node.start, node.end, "bad_window", f"{time}; the column may be left out")

    # -- windows

    def _window(self, window: Window, schema: Schema) -> WindowSpec:
        source = self._source
        if isinstance(window, WindowSpec):
            return window
        if isinstance(window, WindowParam):
            return param_window(source, window, param_value(source, window, window.name, self._params))
        if isinstance(window, SlideWindow):
            width, slide = self._window(window.width, schema), self._window(window.slide, schema)
            return WindowSpec.sliding(width.width_us, slide.width_us)
        width_us = FOREVER if window.width is None else self._window(window.width, schema).width_us
        rows = window.rows
        if isinstance(rows, WindowParam):
            rows = param_rows(source, rows, param_value(source, rows, rows.name, self._params))
        return WindowSpec.newest(rows, self._partition(window, schema), width_us)

    def _partition(self, window: RowsWindow, schema: Schema) -> list[int]:
        found = []
        for name in window.partition:
            column = schema.find(name.name)
            if column is None:
                fact, hint = f'column "{name.name}" of PARTITION BY does not exist', did_you_mean(name.name, list(schema.names))
                raise self._source.error(fact, name.start, name.end, "unknown_column", hint)
            found.append(schema.position(column.name))
        return found

    def _check_windows(self, query: SelectQuery, inputs: list[Input]) -> None:
        """Streams that are joined with anything but tables have a window that ends."""
        moving = [(item, bound) for item, bound in zip(query.from_items, inputs) if not bound.is_table]
        if len(moving) < 2:
            return
        for item, bound in moving:
            if isinstance(bound, DerivedInput):
                self._check_derived(item, bound)
            elif bound.window.is_stream:
                fact = f'stream "{bound.name}" needs a window in a join of streams'
                raise self._error(item, fact, "missing_window", _CHOICES)
            elif bound.window.kind is WindowKind.UNBOUNDED:
                fact = "[RANGE UNBOUNDED] cannot stand in a join of streams"
                raise self._window_error(item, fact, "unbounded_join", f"it would keep every row for ever: {_CHOICES}")

    def _check_derived(self, item: SourceItem, bound: DerivedInput) -> None:
        if bound.node.is_stream:
            fact = f'{bound.kind} "{bound.alias}" is a stream and needs a window in a join'
            raise self._error(item, fact, "missing_window", _CHOICES)
        if bound.node.grows:
            fact = f'{bound.kind} "{bound.alias}" reads [RANGE UNBOUNDED] and cannot stand in a join'
            raise self._error(item, fact, "unbounded_join", f"it would keep every row for ever: {_CHOICES}")

    # -- errors

    def _error(self, item: SourceItem | Name, fact: str, code: str, hint: str = "") -> QueryError:
        return self._source.error(fact, item.start, item.end, code, hint)

    def _window_error(self, item: SourceItem, fact: str, code: str, hint: str = "") -> QueryError:
        start, end = item.window_span or (item.start, item.end)
        return self._source.error(fact, start, end, code, hint)
