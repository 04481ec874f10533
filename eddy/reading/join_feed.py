"""The feed of a query over several inputs, or over one whose rows end unscheduled (`eddy/reading/stream_feed.py`).

A match begins with the latest of its rows, in the event of that row, and ends with the first that leaves: by the clock, or in the
event of the row that displaces it, or of the retraction or table change that ends it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.joins.join_query import JoinQuery
from eddy.joins.table_query import TableQuery
from eddy.joins.walk import Combinations
from eddy.lives.ranks import Ranks
from eddy.reading.join_reader import JoinReader
from eddy.reading.stream_feed import Feed
from eddy.reading.table_reader import TableReader
from eddy.streams.table_source import TableSource
from filters.values.vector import Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from windows.delta import Delta, Minus, Plus, concatenated, no_minus, no_plus
from windows.patterns import STRICT
from windows.state.values import ValueCodes


class JoinFeed(Feed):
    """A feed of one query over several inputs, or over one whose rows end unscheduled."""

    def __init__(self, query: JoinQuery, sends_ends: bool) -> None:
        self.types = tuple(column.type for column in query.outputs)
        self.sends_ends = not query.is_stream and (sends_ends or query.update_pattern == STRICT)
        self._query = query
        self.sources = query.sources
        #: numbers of the matches alive, by the positions of their rows; of those whose ends are known nobody asks again
        self._numbers = ValueCodes([Type.INT] * len(query.sources))
        self._next = 0
        #: whether it has given anything: rows there before are then numbered
        self._running = False

    def delta(self, record: LoggedCommit, ranks: Ranks) -> Delta:
        reader = self._reader()
        self._running = True
        if not self.sends_ends:
            found = Delta(self._plus(reader, reader.begun(record), ranks), no_minus())
        else:
            begun = [(matches, starts) for matches, starts, _ in self._shown(reader, reader.begun(record, True), record, ranks)]
            found = Delta(self._plus(reader, begun, ranks), self._minus(reader, record, ranks))
        self.errors += reader.errors
        return found

    def snapshot(self, record: LoggedCommit) -> Delta:
        reader = self._reader()
        plus = self._plus(reader, reader.alive(record), None) if not self._query.is_stream else no_plus(self.types)
        self.errors += reader.errors
        if self._running and self.sends_ends:
            # its rows have their numbers already: this was only a look at them
            self._numbers.release(plus.ids)
        self._running = True
        return Delta(plus, no_minus())

    def _shown(
        self, reader: JoinReader, found: list[tuple[Combinations, np.ndarray]], record: LoggedCommit, ranks: Ranks
    ) -> Iterator[tuple[Combinations, np.ndarray, np.ndarray]]:  # fmt: skip
        """Matches with their times and the ranks of their ends, without matches that ended before they began."""
        before, _ = reader.stood(record)
        for matches, times in found:
            if ranks.changes_table:
                yield matches, times, np.zeros(len(matches), np.int64)
                continue
            lives = reader.lives(matches, record)
            ends = reader.end_ranks(matches, lives.ends, record, ranks)
            at_once = (lives.starts == lives.ends) & ~reader.there(matches, before)
            rows = np.flatnonzero(~at_once | (ends > self._ranks(matches, ranks)))
            yield matches.take(rows), times[rows], ends[rows]

    def _reader(self) -> JoinReader:
        return TableReader(self._query) if isinstance(self._query, TableQuery) else JoinReader(self._query)

    def _plus(self, reader: JoinReader, found: list[tuple[Combinations, np.ndarray]], ranks: Ranks | None) -> Plus:
        parts = []
        orders = []
        for matches, starts in found:
            columns = reader.project(self._query.group.walker.frame(matches)).columns
            known = not self.sends_ends and not self._query.is_stream
            ends = reader.scheduled(matches) if known else np.full(len(matches), FOREVER)
            places, effective = self._ranks(matches, ranks), self._effective(matches)
            parts.append(Delta(Plus(self._number(matches), starts, places, ends, columns, effective), no_minus()))
            orders.append(self._order(matches))
        plus = concatenated(self.types, parts).plus
        if len(plus) < 2:
            return plus
        return plus.take(np.lexsort((*np.concatenate(orders, axis=1)[::-1], plus.ranks, plus.times)))

    def _order(self, found: Combinations) -> np.ndarray:
        """The order of matches of one event: by the row numbers of their rows.

        Rows from before the query may all begin with it: rows of one stream are then ordered by their own times, as they will
        end.
        """
        numbers = [found.at(k) for k in range(len(self._query.sources))]
        (stream, *others) = [k for k, source in enumerate(self._query.sources) if not isinstance(source, TableSource)] or [-1]
        if stream < 0 or others:
            return np.stack(numbers)
        return np.stack([self._query.sources[stream].store.elements_at(numbers[stream], 0).ends, *numbers])

    def _ranks(self, found: Combinations, ranks: Ranks | None) -> np.ndarray:
        """The rank of each match's beginning: that of its last row."""
        latest = np.zeros(len(found), np.int64)
        if ranks is not None:
            for k, source in enumerate(self._query.sources):
                np.maximum(latest, ranks.at(source, found.at(k)), out=latest)
        return latest

    def _effective(self, found: Combinations) -> np.ndarray | None:
        """The times by which a window holds the rows of one stream; None where they follow from starts."""
        if self._query.is_stream or len(self._query.sources) > 1 or isinstance(self._query, TableQuery):
            return None
        return self._query.sources[0].store.elements_at(found.at(0), 0).ends

    def _minus(self, reader: JoinReader, record: LoggedCommit, ranks: Ranks) -> Minus:
        found = list(self._shown(reader, reader.ended(record, True), record, ranks))
        none = np.zeros(0, np.int64)
        ids = np.concatenate([none, *(self._codes(matches) for matches, _, _ in found)])
        # the reference of the row that ended, and the one of having looked
        self._numbers.release(ids)
        self._numbers.release(ids)
        times = np.concatenate([none, *(times for _, times, _ in found)])
        places = np.concatenate([none, *(places for _, _, places in found)])
        return Minus(ids, times, places).take(np.lexsort((places, times)))

    def _number(self, found: Combinations) -> np.ndarray:
        if self.sends_ends:
            return self._codes(found)
        first, self._next = self._next, self._next + len(found)
        return np.arange(first, self._next)

    def _codes(self, found: Combinations) -> np.ndarray:
        columns = [Vector(Type.INT, found.at(k)) for k in range(len(self._query.sources))]
        return self._numbers.encode(columns, len(found))
