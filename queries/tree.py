"""Functions over the whole tree of a bound query (`queries/nodes.py`): walk it, change it, and combine facts of its nodes.

Depth and size are bounded by the language (`queries/binder.py`), so the recursion is too. A node that is read in two places is
visited in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from queries.bound import BoundInput
from queries.nodes import Block, GroupBy, JoinNode, LMerge, NamedQuery, Node, Select, SetOperation, Slide, ToStream, Window


def walk(node: Node) -> Iterator[Node]:
    """Every node, parents first, left before right."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(found.children))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with every node changed, children first."""
    return change(with_children(node, [mapped(child, change) for child in node.children]))


def with_children(node: Node, children: Sequence[Node]) -> Node:
    """Return a node like this one with other children; the node itself if the children are the same."""
    if all(new is old for new, old in zip(children, node.children, strict=True)):
        return node
    if isinstance(node, JoinNode | LMerge):
        return replace(node, inputs=tuple(children))
    if isinstance(node, SetOperation):
        left, right = children
        return replace(node, left=left, right=right)
    (child,) = children
    parts: dict[str, Any] = {"child": child}
    return replace(node, **parts)


def word_of(node: Node) -> str:
    """The kind of a node in a word or two, for people."""
    match node:
        case SetOperation(kind=kind, all=True):
            return f"{kind} all"
        case NamedQuery(name=name):
            return f"query {name}"
        case Block() | Slide() | Window():
            return type(node).__name__.lower()
    return node.kind


def leaves(node: Node) -> Iterator[BoundInput | NamedQuery]:
    """Yield the inputs of the tree: streams and tables with their windows, and running queries; once for each place."""
    for found in walk(node):
        if isinstance(found, Block):
            yield from found.inputs
        elif isinstance(found, NamedQuery):
            yield found


def of_tables(node: Node) -> bool:
    """Whether the tree reads tables alone, no stream."""
    return all(isinstance(leaf, BoundInput) and leaf.is_table for leaf in leaves(node))


def levels(node: Node) -> int:
    """How many running queries would stand above each other if this one ran."""
    return 1 + max((leaf.facts.levels for leaf in leaves(node) if isinstance(leaf, NamedQuery)), default=0)


def union_sides(node: Node) -> list[Node]:
    """The inputs of UNION ALLs that stand in each other, in the order of the text: they are one operator."""
    if isinstance(node, SetOperation) and node.kind == "union" and node.all:
        return [*union_sides(node.left), *union_sides(node.right)]
    return [node]


def union_bits(node: Node) -> int:
    """How many bits of an id its UNION ALLs need to tell the rows of their inputs apart; who numbers his own rows needs none."""
    match node:
        case NamedQuery(facts=facts):
            return facts.union_bits
        case Select(child=child) | Slide(child=child) | Window(child=child):
            return union_bits(child)
        case SetOperation(kind="union", all=True):
            sides = union_sides(node)
            return (len(sides) - 1).bit_length() + max(map(union_bits, sides))
    return 0


def is_ordered(node: Node) -> bool:
    """Whether the rows of a relation come in an order of their own, that of (time, row): rows of streams and tables and of joins
    of them, and of the streams that queries are. When another operator shows a value, and in which order, is its own affair."""
    match node:
        case Block() | ToStream() | LMerge(is_stream=True):
            return True
        case NamedQuery(facts=facts):
            return facts.ordered
        case Select(child=child) | Slide(child=child) | Window(child=child):
            return is_ordered(child)
    return False


def asks_for_order(node: Node) -> bool:
    """Whether a node goes by an order that its input does not have: FIRST and LAST then take rows by when their values came."""
    return (
        isinstance(node, GroupBy)
        and any(item.kind in ("first", "last") for item in node.aggregates)
        and not is_ordered(node.child)
    )


def remembers(root: Node) -> bool:
    """Whether it counts somewhere when a row began, so that none may begin again while it is there."""
    return any((isinstance(node, JoinNode) and any(node.frozen)) or asks_for_order(node) for node in walk(root))


def defaults_of(node: Node) -> tuple[str, ...]:
    """Return the binder's assumptions for the user anywhere in the tree, once each."""
    found: dict[str, None] = {}
    for part in walk(node):
        if isinstance(part, Block | Select | JoinNode):
            found.update(dict.fromkeys(part.defaults))
    return tuple(found)
