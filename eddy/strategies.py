"""How the readers of each edge learn of ends: an expiry word, or what the planner chose edge by edge.

The word is two switches (semantics, "Expiry strategies"): whether the blocks send every end as a negative row, and where they do
not, in what an operator looks for the rows that are due:

    input, direct                            no    a list by arrival, scanned
    negative, negative+message, piggyback    yes   nothing: an end names its row (a hash by id)
    update-pattern                           no    by the pattern of the edge: FIFO (weakest), calendar (weak)
    auto                                     as update-pattern, but for the blocks and edges that the planner named

Above a minus, a group-by and whatever else has ends that nobody knows, every end comes as a negative row under all of them: the
operators below are direct, those above negative (U 5.4.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage.identity import ById
from queries.forms import EdgeFacts
from queries.nodes import Block, Distinct, GroupBy, JoinNode, Node, Select, SetOperation
from windows import patterns

#: Words under which blocks send every end, and words under which operators scan for the ends that are due.
SENDING = frozenset({"negative", "negative+message", "piggyback"})
SCANNING = frozenset({"input", "direct"})


@dataclass(frozen=True, slots=True)
class Strategies:
    """What is chosen for the edges of a tree."""

    word: str
    #: of the nodes of the form
    facts: ById[Node, EdgeFacts] = field(repr=False, compare=False)
    #: blocks that send every end, whatever the word, by number (`queries/forms.py`)
    sending: frozenset[int] = frozenset()
    #: nodes whose rows are kept in a list that is scanned, whatever the word, by number
    scanning: frozenset[int] = frozenset()

    def asks_for_ends(self, block: Block) -> bool:
        """Whether a block is asked to send every end."""
        return self.word in SENDING or self.facts[block].number in self.sending

    def scans(self, node: Node) -> bool:
        return self.word in SCANNING or self.facts[node].number in self.scanning

    def sends(self, node: Node) -> bool:
        """Whether every end of a node's rows comes as a negative row."""
        facts = self.facts[node]
        if facts.stays:
            return False
        match node:
            case Block():
                return facts.pattern == patterns.STRICT or self.asks_for_ends(node)
            case Select(child=child):
                return self.sends(child)
            case JoinNode(inputs=inputs):
                return all(map(self.sends, inputs))
            case Distinct():
                return not self.is_star(node)
            case GroupBy():
                return True
            case SetOperation(kind=kind, all=True) if kind == "union":
                return all(map(self.sends, node.children))
            case SetOperation():
                return True
        return not facts.ends_known or facts.pattern == patterns.STRICT

    def ends_early(self, node: Node) -> bool:
        """Whether a negative row may come for a node's rows: they are then known by id."""
        facts = self.facts[node]
        if not facts.ends_known or facts.pattern == patterns.STRICT or self.sends(node):
            return True
        return any(self.ends_early(child) for child in node.children)

    def is_star(self, node: Distinct) -> bool:
        """Whether a DISTINCT keeps two ends a value instead of its input (delta-star)."""
        return self.word not in SCANNING and not self.ends_early(node.child)

    def structure(self, node: Node) -> str:
        """What the readers of a node keep its rows in: "none", "hash", "list", "fifo" or "calendar"."""
        facts = self.facts[node]
        if facts.stays:
            return "none"
        if self.sends(node):
            return "hash"
        if self.scans(node):
            return "list"
        return "fifo" if facts.pattern == patterns.WEAKEST else "calendar"
