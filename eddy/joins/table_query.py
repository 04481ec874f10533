"""A query with tables among its inputs (`eddy/joins/table_group.py` says how they count).

A query over tables alone is on timeline main. The legs on tables, unlike those on streams, stay over a pause: the versions that
come in between count when it resumes, and what is logged of it can still be read.
"""

from __future__ import annotations

from eddy.base.plans import JoinPlan
from eddy.joins.join_group import JoinGroup
from eddy.joins.join_query import JoinQuery
from eddy.joins.table_group import TableGroup
from eddy.query import QueryHost
from eddy.streams.legs import Leg
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource


class TableQuery(JoinQuery):
    """A standing query that reads tables, with streams or alone."""

    #: as for every join
    __slots__ = ()

    def __init__(
        self, engine: QueryHost, id_: int, name: str, sql: str, tags: tuple[str, ...], join_plan: JoinPlan, group: JoinGroup
    ) -> None:
        super().__init__(engine, id_, name, sql, tags, join_plan, group)
        assert isinstance(group, TableGroup), "tables are in groups of their own"
        #: its tables, and the streams whose rows say how each was
        self._tables: list[tuple[TableSource, list[Source]]] = []
        self._table_legs: list[tuple[TableSource, Leg]] = []
        for k, table in enumerate(self.sources):
            if isinstance(table, TableSource):
                marked = [self.sources[s] for s in group.stream_inputs] if k in group.frozen else []
                table.attach(group.timeline, marked)
                self._tables.append((table, marked))
                self._table_legs.append((table, table.placement.hold(join_plan.windows[k], join_plan.conditions[k], name)))

    @property
    def table_group(self) -> TableGroup:
        assert isinstance(self.group, TableGroup)
        return self.group

    @property
    def opens(self) -> bool:
        """Tables alone are there at once."""
        return not self.table_group.stream_inputs

    @property
    def is_stream(self) -> bool:
        return self.join_plan.is_stream

    def start(self, seq: int, births: tuple[int, ...], listed: bool = True) -> None:
        super().start(seq, births, listed)
        self.table_group.begin(seq)
        for k in self.table_group.stream_inputs:
            self.sources[k].deferral.n_readers += 1
        first = dict(zip(self.sources, births, strict=True))
        for table, marked in self._tables:
            for source in marked:
                table.marks[source].note(seq, source.store.end)
                table.marks[source].reach_back(first[source])

    def stop(self, until: int, listed: bool = True) -> None:
        super().stop(until, listed)
        for k in self.table_group.stream_inputs:
            self.sources[k].deferral.n_readers -= 1

    def release(self) -> None:
        """It has been cancelled: let go of what it held over pauses."""
        for table, leg in self._table_legs:
            table.placement.let_go(leg)
        for table, marked in self._tables:
            table.detach(self.timeline, marked)
        self._tables, self._table_legs = [], []
