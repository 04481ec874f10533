"""The operators of one query as they run: a stage for each node of its tree, fed by the blocks below.

After a commit has stored its rows and joined them, every stage gives its delta of that commit, once, whoever asks: nodes that are
equal are one stage, so a WITH name that is read twice is computed once, and a query that is read by name is not computed again
for its readers. Depth is bounded by the language (`queries/binder.py`), so the recursion is too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from eddy.feed import Feed
from eddy.ranks import Ranks
from eddy.result_log import Record
from eddy.timeline import effect_time
from lineage.schema import Type
from windows.delta import Delta, Plus, no_minus
from windows.operator import Operator


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
        self.children = children

    @property
    def types(self) -> tuple[Type, ...]:
        return self.operator.types

    @property
    def sends_ends(self) -> bool:
        return self.operator.sends_ends

    def _process(self, step: Step) -> Delta:
        return self.operator.process([child.delta(step) for child in self.children], step.record.after)

    def _open(self, record: Record) -> Delta:
        return self.operator.process([child.opened(record) for child in self.children], effect_time(record.after))

    def answer(self, record: Record) -> Delta:
        children = [lambda child=child: child.answer(record) for child in self.children]
        return self.operator.answer(children, effect_time(record.after))


def at_once(delta: Delta, record: Record) -> Delta:
    """Rows that were there before, as if all came in one event at the clock; in the order in which they came."""
    plus, now = delta.plus, effect_time(record.after)
    n = len(plus)
    return Delta(Plus(plus.ids, np.full(n, now), np.zeros(n, np.int64), plus.ends, plus.columns), no_minus())


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

    def _process(self, step: Step) -> Delta:
        return self._root.delta(step)

    def _open(self, record: Record) -> Delta:
        return self._root.answer(record)

    def answer(self, record: Record) -> Delta:
        return self._root.answer(record)


class Operation:
    """A query's operators over its cores, and its answer."""

    def __init__(self, root: Stage, cores: list[Core], recipient: Recipient) -> None:
        self.root = root
        self.cores = cores
        self._recipient = recipient
        #: the commit that opened it; it has been taken then
        self._opened = -1
        #: results so far
        self.n_results = 0

    def open(self, record: Record) -> Results:
        """What the query sees at once, in the commit that opens it."""
        self._opened = record.seq
        parts = self._take(self.root.opened(record), record)
        ...

    def take(self, step: Step) -> list[Results]:
        """What a commit that was just logged changes for the query."""
        if step.record.seq == self._opened:
            return []
        return self._take(self.root.delta(step), step.record)
