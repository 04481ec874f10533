"""Tracing joins: why a row is or is not part of a match, by its own condition first, then by its partners, input by input.

A stored row is looked for in all matches of rows that are held. A match counts if its rows were there together since the queries
began that read it (`eddy/inspect/trace_lives.py`). Frozen tables count as they were when the last of the rows came, live
ones as they are now, from when on that was so (`eddy/joins/table_group.py`).

A row that is not pushed is put alone into a source of its own, and probes the others as if it came now. It ends what it would
end: the row of its key, and the oldest of a window that counts rows. In a self-join it stands at one input or at several.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from eddy.inspect.trace_leaves import Leaf, Since
from eddy.inspect.trace_lives import LATEST, clock_after, commits_of, there
from eddy.inspect.trace_rows import rows_like
from eddy.inspect.trace_subject import Subject
from eddy.joins.join_query import JoinQuery
from eddy.joins.probes import input_labels
from eddy.joins.table_group import Counting, TableGroup
from eddy.joins.walk import Combinations, Reach, Walker
from eddy.lives.early_ends import CommitPoint
from eddy.reading.join_reader import JoinReader
from eddy.streams.source import Source
from filters.expressions.evaluate import true_rows
from filters.expressions.expression import user_functions_of
from lineage.elements import BEGINNING
from lineage.numbering import Numbering
from stems.commit_spans import OPEN
from stems.frame import RowsFrame

#: Before anything ended a row: partners are looked for among all that are held.
_ANY = CommitPoint(BEGINNING, 0, 0)


def waits_for(leaf: Leaf, inputs: Sequence[int], subject: Subject, later: Sequence[Since]) -> dict[str, Any] | None:
    """The verdict on a row that waits for partners; None if some of `inputs`, whose conditions it satisfies, has a match with
    it."""
    waiting = None
    for k in inputs:
        for places in _places(inputs, k) if subject.position is None else [(k,)]:
            found = _search(leaf, k, places, subject, later)
            if found is None:
                return None
            waiting = waiting or found
    return waiting


def _places(inputs: Sequence[int], k: int) -> list[tuple[int, ...]]:
    """The sets of inputs at which an unstored row may stand at once: input k, with any later ones."""
    later = [number for number in inputs if number > k]
    return [(k, *more) for n in range(len(later) + 1) for more in combinations(later, n)]


def _search(
    leaf: Leaf, k: int, places: tuple[int, ...], subject: Subject, later: Sequence[Since]
) -> dict[str, Any] | None:  # fmt: skip
    """Walk from the row at input k; an unstored row stands at all of `places`."""
    query, join = leaf.query, leaf.join
    assert isinstance(query, JoinQuery) and join is not None, "a leaf of several inputs"
    given = places if subject.position is None else ()
    scratch = _scratch(subject) if given else None
    sources = [scratch if scratch is not None and number in given else source for number, source in enumerate(query.sources)]
    reader = _Partners(leaf, query, k, given, subject, later)
    walker = Walker(join, sources)
    try:
        walker.recall([0 if number in given else LATEST for number in range(len(sources))])
        order = walker.order(k)
        reach = [Reach(low, max(low, source.store.end)) for low, source in zip(reader.lows, sources)]
        rows = Reach(0, 1) if subject.position is None else Reach(subject.position, subject.position + 1)
        for found in walker.walk(k, rows, order, reach, reader.keep_partners):
            if reader.counts(found):
                return None
    finally:
        walker.release()
    missing = next((added for added in order if added not in reader.reached), None)
    labels = input_labels(query.sources)
    if missing is None:
        return {"partner": None, "reason": "no partners whose lives overlap"}
    return {"partner": labels[missing], "reason": f"no row of {labels[missing]} {reader.say(missing)} joins what is there"}


def _scratch(subject: Subject) -> Source:
    """A source that holds the subject's row alone, as if it came now."""
    source = subject.source
    scratch = Source(source.name, source.schema, source.time_column, source.timeline, 0, False, Numbering())
    checked = scratch.ingestor.check([dict(subject.given)])
    scratch.ingestor.commit(checked)
    scratch.store.room()
    scratch.store.append(checked.cells, checked.nulls, 0, 1, np.array([subject.time]), source.timeline.now, 0)
    return scratch


class _Partners(JoinReader):
    """Judges partners of a row at input k; `given`: the inputs at which an unstored row stands."""

    def __init__(
        self, leaf: Leaf, query: JoinQuery, k: int, given: tuple[int, ...], subject: Subject, later: Sequence[Since]
    ) -> None:  # fmt: skip
        super().__init__(query)
        self._leaf = leaf
        self._k = k
        self._given = given
        self._subject = subject
        self._later = later
        self._tables = query.group if isinstance(query.group, TableGroup) else None
        #: inputs whose rows have lives; none if the query is a stream, for then each row counts as it comes
        self._living = list(range(len(query.sources))) if self._tables is None else self._tables.stream_inputs
        if query.is_stream:
            self._living = []
        self.lows = [
            0 if number in given else max(born, source.store.watermark)
            for number, (source, born) in enumerate(zip(query.sources, self._run.births))
        ]
        #: inputs for which some combination has a row
        self.reached: set[int] = set()
        self._masks: dict[int, np.ndarray] = {}

    def keep_partners(self, found: Combinations, added: int) -> Combinations:
        """The combinations whose added partner satisfies its own conditions."""
        if added != self._k and added not in self._given:
            mask = self._masks.get(added)
            if mask is None:
                end = self._sources[added].store.end
                mask = self._masks[added] = self._own(added, min(self.lows[added], end), end)
            found = found.take(np.flatnonzero(mask[found.at(added) - self.lows[added]]))
        found = self._as_it_counts(found, added)
        if len(found):
            self.reached.add(added)
        return found

    def _own(self, k: int, low: int, end: int) -> np.ndarray:
        """For each position from low to end, whether its row satisfies the input's own conditions."""
        join = self._leaf.join
        own = None if join is None or self._leaf.rewritten is None else join.own[k]
        if self._leaf.rewritten is None or (own is not None and user_functions_of(own)):
            return self._satisfying(k, (low, end), _ANY)
        if own is None:
            return np.ones(end - low, np.bool_)
        source = self._sources[k]
        return true_rows(own, RowsFrame([source.gatherer], [source.dictionaries], [np.arange(low, end)]))

    def _as_it_counts(self, found: Combinations, added: int) -> Combinations:
        """The combinations whose table versions count; for a row that comes now, the open versions."""
        tables = self._tables
        if tables is None:
            return found
        if not self._given:
            return tables.as_it_counts(found, added, Counting(OPEN - 1, opened=self._run.after))
        if added in tables.stream_inputs:
            return found
        return found.take(np.flatnonzero(tables.versions(added).counts(found.at(added), OPEN - 1)))

    def say(self, k: int) -> str:
        """A phrase for the rows of an input that could have been partners."""
        if self._tables is None or k in self._tables.stream_inputs:
            return "in its window"
        return "as it was when the row came" if k in self._tables.frozen and not self._given else "as it is"

    def counts(self, found: Combinations) -> bool:
        """Whether the rows of some combination were there together."""
        if not self._living:
            return bool(len(found))
        instants, commits = self._moments(found)
        alive = np.ones(len(found), np.bool_)
        for k in self._living:
            width, ends, positions = self.query.windows[k].width_us, self.query.group.ends[k], found.at(k)
            if k in self._given:
                alive &= min(self._subject.time + width, self._subject.own_end) > instants
                continue
            alive &= there(self._sources[k], width, ends, positions, instants, commits)
            if self._given and self._sources[k] is self._subject.source:
                alive &= ~self._ended_by_subject(k, positions)
        return bool(alive.any())

    def _moments(self, found: Combinations) -> tuple[np.ndarray, np.ndarray]:
        """The moment at which each combination would begin: with its last row, and not before the queries that read it."""
        n = len(found)
        instants = np.full(n, max([one.clock for one in self._later], default=BEGINNING))
        commits = np.full(n, max([one.commit for one in self._later], default=0))
        if self._given:
            return np.full(n, self._subject.start), np.full(n, LATEST)
        for k in self._living:
            source, positions = self._sources[k], found.at(k)
            np.maximum(instants, source.store.elements_at(positions, 0).starts, out=instants)
            np.maximum(commits, commits_of(source, positions), out=commits)
        log = self.query.group.timeline.log
        tables = self._tables
        for k in () if tables is None else tables.live:
            assert tables is not None
            opened = tables.versions(k).opened_at(found.at(k))
            np.maximum(commits, opened, out=commits)
            clocks = {commit: clock_after(log, commit) for commit in set(opened.tolist())}
            np.maximum(instants, np.array([clocks[commit] for commit in opened.tolist()], np.int64), out=instants)
        return instants, commits

    def _ended_by_subject(self, k: int, positions: np.ndarray) -> np.ndarray:
        """For each row of the subject's stream, whether the subject would end it by coming."""
        source, window = self._subject.source, self.query.windows[k]
        ended = np.zeros(len(positions), np.bool_)
        if source.readable.key:
            ended |= self._alike(positions, source.readable.key)
        if window.rows and not window.partition:
            ended |= positions <= source.store.end - window.rows
        elif window.rows:
            last = np.arange(max(self.lows[k], int(positions.min(initial=source.store.end))), source.store.end)
            mine = last[self._alike(last, window.partition)]
            ended |= self._alike(positions, window.partition) & (
                len(mine) - np.searchsorted(mine, positions, "left") >= window.rows
            )
        return ended

    def _alike(self, positions: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """For each stored row, whether it has the subject's values in some columns."""
        source, frame = self._subject.source, self._subject.frame
        rows = RowsFrame([source.gatherer], [source.dictionaries], [positions])
        return rows_like([rows.column(column) for column in columns], [frame.column(column) for column in columns])
