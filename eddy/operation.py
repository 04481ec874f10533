"""The operators of one query as they run: a stage for each node of its tree, fed by the blocks below.

After a commit has stored its rows and joined them, every stage gives its delta of that commit, once, whoever asks: nodes that are
equal are one stage, so a WITH name that is read twice is computed once, and a query that is read by name is not computed again
for its readers. Depth is bounded by the language (`queries/binder.py`), so the recursion is too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from eddy.core import Core
from eddy.feed import Feed
from eddy.ranks import Ranks
from eddy.reader import Results
from eddy.result_log import Record
from eddy.timeline import effect_time
from lineage.schema import Type
from windows.delta import Delta, Plus, empty, no_minus
from windows.operator import Operator
from windows.recipient import Recipient, StreamRecipient
from windows.slide import Slide as SlideOperator
from windows.to_stream import AnswerStream, ChangeStream
from windows.values import ValueCodes


class Step(NamedTuple):
    """One commit, as the stages see it: what was logged, and the order of the rows it took."""

    record: Record
    ranks: Ranks


class Stage(ABC):
    """One node; `delta` is that of the last commit."""

    def __init__(self) -> None:
        self._seq = -1
        self._delta: Delta | None = None

    @property
    @abstractmethod
    def types(self) -> tuple[Type, ...]: ...

    @property
    @abstractmethod
    def sends_ends(self) -> bool:
        """Whether every end of its rows comes as a -."""

    @property
    def ends_early(self) -> bool:
        """Whether a - may come for its rows."""
        return self.sends_ends or any(child.ends_early for child in self.children)

    def delta(self, step: Step) -> Delta:
        """What a commit did to its rows; computed when it is first asked for."""
        if self._delta is None or self._seq != step.record.seq:
            self._seq, self._delta = step.record.seq, self._process(step)
        return self._delta

    def opened(self, record: Record) -> Delta:
        """What it has at once, as +, in the commit that opens its query; computed when it is first asked for."""
        if self._delta is None or self._seq != record.seq:
            self._seq, self._delta = record.seq, self._open(record)
        return self._delta

    @abstractmethod
    def _process(self, step: Step) -> Delta: ...

    @abstractmethod
    def _open(self, record: Record) -> Delta: ...

    @abstractmethod
    def answer(self, record: Record) -> Delta:
        """Its rows after a commit, as + at its clock."""

    def forget(self) -> None:
        """Nobody asks for the delta of the last commit any more."""
        self._delta = None

    def stages(self) -> list[Stage]:
        """This stage and all below it that are its query's own, each once, children first."""
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
        """The values of its rows, where they are kept: one copy for all who read it (semantics 33)."""
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

    def _process(self, step: Step) -> Delta:
        return self.feed.delta(step.record, step.ranks)

    def _open(self, record: Record) -> Delta:
        found = self.feed.snapshot(record)
        return found if self._keeps_starts else at_once(found, record)

    def answer(self, record: Record) -> Delta:
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

    def _process(self, step: Step) -> Delta:
        return self.operator.process([child.delta(step) for child in self.children], step.record.after)

    def _open(self, record: Record) -> Delta:
        now = effect_time(record.after)
        found = self.operator.process([child.opened(record) for child in self.children], now)
        if isinstance(self.operator, ChangeStream | AnswerStream):
            # what was there before the query is no change
            return empty(self.types)
        if isinstance(self.operator, SlideOperator):
            # rows came with the starts that they had, and boundaries have passed since
            return self.operator.answer([], now)
        return found

    def answer(self, record: Record) -> Delta:
        children = [partial(child.answer, record) for child in self.children]
        return self.operator.answer(children, effect_time(record.after))


class QueryStage(Stage):
    """The result of a running query with operators, read by its name."""

    def __init__(self, root: Stage) -> None:
        super().__init__()
        self._root = root

    @property
    def types(self) -> tuple[Type, ...]:
        return self._root.types

    @property
    def sends_ends(self) -> bool:
        return self._root.sends_ends

    @property
    def ends_early(self) -> bool:
        return self._root.ends_early

    def _process(self, step: Step) -> Delta:
        return self._root.delta(step)

    def _open(self, record: Record) -> Delta:
        return self._root.answer(record)

    def answer(self, record: Record) -> Delta:
        return self._root.answer(record)


class Operation:
    """A query's operators over its cores, and its answer."""

    def __init__(self, root: Stage, cores: list[Core], recipient: Recipient | StreamRecipient) -> None:
        self.root = root
        self.cores = cores
        self._recipient = recipient
        #: the commit that opened it: that has been taken when it comes
        self._opened = -1
        #: results so far
        self.n_results = 0

    def open(self, record: Record) -> Results:
        """What the query sees at once, in the commit that opens it."""
        self._opened = record.seq
        self._received(self.root.opened(record), record)
        return self.answer(record.after)

    def take(self, step: Step) -> list[Results]:
        """What a commit that was just logged changes for the query."""
        return [] if step.record.seq == self._opened else self._received(self.root.delta(step), step.record)

    def _received(self, delta: Delta, record: Record) -> list[Results]:
        found = self._recipient.process(delta, effect_time(record.after))
        self.n_results += int(np.count_nonzero(found.signs > 0))
        return [Results(found.columns, found.times, found.signs)] if len(found) else []

    def answer(self, clock: int) -> Results:
        """The rows alive, or the newest of a stream, as + at the clock."""
        _, columns = self._recipient.answer()
        return Results(columns, np.full(len(self._recipient), effect_time(clock)), 1)

    def forget(self) -> None:
        """The commit is over: nobody asks for its deltas any more."""
        for stage in self.root.stages():
            stage.forget()

    def stop(self, seq: int) -> None:
        """Run no more, after a commit."""
        for core in self.cores:
            core.stop(seq)

    @property
    def errors(self) -> int:
        """Values that could not be computed so far."""
        return sum(stage.errors for stage in self.root.stages())

    @property
    def n_operators(self) -> int:
        """Those of its own that may keep rows, the recipient among them."""
        return 1 + sum(isinstance(stage, OperatorStage) for stage in self.root.stages())

    @property
    def bytes(self) -> int:
        return self._recipient.bytes + sum(stage.bytes for stage in self.root.stages())

    def check(self) -> None:
        self._recipient.check()
        for stage in self.root.stages():
            stage.check()


def at_once(delta: Delta, record: Record) -> Delta:
    """Rows that were there before, as if all came in one event at the clock; in the order in which they came."""
    plus, now = delta.plus, effect_time(record.after)
    n = len(plus)
    return Delta(Plus(plus.ids, np.full(n, now), np.zeros(n, np.int64), plus.ends, plus.columns), no_minus())
