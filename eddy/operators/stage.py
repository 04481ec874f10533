"""The operators of a template as they run: a stage for each node of its tree, fed by the blocks below.

After a commit has stored its rows and joined them, every stage gives its delta of that commit, once, whoever asks: nodes that are
equal are one stage, so a WITH name that is read twice is computed once, and a query that is read by name is not computed again
for its readers. Rows begin with the seat of their query (`windows/operators/seats.py`). Depth is bounded by the language
(`queries/binder.py`), so the recursion is too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.lives.ranks import Ranks
from eddy.planning.edge_counts import EdgeCounts
from eddy.reading.stream_feed import Feed, StreamFeed
from eddy.streams.source import Source
from filters.values.vector import Array, Vector
from lineage.elements import BEGINNING
from lineage.schema import Type
from windows.delta import Delta, Plus, empty, no_minus
from windows.operators.operator import Operator
from windows.operators.slide import SlideOperator
from windows.operators.to_stream import AnswerStream, ChangeStream
from windows.operators.window import WindowOperator
from windows.state.values import ValueCodes


class CommitStep(NamedTuple):
    """One commit as the stages see it: its log entry, and the order of its rows."""

    record: LoggedCommit
    ranks: Ranks


class Stage(ABC):
    """A running node of a tree; `delta` is its change in the last commit."""

    def __init__(self) -> None:
        self._seq = -1
        self._delta: Delta | None = None
        self._shows_events = False
        #: what it gave, commit by commit; what it had when it was opened does not count
        self.counts = EdgeCounts()

    @property
    @abstractmethod
    def types(self) -> tuple[Type, ...]: ...

    @property
    @abstractmethod
    def sends_ends(self) -> bool:
        """Whether the stage sends every end of its rows as a negative row."""

    @cached_property
    def ends_early(self) -> bool:
        """Whether a - may come for its rows; computed once, for a query read by name may be read in many places."""
        return self.sends_ends or any(child.ends_early for child in self.children)

    def delta(self, step: CommitStep) -> Delta:
        """The changes of its rows in a commit; computed on the first call."""
        if self._delta is None or self._seq != step.record.seq:
            self._seq, self._delta = step.record.seq, self._process(step)
            self.counts.add(self._delta, self.sends_ends)
        return self._delta

    def opened(self, record: LoggedCommit, seats: Array) -> Delta:
        """The rows of some seats in the commit that opens their queries, as +; computed on the first call."""
        if self._delta is None or self._seq != record.seq:
            self._seq, self._delta = record.seq, self._open(record, seats)
        return self._delta

    @abstractmethod
    def _process(self, step: CommitStep) -> Delta: ...

    @abstractmethod
    def _open(self, record: LoggedCommit, seats: Array) -> Delta: ...

    @abstractmethod
    def answer(self, record: LoggedCommit) -> Delta:
        """Its rows after a commit, as + at its clock."""

    def forget(self) -> None:
        """Drop the delta of the last commit."""
        self._delta = None

    def show_events(self) -> None:
        """Keep single events of a commit from now on, here and in all stages below."""
        if not self._shows_events:
            self._shows_events = True
            for child in self.children:
                child.show_events()

    def sweep(self, dead: Array, now: int) -> None:  # noqa: B027 - a stage without state has nothing to sweep
        """Forget the rows of the seats marked in `dead`."""

    def stages(self) -> list[Stage]:
        """This stage and the template's own stages below it, each once, children first."""
        found: dict[Stage, None] = {}
        for child in self.children:
            found.update(dict.fromkeys(child.stages()))
        found[self] = None
        return list(found)

    @property
    def children(self) -> list[Stage]:
        return []

    @property
    def values(self) -> ValueCodes | None:
        """The shared copy of its rows' values, where a buffer keeps them (semantics 33)."""
        return None

    @property
    def errors(self) -> int:
        """Values that could not be computed so far."""
        return 0

    @property
    def bytes(self) -> int:
        return 0

    def check(self) -> None:  # noqa: B027 - a stage without state has no invariants
        """Assert every invariant of its state."""


class FeedStage(Stage):
    """The rows of a block."""

    def __init__(self, feed: Feed, keeps_starts: bool = False) -> None:
        super().__init__()
        self.feed = feed
        #: whether rows from before the query have the starts that they had: who reads it wants to know
        self._keeps_starts = keeps_starts

    @property
    def types(self) -> tuple[Type, ...]:
        return self.feed.types

    @property
    def errors(self) -> int:
        return self.feed.errors

    @property
    def sends_ends(self) -> bool:
        return self.feed.sends_ends

    def _process(self, step: CommitStep) -> Delta:
        found = self.feed.delta(step.record, step.ranks)
        if step.record.after == BEGINNING:
            # tables have changed, and there is no clock: to a reader that is time 0, here it is before all times
            found.plus.times[:] = found.minus.times[:] = BEGINNING
        return found

    def _open(self, record: LoggedCommit, seats: Array) -> Delta:
        found = self.feed.snapshot(record, seats)
        return found if self._keeps_starts else at_once(found, record)

    def answer(self, record: LoggedCommit) -> Delta:
        return at_once(self.feed.snapshot(record), record)

    def sweep(self, dead: Array, now: int) -> None:
        self.feed.sweep(dead)


class OperatorStage(Stage):
    """The output of an operator."""

    def __init__(self, operator: Operator, children: list[Stage]) -> None:
        super().__init__()
        self.operator = operator
        self._children = children

    @property
    def children(self) -> list[Stage]:
        return self._children

    @property
    def slid(self) -> Source | None:
        """The stream as it is pushed over which it is a window in steps; None if it is anything else."""
        if not isinstance(self.operator, SlideOperator):
            return None
        (below,) = self._children
        return below.feed.sources[0] if isinstance(below, FeedStage) and isinstance(below.feed, StreamFeed) else None

    def show_events(self) -> None:
        self.operator.show_events()
        super().show_events()

    @property
    def values(self) -> ValueCodes | None:
        return self.operator.values

    @property
    def errors(self) -> int:
        return self.operator.errors

    @property
    def bytes(self) -> int:
        return self.operator.bytes

    def check(self) -> None:
        self.operator.check()

    @property
    def types(self) -> tuple[Type, ...]:
        return self.operator.types

    @property
    def sends_ends(self) -> bool:
        return self.operator.sends_ends

    def _process(self, step: CommitStep) -> Delta:
        return self.operator.process([child.delta(step) for child in self.children], step.record.after)

    def _open(self, record: LoggedCommit, seats: Array) -> Delta:
        now = record.after
        self.operator.open(seats)
        found = self.operator.process([child.opened(record, seats) for child in self.children], now)
        if isinstance(self.operator, AnswerStream):
            self.operator.opened(now, seats)
        if isinstance(self.operator, ChangeStream | AnswerStream):
            # what was there before the query is no change
            return empty(self.types)
        if isinstance(self.operator, SlideOperator | WindowOperator):
            # rows came with the starts that they had, and boundaries and ends have passed since
            shown = self.operator.answer([], now).plus
            return Delta(shown.take(np.isin(shown.columns[0].values, seats)), no_minus())
        return found

    def sweep(self, dead: Array, now: int) -> None:
        self.operator.sweep(dead, now)

    def answer(self, record: LoggedCommit) -> Delta:
        children = [partial(child.answer, record) for child in self.children]
        return self.operator.answer(children, record.after)


class QueryStage(Stage):
    """The result of a running query with operators, read by its name: its rows on the only seat of the template that reads it."""

    def __init__(self, root: Stage, seat: int) -> None:
        super().__init__()
        self._root = root
        #: of the query that is read, among those whose rows the root has
        self._seat = seat
        #: the commit after which it was read, and its rows then: what reads it in many places reads it once
        self._answered: tuple[int, Delta] | None = None

    @property
    def types(self) -> tuple[Type, ...]:
        return self._root.types

    @property
    def sends_ends(self) -> bool:
        return self._root.sends_ends

    @cached_property
    def ends_early(self) -> bool:
        return self._root.ends_early

    def show_events(self) -> None:
        self._root.show_events()

    def _process(self, step: CommitStep) -> Delta:
        return self._own(self._root.delta(step))

    def _open(self, record: LoggedCommit, seats: Array) -> Delta:
        return self.answer(record)

    def answer(self, record: LoggedCommit) -> Delta:
        if self._answered is None or self._answered[0] != record.seq:
            self._answered = record.seq, self._own(self._root.answer(record))
        return self._answered[1]

    def _own(self, delta: Delta) -> Delta:
        """The rows of the query. Ends of others pass: whoever keeps rows drops an end of one it does not have."""
        plus = delta.plus.take(delta.plus.columns[0].values == self._seat)
        plus.columns[0] = Vector.constant(Type.INT, 0, len(plus))
        return Delta(plus, delta.minus)

    def forget(self) -> None:
        super().forget()
        if self._answered is not None:
            self._answered = None
            # queries that it reads by name were asked as well
            for stage in self._root.stages():
                stage.forget()


def at_once(delta: Delta, record: LoggedCommit) -> Delta:
    """Older rows as if all came in one event at the clock, in their order of arrival."""
    plus = delta.plus
    n = len(plus)
    return Delta(Plus(plus.ids, np.full(n, record.after), np.zeros(n, np.int64), plus.ends, plus.columns), no_minus())
