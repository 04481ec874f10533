"""Building the stages of a template: the operator of each node of its tree, and the buffer in which it finds ends.

Rows begin with their seat (`windows/operators/seats.py`): columns stand one place further than in the tree, and the seat is the
first key of groups and joins. How each edge's readers learn of ends is told by `eddy/planning/strategies.py`. Ends that are not
scheduled always travel. Answers never depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eddy.operators.merge_stage import MergeStage
from eddy.operators.stage import FeedStage, OperatorStage, Stage
from eddy.operators.stamp import StampStage
from eddy.operators.template_key import FIRST_CONSTANT, LiftedSelect
from eddy.planning.join_order import JoinOrder, slides
from eddy.planning.strategies import Strategies
from eddy.reading.stream_feed import Feed
from filters.expressions.expression import ColumnRef, Expression, replace_columns
from lineage.identity import ById
from lineage.schema import Type
from queries.nodes import (
    Block,
    Distinct,
    GroupBy,
    JoinNode,
    LMerge,
    NamedQuery,
    Node,
    Select,
    SetOperation,
    Slide,
    ToStream,
    Window,
)
from queries.tree import asks_for_order, remembers, union_sides, walk
from windows import patterns
from windows.aggregates.aggregate import AggregateKind, AggregateSpec
from windows.operators.distinct import DeltaStar, distinct
from windows.operators.frozen_join import CommitNumber
from windows.operators.group_by import GroupByOperator
from windows.operators.intersect import IntersectStar
from windows.operators.join import JoinOperator
from windows.operators.recipient import Recipient, StreamRecipient
from windows.operators.relation_merge import RelationMerge
from windows.operators.seats import Seats
from windows.operators.select import SelectOperator
from windows.operators.set_operation import KINDS, SetOperator
from windows.operators.slide import SlideOperator
from windows.operators.stream_merge import StreamMerge
from windows.operators.to_stream import AnswerStream, ChangeStream
from windows.operators.union import UnionAll
from windows.operators.window import WindowOperator
from windows.state.due import Buffer, Calendar, Fifo, Scan, Unscheduled
from windows.state.rows import LiveRows


class Builder:
    """Makes the stages of one tree; equal nodes are one stage. `feed` gives the rows of a block, with or without ends."""

    def __init__(
        self, root: Node, feed: Callable[[Block, bool], Feed], named: Callable[[NamedQuery], Stage], strategies: Strategies,
        seats: Seats, selects: ById[Node, LiftedSelect], keeps_starts: bool = False,
    ) -> None:  # fmt: skip
        """`selects` are the selections, which read constants by seat."""
        self._root = root
        self._seats = seats
        self._selects = selects
        self._feed = feed
        self._named = named
        self._strategies = strategies
        #: whether rows from before have the starts that they had
        self._keeps_starts = keeps_starts
        #: equal nodes of a plan are one object (`queries/forms.py`)
        self.stages: ById[Node, Stage] = ById()
        #: what a reader keeps of a node's rows
        self.live: ById[Node, LiveRows] = ById()
        #: inputs of joins whose rows say when they came
        self._stamped: ById[Node, Stage] = ById()
        #: the commit that runs
        self._commit = CommitNumber()
        #: whether it counts when a row began, so that none may begin again while it is there
        self._remembers = remembers(root)

    def stage(self, node: Node) -> Stage:
        found = self.stages.get(node)
        if found is None:
            found = self.stages[node] = self._make(node)
        return found

    @property
    def looks_inside(self) -> bool:
        """Whether single events of a commit count: for a stream of changes, or for readers that ask when rows came."""
        return self._remembers or any(isinstance(node, ToStream) for node in walk(self._root))

    @property
    def root(self) -> Stage:
        return self.stage(self._root)

    def recipient(self, emit: str) -> Recipient | StreamRecipient:
        """The recipient of the changes of whole queries."""
        root, types = self._root, self.root.types
        if root.is_stream:
            return StreamRecipient(types)
        return Recipient(types, self._rows(root), emit=emit, values=self.root.values)

    def _make(self, node: Node) -> Stage:
        match node:
            case Block():
                return FeedStage(self._feed(node, self._strategies.asks_for_ends(node)), self._keeps_starts)
            case Slide():
                return self._slide(node, self._slid(node))
            case Window(child=child, window=window):
                below = self.stage(child)
                takes_back = isinstance(child, LMerge) and child.windowed
                seated = replace(window, partition=(0, *(position + 1 for position in window.partition)))
                return OperatorStage(WindowOperator(below.types, seated, takes_back=takes_back), [below])
            case LMerge():
                return self._merge(node)
            case NamedQuery():
                found = self._named(node)
                if not self._remembers or node.is_stream or node.merged:
                    return found
                # it is a relation: what is given from one of its rows to an equal one has been there all the time
                return OperatorStage(SetOperator(KINDS["except", True], found.types, [self._rows_of(node, found)]), [found])
            case Select(child=child):
                below = self.stage(child)
                condition, columns = self._selected(node, len(below.types))
                select = SelectOperator(condition, columns, sends_ends=below.sends_ends, seats=self._seats)
                return OperatorStage(select, [below])
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
                    return OperatorStage(AnswerStream(below.types, rows, _slide_of(child), self._seats), [below])
                return OperatorStage(ChangeStream(1 if kind == "istream" else -1, below.types, rows), [below])

    def _selected(self, node: Node, n_columns: int) -> tuple[Expression | None, list[Expression]]:
        """The condition of a selection, and its columns behind the seat, over so many columns and then the constants."""
        lifted = self._selects[node]

        def placed(ref: ColumnRef) -> ColumnRef:
            at = ref.position + 1 if ref.position < FIRST_CONSTANT else n_columns + ref.position - FIRST_CONSTANT
            return ColumnRef(ref.type, ref.name, at)

        condition = None if lifted.condition is None else replace_columns(lifted.condition, placed)
        return condition, [ColumnRef(Type.INT, "seat", 0), *(replace_columns(column, placed) for column in lifted.columns)]

    def _slid(self, node: Slide) -> Stage:
        """The stage below a SLIDE; extents of a stream may hold rows from before the query."""
        if node.of_query:
            return self.stage(node.child)
        assert isinstance(node.child, Block), "a stream as it is pushed is a block"
        return FeedStage(self._feed(node.child, False), keeps_starts=True)

    def _slide(self, node: Slide, below: Stage) -> Stage:
        window = node.window
        operator = SlideOperator(
            below.types, window.width_us, window.slide_us, bounds=node.bounds, ends_early=below.ends_early
        )  # fmt: skip
        return OperatorStage(operator, [below])

    def _merge(self, node: LMerge) -> Stage:
        """A merge; its streams may hold rows from before the query, with their starts, and their ends are its window's affair."""
        if not node.is_stream:
            children = [self.stage(item) for item in node.inputs]
            return MergeStage(RelationMerge(children[0].types, len(children)), children, node.names)
        children = [
            FeedStage(self._feed(item, False), keeps_starts=True) if isinstance(item, Block) else self.stage(item)
            for item in node.inputs
        ]
        operator = StreamMerge(children[0].types, len(children), takes_back=node.windowed)
        return MergeStage(operator, children, node.names)

    def _distinct(self, node: Distinct) -> Stage:
        below = self.stage(node.child)
        if self._strategies.is_star(node):
            return OperatorStage(DeltaStar(below.types, Calendar(), below.values), [below])
        return OperatorStage(distinct(below.types, self._rows(node.child), below.values), [below])

    def _set_operation(self, node: SetOperation) -> Stage:
        if self._strategies.is_star(node):
            left, right = (self.stage(child) for child in node.children)
            return OperatorStage(IntersectStar(left.types, Calendar(), Calendar()), [left, right])
        if node.kind == "union" and node.all:
            sides = [self.stage(side) for side in union_sides(node)]
            return OperatorStage(UnionAll(sides[0].types, sends_ends=all(side.sends_ends for side in sides)), sides)
        children = [self.stage(child) for child in node.children]
        types = children[0].types
        rows = [self._rows(child) for child in node.children]
        values = next((child.values for child in children if child.values is not None), None)
        return OperatorStage(SetOperator(KINDS[node.kind, node.all], types, rows, values), children)

    def _group_by(self, node: GroupBy) -> Stage:
        below = self.stage(node.child)
        aggregates = [
            AggregateSpec(
                AggregateKind(item.kind),
                _behind_seat(item.argument),
                item.type,
                distinct=item.distinct,
                filter=_behind_seat(item.filter),
            )  # fmt: skip
            for item in node.aggregates
        ]
        by_value, rows = asks_for_order(node), self._rows(node.child)
        if by_value and isinstance(rows.buffer, Fifo):
            # in order of value ends do not ascend
            rows.buffer = Calendar()
        operator = GroupByOperator(
            below.types, node.n_keys + 1, aggregates, rows, per_event=False, by_value=by_value, seats=self._seats,
            scalar=node.scalar,
        )  # fmt: skip
        return OperatorStage(operator, [below])

    def _join(self, node: JoinNode) -> Stage:
        """A chain of joins, each adding an input to those before it."""
        join = JoinOrder(node, self._commit)
        children = [self._came(item, join) for item in join.inputs]
        types = [child.types for child in children]
        steps = join.steps(types)
        counted = [(item, child) for item, child, frozen in zip(join.inputs, children, join.frozen) if not frozen]
        sends = all(child.sends_ends for _, child in counted)
        early = any(child.ends_early or not item.ends_known for item, child in counted)

        def between() -> LiveRows:
            return LiveRows(Unscheduled() if sends else Calendar(), by_id=early)

        def rows(k: int) -> LiveRows:
            found = self.live[join.inputs[k]] = self._rows_of(join.inputs[k], children[k])
            return found

        operator = JoinOperator(types, steps, rows, between, sends_ends=sends, is_stream=node.is_stream, seats=self._seats)
        joined = OperatorStage(operator, children)
        return OperatorStage(SelectOperator(None, join.columns(types), sends_ends=joined.sends_ends), [joined])

    def _came(self, item: Node, join: JoinOrder) -> Stage:
        """An input of a join, stamped if the join needs the commits in which its rows came."""
        if not join.is_stamped(item):
            return self.stage(item)
        if item not in self._stamped:
            self._stamped[item] = self._stamp(item)
        return self._stamped[item]

    def _stamp(self, node: Node) -> Stage:
        """A stamped stage; rows of a window with SLIDE are stamped when they arrive, not when they are shown."""
        if isinstance(node, Slide):
            below = StampStage(self._slid(node), self._commit)
            shown = self._slide(node, below)
            if not node.bounds:
                return shown
            n = len(below.types)
            places = [*range(n - 1), n, n + 1, n - 1]
            columns: list[Expression] = [ColumnRef(shown.types[at], f"c{at}", at) for at in places]
            return OperatorStage(SelectOperator(None, columns, sends_ends=shown.sends_ends), [shown])
        if isinstance(node, Select) and slides(node):
            child = self._stamp(node.child)
            stamp = ColumnRef(Type.INT, "stamp", len(child.types) - 1)
            condition, selected = self._selected(node, len(child.types))
            select = SelectOperator(condition, [*selected, stamp], sends_ends=child.sends_ends, seats=self._seats)
            return OperatorStage(select, [child])
        return StampStage(self.stage(node), self._commit)

    def _rows(self, node: Node) -> LiveRows:
        """The rows that an operator keeps of an input."""
        found = self.live[node] = self._rows_of(node, self.stage(node))
        return found

    def _rows_of(self, node: Node, stage: Stage) -> LiveRows:
        named = stage.ends_early or node.update_pattern == patterns.STRICT or not node.ends_known
        return LiveRows(self._buffer(node, stage), by_id=named)

    def _buffer(self, node: Node, stage: Stage) -> Buffer:
        """The state buffer in which an operator finds the ends of an input's rows."""
        if stage.sends_ends or node.update_pattern == patterns.MONOTONIC:
            return Unscheduled()
        if self._strategies.scans(node):
            return Scan()
        return Fifo() if self._strategies.keeps_order(node.update_pattern) else Calendar()


def _behind_seat(position: int | None) -> int | None:
    """The place of a column of the tree in a stage."""
    return None if position is None else position + 1


def _slide_of(node: Node) -> int:
    """The slide step of the windows below a relation; 0 if there are none or several."""
    steps = _slides_of(node)
    return steps.pop() if len(steps) == 1 else 0


def _slides_of(node: Node) -> set[int]:
    """Slide steps of the windows below this node, not crossing ISTREAM."""
    if isinstance(node, Slide):
        return {node.window.slide_us}
    if isinstance(node, ToStream):
        return set()
    return set().union(*(_slides_of(child) for child in node.children))
