"""Queries with operators: blocks that run hidden in the shared eddy, operators over them, and a log of changes.

The state of its operators and its log (`eddy/base/change_log.py`) are its own; its blocks share rows, filters and SteMs with all
queries.
"""

from __future__ import annotations

import numpy as np

from eddy.base.change_log import ChangeLog
from eddy.base.checking import changing
from eddy.base.log_bounds import LogBounds
from eddy.base.plans import NO_MODULES, Kept, Plan, QueryRun, TreePlan
from eddy.base.result_log import LoggedCommit
from eddy.base.results import Results, net
from eddy.operators.core import Core
from eddy.operators.shared.shared_operation import SharedOperation
from eddy.operators.template import Member
from eddy.query import Query, QueryHost
from eddy.streams.timeline import Timeline
from filters.expressions.predicate import Condition, normalise
from queries.nodes import Distinct, GroupBy
from queries.tree import is_ordered, levels, union_bits, walk
from windows.spec import WindowSpec


class TreeQuery(Query):
    """A standing query with operators; `plan` has only its columns, `tree_plan` the whole tree."""

    #: its attributes are slots of `Query`: a text may be replaced by one of another kind
    __slots__ = ()

    def __init__(
        self, engine: QueryHost, id_: int, name: str, sql: str, tags: tuple[str, ...], tree_plan: TreePlan, timeline: Timeline,
        bounds: LogBounds,
    ) -> None:  # fmt: skip
        plan = Plan("", WindowSpec.none(), normalise(None), tree_plan.outputs, tree_plan.defaults)
        super().__init__(engine, id_, name, sql, tags, plan)
        self.tree_plan = tree_plan
        self._timeline = timeline
        #: None while it does not run
        self.operation: Member | SharedOperation | None = None
        #: what may be shared is logged for those who read it
        aggregate = not tree_plan.is_stream and any(isinstance(node, GroupBy | Distinct) for node in walk(tree_plan.shape.root))
        self.log = ChangeLog(timeline.log.changes, bounds, aggregate)

    @property
    def timeline(self) -> Timeline:
        return self._timeline

    @property
    def streams(self) -> tuple[str, ...]:
        return self.tree_plan.streams

    @property
    def reads(self) -> tuple[str, ...]:
        return self.tree_plan.queries

    @property
    def windows(self) -> tuple[WindowSpec, ...]:
        """None: windows belong to the blocks."""
        return ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return ()

    @property
    def running(self) -> bool:
        return self.operation is not None

    @property
    def is_stream(self) -> bool:
        return self.tree_plan.shape.root.is_stream

    @property
    def opens(self) -> bool:
        return self.tree_plan.opens

    @property
    def update_pattern(self) -> str:
        return self.tree_plan.shape.root.update_pattern

    @property
    def ends_known(self) -> bool:
        return self.tree_plan.shape.root.ends_known

    @property
    def ends_early(self) -> bool:
        return isinstance(self.operation, Member) and self.operation.template.ends_early

    @property
    def levels(self) -> int:
        return levels(self.tree_plan.shape.root)

    @property
    def ordered(self) -> bool:
        return is_ordered(self.tree_plan.shape.root)

    @property
    def union_bits(self) -> int:
        return union_bits(self.tree_plan.shape.root)

    def start(self, seq: int, operation: Member | SharedOperation) -> None:
        """Run from the next commit on."""
        self.operation = operation
        if isinstance(operation, Member):
            self.log.sit(operation.template.log, operation.seat, seq)
        if operation.logged:
            self.log.begin(seq)
        self.runs.append(QueryRun(seq, None, 0, NO_MODULES))
        self.kept = None

    def open(self, record: LoggedCommit, taken_back: Results | None) -> tuple[Results, list[Results]]:
        """Return the first answer, and the net changes against the previous answer."""
        assert self.operation is not None, "a query that runs"
        came = self.operation.open(record)
        parts = net(taken_back, came)
        self.log.append(record.seq, parts)
        return came, parts

    @changing
    def read(self, seq: int) -> None:
        """Log changes from commit `seq`, the last one, on: they have a reader now."""
        self.log.mark_read()
        if self.running and not self.log.open:
            self.log.lose(seq)
            self.log.begin(seq)
            if isinstance(self.operation, SharedOperation):
                self.operation.read()

    @property
    def unread(self) -> bool:
        return self.log.unread

    def stop(self, until: int) -> None:
        """Stop running, after commit `until`."""
        assert self.operation is not None, "a query that runs"
        if not self.log.open:
            self.log.lose(until)
        self.log.stand_up(until)
        self.runs[-1].until = until
        self._results_before += self.operation.n_results
        self.operation.stop(until)
        self.operation = None

    @property
    def cores(self) -> list[Core]:
        """The hidden queries that run its blocks."""
        return [] if self.operation is None else self.operation.cores

    @property
    def held_bytes(self) -> int:
        """The bytes of its operators and its log."""
        return self.log.held_bytes + (0 if self.operation is None else self.operation.bytes)

    def check(self) -> None:
        """Assert all invariants of its operators."""
        assert self.running == (self.kept is None), "a query runs or keeps its answer"
        if self.operation is not None:
            self.operation.check()

    def n_results(self) -> int:
        """The number of results so far."""
        return self._results_before + (0 if self.operation is None else self.operation.n_results)


class TreeReader:
    """Reads one query with operators: its answer as the operators left it, and its changes as they were logged."""

    def __init__(self, query: TreeQuery) -> None:
        self._query = query
        operation = query.operation
        self.errors = query.errors if operation is None else operation.errors

    def answer(self, clock: int) -> Results:
        """The answer now: the live rows, or the newest results of a stream."""
        kept, operation = self._query.kept, self._query.operation
        if kept is not None:
            return Results(kept.vectors, kept.starts, 1)
        assert operation is not None, "a query runs or keeps its answer"
        return operation.answer(clock)

    def keep(self, clock: int) -> Kept:
        """The rows of the answer, to keep over a pause."""
        found = self.answer(clock)
        return Kept(found.columns, found.times, np.arange(len(found)), len(found))

    def changes(self, record: LoggedCommit) -> list[Results]:
        """The changes of a commit."""
        return self._query.log.at(record.seq)
