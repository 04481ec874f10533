"""The operators of one query as they run: a stage for each node of its tree, fed by the blocks below.

After a commit has stored its rows and joined them, every stage gives its delta of that commit, once, whoever asks: nodes that are
equal are one stage, so a WITH name that is read twice is computed once, and a query that is read by name is not computed again
for its readers. Depth is bounded by the language (`queries/binder.py`), so the recursion is too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.base.results import Results
from eddy.lives.ranks import Ranks
from eddy.operators.core import Core
from eddy.planning.edge_counts import EdgeCounts
from eddy.reading.stream_feed import Feed, StreamFeed
from eddy.streams.source import Source
from eddy.streams.timeline import effect_time
from lineage.elements import BEGINNING
from lineage.schema import Type
from windows.delta import Delta, Plus, empty, no_minus
from windows.operators.operator import Operator, TimedOperator
from windows.operators.slide import SlideOperator
from windows.operators.to_stream import AnswerStream, ChangeStream
from windows.operators.window import WindowOperator
from windows.state.values import ValueCodes

if TYPE_CHECKING:
    from eddy.operators.replanning import Built, Replanner


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

    def opened(self, record: LoggedCommit) -> Delta:
        """Its rows in the commit that opens the query, as +; computed on the first call."""
        if self._delta is None or self._seq != record.seq:
            self._seq, self._delta = record.seq, self._open(record)
        return self._delta

    @abstractmethod
    def _process(self, step: CommitStep) -> Delta: ...

    @abstractmethod
    def _open(self, record: LoggedCommit) -> Delta: ...

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

    def stages(self) -> list[Stage]:
        """This stage and the query's own stages below it, each once, children first."""
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

    def _open(self, record: LoggedCommit) -> Delta:
        found = self.feed.snapshot(record)
        return found if self._keeps_starts else at_once(found, record)

    def answer(self, record: LoggedCommit) -> Delta:
        return at_once(self.feed.snapshot(record), record)


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

    def _open(self, record: LoggedCommit) -> Delta:
        now = record.after
        found = self.operator.process([child.opened(record) for child in self.children], now)
        if isinstance(self.operator, AnswerStream):
            self.operator.opened(now)
        if isinstance(self.operator, ChangeStream | AnswerStream):
            # what was there before the query is no change
            return empty(self.types)
        if isinstance(self.operator, SlideOperator | WindowOperator):
            # rows came with the starts that they had, and boundaries and ends have passed since
            return self.operator.answer([], now)
        return found

    def answer(self, record: LoggedCommit) -> Delta:
        children = [partial(child.answer, record) for child in self.children]
        return self.operator.answer(children, record.after)


class QueryStage(Stage):
    """The result of a running query with operators, read by its name."""

    def __init__(self, root: Stage) -> None:
        super().__init__()
        self._root = root
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
        return self._root.delta(step)

    def _open(self, record: LoggedCommit) -> Delta:
        return self.answer(record)

    def answer(self, record: LoggedCommit) -> Delta:
        if self._answered is None or self._answered[0] != record.seq:
            self._answered = record.seq, self._root.answer(record)
        return self._answered[1]

    def forget(self) -> None:
        super().forget()
        if self._answered is not None:
            self._answered = None
            # queries that it reads by name were asked as well
            for stage in self._root.stages():
                stage.forget()


class Operation:
    """The operators of a query over its cores, and its answer."""

    def __init__(self, cores: list[Core], replanner: Replanner) -> None:
        self.cores = cores
        #: decides how it runs
        self.replanner = replanner
        self.root = replanner.built.root
        self._recipient = replanner.built.recipient
        #: whether a - may come for its results
        self.ends_early = self.root.ends_early
        #: the commit that opened it, or after which it was built anew: that has been taken when it comes
        self._opened = -1
        #: values that could not be computed, in stages that run no more
        self._errors_before = 0
        #: results so far
        self.n_results = 0
        own = [stage for stage in self.root.stages() if isinstance(stage, OperatorStage)]
        #: those of its operators whose rows the clock ends, but for windows of streams as they are pushed
        self.timed = [stage.operator for stage in own if isinstance(stage.operator, TimedOperator) and stage.slid is None]
        #: of those windows the ones that show each extent by rows of its own
        self.extents = [
            (stage.slid, stage.operator.window)
            for stage in own
            if stage.slid is not None and isinstance(stage.operator, SlideOperator) and stage.operator.bounds
        ]

    def open(self, record: LoggedCommit) -> Results:
        """The first answer, in the commit that opens the query."""
        self._opened = record.seq
        self._received(self.root.opened(record), record)
        return self.answer(record.after)

    def take(self, step: CommitStep) -> list[Results]:
        """The query's changes in a commit that was just logged."""
        return [] if step.record.seq == self._opened else self._received(self.root.delta(step), step.record)

    def reconsider(self, record: LoggedCommit) -> None:
        """Switch to another form or strategy from the next commit on, if it has become cheaper."""
        built = self.replanner.step(record)
        if built is not None:
            self._rebuild(built, record)

    def _rebuild(self, built: Built, record: LoggedCommit) -> None:
        """Switch to new stages, filled with the blocks' rows after a commit; the answer does not change."""
        errors, n_rows = self.errors, len(self._recipient)
        self.root, self._recipient, self._opened = built.root, built.recipient, record.seq
        self.ends_early = self.root.ends_early
        self._recipient.process(self.root.opened(record), record.after)
        assert len(self._recipient) == n_rows, "the answer is the same"
        self._errors_before += errors - self.errors
        self.forget()

    def _received(self, delta: Delta, record: LoggedCommit) -> list[Results]:
        found = self._recipient.process(delta, record.after)
        self.n_results += int(np.count_nonzero(found.signs > 0))
        times = np.where(found.times == BEGINNING, 0, found.times)
        return [Results(found.columns, times, found.signs)] if len(found) else []

    def answer(self, clock: int) -> Results:
        """The live rows, or the newest rows of a stream, as + at the clock."""
        _, columns = self._recipient.answer()
        return Results(columns, np.full(len(self._recipient), effect_time(clock)), 1)

    def forget(self) -> None:
        """Drop the deltas of the last commit."""
        for stage in self.root.stages():
            stage.forget()

    def stop(self, seq: int) -> None:
        """Stop running, after commit `seq`."""
        for core in self.cores:
            core.stop(seq)

    @property
    def errors(self) -> int:
        """Values that could not be computed so far."""
        return self._errors_before + sum(stage.errors for stage in self.root.stages())

    @property
    def n_operators(self) -> int:
        """The number of the query's own operators that may keep rows, the recipient included."""
        return 1 + sum(isinstance(stage, OperatorStage) for stage in self.root.stages())

    @property
    def bytes(self) -> int:
        return self._recipient.bytes + sum(stage.bytes for stage in self.root.stages())

    def check(self) -> None:
        self._recipient.check()
        for stage in self.root.stages():
            stage.check()


def at_once(delta: Delta, record: LoggedCommit) -> Delta:
    """Older rows as if all came in one event at the clock, in their order of arrival."""
    plus = delta.plus
    n = len(plus)
    return Delta(Plus(plus.ids, np.full(n, record.after), np.zeros(n, np.int64), plus.ends, plus.columns), no_minus())
