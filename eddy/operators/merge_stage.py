"""LMERGE as it runs: where its inputs stand after each commit, and inputs that are paused and come back (semantics 36).

    point of a stream           its front, or the clock if a call is cut into several commits and that is earlier
    point of a running query    the clock; a paused one has no say, and gives nothing

A query may be paused while merges alone read it. When it comes back, its rows count from the next commit on: a relation then
gives all of them, a stream those that come.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.operators.stage import CommitStep, FeedStage, OperatorStage, QueryStage, Stage
from eddy.streams.timeline import Timeline
from filters.values.vector import Array
from lineage.schema import Type
from queries.nodes import NamedQuery
from windows.delta import Delta, Plus, empty
from windows.operators.operator import InputState
from windows.operators.relation_merge import RelationMerge
from windows.operators.stream_merge import StreamMerge


class InputStage(Stage):
    """A running query as an input of a merge."""

    def __init__(self, node: NamedQuery, timeline: Timeline, stage: Stage | None) -> None:
        """`stage`: gives the query's rows; None while it is paused."""
        super().__init__()
        self.node = node
        self.timeline = timeline
        self._types = (Type.INT, *(column.type for column in node.columns))
        self._stage = stage
        #: what it gave in the last commit
        self.state = InputState.CHANGES
        self._comes_back = False

    @property
    def types(self) -> tuple[Type, ...]:
        return self._types

    @property
    def sends_ends(self) -> bool:
        return False

    @cached_property
    def ends_early(self) -> bool:
        return True

    @property
    def runs(self) -> bool:
        return self._stage is not None

    def attach(self, stage: Stage) -> None:
        """Read a query that was resumed, from the next commit on."""
        self._stage, self._comes_back = stage, True
        if self._shows_events:
            stage.show_events()

    def detach(self) -> None:
        """Read a query no more that is about to be paused."""
        self._stage = None

    def show_events(self) -> None:
        super().show_events()
        if self._stage is not None:
            self._stage.show_events()

    def forget(self) -> None:
        super().forget()
        if self._stage is not None:
            self._stage.forget()

    def _process(self, step: CommitStep) -> Delta:
        stage = self._stage
        if stage is None:
            self.state = InputState.NOTHING
            return empty(self.types)
        self.state = InputState.WHOLE if self._comes_back else InputState.CHANGES
        whole, self._comes_back = self._comes_back and not self.node.is_stream, False
        if not whole:
            return stage.delta(step)
        if isinstance(stage, QueryStage):
            # its operators take the commit before they are asked for their rows
            stage.delta(step)
        return stage.answer(step.record)

    def _open(self, record: LoggedCommit, seats: Array) -> Delta:
        self._comes_back = False
        self.state = InputState.NOTHING if self._stage is None else InputState.CHANGES
        return empty(self.types) if self._stage is None else self._stage.opened(record, seats)

    def answer(self, record: LoggedCommit) -> Delta:
        return empty(self.types) if self._stage is None else self._stage.answer(record)


class MergeStage(OperatorStage):
    """A merge of streams or of relations."""

    operator: StreamMerge | RelationMerge

    def __init__(self, operator: StreamMerge | RelationMerge, children: list[Stage], names: tuple[str, ...]) -> None:
        super().__init__(operator, children)
        self.names = names
        #: by input, the stage at its foot
        self._feet = [_foot(child) for child in children]
        if isinstance(operator, StreamMerge):
            operator.reach([_point(foot, None) for foot in self._feet])

    @cached_property
    def ends_early(self) -> bool:
        return not isinstance(self.operator, StreamMerge) or self.operator.takes_back

    def _process(self, step: CommitStep) -> Delta:
        deltas = [child.delta(step) for child in self.children]
        self._stand(step.record)
        return self.operator.process(deltas, step.record.after)

    def _open(self, record: LoggedCommit, seats: Array) -> Delta:
        deltas = [child.opened(record, seats) for child in self.children]
        operator = self.operator
        if not isinstance(operator, StreamMerge):
            self._stand(record)
            return operator.process(deltas, record.after)
        # what is stored of the streams came in one commit
        operator.reach([])
        self._stand(record)
        found = operator.process(deltas, record.after)
        # without a window it is a stream, which begins with the rows that come next
        return _in_order_of_time(found) if operator.takes_back else empty(self.types)

    def _stand(self, record: LoggedCommit) -> None:
        """Tell the operator where the inputs stand after a commit."""
        states = [child.state if isinstance(child, InputStage) else InputState.CHANGES for child in self.children]
        self.operator.stand([_point(foot, record.after) for foot in self._feet], states)

    def points(self) -> dict[str, int | None]:
        """Where each input stands, by its name; None: it is paused."""
        return {name: _point(foot, None) for name, foot in zip(self.names, self._feet)}


def _foot(stage: Stage) -> FeedStage | InputStage:
    """The stage at the foot of an input, below its window."""
    while not isinstance(stage, FeedStage | InputStage):
        (stage,) = stage.children
    return stage


def _point(foot: FeedStage | InputStage, clock: int | None) -> int | None:
    """The point of an input after a commit that moved the clock there; None: as it is between two commits."""
    if isinstance(foot, InputStage):
        now = foot.timeline.now if clock is None else clock
        return now if foot.runs else None
    (source,) = foot.feed.sources
    front = source.intake.front
    return front if clock is None else min(front, clock)


def _in_order_of_time(delta: Delta) -> Delta:
    """Rows from before the query in order of their times; none begins before an older one."""
    plus = delta.plus
    order = np.lexsort((plus.times, plus.effective_times))
    own, n = plus.effective_times[order], len(plus)
    times = np.maximum.accumulate(plus.times[order]) if n else plus.times
    columns = [column.take(order) for column in plus.columns]
    return Delta(Plus(plus.ids[order], times, np.zeros(n, np.int64), plus.ends[order], columns, own), delta.minus)


def inputs_named(root: Stage, name: str) -> list[InputStage]:
    """The inputs of a query's merges that are the running query of a name, in lower case."""
    return [stage for stage in root.stages() if isinstance(stage, InputStage) and stage.node.name.lower() == name]
