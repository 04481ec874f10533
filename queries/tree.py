"""The tree of a bound query as a whole: its nodes (`queries/nodes.py`) in order, changed, and what they say together.

Depth and size are bounded by the language (`queries/binder.py`), so the recursion is too. A node that is read in two places is
visited in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from queries.bound import BoundInput
from queries.nodes import Block, JoinNode, NamedQuery, Node, Select


def walk(node: Node) -> Iterator[Node]:
    """Every node, parents first, left before right."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(found.children))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with every node changed, children first."""
    below = {"child", "left", "right"} & {field.name for field in fields(node)}
    parts: dict[str, Any] = {name: mapped(getattr(node, name), change) for name in sorted(below)}
    if isinstance(node, JoinNode):
        parts["inputs"] = tuple(mapped(item, change) for item in node.inputs)
    return change(replace(node, **parts) if parts else node)


def leaves(node: Node) -> Iterator[BoundInput | NamedQuery]:
    """What the tree reads: streams and tables with their windows, and running queries; once for each place."""
    for found in walk(node):
        if isinstance(found, Block):
            yield from found.inputs
        elif isinstance(found, NamedQuery):
            yield found


def levels(node: Node) -> int:
    """How many running queries would stand above each other if this one ran."""
    return 1 + max((leaf.facts.levels for leaf in leaves(node) if isinstance(leaf, NamedQuery)), default=0)


def defaults_of(node: Node) -> tuple[str, ...]:
    """What the binder assumed for the user anywhere in the tree, once each."""
    found: dict[str, None] = {}
    for part in walk(node):
        if isinstance(part, Block | Select | JoinNode):
            found.update(dict.fromkeys(part.defaults))
    return tuple(found)
