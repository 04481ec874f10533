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

from eddy.join_query import JoinQuery
from eddy.query import JoinPlan
from eddy.source import Source
from eddy.table_source import TableSource
from eddy.timeline import BEGINNING, Timeline
from eddy.walk import Combinations, Walker
from queries.joins import Join
from stems.hash_index import HashIndex
from stems.sorted_index import SortedIndex
from windows.spec import FOREVER

if TYPE_CHECKING:
    from eddy.engine import Engine


class TableWalker(Walker):
    """Walks a join over streams and tables; a combination has only versions that counted when its last row came."""

    def __init__(self, join: Join, sources: list[Source], frozen: list[int]) -> None:
        super().__init__(join, sources)
        self._frozen = frozen
        self._streams = [k for k, source in enumerate(sources) if not isinstance(source, TableSource)]
        for (_, side), (index, _) in self._hash.items():
            self._recall(side, index)
        for (_, side), sorted_index in self._sorted.items():
            self._recall(side, sorted_index)

    def _recall(self, side: int, index: HashIndex | SortedIndex) -> None:
        """A table's rows from before the index count as well."""
        if isinstance(self.sources[side], TableSource):
            self.sources[side].stems.recall(index)

    def _check(self, held: Combinations, added: int) -> Combinations:
        if added in self._frozen or added in self._streams:
            held = self._as_it_was(held)
        return super()._check(held, added)

    def _as_it_was(self, held: Combinations) -> Combinations:
        """Drop versions that had ended when the last row so far came and, once all are there, those written later."""
        bound = [k for k in self._streams if held.positions[k] is not None]
        for k in self._frozen if bound else ():
            versions_at, table = held.positions[k], self.sources[k]
            if versions_at is None:
                continue
            assert isinstance(table, TableSource)
            commits = np.max([self._commits(table, s, held) for s in bound], axis=0)
            counts = commits < table.versions.closed_at(versions_at)
            if len(bound) == len(self._streams):
                counts &= table.versions.opened_at(versions_at) <= commits
            if not counts.all():
                held = held.take(np.flatnonzero(counts))
        return held

    def _commits(self, table: TableSource, stream: int, held: Combinations) -> np.ndarray:
        positions = held.positions[stream]
        assert positions is not None
        return table.marks[self.sources[stream]].commits_of(positions)


class TableQuery(JoinQuery):
    """A standing query that reads tables, with streams or alone."""

    __slots__ = ("frozen", "live", "stream_inputs", "_timeline", "_table_legs")

    def __init__(
        self, engine: Engine, id_: int, name: str, sql: str, tags: tuple[str, ...], join_plan: JoinPlan, sources: list[Source],
        timeline: Timeline,
    ) -> None:  # fmt: skip
        tables = [k for k, source in enumerate(sources) if isinstance(source, TableSource)]
        self.stream_inputs = [k for k in range(len(sources)) if k not in tables]
        as_they_were = {k for k in tables if join_plan.is_stream or not sources[k].readable.retroactive}
        #: inputs by how their tables count; see above
        self.frozen = [k for k in tables if self.stream_inputs and k in as_they_were]
        self.live = [k for k in tables if k not in self.frozen]
        self._timeline = timeline
        super().__init__(engine, id_, name, sql, tags, join_plan, sources)
        self._table_legs = []
        for k, table in self._tables():
            table.attach(timeline, self._marked(k))
            self._table_legs.append((table, table.hold(join_plan.windows[k], join_plan.conditions[k], name)))

    def _tables(self) -> list[tuple[int, TableSource]]:
        return [(k, source) for k, source in enumerate(self.sources) if isinstance(source, TableSource)]

    def _marked(self, table: int) -> list[Source]:
        """The streams whose rows say how a table was."""
        return [self.sources[k] for k in self.stream_inputs] if table in self.frozen else []

    def _make_walker(self) -> Walker:
        return TableWalker(self.join_plan.join, self.sources, self.frozen)

    @property
    def timeline(self) -> Timeline:
        return self._timeline

    @property
    def is_stream(self) -> bool:
        return self.join_plan.is_stream

    def start(self, seq: int) -> None:
        super().start(seq)
        for k, table in self._tables():
            for source in self._marked(k):
                table.marks[source].note(seq, source.store.end)
        now = self._timeline.now
        missed = [self.windows[k].width_us for k in self.stream_inputs if self.sources[k].store.end]
        since = now + max(missed, default=0)
        self.complete_since_us = None if now == BEGINNING or FOREVER in missed else since

    def release(self) -> None:
        super().release()
        for table, leg in self._table_legs:
            table.let_go(leg)
        for k, table in self._tables():
            table.detach(self._timeline, self._marked(k))
        self._table_legs = []
