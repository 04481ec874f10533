"""Why a row is or is not part of a match of a join: its own condition first, then the partners it finds, input by input.

A stored row is looked for in all matches of rows that are held, whose lives overlap. A row that is not pushed is put alone into
a source of its own, and probes the others as if it came now; in a self-join it does not meet itself. Frozen tables count as they
were when the last of the rows came, live ones as they are now (`eddy/table_group.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eddy.early_ends import Standing
from eddy.join_group import input_labels
from eddy.join_query import JoinQuery, JoinRun
from eddy.join_reader import JoinReader
from eddy.source import Source
from eddy.table_group import Counting, TableGroup
from eddy.walk import Combinations, Reach, Walker
from lineage.elements import BEGINNING, Elements
from lineage.numbering import Numbering
from stems.table import OPEN

#: Before anything ended a row: partners are looked for among all that are held.
_ANY = Standing(BEGINNING, 0, 0)


def waits_for(query: JoinQuery, k: int, position: int | None, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """For whom a row of input k waits: a stored one, or the given one; None if it is part of a match.

    The row satisfies the conditions of its input alone.
    """
    run = query.runs[-1]
    assert isinstance(run, JoinRun)
    if position is not None:
        return _search(query, k, query.sources, Reach(position, position + 1), None)
    scratch = _scratch(query.sources[k], row)
    sources = [scratch if number == k else source for number, source in enumerate(query.sources)]
    life = scratch.store.elements_at(np.zeros(1, np.int64), query.windows[k].width_us)
    return _search(query, k, sources, Reach(0, 1), life)


def _scratch(source: Source, row: Mapping[str, Any]) -> Source:
    """A source that holds one row, as if it came now."""
    scratch = Source(source.name, source.schema, source.time_column, source.timeline, 0, False, Numbering())
    checked = scratch.ingestor.check([dict(row)])
    scratch.ingestor.commit(checked)
    now = source.timeline.now
    time = now if source.time_column is None else max(int(checked.cells[source.time_column][0]), source.intake.front)
    scratch.store.room()
    scratch.store.append(checked.cells, checked.nulls, 0, 1, np.array([time]), now, 0)
    return scratch


def _search(query: JoinQuery, k: int, sources: list[Source], rows: Reach, life: Elements | None) -> dict[str, Any] | None:
    """Walk from rows of input k; `life` is theirs if they are not stored."""
    reader = _Partners(query, k, life)
    walker = Walker(query.join_plan.join, sources)
    try:
        order = walker.order(k)
        reach = [Reach(low, max(low, source.store.end)) for low, source in zip(reader.lows, sources)]
        for found in walker.walk(k, rows, order, reach, reader.keep_partners):
            if reader.overlap(found):
                return None
    finally:
        walker.release()
    missing = next((added for added in order if added not in reader.reached), None)
    labels = input_labels(query.sources)
    if missing is None:
        return {"partner": None, "reason": "no partners whose lives overlap"}
    return {"partner": labels[missing], "reason": f"no row of {labels[missing]} {reader.say(missing)} joins what is there"}


class _Partners(JoinReader):
    """Judges partners of a row that stands at input k."""

    def __init__(self, query: JoinQuery, k: int, life: Elements | None) -> None:
        super().__init__(query)
        self._k = k
        self._life = life
        self._tables = query.group if isinstance(query.group, TableGroup) else None
        #: inputs whose rows have lives; none if the query is a stream, for then each row counts as it comes
        self._living = list(range(len(query.sources))) if self._tables is None else self._tables.stream_inputs
        if query.is_stream:
            self._living = []
        self.lows = [
            0 if number == k and life is not None else max(born, source.store.watermark)
            for number, (source, born) in enumerate(zip(query.sources, self._run.births))
        ]
        #: inputs for which some combination has a row
        self.reached: set[int] = set()
        self._masks: dict[int, np.ndarray] = {}

    def keep_partners(self, found: Combinations, added: int) -> Combinations:
        """Partners that satisfy their own conditions; the row itself does."""
        if added != self._k:
            mask = self._masks.get(added)
            if mask is None:
                end = self._sources[added].store.end
                mask = self._masks[added] = self._satisfying(added, (min(self.lows[added], end), end), _ANY)
            found = found.take(np.flatnonzero(mask[found.at(added) - self.lows[added]]))
        found = self._as_it_counts(found, added)
        if len(found):
            self.reached.add(added)
        return found

    def _as_it_counts(self, found: Combinations, added: int) -> Combinations:
        """Combinations whose versions count; for a row that comes now those that are open."""
        tables = self._tables
        if tables is None:
            return found
        if self._life is None:
            return tables.as_it_counts(found, added, Counting(OPEN - 1))
        if added in tables.stream_inputs:
            return found
        return found.take(np.flatnonzero(tables.versions(added).counts(found.at(added), OPEN - 1)))

    def say(self, k: int) -> str:
        """Which rows of an input could have been partners."""
        if self._tables is None or k in self._tables.stream_inputs:
            return "in its window"
        return "as it was when the row came" if k in self._tables.frozen and self._life is None else "as it is"

    def overlap(self, found: Combinations) -> bool:
        """Whether the rows of some combination live at one time."""
        lives = []
        now = self._now(BEGINNING)
        for number in self._living:
            if number == self._k and self._life is not None:
                lives.append(self._life)
            else:
                lives.append(self._rows_of[number].lives(found.at(number), now[number]))
        if not lives:
            return bool(len(found))
        starts, ends = lives[0]
        for life in lives[1:]:
            starts, ends = np.maximum(starts, life.starts), np.minimum(ends, life.ends)
        return bool((starts < ends).any())
