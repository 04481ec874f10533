"""Feeds: the changes of a select-project-join query's rows in a commit, as a `Delta` for operators.

The query is a block of a query with operators, which runs hidden, or a query read by its name. A feed's rows are derived from the
row stores, as answers are (`eddy/reading/stream_reader.py`), so it owns nothing but the numbers of matches.

    sends_ends = False    + carry their scheduled ends and no - comes: the reading operator finds the ends itself
    sends_ends = True     every end comes as -: rows end unscheduled (a row count, a retraction, a table change), or
                          negative tuples were asked for

Ids are the positions of a stream's rows, and a number for each match of several inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.lives.ranks import Ranks
from eddy.query import Query
from eddy.streams.source import Source
from filters.expressions.evaluate import evaluate
from lineage.elements import FOREVER
from lineage.schema import Type
from stems.frame import PageFrame, condition_rows
from stems.row_store import Page
from windows.delta import SCHEDULED, Delta, Minus, Plus, concatenated, no_minus

_NOTHING = np.zeros(0, np.int64)


class Feed(ABC):
    """The rows of one query for operators, commit by commit."""

    types: tuple[Type, ...]
    #: the streams and tables that it reads
    sources: list[Source]
    sends_ends: bool
    #: output values that could not be computed
    errors: int = 0

    @abstractmethod
    def delta(self, record: LoggedCommit, ranks: Ranks) -> Delta:
        """The changes of the rows in a commit that was just logged."""

    @abstractmethod
    def snapshot(self, record: LoggedCommit) -> Delta:
        """All live rows after a commit, with their own starts, rank 0; none for a stream."""


class StreamFeed(Feed):
    """A feed of a query over one stream whose rows end by the clock, or never."""

    def __init__(self, query: Query, source: Source, sends_ends: bool) -> None:
        self.types = tuple(column.type for column in query.outputs)
        self.sends_ends = sends_ends and query.window.ends
        self._query = query
        self._source = source
        self.sources = [source]

    def delta(self, record: LoggedCommit, ranks: Ranks) -> Delta:
        store, width = self._source.store, self._query.window.width_us
        began = self._begun(ranks.first(self._source), store.end, ranks)
        if not self.sends_ends:
            return began
        ended = self._ended(store.first_after(record.before - width), store.first_after(record.after - width))
        return Delta(began.plus, ended)

    def snapshot(self, record: LoggedCommit) -> Delta:
        window, store, end = self._query.window, self._source.store, self._source.end_at(record.seq)
        if window.is_stream:
            return self._begun(0 if window.is_timed else end, end, None)
        return self._begun(store.first_after(record.after - window.width_us) if window.ends else 0, end, None)

    def _found(self, first: int, last: int) -> Iterator[tuple[Page, np.ndarray]]:
        """Pages and offsets of the rows in first..last that satisfy the query, came after its birth and were in its window."""
        query, source, run = self._query, self._source, self._query.runs[-1]
        for page, at, stop in source.store.slices(max(first, run.born), last):
            mask = condition_rows(query.plan.condition, source.store, page, at, stop, source.dictionaries, run.modules)
            if query.window.ends and page.starts is not None:
                starts, ends = page.elements(slice(at, stop), query.window.width_us)
                mask &= starts < ends
            offsets = np.flatnonzero(mask) + at
            if len(offsets):
                yield page, offsets

    def _begun(self, first: int, last: int, ranks: Ranks | None) -> Delta:
        parts = []
        window = self._query.window
        for page, offsets in self._found(first, last):
            frame = PageFrame(page, self._source.schema, self._source.dictionaries, offsets)
            columns = [evaluate(column.expression, frame) for column in self._query.outputs]
            self.errors += frame.errors
            starts, ends = page.elements(offsets, window.width_us)
            ids = offsets + page.base
            known = ends if window.ends else np.full(len(ids), FOREVER)
            places = np.zeros(len(ids), np.int64) if ranks is None else ranks.at(self._source, ids)
            # rows of a stream that a query makes are timed by their change, those that a window holds by their time
            by_change = window.is_stream and not window.is_timed
            effective = None if page.starts is None or by_change else page.times[offsets]
            parts.append(Delta(Plus(ids, starts, places, known, columns, effective), no_minus()))
        return concatenated(self.types, parts)

    def _ended(self, first: int, last: int) -> Minus:
        ids, times = [_NOTHING], [_NOTHING]
        for page, offsets in self._found(first, last):
            ids.append(offsets + page.base)
            times.append(page.elements(offsets, self._query.window.width_us).ends)
        found = np.concatenate(ids)
        return Minus(found, np.concatenate(times), np.full(len(found), SCHEDULED))
