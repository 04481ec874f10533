"""The reader of a query with tables among its inputs: its answer, and its changes in a logged commit.

Streams are read as in `eddy/reading/join_reader.py`. Live tables (`eddy/joins/table_group.py`) are read as they were after a
commit:

    answer             versions that are open
    + of a commit      at least one row or live version came in it; every live version counts after it
    - of a commit      a row left its window, the live versions counting after it; or a live version ended,
                       all of them counting before it
    opening commit     what counts after it is +; of a query over tables alone, its submit is one

Which versions of frozen tables a combination may have does not depend on the commit that is read.
A table change takes effect at the clock of the timeline, which it does not move, so a version needs no times: a result that
begins with a stream's row begins when that does, and one that a table change begins or ends does so at the clock.

Without a window the query is a stream: + only, and its answer is its newest results by (row, versions in the order of FROM).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.joins.table_group import Counting
from eddy.joins.table_query import TableQuery
from eddy.joins.walk import PART_ROWS, Combinations, Reach
from eddy.lives.early_ends import CommitPoint
from eddy.lives.ranks import Ranks
from eddy.reading.join_reader import JoinReader, Span
from eddy.reading.stream_reader import NEWEST
from eddy.streams.timeline import effect_time
from lineage.elements import BEGINNING, FOREVER, Elements
from stems.commit_spans import OPEN

#: Matches, and when each takes effect.
Found = tuple[Combinations, np.ndarray]


_NOW = Counting(OPEN - 1)


class TableReader(JoinReader):
    """Reads one query over tables, with streams or alone."""

    def __init__(self, query: TableQuery) -> None:
        super().__init__(query)
        self._group = query.table_group
        self._streams = query.table_group.stream_inputs
        self._live = query.table_group.live
        self._is_stream = query.is_stream
        #: by input that is a table, whether each version held satisfies its own condition
        self._satisfied: dict[int, np.ndarray] = {}

    # ---- rows of an input

    def _span(self, k: int, at: CommitPoint, end: int) -> Span:
        """The positions of a stream's rows from the first live one, or of all versions of a table, up to `end`."""
        if k in self._streams and not self._is_stream:
            return self._alive(k, at, end)
        low = self._sources[k].store.watermark
        if k in self._streams:
            low = max(low, self._run.births[k])
        return min(low, end), end

    def _spans(self, at: list[CommitPoint], later: list[CommitPoint]) -> list[Span]:
        """By input, the positions that could count at one point, up to the end at a later one."""
        return [self._span(k, at[k], later[k].taken) for k in range(len(self._sources))]

    def _satisfying(self, k: int, span: Span, at: CommitPoint) -> np.ndarray:
        if k in self._streams:
            return super()._satisfying(k, span, at)
        store = self._sources[k].store
        if k not in self._satisfied:
            self._satisfied[k] = super()._satisfying(k, (store.watermark, store.end), at)
        return self._satisfied[k][span[0] - store.watermark : span[1] - store.watermark]

    def _walk(
        self, first: int, spans: list[Span], at: list[CommitPoint], counting: Counting, leaving: CommitPoint | None = None
    ) -> Iterator[Combinations]:
        """The combinations of rows within their spans that had not ended, starting from input `first`; with `leaving`, only of
        rows of that input that had ended at that later point."""
        if any(low >= end for low, end in spans):
            return
        masks = [self._satisfying(k, span, at[k]) for k, span in enumerate(spans)]
        if leaving is not None:
            masks[first] = self._rows_of[first].keep_leaving(masks[first], spans[first][0], leaving)

        def keep(found: Combinations, added: int) -> Combinations:
            counts = masks[added][found.at(added) - spans[added][0]]
            if not counts.all():
                found = found.take(np.flatnonzero(counts))
            return self._group.as_it_counts(found, added, counting._replace(opened=self._run.after))

        walker = self._group.walker
        reach = [Reach(*span) for span in spans]
        yield from walker.walk(first, reach[first], walker.order(first), reach, keep, part_rows=PART_ROWS)

    def _lives(self, found: Combinations, at: list[CommitPoint]) -> tuple[list[Elements], Elements]:
        """The lives of stream rows, and of the matches as far as these decide."""
        lives = [self._rows_of[k].lives(found.at(k), at[k]) for k in self._streams]
        starts = np.max([life.starts for life in lives], axis=0)
        ends = np.min([life.ends for life in lives], axis=0)
        return lives, Elements(starts, ends)

    def _all_at(self, parts: Iterator[Combinations], clock: int) -> list[Found]:
        """Matches with one effective time, the clock."""
        return [(part, np.full(len(part), effect_time(clock))) for part in parts]

    # ---- answers

    def _answer(self, at: list[CommitPoint], counting: Counting = _NOW) -> list[Found]:
        if self._is_stream:
            return self._newest()
        spans = self._spans(at, at)
        moving = [*self._streams, *self._live]
        fewest = min(moving, key=lambda k: spans[k][1] - spans[k][0])
        found = self._walk(fewest, spans, at, counting)
        if not self._streams:
            return self._all_at(found, at[0].clock)
        return [(part, self._starts(part, at)) for part in found]

    def alive(self, record: LoggedCommit) -> list[Found]:
        return [] if self._is_stream else self._answer(self.stood(record)[1], Counting(record.seq))

    def _newest(self) -> list[Found]:
        """The newest results of a stream query, searched from the newest rows backwards."""
        (k,) = self._streams
        source = self._sources[k]
        first, last = max(self._run.births[k], source.log.first, source.store.watermark), source.store.end
        parts: list[Combinations] = []
        n_rows = NEWEST
        while last > first and sum(len(part) for part in parts) < NEWEST:
            low = max(first, last - n_rows)
            parts.insert(0, self._in_order(self._with_rows(k, (low, last))))
            last, n_rows = low, 2 * n_rows
        found = self._joined(parts)
        found = found.take(np.arange(len(found))[-NEWEST:])
        return [(found, self._starts(found, self._now(BEGINNING)))]

    def _with_rows(self, k: int, span: Span) -> Iterator[Combinations]:
        """The combinations with rows of a stream without a window, the only input that is not frozen."""
        # nothing ends without a window: any clock will do
        now = self._now(BEGINNING)
        spans = self._spans(now, now)
        spans[k] = span
        return self._walk(k, spans, now, _NOW)

    def _in_order(self, parts: Iterator[Combinations]) -> Combinations:
        """One batch of matches, ordered by stream row, then by versions in the order of FROM."""
        found = self._joined(list(parts))
        others = [k for k in range(len(self._sources)) if k not in self._streams]
        return found.take(np.lexsort([found.at(k) for k in (*self._streams, *others)][::-1]))

    # ---- changes

    def end_ranks(self, found: Combinations, times: np.ndarray, record: LoggedCommit, ranks: Ranks) -> np.ndarray:
        """The rank of the event that ends each match, from its stream rows: a commit with rows changes no table."""
        stood = self.stood(record)[1]
        first = np.full(len(found), FOREVER)
        for k in self._streams:
            np.minimum(first, self._rows_of[k].end_ranks(found.at(k), times, stood[k], ranks), out=first)
        return first

    def begun(self, record: LoggedCommit, by_event: bool = False) -> list[Found]:
        before, after = self.stood(record)
        counting = Counting(record.seq)
        if self._is_stream:
            (k,) = self._streams
            ordered = self._in_order(self._with_rows(k, (max(before[k].taken, self._run.births[k]), after[k].taken)))
            return [(ordered, self._starts(ordered, after))]
        parts: list[Found] = []
        for first in sorted([*self._streams, *self._live]):
            spans = self._spans(before, after)
            for k in range(first + 1):
                low, end = spans[k]
                if k == first:
                    spans[k] = (max(low, before[k].taken), end)
                elif k in self._streams or k in self._live:
                    spans[k] = (min(low, before[k].taken), before[k].taken)
            found = self._walk(first, spans, before, counting)
            if first in self._live:
                parts += self._all_at(found, record.after)
                continue
            for part in found:
                _, lives = self._lives(part, after)
                rows = np.flatnonzero(lives.starts < lives.ends + by_event)
                parts.append((part.take(rows), lives.starts[rows]))
        return parts

    def ended(self, record: LoggedCommit, by_event: bool = False) -> list[Found]:
        """The matches of the query that end in a commit."""
        if self._is_stream:
            return []
        return [*self._ended_by_rows(record, by_event), *self._ended_by_change(record)]

    def _ended_by_rows(self, record: LoggedCommit, by_event: bool) -> Iterator[Found]:
        """Matches with a row that leaves its window in the commit, by the clock or by a newer row."""
        before, after = self.stood(record)
        for n, first in enumerate(self._streams):
            spans = self._spans(before, after)
            low, end = spans[first]
            stays = self._rows_of[first].first_staying(after[first])
            spans[first] = (low, max(low, min(stays, end)))
            for part in self._walk(first, spans, before, Counting(record.seq), after[first]):
                lives, whole = self._lives(part, after)
                mine = (whole.ends == lives[n].ends) & ((whole.starts < whole.ends + by_event) | self.there(part, before))
                for earlier in lives[:n]:
                    mine &= earlier.ends > whole.ends
                rows = np.flatnonzero(mine)
                yield part.take(rows), whole.ends[rows]

    def _ended_by_change(self, record: LoggedCommit) -> Iterator[Found]:
        """Matches with a live version that ends in the commit; found at the first input that has one."""
        before, _ = self.stood(record)
        for first in self._live:
            ended = self._group.versions(first).closed_by(record.seq)
            if len(ended):
                spans = self._spans(before, before)
                spans[first] = int(ended[0]), int(ended[-1]) + 1
                found = self._walk(first, spans, before, Counting(record.seq - 1, record.seq, first))
                yield from self._all_at(found, record.after)
