"""A query with operators: blocks that run hidden in the shared eddy, operators over them, and the changes that were logged.

What its operators hold, and what it logged, is its own; its blocks share rows, filters and SteMs with everybody. Unlike that of a
plain query its log is kept as it was, for operators cannot be asked about the past: as long as the timeline's log reaches, and
at most `log_rows` rows of it. Aggregates that it shares (`eddy/shared_group.py`) are logged from the first reader on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from eddy.checking import changing
from eddy.core import Core
from eddy.operation import Operation
from eddy.packed_results import PackedResults, pack, unpack
from eddy.query import NO_MODULES, Kept, Plan, Query, Run, TreePlan
from eddy.reader import Results, net
from eddy.result_log import Record
from eddy.shared_operation import SharedOperation
from eddy.timeline import Timeline
from filters.predicate import Condition, normalise
from queries.tree import is_ordered, levels, union_bits
from windows.spec import WindowSpec

if TYPE_CHECKING:
    from eddy.engine import Engine


class ChangeLog:
    """The changes of one query by commit, oldest first."""

    __slots__ = ("_parts", "_n_rows", "_max_rows", "lost", "read")

    def __init__(self, max_rows: int) -> None:
        #: by commit, of those that changed anything
        self._parts: dict[int, list[Results]] = {}
        self._n_rows = 0
        self._max_rows = max_rows
        #: the last commit whose changes are gone
        self.lost = 0
        #: whether anybody has asked for it
        self.read = False

    def __getstate__(self) -> tuple[object, ...]:
        return (
            {seq: len(parts) for seq, parts in self._parts.items()},
            pack(list(self.parts())),
            self._max_rows,
            self.lost,
            self.read,
        )

    def __setstate__(self, state: tuple[dict[int, int], PackedResults | None, int, int, bool]) -> None:
        counts, packed, self._max_rows, self.lost, self.read = state
        results = iter(unpack(packed))
        self._parts = {seq: [next(results) for _ in range(n)] for seq, n in counts.items()}
        self._n_rows = sum(map(len, self.parts()))

    def parts(self) -> Iterator[Results]:
        """All that it has, oldest first."""
        return (part for parts in self._parts.values() for part in parts)

    def append(self, seq: int, parts: list[Results]) -> None:
        """The changes of a commit; older ones go if there are too many."""
        if parts:
            self._parts[seq] = parts
            self._n_rows += sum(map(len, parts))
            while self._n_rows > self._max_rows and len(self._parts) > 1:
                self._drop(next(iter(self._parts)))

    def forget(self, gone: int) -> None:
        """Commits up to `gone` can no longer be read."""
        while self._parts and (oldest := next(iter(self._parts))) <= gone:
            self._drop(oldest)

    def _drop(self, seq: int) -> None:
        self._n_rows -= sum(map(len, self._parts.pop(seq)))
        self.lost = seq

    def lose(self, seq: int) -> None:
        """Changes up to a commit were not logged."""
        self._parts.clear()
        self._n_rows = 0
        self.lost = seq

    def at(self, seq: int) -> list[Results]:
        """The changes of one commit."""
        return self._parts.get(seq, [])

    @property
    def bytes(self) -> int:
        columns = (column for part in self.parts() for column in part.columns)
        return sum(column.values.nbytes for column in columns) + 8 * self._n_rows


class TreeQuery(Query):
    """A standing query with operators; `plan` has only its columns, `tree_plan` the whole."""

    #: its attributes are slots of `Query`: a text may be replaced by one of another kind
    __slots__ = ()

    def __init__(
        self, engine: Engine, id_: int, name: str, sql: str, tags: tuple[str, ...], tree_plan: TreePlan, timeline: Timeline,
        log_rows: int,
    ) -> None:  # fmt: skip
        plan = Plan("", WindowSpec.none(), normalise(None), tree_plan.outputs, tree_plan.defaults)
        super().__init__(engine, id_, name, sql, tags, plan)
        self.tree_plan = tree_plan
        self._timeline = timeline
        #: None while it does not run
        self.operation: Operation | SharedOperation | None = None
        self.log = ChangeLog(log_rows)

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
        return ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return ()

    @property
    def running(self) -> bool:
        return self.operation is not None

    @property
    def is_stream(self) -> bool:
        return self.tree_plan.root.is_stream

    @property
    def opens(self) -> bool:
        return self.tree_plan.opens

    @property
    def update_pattern(self) -> str:
        return self.tree_plan.root.update_pattern

    @property
    def ends_known(self) -> bool:
        return self.tree_plan.root.ends_known

    @property
    def ends_early(self) -> bool:
        return isinstance(self.operation, Operation) and self.operation.ends_early

    @property
    def levels(self) -> int:
        return levels(self.tree_plan.root)

    @property
    def ordered(self) -> bool:
        return is_ordered(self.tree_plan.root)

    @property
    def union_bits(self) -> int:
        return union_bits(self.tree_plan.root)

    def start(self, seq: int, operation: Operation | SharedOperation) -> None:
        """Run from the next commit on."""
        self.operation = operation
        self.runs.append(Run(seq, None, 0, NO_MODULES))
        self.kept = None

    def open(self, record: Record, taken_back: Results | None) -> tuple[Results, list[Results]]:
        """What it sees at once in the commit that opens it, and that net of what it takes back: its changes."""
        assert self.operation is not None, "a query that runs"
        came = self.operation.open(record)
        parts = net(taken_back, came)
        self.log.append(record.seq, parts)
        return came, parts

    @changing
    def read(self, seq: int) -> None:
        """Somebody reads its changes after a commit, the last one."""
        self.log.read = True
        if self.unlogged:
            assert isinstance(self.operation, SharedOperation)
            self.log.lose(seq)
            self.operation.read()

    @property
    def unlogged(self) -> bool:
        """Whether its changes are not logged: nobody has read them yet."""
        return isinstance(self.operation, SharedOperation) and not self.operation.logged

    def stop(self, until: int) -> None:
        """Stop running, after a commit."""
        assert self.operation is not None, "a query that runs"
        if self.unlogged:
            self.log.lose(until)
        self.runs[-1].until = until
        self._results_before += self.operation.n_results
        self.operation.stop(until)
        self.operation = None

    @property
    def cores(self) -> list[Core]:
        """The blocks that run hidden."""
        return [] if self.operation is None else self.operation.cores

    @property
    def held_bytes(self) -> int:
        """What its operators and its log hold."""
        return self.log.bytes + (0 if self.operation is None else self.operation.bytes)

    def check(self) -> None:
        """All invariants of its operators."""
        assert self.running == (self.kept is None), "a query runs or keeps its answer"
        if self.operation is not None:
            self.operation.check()

    def n_results(self) -> int:
        """Results so far."""
        return self._results_before + (0 if self.operation is None else self.operation.n_results)


class TreeReader:
    """Reads one query with operators: its answer as the operators left it, and its changes as they were logged."""

    def __init__(self, query: TreeQuery) -> None:
        self._query = query
        operation = query.operation
        self.errors = query.errors if operation is None else operation.errors

    def answer(self, clock: int) -> Results:
        """The answer now: what is alive, or the newest results of a stream."""
        kept, operation = self._query.kept, self._query.operation
        if kept is not None:
            return Results(kept.vectors, kept.starts, 1)
        assert operation is not None, "a query runs or keeps its answer"
        return operation.answer(clock)

    def keep(self, clock: int) -> Kept:
        """The rows of the answer, to keep over a pause."""
        found = self.answer(clock)
        return Kept(found.columns, found.times, np.arange(len(found)), len(found))

    def changes(self, record: Record) -> list[Results]:
        """The changes of a commit."""
        return self._query.log.at(record.seq)
