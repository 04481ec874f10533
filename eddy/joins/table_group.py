"""Groups of queries that join the same streams and tables in the same way; frozen tables count as they were.

    frozen    a non-retroactive table beside streams, and any table beside a stream without a window: counts as it was when the
              last of the result's stream rows came. It has no life of its own.
    live      a retroactive table beside streams with windows, and every table of a query over tables alone: counts as it
              is. A change of it begins and ends results at once.

They share walks as joins of streams do (`eddy/joins/join_group.py`): what comes in a commit, rows or versions of live tables,
begins matches, what leaves ends them. A commit changes a table or brings rows, never both:

    rows came       the live versions in a match count now; rows that left end matches
    table changed   + of versions that it opened, - of versions that it closed, with the rows alive at the clock, which stays

A walk drops frozen versions that did not count when the rows came and live ones that do not count in the commit; a version has
no birth and no age. Which frozen versions an old row meets depends on when a query began that sees it by history, so such a query
has a group of its own. What the tables of a query without streams hold when it begins is + of its first commit, for it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eddy.joins.join_group import Before, JoinGroup, Part, counts_of
from eddy.joins.walk import Combinations, Reach, Rows
from eddy.lives.early_ends import CommitPoint
from eddy.matching.match_filters import ALIVE
from eddy.routing.base import Policy
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from eddy.streams.timeline import Timeline, effect_time
from lineage.bits import set_bit
from lineage.elements import BEGINNING
from queries.joins import Join
from stems.table import Versions
from windows.spec import FOREVER, WindowSpec

if TYPE_CHECKING:
    from eddy.joins.join_query import JoinQuery


class Counting(NamedTuple):
    """The live versions that count in a walk: those valid in a commit."""

    commit: int
    #: only matches that end in this commit with a version of input `first`, and no version of an earlier one
    ended_by: int | None = None
    first: int = 0
    #: rows from before this commit meet frozen tables as they were after it: it is the last one before the query that looks
    opened: int = 0

    def of(self, versions: Versions, k: int, positions: np.ndarray) -> np.ndarray:
        """For each version of input k, whether it counts in a walk that begins with input `first`."""
        counts = versions.counts(positions, self.commit)
        if self.ended_by is not None and k <= self.first:
            counts &= (versions.closed_at(positions) == self.ended_by) == (k == self.first)
        return counts


class TableGroup(JoinGroup):
    """The queries of one join with tables, on one timeline."""

    def __init__(
        self, join: Join, sources: list[Source], windows: Sequence[WindowSpec], policy: Policy, timeline: Timeline,
        owner: int | None = None,
    ) -> None:  # fmt: skip
        """`owner`: the only query of the group, which may see older rows."""
        tables = [k for k, source in enumerate(sources) if isinstance(source, TableSource)]
        self.stream_inputs = [k for k in range(len(sources)) if k not in tables]
        as_they_were = {k for k in tables if any(w.is_stream for w in windows) or not sources[k].readable.retroactive}
        #: inputs by how their tables count; see above
        self.frozen = [k for k in tables if self.stream_inputs and k in as_they_were]
        self.live = [k for k in tables if k not in self.frozen]
        self.is_stream = any(window.is_stream for window in windows)
        super().__init__(join, sources, counts_of(windows), policy)
        self.timeline = timeline
        self._owner = owner
        #: the last commit before the owner began; 0 if there is none
        self.opened = 0
        #: slots of queries over tables alone that have not had their first commit
        self._opening: list[int] = []
        self._counting = Counting(0)

    def versions(self, k: int) -> Versions:
        """The versions of an input that is a table."""
        table = self.sources[k]
        assert isinstance(table, TableSource)
        return table.versions

    @property
    def key(self) -> tuple[object, ...]:
        return (*super().key, *(() if self._owner is None else (self._owner,)))

    # ---- queries

    def begin(self, commit: int) -> None:
        """Begin a query after a commit; in a group of its own, old rows count as if they had come then."""
        if self._owner is not None:
            self.opened = commit

    def add(self, query: JoinQuery, births: tuple[int, ...]) -> int | None:
        slot = super().add(query, births)
        if slot is not None and not self.stream_inputs:
            self._opening.append(slot)
        return slot

    # ---- matches

    def reacts_to(self, table: TableSource) -> bool:
        """Whether a change of a table begins or ends matches."""
        return any(self.sources[k] is table for k in self.live)

    def begun(self, before: Before, after: int, batch_rows: int) -> Iterator[Part]:
        self._counting = Counting(before.commit, opened=self.opened)
        changed = any(self.sources[k].store.end > before.ends[k] for k in self.live)
        for part in super().begun(before, after, batch_rows):
            yield replace(part, at=effect_time(after)) if changed else part
        if self._opening:
            mask = np.zeros_like(self.active)
            for slot in self._opening:
                set_bit(mask, slot)
            self._opening.clear()
            reach = [Reach(source.store.watermark, source.store.end) for source in self.sources]
            for found in self._walk(0, reach[0], reach, batch_rows):
                yield Part(found, self._batch(found, reach).prepare(), mask, None, effect_time(after))

    def ended(self, before: Before, clock: int, after: int, batch_rows: int) -> Iterator[Part]:
        if self._rows_moved(before, after):
            self._counting = Counting(before.commit, opened=self.opened)
            yield from super().ended(before, clock, after, batch_rows)
            return
        reach = [Reach(min(low, end), end) for low, end in zip(before.oldest, before.ends)]
        for first in self.live:
            closed = self.versions(first).closed_by(before.commit)
            self._counting = Counting(before.commit - 1, before.commit, first, self.opened)
            for found in self._walk(first, closed, reach, batch_rows):
                batch = self._batch(found, reach)
                for k in self.stream_inputs:
                    self._add_age(batch, found, k, reach[k].low, CommitPoint(after, before.ends[k], before.commit - 1), ALIVE)
                yield Part(found, batch.prepare(), self.active, [FOREVER] * len(reach), effect_time(after))

    def leaves(self, before: Before, after: int) -> bool:
        if self._rows_moved(before, after):
            return super().leaves(before, after)
        return any(len(self.versions(k).closed_by(before.commit)) for k in self.live)

    def _rows_moved(self, before: Before, after: int) -> bool:
        """Whether a commit moved the clock to `after`, brought rows or retracted some, so that rows may have left windows."""
        came = any(self.sources[k].store.end > before.ends[k] for k in self.stream_inputs)
        return after > self.timeline.now or came or any(ends.lowered_in(before.commit) for ends in self.ends if ends is not None)

    def _oldest(self, k: int, clock: int) -> int:
        if k in self.stream_inputs and self._windows.widest[k].window.ends:
            return super()._oldest(k, clock)
        # of a window that holds rows for ever the births alone say where it begins
        return max(self.sources[k].store.watermark, int(self._filters.births[k][0]))

    def _leaving(self, k: int, before: Before, after: int) -> Rows:
        ends = k in self.stream_inputs and (self._windows.narrowest[k].window.ends or self.ends[k] is not None)
        return super()._leaving(k, before, after) if ends else Reach(0, 0)

    def _keep(self, found: Combinations, added: int) -> Combinations:
        return super()._keep(self.as_it_counts(found, added, self._counting), added)

    def as_it_counts(self, found: Combinations, added: int, counting: Counting) -> Combinations:
        """The combinations whose versions count, after input `added`; for a query without a window also without rows that had
        expired when they came."""
        own = self.sources[added].own_ends
        if self.is_stream and own is not None:
            found = found.take(np.flatnonzero(own.alive_at_first(found.at(added))))
        if added not in self.live:
            return self._as_it_was(found, counting.opened)
        counts = counting.of(self.versions(added), added, found.at(added))
        return found if counts.all() else found.take(np.flatnonzero(counts))

    def _as_it_was(self, held: Combinations, opened: int) -> Combinations:
        """The combinations without frozen versions that ended before the last row so far came and, once complete, without
        versions written later."""
        bound = [k for k in self.stream_inputs if k in held.inputs]
        for k in self.frozen if bound else ():
            table = self.sources[k]
            if k not in held.inputs:
                continue
            assert isinstance(table, TableSource)
            commits = np.max([table.marks[self.sources[s]].commits_of(held.at(s), opened) for s in bound], axis=0)
            counts = commits < table.versions.closed_at(held.at(k))
            if len(bound) == len(self.stream_inputs):
                counts &= table.versions.opened_at(held.at(k)) <= commits
            if not counts.all():
                held = held.take(np.flatnonzero(counts))
        return held

    def lives(self, found: Combinations) -> tuple[np.ndarray, np.ndarray]:
        """The times of stream rows and the latest start of each match; a version has always been there."""
        times = np.zeros((len(self.sources), len(found)), np.int64)
        starts = np.full((len(self.sources), len(found)), BEGINNING)
        for k in self.stream_inputs:
            times[k], starts[k] = self.sources[k].gatherer.lives(found.at(k))
        return times, starts.max(axis=0)

    # ---- functions that wait for a partner: none do where a query reads a table (`eddy/joins/table_query.py`)

    def _first_stems(self) -> list[tuple[Source, str]]:
        return []

    def _try_deferred(self, before: Before, batch_rows: int) -> None:
        pass

    def _count_partners(self, found: Combinations, first: int, rows_in: int) -> None:
        pass
