"""Queries as trees of operators: what a text of the whole language means, independent of any parser (`contract.md` 4).

    Select(items, where, outputs)                 select, project and join over a FROM list
    Grouped(items, where, keys, aggregates, ...)  the same with GROUP BY, or one row for ever if `scalar`
    Distinct(child)                               each value once
    Combined(word, all, left, right)              UNION, EXCEPT, INTERSECT, with ALL or as sets
    ToStream(word, child)                         ISTREAM, DSTREAM, RSTREAM
    Named(name, ...)                              the answer of a running query

An item of FROM is a stream, a table or a query, with its window. A query is a relation or a stream: a stream is what has an
item that is a stream and has no window, and what ToStream gives. Expressions are `workload.Node`s over one row per
item; in HAVING and the outputs of `Grouped` they are over one row with the columns k0, k1, ... (keys) and a0, a1, ...
(aggregates). How a tree is evaluated is in `running.py`, how it is written in `tree_sql.py` and `tree_duck.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.reference import workload
from tests.reference.lives import Window

Expression = workload.Node

#: Aggregates whose last digits may differ between two right implementations.
INEXACT = {"stddev", "variance"}


@dataclass(frozen=True)
class Slide:
    """`[RANGE width SLIDE slide]`, TUMBLE or HOP; `bounds`: whether the columns window_start and window_end are looked at."""

    width: int
    slide: int
    bounds: bool = False
    #: whether it is written as TUMBLE or HOP
    called: bool = False

    def boundary(self, time: float) -> float:
        """The last boundary that is not after `time`; boundaries are counted from 1970."""
        return time if math.isinf(time) else time // self.slide * self.slide


@dataclass(frozen=True, eq=False)
class Item:
    """One item of FROM."""

    alias: str
    #: the name of a stream or table, or a query
    source: str | Tree
    columns: Mapping[str, str]
    window: Window | Slide | None = None
    is_table: bool = False
    #: the name under which WITH defines the query; two items may share one
    shared: str | None = None

    @property
    def is_stream(self) -> bool:
        if self.window is not None or self.is_table:
            return False
        return isinstance(self.source, str) or self.source.is_stream

    @property
    def is_base(self) -> bool:
        """A stream of the engine, not one that a query gives."""
        return isinstance(self.source, str) and not self.is_table


@dataclass(frozen=True, eq=False)
class Select:
    items: tuple[Item, ...]
    where: Expression | None
    outputs: tuple[tuple[str, Expression], ...]

    @property
    def columns(self) -> Mapping[str, str]:
        return {name: node.type for name, node in self.outputs}

    @property
    def is_stream(self) -> bool:
        return any(item.is_stream for item in self.items)


@dataclass(frozen=True)
class Aggregate:
    """`kind` in lower case; COUNT(*) has no argument."""

    kind: str
    argument: Expression | None = None
    distinct: bool = False
    where: Expression | None = None

    @property
    def type(self) -> str:
        if self.kind == "count":
            return "int"
        if self.kind in ("avg", "stddev", "variance", "median"):
            return "float"
        assert self.argument is not None
        return self.argument.type


@dataclass(frozen=True, eq=False)
class Grouped:
    items: tuple[Item, ...]
    where: Expression | None
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expression | None
    outputs: tuple[tuple[str, Expression], ...]

    is_stream = False

    @property
    def scalar(self) -> bool:
        return not self.keys

    @property
    def columns(self) -> Mapping[str, str]:
        return {name: node.type for name, node in self.outputs}

    @property
    def exact(self) -> bool:
        return not any(aggregate.kind in INEXACT for aggregate in self.aggregates)


@dataclass(frozen=True, eq=False)
class Distinct:
    child: Tree

    is_stream = False

    @property
    def columns(self) -> Mapping[str, str]:
        return self.child.columns


@dataclass(frozen=True, eq=False)
class Combined:
    """A set operator; the columns have the names of the left side."""

    word: str
    all: bool
    left: Tree
    right: Tree

    is_stream = False

    @property
    def columns(self) -> Mapping[str, str]:
        return self.left.columns


@dataclass(frozen=True, eq=False)
class ToStream:
    word: str
    child: Tree

    is_stream = True

    @property
    def columns(self) -> Mapping[str, str]:
        return self.child.columns


@dataclass(frozen=True, eq=False)
class Named:
    name: str
    columns: Mapping[str, str]
    is_stream: bool
    exact: bool = True
    #: whether it holds rows for ever
    endless: bool = False


Tree = Select | Grouped | Distinct | Combined | ToStream | Named


def children(tree: Tree) -> Iterator[Tree]:
    match tree:
        case Select() | Grouped():
            yield from (item.source for item in tree.items if not isinstance(item.source, str))
        case Distinct() | ToStream():
            yield tree.child
        case Combined():
            yield tree.left
            yield tree.right


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree's nodes, itself first; one that is shared as often as it is used."""
    yield tree
    for child in children(tree):
        yield from walk(child)


def items(tree: Tree) -> Iterator[Item]:
    """All items of FROM in the tree."""
    for node in walk(tree):
        if isinstance(node, Select | Grouped):
            yield from node.items


def named(tree: Tree) -> set[str]:
    """The running queries a tree reads."""
    return {node.name for node in walk(tree) if isinstance(node, Named)}


def slides(tree: Tree) -> set[int]:
    """The slides of the windows a tree's answer stands on, below streams it makes itself left out."""
    found: set[int] = set()
    match tree:
        case Select() | Grouped():
            for item in tree.items:
                if isinstance(item.window, Slide):
                    found.add(item.window.slide)
                elif item.window is None and not isinstance(item.source, str):
                    found |= slides(item.source)
        case Distinct() | Combined():
            for child in children(tree):
                found |= slides(child)
    return found


def exact(tree: Tree) -> bool:
    """Whether two right implementations give the same digits."""
    return all(node.exact for node in walk(tree) if isinstance(node, Grouped | Named))


def parameters(tree: Tree) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in walk(tree):
        expressions: list[Expression | None] = []
        if isinstance(node, Select | Grouped):
            expressions += [node.where, *(expression for _, expression in node.outputs)]
        if isinstance(node, Grouped):
            expressions += [node.having, *node.keys]
            expressions += [part for aggregate in node.aggregates for part in (aggregate.argument, aggregate.where)]
        for expression in expressions:
            found.update(expression.params if expression else {})
    return found
