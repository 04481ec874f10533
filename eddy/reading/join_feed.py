"""The feed of queries over several inputs, or over one whose rows end unscheduled (`eddy/reading/stream_feed.py`).

A match begins with the latest of its rows, in the event of that row, and ends with the first that leaves: by the clock, or in the
event of the row that displaces it, or of the retraction or table change that ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.joins.join_group import JoinGroup
from eddy.joins.join_query import JoinQuery, JoinRun
from eddy.joins.seated_matches import SeatedMatches
from eddy.joins.table_query import TableQuery
from eddy.joins.walk import Combinations
from eddy.lives.early_ends import CommitPoint
from eddy.lives.ranks import Ranks
from eddy.matching.seated_rows import SeatedRows
from eddy.query import Query
from eddy.reading.join_reader import JoinReader, Span
from eddy.reading.stream_feed import Feed
from eddy.reading.table_reader import TableReader
from eddy.streams.table_source import TableSource
from filters.expressions.evaluate import evaluate
from filters.values.vector import Array, Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from windows.delta import Delta, Minus, Plus, concatenated, no_minus
from windows.operators.seats import Seats
from windows.patterns import STRICT
from windows.state.values import ValueCodes


class JoinFeed(Feed):
    """A feed of queries over several inputs, or over one whose rows end unscheduled."""

    def __init__(self, query: JoinQuery, sends_ends: bool, seats: Seats | None) -> None:
        """`query` is one of those that it gives, or like them but for its conditions."""
        self.types = (Type.INT, *(column.type for column in query.outputs))
        self.sends_ends = not query.is_stream and (sends_ends or query.update_pattern == STRICT)
        self.sources = query.sources
        self.seats = seats
        self._is_stream = query.is_stream
        self._reads_tables = isinstance(query, TableQuery)
        self._queries: dict[int, JoinQuery] = {}
        #: numbers of the matches alive, by seat and the positions of their rows; of those whose ends are known nobody asks again
        self._numbers = ValueCodes([Type.INT] * (1 + len(query.sources)))
        self._next = 0
        #: seats that have given anything: rows there before are then numbered
        self._running: set[int] = set()
        #: the queries by their groups, whose matches are found together; None if they have changed
        self._groups: list[Together] | None = None

    def add(self, seat: int, query: Query) -> None:
        assert isinstance(query, JoinQuery), "all blocks of a template are of one kind"
        self._queries[seat], self._groups = query, None

    def remove(self, seat: int) -> None:
        del self._queries[seat]
        self._running.discard(seat)
        self._groups = None

    def sweep(self, dead: Array) -> None:
        codes = self._numbers.live()
        self._numbers.release(codes[dead[self._numbers.column(0, codes).values]])

    def delta(self, record: LoggedCommit, ranks: Ranks) -> Delta:
        begun: list[Begun] = []
        ended: list[Ended] = []
        for together in self._together(None):
            reader = together.reader()
            if not self.sends_ends:
                begun += [together.begun(reader, *found) for found in reader.begun(record)]
                continue
            shown = self._shown(reader, reader.begun(record, True), record, ranks)
            begun += [together.begun(reader, matches, starts) for matches, starts, _ in shown]
            ended += [together.ended(*found) for found in self._shown(reader, reader.ended(record, True), record, ranks)]
        self._running.update(self._queries)
        plus = self._plus(begun, ranks, True)
        n_matches = sum(len(one.matches) for one in begun)
        if n_matches:
            self.seats_per_row = len(plus) / n_matches
        return Delta(plus, self._minus(ended) if self.sends_ends else no_minus())

    def snapshot(self, record: LoggedCommit, seats: Array | None = None) -> Delta:
        begun: list[Begun] = []
        for together in self._together(seats) if not self._is_stream else ():
            reader = together.reader()
            begun += [together.begun(reader, *found) for found in reader.alive(record)]
        plus = self._plus(begun, None, seats is not None)
        if self.sends_ends:
            # rows that have their numbers already: this was only a look at them
            looked = np.isin(plus.columns[0].values, sorted(self._running))
            self._numbers.release(plus.ids[looked])
        self._running.update(self._queries if seats is None else seats.tolist())
        return Delta(plus, no_minus())

    def _together(self, chosen: Array | None) -> list[Together]:
        """The queries, or those on some seats, whose matches are found together: those of one group of joins."""
        if chosen is None and self._groups is not None:
            return self._groups
        by_group: dict[JoinGroup, dict[int, JoinQuery]] = {}
        for seat, query in sorted(self._queries.items()):
            if chosen is None or seat in chosen:
                by_group.setdefault(query.group, {})[seat] = query
        found = [Together(queries) for queries in by_group.values()]
        if chosen is None:
            self._groups = found
        return found

    def _shown(
        self, reader: JoinReader, found: Iterable[tuple[Combinations, np.ndarray]], record: LoggedCommit, ranks: Ranks
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

    def _plus(self, begun: list[Begun], ranks: Ranks | None, counts: bool) -> Plus:
        parts = []
        orders = []
        for reader, matches, starts, places, seats in begun:
            frame = reader.query.group.walker.frame(matches)
            columns = [evaluate(column.expression, frame) for column in reader.query.outputs]
            if frame.failures is not None and counts:
                self.fail(seats, frame.failures if places is None else frame.failures[places])
            known = not self.sends_ends and not self._is_stream
            ends = reader.scheduled(matches) if known else np.full(len(matches), FOREVER)
            rank, effective, order = self._ranks(matches, ranks), self._effective(matches), self._order(matches)
            if places is not None:
                matches, columns = matches.take(places), [column.take(places) for column in columns]
                starts, ends, rank, order = starts[places], ends[places], rank[places], order[:, places]
                effective = None if effective is None else effective[places]
            columns = [Vector(Type.INT, seats), *columns]
            parts.append(Delta(Plus(self._number(seats, matches), starts, rank, ends, columns, effective), no_minus()))
            orders.append(order)
        plus = concatenated(self.types, parts).plus
        if len(plus) < 2:
            return plus
        return plus.take(np.lexsort((*np.concatenate(orders, axis=1)[::-1], plus.ranks, plus.times)))

    def _order(self, found: Combinations) -> np.ndarray:
        """The order of matches of one event: by the row numbers of their rows.

        Rows from before the query may all begin with it: rows of one stream are then ordered by their own times, as they will
        end.
        """
        numbers = [found.at(k) for k in range(len(self.sources))]
        (stream, *others) = [k for k, source in enumerate(self.sources) if not isinstance(source, TableSource)] or [-1]
        if stream < 0 or others:
            return np.stack(numbers)
        return np.stack([self.sources[stream].store.elements_at(numbers[stream], 0).ends, *numbers])

    def _ranks(self, found: Combinations, ranks: Ranks | None) -> np.ndarray:
        """The rank of each match's beginning: that of its last row."""
        latest = np.zeros(len(found), np.int64)
        if ranks is not None:
            for k, source in enumerate(self.sources):
                np.maximum(latest, ranks.at(source, found.at(k)), out=latest)
        return latest

    def _effective(self, found: Combinations) -> np.ndarray | None:
        """The times by which a window holds the rows of one stream; None where they follow from starts."""
        if self._is_stream or len(self.sources) > 1 or self._reads_tables:
            return None
        return self.sources[0].store.elements_at(found.at(0), 0).ends

    def _minus(self, ended: list[Ended]) -> Minus:
        none = np.zeros(0, np.int64)
        ids = np.concatenate([none, *(self._codes(one.seats, one.matches) for one in ended)])
        # the reference of the row that ended, and the one of having looked
        self._numbers.release(ids)
        self._numbers.release(ids)
        times = np.concatenate([none, *(one.times for one in ended)])
        places = np.concatenate([none, *(one.ranks for one in ended)])
        return Minus(ids, times, places).take(np.lexsort((places, times)))

    def _number(self, seats: Array, found: Combinations) -> np.ndarray:
        if self.sends_ends:
            return self._codes(seats, found)
        first, self._next = self._next, self._next + len(found)
        return np.arange(first, self._next)

    def _codes(self, seats: Array, found: Combinations) -> np.ndarray:
        columns = [Vector(Type.INT, numbers) for numbers in (seats, *(found.at(k) for k in range(len(self.sources))))]
        return self._numbers.encode(columns, len(found))


class WideReader(JoinReader):
    """Reads the matches of several queries of one group of joins: of rows that any of them has, since the first of them."""

    def __init__(self, queries: Sequence[JoinQuery], seated: SeatedMatches) -> None:
        super().__init__(queries[0])
        births = [min(births) for births in zip(*map(_births, queries), strict=True)]
        self._run = replace(self._run, births=tuple(births), after=min(query.runs[-1].after for query in queries))
        self._seated = seated

    def _satisfying(self, k: int, span: Span, at: CommitPoint) -> np.ndarray:
        return self._rows_of[k].keep_alive(self._seated.inputs[k].wanted(*span), span[0], at)


class WideTableReader(WideReader, TableReader):
    """The same where some inputs are tables."""


class Together:
    """Queries of one group of joins, by seat."""

    def __init__(self, queries: dict[int, JoinQuery]) -> None:
        self._queries = list(queries.values())
        #: of a query alone
        self._seat = next(iter(queries)) if len(queries) == 1 else None
        placed = {seat: query for seat, query in queries.items() if all(leg.slot is not None for leg in query.legs)}
        self._seated = SeatedMatches([
            SeatedRows(
                source, list(placed), [query.legs[k].slot or 0 for query in placed.values()],
                [_births(query)[k] for query in placed.values()],
            )  # fmt: skip
            for k, source in enumerate(self._queries[0].sources)
        ])  # fmt: skip

    def reader(self) -> JoinReader:
        first = self._queries[0]
        if self._seat is not None:
            return TableReader(first) if isinstance(first, TableQuery) else JoinReader(first)
        return (WideTableReader if isinstance(first, TableQuery) else WideReader)(self._queries, self._seated)

    def begun(self, reader: JoinReader, matches: Combinations, starts: Array) -> Begun:
        if self._seat is not None:
            return Begun(reader, matches, starts, None, np.full(len(matches), self._seat))
        rows, places, seats = self._seated.of(matches)
        return Begun(reader, matches.take(rows), starts[rows], places, seats)

    def ended(self, matches: Combinations, times: Array, ranks: Array) -> Ended:
        if self._seat is not None:
            return Ended(matches, times, ranks, np.full(len(matches), self._seat))
        rows, places, seats = self._seated.of(matches)
        rows = rows if places is None else rows[places]
        return Ended(matches.take(rows), times[rows], ranks[rows], seats)


def _births(query: JoinQuery) -> tuple[int, ...]:
    run = query.runs[-1]
    assert isinstance(run, JoinRun)
    return run.births


class Begun(NamedTuple):
    """Matches that begin and their starts, and of each (match, seat) the place of the match among them; None: each has one."""

    reader: JoinReader
    matches: Combinations
    starts: Array
    places: Array | None
    seats: Array


class Ended(NamedTuple):
    """Matches that end, with the times and ranks of their ends, and their seats."""

    matches: Combinations
    times: Array
    ranks: Array
    seats: Array
