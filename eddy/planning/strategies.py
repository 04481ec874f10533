"""Expiry strategies: how the readers of each edge learn of ends, by an expiry word or by the planner's choice for each edge.

The word is two switches (semantics, "Expiry strategies"): who finds a scheduled end, and what travels. Where no negative row
comes for it, an operator looks for the rows that are due in what it keeps them in:

    word                          finds an end      what travels                        rows are kept in
    input, direct                 the operator      nothing                             a list by arrival, scanned
    negative                      the blocks        a negative row for every row        a hash by id
    negative+message, piggyback   the blocks        up to when rows have ended, once    a calendar, by end
                                                    for all that ended in a commit
    update-pattern                the operator      nothing                             by the pattern of the edge: FIFO
                                                                                        (weakest), calendar (weak)
    auto                          as update-pattern, but for the blocks and edges that the planner named

Several words are one here because a commit settles: the clock of an operator is that of the commit, and the messages of a commit
reach an operator together, with its rows. In `experiments/papers` they differ. Premature ends travel under all of them.

Above a minus, a group-by and whatever else has ends that nobody knows, every end comes as a negative row under all of them: the
operators below are direct, those above negative (U 5.4.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage.identity import ById
from queries.forms import EdgeFacts
from queries.nodes import Block, Distinct, GroupBy, JoinNode, NamedQuery, Node, Select, SetOperation
from windows import patterns

#: Words under which blocks send every end, operators scan for the ends that are due, and operators are told up to when.
SENDING = frozenset({"negative"})
SCANNING = frozenset({"input", "direct"})
TELLING = frozenset({"negative+message", "piggyback"})


@dataclass(frozen=True, slots=True)
class Strategies:
    """The expiry strategies chosen for the edges of a tree."""

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

    def keeps_order(self, pattern: str) -> bool:
        """Whether rows of an update pattern are kept in arrival order: rows of the weakest pattern end in that order."""
        return self.word not in TELLING and pattern == patterns.WEAKEST

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
            case GroupBy():
                return True
            case SetOperation(kind=kind, all=True) if kind == "union":
                return all(map(self.sends, node.children))
            case Distinct() | SetOperation():
                return not self.is_star(node)
        return not facts.ends_known or facts.pattern == patterns.STRICT

    def ends_early(self, node: Node) -> bool:
        """Whether a negative row may come for a node's rows, which must then be kept by id."""
        facts = self.facts[node]
        if not facts.ends_known or facts.pattern == patterns.STRICT or self.sends(node):
            return True
        if isinstance(node, NamedQuery):
            return node.facts.ends_early
        return any(self.ends_early(child) for child in node.children)

    def is_star(self, node: Node) -> bool:
        """Whether a DISTINCT or an INTERSECT keeps ends by value instead of its inputs, and knows the ends of its results."""
        able = isinstance(node, Distinct) or (isinstance(node, SetOperation) and node.kind == "intersect" and not node.all)
        if not able or self.word in SCANNING | TELLING or not self.facts[node].begins_again:
            return False
        return not any(map(self.ends_early, node.children))

    def cases(self, node: Node) -> tuple[str, ...]:
        """The possible effects of an incoming + or - on a node's rows, by the operator that runs it (decision 21)."""
        counts = isinstance(node, Distinct) or (isinstance(node, SetOperation) and node.kind == "intersect")
        return patterns.COUNTED_CASES if counts and not self.is_star(node) else node.cases

    def strategy(self, node: Node) -> str:
        """The way a node's readers learn of ends, as one word: "none", "negative", "message" or "direct"."""
        structure = self.structure(node)
        if structure in ("none", "hash"):
            return "none" if structure == "none" else "negative"
        return "message" if self.word in TELLING else "direct"

    def structure(self, node: Node) -> str:
        """The structure in which a node's readers keep its rows: "none", "hash", "list", "fifo" or "calendar"."""
        facts = self.facts[node]
        if facts.stays:
            return "none"
        if self.sends(node):
            return "hash"
        if self.scans(node):
            return "list"
        return "fifo" if self.keeps_order(facts.pattern) else "calendar"
