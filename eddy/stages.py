"""From the tree of a query to its stages: which operator runs each node, and how it finds the ends of its rows.

The expiry word is two switches (semantics, "Expiry strategies"): whether the blocks send every end as a negative row, and where
they do not, in what an operator looks for the rows that are due:

    input, direct                            no    a list by arrival, scanned
    negative, negative+message, piggyback    yes   nothing: an end names its row
    update-pattern, auto                     no    by the pattern of the edge: FIFO (weakest), calendar (weak)

Ends that are not scheduled always travel. Answers never depend on the word.
"""

from __future__ import annotations

from collections.abc import Callable

from eddy.feed import Feed
from eddy.operation import FeedStage, OperatorStage, Stage
from queries.tree import Block, Distinct, GroupBy, JoinNode, NamedQuery, Node, Select, SetOperation, Slide, ToStream, Window
from windows import patterns
from windows.distinct import DeltaStar, distinct
from windows.due import Buffer, Calendar, Fifo, Scan, Unscheduled
from windows.rows import LiveRows
from windows.select import Select as SelectOperator
from windows.set_operation import KINDS
from windows.set_operation import SetOperation as CountOperator
from windows.union import UnionAll

#: Words under which blocks send every end, and words under which operators scan for the ends that are due.
SENDING = frozenset({"negative", "negative+message", "piggyback"})
SCANNING = frozenset({"input", "direct"})


class Builder:
    """Makes the stages of one query; equal nodes are one stage."""

    def __init__(self, feed: Callable[[Block], Feed], named: Callable[[NamedQuery], Stage], expiry: str, per_event: bool) -> None:
        self._feed = feed
        self._named = named
        self._expiry = expiry
        #: whether somebody sees single events of a commit
        self._per_event = per_event
        self._stages: dict[Node, Stage] = {}

    def stage(self, node: Node) -> Stage:
        found = self._stages.get(node)
        if found is None:
            found = self._stages[node] = self._make(node)
        return found

    def _make(self, node: Node) -> Stage:
        match node:
            case Block():
                return FeedStage(self._feed(node))
            case NamedQuery():
                return self._named(node)
            case Select(child=child, condition=condition, columns=columns):
                below = self.stage(child)
                expressions = [column.expression for column in columns]
                return OperatorStage(SelectOperator(condition, expressions, sends_ends=below.sends_ends), [below])
            case Distinct(child=child):
                return self._distinct(child)
            case SetOperation():
                return self._set_operation(node)

    def _distinct(self, child: Node) -> Stage:
        below = self.stage(child)
        scheduled = child.ends_known and child.update_pattern != patterns.STRICT and not below.sends_ends
        if scheduled and self._expiry not in SCANNING:
            return OperatorStage(DeltaStar(below.types, Calendar()), [below])
        return OperatorStage(distinct(below.types, self._rows(child)), [below])

    def _set_operation(self, node: SetOperation) -> Stage:
        children = [self.stage(child) for child in node.children]
        types = children[0].types
        if node.kind == "union" and node.all:
            return OperatorStage(UnionAll(types, sends_ends=all(child.sends_ends for child in children)), children)
        rows = [self._rows(child) for child in node.children]
        return OperatorStage(CountOperator(KINDS[node.kind, node.all], types, rows), children)

    def _rows(self, node: Node) -> LiveRows:
        """What an operator keeps of an input."""
        named = self.stage(node).sends_ends or node.update_pattern == patterns.STRICT or not node.ends_known
        return LiveRows(self._buffer(node), by_id=named)

    def _buffer(self, node: Node) -> Buffer:
        """Where the ends of an input's rows are looked for."""
        if self.stage(node).sends_ends or node.update_pattern == patterns.MONOTONIC:
            return Unscheduled()
        if self._expiry in SCANNING:
            return Scan()
        return Fifo() if node.update_pattern == patterns.WEAKEST else Calendar()
