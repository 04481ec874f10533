"""The few trees among which the planner chooses: a query as it was written, and with its negations pulled up, its DISTINCT pushed
down, or both (`queries/rewrites.py`).

    forms[0]     as it was written, with its selections pushed down
    blocks       are the same in all: a query can go from one form to another while it runs, over the rows that its blocks have

What flows through a node of one form says what flows through nodes of another: `standing_for` is the node of the first form with
the same rows, `part_like` the node whose share of what comes in goes out.

Equal nodes of all forms are one object, so whoever decides often may know nodes by identity (`lineage/identity.py`): comparing
and hashing whole trees would cost more than the decision.
"""

from __future__ import annotations

from dataclasses import dataclass

from lineage.identity import ById
from queries.nodes import Block, Node
from queries.rewrites import Rewrite, Rewritten, pulled_up, pushed_down, simplified
from queries.tree import remembers, walk, with_children
from windows import patterns

AS_WRITTEN = "as written"


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    """The properties of a node's rows, computed once."""

    #: the place of the node among those of its form
    number: int
    pattern: str
    ends_known: bool
    #: whether none of them ever ends
    stays: bool
    #: whether a value may begin again while it is there: nobody asks when a row came
    begins_again: bool

    @staticmethod
    def of(number: int, node: Node, begins_again: bool) -> EdgeFacts:
        pattern = node.update_pattern
        return EdgeFacts(number, pattern, node.ends_known, node.is_stream or pattern == patterns.MONOTONIC, begins_again)


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One tree of a query."""

    name: str
    root: Node
    #: each once, parents first
    nodes: tuple[Node, ...]
    facts: ById[Node, EdgeFacts]
    _same: ById[Node, Node]
    _like: ById[Node, Node]

    def standing_for(self, node: Node) -> Node:
        """The node of the first form that has the same rows; itself if there is none."""
        return self._same.get(node, node)

    def part_like(self, node: Node) -> Node:
        """The node of the first form that lets as large a part through; itself if there is none."""
        return self._like.get(node, node)


@dataclass(frozen=True, slots=True)
class Forms:
    """All forms of a query, each tree once, and every rewrite that was taken, possible or refused."""

    forms: tuple[Form, ...]
    rewrites: tuple[Rewrite, ...]


class _Maker:
    """The making of a form: a tree after some rewrites, and the original of each node that they made."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.same: dict[Node, Node] = {}
        self.like: dict[Node, Node] = {}

    def take(self, found: Rewritten) -> None:
        same = {new: self.same.get(old, old) for new, old in found.same.items()}
        like = {new: self.like.get(old, self.same.get(old, old)) for new, old in found.like.items()}
        self.root = found.root
        self.same |= same
        self.like |= like

    def form(self, name: str, known: dict[Node, Node]) -> Form:
        root = _interned(self.root, known)
        nodes = tuple({id(node): node for node in walk(root)}.values())
        same = [(node, _interned(self.same[node], known)) for node in nodes if node in self.same]
        like = [(node, _interned(self.like[node], known)) for node in nodes if node in self.like]
        begins_again = not remembers(root)
        facts = ById((node, EdgeFacts.of(number, node, begins_again)) for number, node in enumerate(nodes))
        return Form(name, root, nodes, facts, ById(same), ById([*same, *like]))


def forms_of(root: Node) -> Forms:
    """The forms of a bound tree; O(nodes)."""
    first = simplified(root)
    known: dict[Node, Node] = {}
    made = [_Maker(first.root).form(AS_WRITTEN, known)]
    rewrites = list(first.rewrites)
    for name, changes in (
        ("negation pulled up", (pulled_up,)), ("distinct pushed down", (pushed_down,)), ("both", (pulled_up, pushed_down)),
    ):  # fmt: skip
        maker = _Maker(first.root)
        for change in changes:
            found = change(maker.root)
            rewrites += found.rewrites
            if found.same:
                maker.take(found)
        if maker.root is not first.root and not any(form.root == maker.root for form in made):
            made.append(maker.form(name, known))
    assert all(_blocks(form) == _blocks(made[0]) for form in made), "a form is another tree over the same blocks"
    return Forms(tuple(made), tuple(dict.fromkeys(rewrites)))


def _interned(node: Node, known: dict[Node, Node]) -> Node:
    """The one object for all nodes equal to this one."""
    found = known.get(node)
    if found is None:
        found = with_children(node, [_interned(child, known) for child in node.children])
        known[found] = found
    return found


def _blocks(form: Form) -> set[int]:
    return {id(node) for node in form.nodes if isinstance(node, Block)}
