"""The reader of a query over one stream: the rows of its answer, and its changes in a logged commit.

Everything is derived from the row store (see `eddy/base/result_log.py`): which positions matter follows from times, which of them
satisfy the query from stored cells and outcomes, the output columns from the stored cells.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddy.base.plans import Kept
from eddy.base.result_log import LoggedCommit
from eddy.base.results import NETTING, Results, joined_columns
from eddy.query import Query
from eddy.streams.source import Source
from filters.expressions.evaluate import evaluate
from filters.values.vector import Frame, ListFrame, Vector, end_to_end
from stems.frame import PageFrame, condition_rows
from stems.row_store import Page

#: Results that the answer of a stream query shows.
NEWEST = 1000


class StreamReader:
    """Reads the answer and the changes of one query over its source."""

    def __init__(self, query: Query, source: Source) -> None:
        self.query = query
        self.source = source
        self.window = query.window
        self._condition = query.plan.condition
        self._run = query.runs[-1]
        self._net = NETTING[query.emit]
        #: output values that could not be computed
        self.errors = 0

    # ---- positions

    def oldest_alive(self, clock: int, end: int) -> int:
        """The first position in the query's window at a clock, of the rows before `end`."""
        if self.window.is_stream or not self.window.ends:
            return min(self._run.born, end)
        return min(self.source.store.first_after(clock - self.window.width_us), end)

    def _found(self, first: int, last: int) -> Iterator[tuple[Page, np.ndarray]]:
        """Pages and offsets of the rows in first..last that satisfy the query and came after its birth."""
        source = self.source
        for page, at, stop in source.store.slices(max(first, self._run.born), last):
            mask = condition_rows(self._condition, source.store, page, at, stop, source.dictionaries, self._run.modules)
            offsets = np.flatnonzero(mask) + at
            if len(offsets):
                yield page, offsets

    # ---- outputs

    def project(self, frame: Frame) -> list[Vector]:
        columns = [evaluate(column.expression, frame) for column in self.query.outputs]
        self.errors += frame.errors
        return columns

    def results(self, first: int, last: int, sign: int) -> Results:
        """Output rows of the positions first..last that satisfy the query."""
        parts = []
        for page, offsets in self._found(first, last):
            frame = PageFrame(page, self.source.schema, self.source.dictionaries, offsets)
            times = self._since_opened(page.elements(offsets, self.window.width_us).times(sign), sign)
            parts.append(Results(self.project(frame), times, sign))
        return self._join(parts, sign)

    def _since_opened(self, times: np.ndarray, sign: int) -> np.ndarray:
        """Times of changes; a + from before the run was opened takes effect at its opening."""
        opened = self._run.opened_us
        return times if opened is None or sign < 0 else np.maximum(times, opened)

    def _join(self, parts: list[Results], sign: int) -> Results:
        if len(parts) == 1:
            return parts[0]
        if not parts:
            empty = ListFrame([Vector.constant(column.type, None, 0) for column in self.source.schema.columns], 0)
            return Results(self.project(empty), np.zeros(0, np.int64), sign)
        columns = joined_columns([part.columns for part in parts])
        return Results(columns, np.concatenate([part.times for part in parts]), sign)

    # ---- answers

    def answer(self, clock: int) -> Results:
        """The answer now: the live rows, or the newest results of a stream."""
        query, end = self.query, self.source.store.end
        if query.kept is not None:
            kept = query.kept
            return Results(self.project(kept.frame()), kept.starts, 1)
        if not self.window.is_stream:
            return self.results(self.oldest_alive(clock, end), end, 1)
        return self.results(self._newest(end), end, 1)

    def _newest(self, end: int) -> int:
        """The first position of a stream query's newest results."""
        first = max(self._run.born, self.source.log.first, self.source.store.watermark)
        found = 0
        for page, at, stop in reversed(list(self.source.store.slices(first, end))):
            offsets = [offsets for _, offsets in self._found(page.base + at, page.base + stop)]
            if offsets and found + len(offsets[0]) >= NEWEST:
                return page.base + int(offsets[0][len(offsets[0]) - (NEWEST - found)])
            found += len(offsets[0]) if offsets else 0
        return first

    def keep(self, clock: int) -> Kept:
        """The rows of the answer with all columns of the stream, to keep over a pause."""
        end = self.source.store.end
        first = self._newest(end) if self.window.is_stream else self.oldest_alive(clock, end)
        columns: list[list[Vector]] = [[] for _ in self.source.schema.columns]
        starts, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for page, offsets in self._found(first, end):
            frame = PageFrame(page, self.source.schema, self.source.dictionaries, offsets)
            for i, column in enumerate(columns):
                column.append(frame.column(i))
            starts.append(self._since_opened(page.elements(offsets, self.window.width_us).starts, 1))
            numbers.append(page.rows_of(0, page.n_rows)[offsets])
        times = np.concatenate(starts)
        vectors = [end_to_end(column.type, parts) for parts, column in zip(columns, self.source.schema.columns, strict=True)]
        return Kept(vectors, times, np.concatenate(numbers), len(times))

    # ---- changes

    def changes(self, record: LoggedCommit) -> list[Results]:
        """The net changes of a commit: - first, then +, each in order of time; with `emit="event"` for each instant of it."""
        run = next((run for run in self.query.runs if run.covers(record.seq)), None)
        if run is None:
            return []
        self._run = run
        source = self.source
        before, after = source.end_at(record.seq - 1), source.end_at(record.seq)
        if self.window.is_stream:
            return self._net(None, self.results(before, after, 1))
        if run.opened_in(record.seq):
            return self._net(run.taken_back, self.results(self.oldest_alive(record.after, after), after, 1))
        # rows that come and go inside the commit take part in the netting: their ends may be the latest of their value
        first = self.oldest_alive(record.before, after)
        plus = self.results(max(before, first), after, 1)
        minus = self.results(first, self.oldest_alive(record.after, after), -1) if self.window.ends else None
        return self._net(minus, plus)
