"""LMERGE in FROM: streams and running queries that present the same rows, as one node (semantics 36).

    all streams      a stream; a window behind it is over the merged rows
    all relations    a relation, which takes no window
    both             a relation; the window behind it is that of each stream in it

The inputs have equal columns: as many, of the same names and types, in the same order. A stream whose rows end by themselves (a
key, a column of ends, rows that are taken back) is merged through its window: beside relations, or by a query over it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from lineage.errors import QueryError, did_you_mean
from lineage.schema import Column
from queries.bound import NOWHERE, Block, BoundInput, OutputColumn, Readable
from queries.nodes import LMerge, NamedQuery, Node, Slide, Window, column_refs, schema_of
from queries.sql_text import SqlText
from queries.syntax import Name, SourceItem
from windows.spec import WindowKind, WindowSpec

_TAKES = "LMERGE takes streams and running queries"
_RELATIONS = "rows of a relation end by themselves: leave the window out"
_MIXED = "the window behind LMERGE is that of the streams in it: LMERGE({names}) [RANGE 5 MINUTES] AS {alias}"
_OWN_ENDS = "give it a window: submit SELECT * FROM {name} [RANGE 5 MINUTES] with a name, and merge that"


@dataclass(frozen=True, slots=True)
class Merging:
    """The parts of the binder of FROM items that a merge needs."""

    source: SqlText
    lookup: Callable[[str], Readable | None]
    #: the names of everything that can be read, for a hint
    known_names: Callable[[], list[str]]
    #: a running query by its name in the text
    running: Callable[[Name, Readable], NamedQuery]
    #: the window of an item over some columns
    window: Callable[[SourceItem, Node], WindowSpec]
    #: an item's node below a window in steps, which gives its bounds as columns
    slide: Callable[[SourceItem, Node, WindowSpec, bool], Slide]


def bind_merge(binder: Merging, item: SourceItem, names: Collection[str]) -> Node:
    """The node of `LMERGE(..) [window]`; `names` are those of WITH, in lower case. Raises `QueryError`."""
    read = [(name, _readable(binder, name, names)) for name in item.merged]
    streams = [name for name, readable in read if readable.query is None or readable.query.is_stream]
    called = tuple(name.name for name in item.merged)
    if len(streams) == len(read):
        _check_ends(binder, read)
        nodes = [_stream(binder, name, readable) for name, readable in read]
        _check_columns(binder, item, nodes)
        _check_times(binder, read)
        windowed = item.window_span is not None
        merge = LMerge(tuple(nodes), called, True, windowed)
        return _over(binder, item, merge, of_query=True) if windowed else merge
    if streams and item.window_span is None:
        fact = f'stream "{streams[0].name}" needs a window beside a relation in LMERGE'
        hint = _MIXED.format(names=", ".join(called), alias=item.alias)
        raise _error(binder, streams[0], fact, "missing_window", hint)
    if not streams and item.window_span is not None:
        fact = f'LMERGE "{item.alias}" is one of relations and takes no window'
        raise binder.source.error(fact, *item.window_span, "relation_window", _RELATIONS)
    nodes = [
        _over(binder, item, _stream(binder, name, readable), of_query=readable.query is not None)
        if name in streams
        else binder.running(name, readable)
        for name, readable in read
    ]
    _check_columns(binder, item, nodes)
    return LMerge(tuple(nodes), called, False)


def _readable(binder: Merging, name: Name, names: Collection[str]) -> Readable:
    """The stream or running query of a name."""
    if name.name.lower() in names:
        fact, hint = f'"{name.name}" is a name of WITH and cannot be merged', f"{_TAKES}: submit it by itself, with a name"
        raise _error(binder, name, fact, "bad_merge_input", hint)
    readable = binder.lookup(name.name)
    if readable is None:
        hint = did_you_mean(name.name, binder.known_names())
        raise _error(binder, name, f'stream "{name.name}" does not exist', "unknown_stream", hint)
    if readable.is_table:
        fact, hint = f'table "{name.name}" cannot be merged', f"{_TAKES}; join the table with what they give"
        raise _error(binder, name, fact, "bad_merge_input", hint)
    return readable


def _check_ends(binder: Merging, read: list[tuple[Name, Readable]]) -> None:
    """Rows of the streams only come."""
    for name, readable in read:
        reason = (
            "its rows have a key and replace each other" if readable.keyed
            else "a column has the ends of its rows" if readable.end is not None
            else "its rows may be taken back" if readable.taken_back
            else ""
        )  # fmt: skip
        if reason:
            fact = f'stream "{name.name}" cannot be merged as it is: {reason}'
            raise _error(binder, name, fact, "bad_merge_input", _OWN_ENDS.format(name=name.name))


def _check_times(binder: Merging, read: list[tuple[Name, Readable]]) -> None:
    """The streams, of equal columns, have their times in one column."""
    pushed = [(name, readable) for name, readable in read if readable.query is None]
    for name, readable in pushed:
        first, other = pushed[0][1].time, readable.time
        if first is not None and other is not None and first != other:
            fact = f'the time of "{name.name}" is column "{readable.schema.names[other]}"'
            hint = f'that of "{pushed[0][0].name}" is "{readable.schema.names[first]}": rows are merged by their times'
            raise _error(binder, name, fact, "bad_merge_input", hint)


def _stream(binder: Merging, name: Name, readable: Readable) -> Node:
    """A stream as it comes."""
    if readable.query is not None:
        return binder.running(name, readable)
    leaf = BoundInput(name.name, name.name, readable, WindowSpec.none(), 0, (name.start, name.end))
    return Block((leaf,), None, tuple(OutputColumn(ref.name, ref) for ref in column_refs(readable.schema.columns)))


def _over(binder: Merging, item: SourceItem, node: Node, of_query: bool) -> Node:
    """The window of the item over a node that is a stream."""
    window = binder.window(item, node)
    if window.kind is WindowKind.SLIDE:
        return binder.slide(item, node, window, of_query)
    if of_query:
        return Window(node, window)
    assert isinstance(node, Block), "a stream as it is pushed is a block"
    (leaf,) = node.inputs
    held = BoundInput(leaf.alias, leaf.name, leaf.readable, window, 0, leaf.span, item.window_span or NOWHERE)
    return Block((held,), None, node.columns)


def _check_columns(binder: Merging, item: SourceItem, nodes: list[Node]) -> None:
    """All inputs have the columns of the first."""
    first, wanted = item.merged[0], schema_of(nodes[0]).columns
    for name, node in zip(item.merged[1:], nodes[1:], strict=True):
        found = schema_of(node).columns
        if len(found) != len(wanted):
            fact = f'"{name.name}" has {len(found)} columns and "{first.name}" has {len(wanted)}'
            raise _error(binder, name, fact, "column_count", "inputs of LMERGE have equal columns, in the same order")
        for own, other in zip(wanted, found):
            if own.name.lower() != other.name.lower() or own.type is not other.type:
                fact = f'"{name.name}" has a column {_say(other)} where "{first.name}" has {_say(own)}'
                raise _error(binder, name, fact, "column_mismatch", "inputs of LMERGE have equal columns, in the same order")


def _say(column: Column) -> str:
    return f'"{column.name}" of type {column.type.value}'


def _error(binder: Merging, name: Name, fact: str, code: str, hint: str) -> QueryError:
    return binder.source.error(fact, name.start, name.end, code, hint)
