"""Reading one query: the rows of its answer, and its changes in a logged commit.

Everything is derived from the row store (see `eddy/base/result_log.py`): which positions matter follows from times, which of them
satisfy the query from stored cells and outcomes, the output columns from the stored cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eddy.base.result_log import Record
from eddy.query import Kept, Query
from eddy.streams.source import Source
from filters.expressions.evaluate import evaluate
from filters.values.vector import Frame, ListFrame, Vector
from lineage.schema import Type
from stems.frame import PageFrame, condition_rows
from stems.row_store import Page

#: Results that the answer of a stream query shows.
NEWEST = 1000


@dataclass(slots=True)
class Results:
    """Output rows, in order of time: vectors of the output columns, when each takes effect, and their sign, one for all or each
    its own."""

    columns: list[Vector]
    times: np.ndarray
    sign: int | np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: np.ndarray | slice) -> Results:
        sign = self.sign if isinstance(self.sign, int) else self.sign[rows]
        return Results([column.take(rows) for column in self.columns], self.times[rows], sign)

    @property
    def signs(self) -> np.ndarray:
        """+1 or -1 for each row."""
        return np.full(len(self), self.sign, np.int8) if isinstance(self.sign, int) else self.sign.astype(np.int8)

    def by_sign(self) -> list[tuple[int, Results]]:
        """The rows of either sign, - before +, as far as there are any."""
        if isinstance(self.sign, int):
            return [(self.sign, self)] if len(self) else []
        parts = [(sign, np.flatnonzero(self.sign == sign)) for sign in (-1, 1)]
        return [
            (sign, Results([column.take(rows) for column in self.columns], self.times[rows], sign))
            for sign, rows in parts
            if len(rows)
        ]


class Reader:
    """Reads one query over its source."""

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
        """The first position alive in the query's window at a clock, of the rows before `end`."""
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
        """Times of changes: what a query sees from before it was opened joins when it is."""
        opened = self._run.opened_us
        return times if opened is None or sign < 0 else np.maximum(times, opened)

    def _join(self, parts: list[Results], sign: int) -> Results:
        if len(parts) == 1:
            return parts[0]
        if not parts:
            empty = ListFrame([Vector.constant(column.type, None, 0) for column in self.source.schema.columns], 0)
            return Results(self.project(empty), np.zeros(0, np.int64), sign)
        columns = [concatenate([part.columns[i] for part in parts]) for i in range(len(parts[0].columns))]
        return Results(columns, np.concatenate([part.times for part in parts]), sign)

    # ---- answers

    def answer(self, clock: int) -> Results:
        """The answer now: what is alive, or the newest results of a stream."""
        query, end = self.query, self.source.store.end
        if query.kept is not None:
            kept = query.kept
            return Results(self.project(kept.frame()), kept.starts, 1)
        if not self.window.is_stream:
            return self.results(self.oldest_alive(clock, end), end, 1)
        return self.results(self._newest(end), end, 1)

    def _newest(self, end: int) -> int:
        """The position from which a stream query has its newest results."""
        first = max(self._run.born, self.source.logged_from, self.source.store.watermark)
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
        vectors = [
            concatenate(parts) if parts else Vector.constant(column.type, None, 0)
            for parts, column in zip(columns, self.source.schema.columns, strict=True)
        ]
        return Kept(vectors, times, np.concatenate(numbers), len(times))

    # ---- changes

    def changes(self, record: Record) -> list[Results]:
        """The net changes of a commit: - first, then +, each in order of time; or that for each instant of it."""
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


def net(minus: Results | None, plus: Results) -> list[Results]:
    """The changes of a commit, - before +, without equal values: of each, the - with the latest ends and the + with the latest
    starts remain.
    """
    if minus is not None and len(minus) and len(plus):
        minus, plus = _cancel(minus, plus)
    return [part for part in (minus, plus) if part is not None and len(part)]


def net_by_instant(minus: Results | None, plus: Results) -> list[Results]:
    """The same for each distinct instant of the commit alone, in order of time: what lives for a while inside it is shown."""
    # with the time as a value among the others, only changes of one instant cancel
    parts = net(None if minus is None else _stamped(minus), _stamped(plus))
    if not parts:
        return []
    times, signs = np.concatenate([part.times for part in parts]), np.concatenate([part.signs for part in parts])
    columns = [concatenate([part.columns[i] for part in parts]) for i in range(1, len(parts[0].columns))]
    return [Results(columns, times, signs).take(np.lexsort((signs, times)))]


def _stamped(results: Results) -> Results:
    return Results([Vector(Type.TIMESTAMP, results.times), *results.columns], results.times, results.sign)


#: How the changes of a commit are netted, by the `emit` of a query (semantics 12).
NETTING = {"commit": net, "event": net_by_instant}


def _cancel(minus: Results, plus: Results) -> tuple[Results, Results]:
    minus_keys, plus_keys = keys(minus.columns), keys(plus.columns)
    both = Counter(minus_keys) & Counter(plus_keys)
    if not both:
        return minus, plus

    def remaining(results: Results, found: list[tuple[Any, ...]]) -> Results:
        cancel = both.copy()
        rows = []
        # the earliest go first: rows are in order of time
        for row, key in enumerate(found):
            if cancel.get(key, 0):
                cancel[key] -= 1
            else:
                rows.append(row)
        return results.take(np.array(rows, np.int64))

    return remaining(minus, minus_keys), remaining(plus, plus_keys)


def keys(columns: list[Vector]) -> list[tuple[Any, ...]]:
    """Rows as values that are equal exactly when SQL's DISTINCT would find them so: NULL = NULL, NaN = NaN, -0.0 = 0.0."""
    return list(zip(*(_keys(column) for column in columns), strict=True))


def _keys(column: Vector) -> list[Any]:
    if column.type is Type.FLOAT:
        values = np.where(np.isnan(column.values), np.nan, column.values + 0.0)
        cells: list[Any] = [None if value != value else value for value in values.tolist()]
        found = [("nan",) if cell is None else cell for cell in cells]
        nulls = column.null_mask().tolist()
        return [None if null else value for null, value in zip(nulls, found, strict=True)]
    return [column.cell(row) for row in range(len(column))]


def concatenate(vectors: list[Vector]) -> Vector:
    """Vectors of one column end to end; they may have different dictionaries."""
    if len(vectors) == 1:
        return vectors[0]
    nulls = None
    if any(vector.nulls is not None for vector in vectors):
        nulls = np.concatenate([vector.null_mask() for vector in vectors])
    first = vectors[0]
    if first.dictionary is None:
        return Vector(first.type, np.concatenate([vector.values for vector in vectors]), nulls)
    texts: dict[str, int] = {}
    codes = []
    for vector in vectors:
        strings, places = vector.compact()
        codes.append(np.array([texts.setdefault(text, len(texts)) for text in strings], np.int64)[places])
    dictionary = np.empty(len(texts), object)
    dictionary[:] = list(texts)
    return Vector(first.type, np.concatenate(codes), nulls, dictionary)


def to_table(query: Query, results: Results, metadata: dict[str, str]) -> pa.Table:
    """Output rows as an Arrow table."""
    arrays = [column.to_arrow() for column in results.columns]
    names = [column.name for column in query.outputs]
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields, metadata=metadata))
