"""The queries with operators that run, by timeline, and what each commit does to them."""

from __future__ import annotations

from collections.abc import Iterator

from eddy.operation import Step
from eddy.ranks import Ranks
from eddy.reader import Results
from eddy.result_log import Record
from eddy.timeline import Timeline
from eddy.tree_query import TreeQuery
from windows.operator import TimedOperator


class Operations:
    """Takes commits to the operators of an engine's queries."""

    def __init__(self) -> None:
        #: the queries that run on each timeline that has any, in the order in which they started
        self.running: dict[Timeline, list[TreeQuery]] = {}

    def add(self, query: TreeQuery) -> None:
        self.running.setdefault(query.timeline, []).append(query)

    def remove(self, query: TreeQuery) -> None:
        queries = self.running[query.timeline]
        queries.remove(query)
        if not queries:
            del self.running[query.timeline]

    def timed(self, timeline: Timeline) -> list[TimedOperator]:
        """The operators whose rows the clock ends, though no stream's window does."""
        queries = self.running.get(timeline)
        if not queries:
            return []
        return [operator for query in queries if query.operation is not None for operator in query.operation.timed]

    def run(self, timeline: Timeline, record: Record, ranks: Ranks) -> Iterator[tuple[TreeQuery, list[Results]]]:
        """What a commit that was just logged changed for each query; logged with it."""
        step = Step(record, ranks)
        queries = self.running[timeline]
        for query in queries:
            assert query.operation is not None, "only queries that run are here"
            parts = query.operation.take(step)
            query.log.append(record.seq, parts)
            query.log.forget(timeline.log.gone)
            if parts:
                yield query, parts
        for query in queries:
            assert query.operation is not None
            query.operation.forget()
        for query in queries:
            assert query.operation is not None
            query.operation.reconsider(record)
