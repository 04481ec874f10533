"""A query with tables among its inputs, and which of them count as they were.

    frozen    a non-retroactive table beside streams, and any table beside a stream without a window: counts as it was when the
              last of the result's stream rows came. It has no life of its own.
    live      a retroactive table beside streams with windows, and every table of a query over tables alone: counts as it
              is. A change of it begins and ends results at once.

A query over tables alone is on timeline main. The legs on tables, unlike those on streams, stay over a pause: the versions that
come in between count when it resumes, and what is logged of it can still be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eddy.join_group import JoinGroup, counts_of
from eddy.join_query import JoinQuery
from eddy.legs import Leg
from eddy.policies.base import Policy
from eddy.query import JoinPlan
from eddy.source import Source
from eddy.table_source import TableSource
from eddy.timeline import Timeline
from eddy.walk import Combinations, Walker
from queries.joins import Join
from stems.hash_index import HashIndex
from stems.sorted_index import SortedIndex

if TYPE_CHECKING:
    from eddy.engine import Engine


class TableWalker(Walker):
    """Walks a join over streams and tables; of tables it finds the versions from before the query too."""

    def __init__(self, join: Join, sources: list[Source]) -> None:
        super().__init__(join, sources)
        for (_, side), (index, _) in self._hash.items():
            self._recall(side, index)
        for (_, side), sorted_index in self._sorted.items():
            self._recall(side, sorted_index)

    def _recall(self, side: int, index: HashIndex | SortedIndex) -> None:
        if isinstance(self.sources[side], TableSource):
            self.sources[side].stems.recall(index)


class TableGroup(JoinGroup):
    """The group of one query with tables: its matches are found when they are read, and no commit lists or counts them."""

    def __init__(self, plan: JoinPlan, sources: list[Source], policy: Policy, timeline: Timeline) -> None:
        tables = [k for k, source in enumerate(sources) if isinstance(source, TableSource)]
        self.stream_inputs = [k for k in range(len(sources)) if k not in tables]
        as_they_were = {k for k in tables if plan.is_stream or not sources[k].readable.retroactive}
        #: inputs by how their tables count; see above
        self.frozen = [k for k in tables if self.stream_inputs and k in as_they_were]
        self.live = [k for k in tables if k not in self.frozen]
        super().__init__(plan.join, sources, counts_of(plan.windows), policy)
        self.timeline = timeline

    def _make_walker(self) -> Walker:
        return TableWalker(self.join, self.sources)

    def add(self, query: JoinQuery, births: tuple[int, ...]) -> int | None:
        return None

    def as_it_was(self, held: Combinations, opened: int) -> Combinations:
        """Drop frozen versions that had ended when the last row so far came and, once all are there, those written later.

        Rows from before the commit `opened` count as if they had come with it.
        """
        bound = [k for k in self.stream_inputs if held.positions[k] is not None]
        for k in self.frozen if bound else ():
            table = self.sources[k]
            if held.positions[k] is None:
                continue
            assert isinstance(table, TableSource)
            commits = np.max([table.marks[self.sources[s]].commits_of(held.at(s), opened) for s in bound], axis=0)
            counts = commits < table.versions.closed_at(held.at(k))
            if len(bound) == len(self.stream_inputs):
                counts &= table.versions.opened_at(held.at(k)) <= commits
            if not counts.all():
                held = held.take(np.flatnonzero(counts))
        return held


class TableQuery(JoinQuery):
    """A standing query that reads tables, with streams or alone."""

    #: as for every join
    __slots__ = ()

    def __init__(
        self, engine: Engine, id_: int, name: str, sql: str, tags: tuple[str, ...], join_plan: JoinPlan, group: TableGroup
    ) -> None:
        super().__init__(engine, id_, name, sql, tags, join_plan, group)
        #: its tables, and the streams whose rows say how each was
        self._tables: list[tuple[TableSource, list[Source]]] = []
        self._table_legs: list[tuple[TableSource, Leg]] = []
        for k, table in enumerate(self.sources):
            if isinstance(table, TableSource):
                marked = [self.sources[s] for s in group.stream_inputs] if k in group.frozen else []
                table.attach(group.timeline, marked)
                self._tables.append((table, marked))
                self._table_legs.append((table, table.hold(join_plan.windows[k], join_plan.conditions[k], name)))

    @property
    def table_group(self) -> TableGroup:
        assert isinstance(self.group, TableGroup)
        return self.group

    @property
    def is_stream(self) -> bool:
        return self.join_plan.is_stream

    def start(self, seq: int, births: tuple[int, ...]) -> None:
        super().start(seq, births)
        for k in self.table_group.stream_inputs:
            self.sources[k].deferral.n_readers += 1
        first = dict(zip(self.sources, births, strict=True))
        for table, marked in self._tables:
            for source in marked:
                table.marks[source].note(seq, source.store.end)
                table.marks[source].reach_back(first[source])

    def stop(self, until: int) -> None:
        super().stop(until)
        for k in self.table_group.stream_inputs:
            self.sources[k].deferral.n_readers -= 1

    def release(self) -> None:
        """It has been cancelled: let go of what it held over pauses."""
        self.group.release()
        for table, leg in self._table_legs:
            table.let_go(leg)
        for table, marked in self._tables:
            table.detach(self.timeline, marked)
        self._tables, self._table_legs = [], []
