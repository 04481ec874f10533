"""The running queries with operators, by timeline, and their changes in each commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eddy.base.result_log import LoggedCommit
from eddy.base.results import Results
from eddy.lives.ranks import Ranks
from eddy.operators.extent_ends import ExtentEnds
from eddy.operators.operation import CommitStep, Operation
from eddy.operators.shared_groups import SharedGroups
from eddy.operators.tree_query import TreeQuery
from eddy.streams.source import Source
from eddy.streams.timeline import Timeline
from windows.operators.operator import TimedOperator

#: What an operator keeps of one row at most, on average: its slot, its cells, its place in tables that have just doubled.
_STATE_BYTES = 256


class Operations:
    """Runs the operators of an engine's queries, and the aggregates that queries share, after each commit."""

    def __init__(self) -> None:
        #: the queries that run on each timeline that has any, in the order in which they started
        self.running: dict[Timeline, dict[TreeQuery, None]] = {}
        self.shared = SharedGroups()
        #: by source, operators that may keep a row of it; and what each query adds to that
        self._keepers: Counter[Source] = Counter()
        self._added: dict[TreeQuery, Counter[Source]] = {}

    def __contains__(self, timeline: Timeline) -> bool:
        """Whether any query with operators runs on a timeline."""
        return timeline in self.running or timeline in self.shared

    def add(self, query: TreeQuery) -> None:
        """Run a query's operators from the next commit on."""
        self.running.setdefault(query.timeline, {})[query] = None
        assert isinstance(query.operation, Operation), "only queries with operators of their own are here"
        n_operators = query.operation.n_operators
        read = Counter(source for core in query.cores for source in core.sources)
        added = self._added[query] = Counter({source: n * n_operators for source, n in read.items()})
        self._keepers.update(added)

    def remove(self, query: TreeQuery) -> None:
        queries = self.running[query.timeline]
        del queries[query]
        if not queries:
            del self.running[query.timeline]
        # those that come to nothing go
        self._keepers -= self._added.pop(query)

    def row_bytes(self, source: Source) -> int:
        """An upper bound of the bytes that all operators keep for one row of a source."""
        return _STATE_BYTES * self._keepers.get(source, 0)

    @property
    def bytes(self) -> int:
        """The bytes of the operators and change logs of all running queries."""
        return self.shared.bytes + sum(query.held_bytes for queries in self.running.values() for query in queries)

    def timed(self, timeline: Timeline) -> list[TimedOperator | ExtentEnds]:
        """What has rows that end by the clock, but not with a window of a stream."""
        found: list[TimedOperator | ExtentEnds] = []
        extents = dict.fromkeys(self.shared.extents(timeline))
        for _, operation in self._own(timeline):
            found += operation.timed
            extents.update(dict.fromkeys(operation.extents))
        return found + [ExtentEnds(source, window) for source, window in extents]

    def _own(self, timeline: Timeline) -> Iterator[tuple[TreeQuery, Operation]]:
        """The queries on a timeline that run operators of their own."""
        for query in self.running.get(timeline, ()):
            assert isinstance(query.operation, Operation), "only queries with operators of their own are here"
            yield query, query.operation

    def run(self, timeline: Timeline, record: LoggedCommit, ranks: Ranks) -> Iterator[tuple[TreeQuery, list[Results]]]:
        """The changes of each query in a commit that was just logged; also written to the queries' logs."""
        step = CommitStep(record, ranks)
        for query, operation in self._own(timeline):
            parts = operation.take(step)
            query.log.append(record.seq, parts)
            query.log.gives_up(record.seq)
            if parts:
                yield query, parts
        for _, operation in self._own(timeline):
            operation.forget()
        for _, operation in self._own(timeline):
            operation.reconsider(record)
