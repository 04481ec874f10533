"""From the tree of a query to its stages: which operator runs each node, and how it finds the ends of its rows.

How each edge's readers learn of ends is told by `eddy/strategies.py`. Ends that are not scheduled always travel. Answers never
depend on it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from eddy.feed import Feed
from eddy.operation import FeedStage, OperatorStage, Stage
from eddy.strategies import Strategies
from filters.expression import Call, ColumnRef, Expression, columns_of
from lineage.schema import Type
from queries.tree import (
    Block,
    Distinct,
    GroupBy,
    JoinNode,
    NamedQuery,
    Node,
    Select,
    SetOperation,
    Slide,
    ToStream,
    Window,
)  # fmt: skip
from windows import patterns
from windows.aggregates.aggregate import Aggregate, Kind
from windows.distinct import DeltaStar, distinct
from windows.due import Buffer, Calendar, Fifo, Scan, Unscheduled
from windows.group_by import GroupBy as GroupByOperator
from windows.join import Join, JoinStep
from windows.join_keys import KeyPair
from windows.recipient import Recipient, StreamRecipient
from windows.rows import LiveRows
from windows.select import Select as SelectOperator
from windows.set_operation import KINDS
from windows.set_operation import SetOperation as CountOperator
from windows.slide import Slide as SlideOperator
from windows.to_stream import AnswerStream, ChangeStream
from windows.union import UnionAll
from windows.window import Window as WindowOperator


class Builder:
    """Makes the stages of one query; equal nodes are one stage. `feed` runs a block, which sends ends or not."""

    def __init__(
        self, feed: Callable[[Block, bool], Feed], named: Callable[[NamedQuery], Stage], strategies: Strategies,
        keeps_starts: bool = False,
    ) -> None:  # fmt: skip
        self._feed = feed
        self._named = named
        self._strategies = strategies
        #: whether rows from before have the starts that they had
        self._keeps_starts = keeps_starts
        #: by id of a node: equal nodes of a plan are one object (`queries/forms.py`)
        self.stages: dict[int, Stage] = {}
        #: what a reader keeps of a node's rows, by id
        self.live: dict[int, LiveRows] = {}

    def stage(self, node: Node) -> Stage:
        found = self.stages.get(id(node))
        if found is None:
            found = self.stages[id(node)] = self._make(node)
        return found

    def recipient(self, root: Node, emit: str) -> Recipient | StreamRecipient:
        """What takes the changes of the whole query."""
        types = self.stage(root).types
        return StreamRecipient(types) if root.is_stream else Recipient(types, self._rows(root), emit=emit)

    def _make(self, node: Node) -> Stage:
        match node:
            case Block():
                return FeedStage(self._feed(node, self._strategies.asks_for_ends(node)), self._keeps_starts)
            case Slide(child=child, window=window, bounds=bounds):
                # extents that are shown may hold rows from before the query: they need the starts that those had
                below = FeedStage(self._feed(child, False), keeps_starts=True) if isinstance(child, Block) else self.stage(child)
                operator = SlideOperator(
                    below.types, window.width_us, window.slide_us, bounds=bounds, ends_early=below.ends_early
                )  # fmt: skip
                return OperatorStage(operator, [below])
            case Window(child=child, window=window):
                below = self.stage(child)
                return OperatorStage(WindowOperator(below.types, window), [below])
            case NamedQuery():
                return self._named(node)
            case Select(child=child, condition=condition, columns=columns):
                below = self.stage(child)
                expressions = [column.expression for column in columns]
                return OperatorStage(SelectOperator(condition, expressions, sends_ends=below.sends_ends), [below])
            case Distinct(child=child):
                return self._distinct(node)
            case SetOperation():
                return self._set_operation(node)
            case GroupBy():
                return self._group_by(node)
            case JoinNode():
                return self._join(node)
            case ToStream(kind=kind, child=child):
                below, rows = self.stage(child), self._rows(child)
                if kind == "rstream":
                    return OperatorStage(AnswerStream(below.types, rows, _slide_of(child)), [below])
                return OperatorStage(ChangeStream(1 if kind == "istream" else -1, below.types, rows), [below])

    def _distinct(self, node: Distinct) -> Stage:
        below = self.stage(node.child)
        if self._strategies.is_star(node) and not below.ends_early:
            return OperatorStage(DeltaStar(below.types, Calendar()), [below])
        return OperatorStage(distinct(below.types, self._rows(node.child)), [below])

    def _set_operation(self, node: SetOperation) -> Stage:
        children = [self.stage(child) for child in node.children]
        types = children[0].types
        if node.kind == "union" and node.all:
            return OperatorStage(UnionAll(types, sends_ends=all(child.sends_ends for child in children)), children)
        rows = [self._rows(child) for child in node.children]
        return OperatorStage(CountOperator(KINDS[node.kind, node.all], types, rows), children)

    def _group_by(self, node: GroupBy) -> Stage:
        below = self.stage(node.child)
        aggregates = [
            Aggregate(Kind(item.kind), item.argument, item.type, distinct=item.distinct, filter=item.filter)
            for item in node.aggregates
        ]
        operator = GroupByOperator(below.types, node.n_keys, aggregates, self._rows(node.child), per_event=False)
        return OperatorStage(operator, [below])

    def _join(self, node: JoinNode) -> Stage:
        """The inputs in the order of FROM, each joined to those before it."""
        children = [self.stage(item) for item in node.inputs]
        types = [child.types for child in children]
        offsets = np.cumsum([0, *map(len, types)]).tolist()
        steps = []
        for k in range(1, len(children)):
            edges = [edge for edge in node.join.equalities if edge.right == k]
            pairs = [KeyPair(offsets[edge.left] + left.position, right.position) for edge in edges for left, right in edge.pairs]
            steps.append(JoinStep(tuple(pairs), _condition(node, k, offsets)))
        sends = all(child.sends_ends for child in children)
        known = all(item.ends_known for item in node.inputs)
        early = any(child.ends_early for child in children) or not known

        def between() -> LiveRows:
            return LiveRows(Unscheduled() if sends else Calendar(), by_id=early)

        operator = Join(types, steps, lambda k: self._rows(node.inputs[k]), between, sends_ends=sends)
        joined = OperatorStage(operator, children)
        columns = [column.expression for column in node.columns]
        return OperatorStage(SelectOperator(None, columns, sends_ends=joined.sends_ends), [joined])

    def _rows(self, node: Node) -> LiveRows:
        """What an operator keeps of an input."""
        named = self.stage(node).ends_early or node.update_pattern == patterns.STRICT or not node.ends_known
        found = self.live[id(node)] = LiveRows(self._buffer(node), by_id=named)
        return found

    def _buffer(self, node: Node) -> Buffer:
        """Where the ends of an input's rows are looked for."""
        if self.stage(node).sends_ends or node.update_pattern == patterns.MONOTONIC:
            return Unscheduled()
        if self._strategies.scans(node):
            return Scan()
        return Fifo() if node.update_pattern == patterns.WEAKEST else Calendar()


def _slide_of(node: Node) -> int:
    """The step in which a relation is looked at: that of its windows, if they have one."""
    steps = _slides_of(node)
    return steps.pop() if len(steps) == 1 else 0


def _slides_of(node: Node) -> set[int]:
    """The steps of the windows that a relation stands on; those below a stream that it makes itself are not its own."""
    if isinstance(node, Slide):
        return {node.window.slide_us}
    if isinstance(node, ToStream):
        return set()
    return set().union(*(_slides_of(child) for child in node.children))


def _condition(node: JoinNode, last: int, offsets: list[int]) -> Expression | None:
    """What has to hold, beside equal keys, when input `last` is added: terms that read it and no later one."""
    if node.condition is None:
        return None
    terms = node.condition.args if isinstance(node.condition, Call) and node.condition.op == "and" else (node.condition,)
    found = []
    for term in terms:
        by_key = isinstance(term, Call) and term.op == "=" and all(isinstance(arg, ColumnRef) for arg in term.args)
        reads = max(bisect_right(offsets, column.position) - 1 for column in columns_of(term))
        if reads == last and not by_key:
            found.append(term)
    if len(found) < 2:
        return found[0] if found else None
    return Call(Type.BOOL, "and", tuple(found))
