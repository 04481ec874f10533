"""The few trees among which the planner chooses: a query as it was written, and with its negations pulled up, its DISTINCT pushed
down, or both (`queries/rewrites.py`).

    forms[0]     as it was written, with its selections pushed down
    blocks       are the same in all: a query can go from one form to another while it runs, over the rows that its blocks have

What flows through a node of one form says what flows through nodes of another: `standing_for` is the node of the first form with
the same rows, `part_like` the node whose share of what comes in goes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from queries.rewrites import Rewrite, Rewritten, pulled_up, pushed_down, simplified
from queries.tree import Block, Node, walk

AS_WRITTEN = "as written"


@dataclass(frozen=True, slots=True)
class Form:
    """One tree of a query."""

    name: str
    root: Node
    _same: Mapping[Node, Node] = field(default_factory=dict)
    _like: Mapping[Node, Node] = field(default_factory=dict)

    def standing_for(self, node: Node) -> Node:
        """The node of the first form that has the same rows; itself if there is none."""
        return self._same.get(node, node)

    def part_like(self, node: Node) -> Node:
        """The node of the first form that lets as large a part through; itself if there is none."""
        return self._like.get(node, self.standing_for(node))


@dataclass(frozen=True, slots=True)
class Forms:
    """All forms of a query, each tree once, and every rewrite that was taken, possible or refused."""

    forms: tuple[Form, ...]
    rewrites: tuple[Rewrite, ...]


def forms_of(root: Node) -> Forms:
    """The forms of a bound tree; O(nodes)."""
    first = simplified(root)
    made = [Form(AS_WRITTEN, first.root)]
    rewrites = list(first.rewrites)
    for name, changes in (
        ("negation pulled up", (pulled_up,)), ("distinct pushed down", (pushed_down,)), ("both", (pulled_up, pushed_down)),
    ):  # fmt: skip
        form = made[0]
        for change in changes:
            found = change(form.root)
            rewrites += found.rewrites
            form = _after(form, found, name)
        if form.root not in [other.root for other in made]:
            made.append(form)
    assert all(_blocks(form) == _blocks(made[0]) for form in made), "a form is another tree over the same blocks"
    return Forms(tuple(made), tuple(dict.fromkeys(rewrites)))


def _after(form: Form, found: Rewritten, name: str) -> Form:
    """A form after one more rewrite."""
    same, like = dict(form._same), dict(form._like)
    same |= {new: form.standing_for(old) for new, old in found.same.items()}
    like |= {new: form.part_like(old) for new, old in found.like.items()}
    return Form(name, found.root, same, like)


def _blocks(form: Form) -> set[Node]:
    return {node for node in walk(form.root) if isinstance(node, Block)}
