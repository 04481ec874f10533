"""Feeds: the changes of select-project-join queries' rows in a commit, as a `Delta` for operators.

A feed reads the blocks of all queries of a template, which run hidden, or one query by its name. Its rows begin with the seat of
their query, and are derived from the row stores, as answers are (`eddy/reading/stream_reader.py`): it owns nothing but the
numbers of rows.

    sends_ends = False    + carry their scheduled ends and no - comes: the reading operator finds the ends itself
    sends_ends = True     every end comes as -: rows end unscheduled (a row count, a retraction, a table change), or
                          negative tuples were asked for

Rows of all seats are in one order of (time, rank); of one event those of different seats stand in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.lives.ranks import Ranks
from eddy.matching.seated_rows import Seated, SeatedRows
from eddy.query import Query
from eddy.streams.source import Source
from filters.expressions.evaluate import evaluate
from filters.values.vector import Array, Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from stems.frame import PageFrame, condition_rows
from stems.row_store import Page
from windows.delta import SCHEDULED, Delta, Minus, Plus, concatenated, no_minus
from windows.operators.seats import Seats
from windows.state.values import ValueCodes


class Feed(ABC):
    """The rows of queries for operators, commit by commit."""

    types: tuple[Type, ...]
    #: the streams and tables that it reads
    sources: list[Source]
    sends_ends: bool
    #: those of the template; None: a query that is read by name, on the only seat
    seats: Seats | None
    #: output values that could not be computed
    errors: int = 0
    #: how many seats have a row, of those in the last commit that brought any; None: none came yet
    seats_per_row: float | None = None

    @abstractmethod
    def add(self, seat: int, query: Query) -> None:
        """Give the rows of a query too, from its start on."""

    @abstractmethod
    def remove(self, seat: int) -> None:
        """Give the rows of a query no more."""

    @abstractmethod
    def delta(self, record: LoggedCommit, ranks: Ranks) -> Delta:
        """The changes of the rows in a commit that was just logged."""

    @abstractmethod
    def snapshot(self, record: LoggedCommit, seats: Array | None = None) -> Delta:
        """All live rows after a commit, with their own starts, rank 0; none for a stream.

        `seats` are those that are opened; None: the rows of all, only to look at them.
        """

    def sweep(self, dead: Array) -> None:  # noqa: B027 - most keep nothing of a row
        """Forget the rows of the seats marked in `dead`."""

    def fail(self, seats: Array, failures: Array) -> None:
        """Count output values that could not be computed: so many of each row, on these seats."""
        self.errors += int(failures.sum())
        if self.seats is not None:
            self.seats.fail(seats, failures)


class StreamFeed(Feed):
    """A feed of queries over one stream whose rows end by the clock, or never."""

    def __init__(self, query: Query, source: Source, sends_ends: bool, seats: Seats | None) -> None:
        """`query` is one of those that it gives, or like them but for its condition."""
        self.types = (Type.INT, *(column.type for column in query.outputs))
        self.sends_ends = sends_ends and query.window.ends
        self.sources = [source]
        self.seats = seats
        self._source = source
        self._window = query.window
        self._columns = [column.expression for column in query.outputs]
        self._queries: dict[int, Query] = {}
        #: the queries by their legs; None if they have changed
        self._seated: SeatedRows | None = None
        #: the number of the next row; where ends are sent, numbers by seat and position, one for each row that has not ended
        self._next = 0
        self._numbers = ValueCodes([Type.INT, Type.INT])

    def add(self, seat: int, query: Query) -> None:
        self._queries[seat], self._seated = query, None

    def remove(self, seat: int) -> None:
        del self._queries[seat]
        self._seated = None

    def delta(self, record: LoggedCommit, ranks: Ranks) -> Delta:
        store, width = self._source.store, self._window.width_us
        first = ranks.first(self._source)
        began = self._begun(first, store.end, ranks, None, True)
        if first < store.end:
            self.seats_per_row = len(began) / (store.end - first)
        if not self.sends_ends:
            return Delta(began, no_minus())
        return Delta(began, self._ended(store.first_after(record.before - width), store.first_after(record.after - width)))

    def snapshot(self, record: LoggedCommit, seats: Array | None = None) -> Delta:
        window, store, end = self._window, self._source.store, self._source.end_at(record.seq)
        if window.is_stream:
            first = 0 if window.is_timed else end
        else:
            first = store.first_after(record.after - window.width_us) if window.ends else 0
        found = self._begun(first, end, None, seats, seats is not None)
        if seats is None and self.sends_ends:
            # its rows have their numbers already: this was only a look at them
            self._numbers.release(found.ids)
        return Delta(found, no_minus())

    def sweep(self, dead: Array) -> None:
        codes = self._numbers.live()
        self._numbers.release(codes[dead[self._numbers.column(0, codes).values]])

    def _seated_rows(self, first: int, last: int, chosen: Array | None) -> Iterator[Seated]:
        """The rows first..last that some query has, with their seats."""
        if self._seated is None:
            legs = [(seat, query.leg, query.born) for seat, query in sorted(self._queries.items())]
            placed = [(seat, leg.slot, born) for seat, leg, born in legs if leg is not None and leg.slot is not None]
            self._seated = SeatedRows(self._source, *zip(*placed)) if placed else SeatedRows(self._source, (), (), ())
        seated = self._seated if chosen is None else self._seated.taken(chosen)
        return seated.rows(first, last)

    def _found(self, first: int, last: int, chosen: Array | None) -> Iterator[tuple[Page, Array, Array | None, Array]]:
        """Pages, offsets of the rows that some query has and that were in its window, and each (place among them, seat)."""
        for rows, places, seats in self._seated_rows(first, last, chosen):
            for page, at, stop in self._source.store.slices(int(rows[0]), int(rows[-1]) + 1) if len(rows) else ():
                low, high = 0, len(rows)
                if stop - at <= rows[-1] - rows[0]:
                    low, high = np.searchsorted(rows, [page.base + at, page.base + stop]).tolist()
                offsets, place, seat = rows[low:high] - page.base, places, seats[low:high]
                if places is not None:
                    first_pair, last_pair = np.searchsorted(places, [low, high]).tolist()
                    place, seat = places[first_pair:last_pair] - low, seats[first_pair:last_pair]
                if self._window.ends and page.starts is not None:
                    starts, ends = page.elements(offsets, self._window.width_us)
                    alive = starts < ends
                    seat = seat[alive] if place is None else seat[alive[place]]
                    place = None if place is None else (np.cumsum(alive) - 1)[place[alive[place]]]
                    offsets = offsets[alive]
                if len(offsets):
                    yield page, offsets, place, seat

    def _begun(self, first: int, last: int, ranks: Ranks | None, chosen: Array | None, counts: bool) -> Plus:
        parts, window = [], self._window
        for page, offsets, places, seats in self._found(first, last, chosen):
            frame = PageFrame(page, self._source.schema, self._source.dictionaries, offsets)
            columns = [evaluate(expression, frame) for expression in self._columns]
            if frame.failures is not None and counts:
                self.fail(seats, frame.failures if places is None else frame.failures[places])
            starts, ends = page.elements(offsets, window.width_us)
            known = ends if window.ends else np.full(len(offsets), FOREVER)
            positions = offsets + page.base
            rank = np.zeros(len(offsets), np.int64) if ranks is None else ranks.at(self._source, positions)
            # rows of a stream that a query makes are timed by their change, those that a window holds by their time
            by_change = window.is_stream and not window.is_timed
            effective = None if page.starts is None or by_change else page.times[offsets]
            if places is not None:
                columns = [column.take(places) for column in columns]
                positions, starts, known, rank = positions[places], starts[places], known[places], rank[places]
                effective = None if effective is None else effective[places]
            ids = self._number(positions, seats)
            parts.append(Delta(Plus(ids, starts, rank, known, [Vector(Type.INT, seats), *columns], effective), no_minus()))
        return concatenated(self.types, parts).plus

    def _ended(self, first: int, last: int) -> Minus:
        none = np.zeros(0, np.int64)
        ids, times = [none], [none]
        for page, offsets, places, seats in self._found(first, last, None):
            positions, ends = offsets + page.base, page.elements(offsets, self._window.width_us).ends
            ids.append(self._codes(positions if places is None else positions[places], seats))
            times.append(ends if places is None else ends[places])
        found = np.concatenate(ids)
        # the reference of the row that ended, and the one of having looked
        self._numbers.release(found)
        self._numbers.release(found)
        return Minus(found, np.concatenate(times), np.full(len(found), SCHEDULED))

    def _number(self, positions: Array, seats: Array) -> Array:
        if self.sends_ends:
            return self._codes(positions, seats)
        first, self._next = self._next, self._next + len(positions)
        return np.arange(first, self._next)

    def _codes(self, positions: Array, seats: Array) -> Array:
        return self._numbers.encode([Vector(Type.INT, seats), Vector(Type.INT, positions)], len(positions))


class NamedFeed(StreamFeed):
    """A feed of one query over a stream, read by its name."""

    def __init__(self, query: Query, source: Source) -> None:
        super().__init__(query, source, False, None)
        self.add(0, query)

    def _seated_rows(self, first: int, last: int, chosen: Array | None) -> Iterator[Seated]:
        (query,) = self._queries.values()
        source, run = self._source, query.runs[-1]
        for page, at, stop in source.store.slices(max(first, run.born), last):
            mask = condition_rows(query.plan.condition, source.store, page, at, stop, source.dictionaries, run.modules)
            rows = np.flatnonzero(mask) + page.base + at
            yield rows, None, np.zeros(len(rows), np.int64)
