"""The reader of a query over several inputs: its answer, and its changes in a logged commit.

Like `eddy/reading/stream_reader.py` it derives all from the row stores: a match lives from the latest start of its rows to their
earliest end, so which rows can take part follows from times, and the walker finds the combinations among them.

    answer at T      rows of every input alive at T
    + of a commit    at least one row came in it; found at the first input, in the order of FROM, that has such a row
    - of a commit    the earliest end falls into it; found at the first input whose row ends then
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddy.base.plans import Kept
from eddy.base.result_log import LoggedCommit
from eddy.base.results import NETTING, Results
from eddy.joins.join_query import JoinQuery, JoinRun
from eddy.joins.walk import Combinations, Reach
from eddy.lives.early_ends import CommitPoint
from eddy.lives.ranks import Ranks
from eddy.lives.window_rows import WindowRows
from filters.expressions.evaluate import evaluate
from filters.values.vector import Frame
from lineage.elements import FOREVER, Elements
from stems.frame import condition_rows

Span = tuple[int, int]
#: After every commit there is.
_LATEST = 2**62


class JoinReader:
    """Reads the answer and the changes of one join."""

    def __init__(self, query: JoinQuery) -> None:
        self.query = query
        self._plan = query.join_plan
        self._sources = query.sources
        self._rows_of = [
            WindowRows(source, window.width_us, ends)
            for source, window, ends in zip(query.sources, query.windows, query.group.ends, strict=True)
        ]
        run = query.runs[-1]
        assert isinstance(run, JoinRun)
        self._run = run
        self._net = NETTING[query.emit]
        #: values that could not be computed
        self.errors = 0

    # ---- rows of an input

    def _alive(self, k: int, at: CommitPoint, end: int) -> Span:
        """The positions of an input from the first live row, but not before the query's birth, up to `end`."""
        first = self._rows_of[k].first_alive(at)
        return min(max(first, self._run.births[k]), end), end

    def _satisfying(self, k: int, span: Span, at: CommitPoint) -> np.ndarray:
        """For each position of a span, whether its row satisfies the input's own conditions and had not ended."""
        source = self._sources[k]
        found = np.zeros(span[1] - span[0], np.bool_)
        for page, start, stop in source.store.slices(*span):
            first = page.base + start - span[0]
            found[first : first + stop - start] = condition_rows(
                self._plan.conditions[k], source.store, page, start, stop, source.dictionaries, self._run.modules_of[k]
            )
        return self._rows_of[k].keep_alive(found, span[0], at)

    def _matches(
        self, first: int, spans: list[Span], at: list[CommitPoint], leaving: CommitPoint | None = None
    ) -> Iterator[Combinations]:  # fmt: skip
        """The combinations of rows within the spans of their inputs that had not ended, starting from input `first`; with
        `leaving`, only of rows of that input that had ended at that later point."""
        masks = [self._satisfying(k, span, at[k]) for k, span in enumerate(spans)]
        if leaving is not None:
            masks[first] = self._rows_of[first].keep_leaving(masks[first], spans[first][0], leaving)

        def keep(found: Combinations, added: int) -> Combinations:
            mask = masks[added][found.at(added) - spans[added][0]]
            return found if mask.all() else found.take(np.flatnonzero(mask))

        walker = self.query.group.walker
        reach = [Reach(*span) for span in spans]
        yield from walker.walk(first, reach[first], walker.order(first), reach, keep)

    def _lives(self, found: Combinations, at: list[CommitPoint]) -> tuple[list[Elements], Elements]:
        """The lives of the rows by input, and of the matches, at the given points."""
        lives = []
        for k, (rows, stood) in enumerate(zip(self._rows_of, at, strict=True)):
            lives.append(rows.lives(found.at(k), stood))
        starts = np.max([life.starts for life in lives], axis=0)
        ends = np.min([life.ends for life in lives], axis=0)
        return lives, Elements(starts, ends)

    # ---- outputs

    def project(self, frame: Frame) -> Results:
        columns = [evaluate(column.expression, frame) for column in self.query.outputs]
        self.errors += frame.errors
        return Results(columns, np.zeros(0, np.int64), 1)

    def _results(self, parts: list[tuple[Combinations, np.ndarray]], sign: int) -> Results:
        """Output rows of matches with their times, in order of time."""
        times = np.concatenate([np.zeros(0, np.int64), *(times for _, times in parts)])
        found = self._joined([matches for matches, _ in parts]).take(np.argsort(times, kind="stable"))
        columns = self.project(self.query.group.walker.frame(found)).columns
        return Results(columns, np.sort(times), sign)

    def _joined(self, parts: list[Combinations]) -> Combinations:
        none = np.zeros(0, np.int64)
        inputs = range(len(self._sources))
        return Combinations({k: np.concatenate([none, *(part.at(k) for part in parts)]) for k in inputs}, sum(map(len, parts)))

    # ---- answers

    def _answer(self, at: list[CommitPoint]) -> list[tuple[Combinations, np.ndarray]]:
        """The live matches and their starts, at least the time at which the run was opened."""
        spans = [self._alive(k, stood, stood.taken) for k, stood in enumerate(at)]
        fewest = min(range(len(spans)), key=lambda k: spans[k][1] - spans[k][0])
        return [(found, self._starts(found, at)) for found in self._matches(fewest, spans, at)]

    def _starts(self, found: Combinations, at: list[CommitPoint]) -> np.ndarray:
        starts: np.ndarray = self._lives(found, at)[1].starts
        return starts if self._run.opened_us is None else np.maximum(starts, self._run.opened_us)

    def _answer_now(self, clock: int) -> list[tuple[Combinations, np.ndarray]]:
        return self._answer(self._now(clock))

    def _now(self, clock: int) -> list[CommitPoint]:
        """The state of the inputs now, at that clock."""
        return [CommitPoint(clock, source.store.end, _LATEST) for source in self._sources]

    def answer(self, clock: int) -> Results:
        kept = self.query.kept
        if kept is not None:
            return Results(self.project(kept.frame()).columns, kept.starts, 1)
        return self._results(self._answer_now(clock), 1)

    def keep(self, clock: int) -> Kept:
        """The matches of the answer with all columns of all inputs, to keep over a pause."""
        parts = self._answer_now(clock)
        found = self._joined([matches for matches, _ in parts])
        frame = self.query.group.walker.frame(found)
        n_columns = sum(len(source.schema) for source in self._sources)
        times = np.concatenate([np.zeros(0, np.int64), *(times for _, times in parts)])
        numbers = self.query.group.numbers(found)
        return Kept([frame.column(at) for at in range(n_columns)], times, numbers, len(times))

    # ---- changes

    def changes(self, record: LoggedCommit) -> list[Results]:
        """The net changes of a commit: - first, then +, each in order of time; with `emit="event"` for each instant of it."""
        run = next((run for run in self.query.runs if run.covers(record.seq)), None)
        if run is None:
            return []
        assert isinstance(run, JoinRun)
        self._run = run
        if run.opened_in(record.seq):
            return self._net(run.taken_back, self._results(self.alive(record), 1))
        return self._net(self._results(self.ended(record), -1), self._results(self.begun(record), 1))

    def alive(self, record: LoggedCommit) -> list[tuple[Combinations, np.ndarray]]:
        """The live matches after a commit and their starts, at least the time at which the run was opened."""
        return self._answer(self.stood(record)[1])

    def scheduled(self, found: Combinations) -> np.ndarray:
        """The scheduled ends of matches."""
        ends: np.ndarray = np.min([rows.scheduled(found.at(k)) for k, rows in enumerate(self._rows_of)], axis=0)
        return ends

    def lives(self, found: Combinations, record: LoggedCommit) -> Elements:
        """The lives of matches, as known after a commit."""
        return self._lives(found, self.stood(record)[1])[1]

    def end_ranks(self, found: Combinations, times: np.ndarray, record: LoggedCommit, ranks: Ranks) -> np.ndarray:
        """The rank of the event that ends each match: that of the first of its rows to leave."""
        stood = self.stood(record)[1]
        first = np.full(len(found), FOREVER)
        for k, rows in enumerate(self._rows_of):
            np.minimum(first, rows.end_ranks(found.at(k), times, stood[k], ranks), out=first)
        return first

    def begun(self, record: LoggedCommit, by_event: bool = False) -> list[tuple[Combinations, np.ndarray]]:
        """Matches with a row of the commit, and their starts; `by_event`: also those that ended at the same instant."""
        found = []
        before, after = self.stood(record)
        for first in range(len(self._sources)):
            spans = []
            for k in range(len(self._sources)):
                there, end = before[k].taken, after[k].taken
                low, _ = self._alive(k, before[k], end)
                if k < first:
                    spans.append((min(low, there), there))
                elif k == first:
                    spans.append((min(max(low, there), end), end))
                else:
                    spans.append((low, end))
            for matches in self._matches(first, spans, before):
                _, lives = self._lives(matches, after)
                rows = np.flatnonzero(lives.starts < lives.ends + by_event)
                found.append((matches.take(rows), lives.starts[rows]))
        return found

    def stood(self, record: LoggedCommit) -> tuple[list[CommitPoint], list[CommitPoint]]:
        """The state of the inputs before and after a commit."""
        seq = record.seq
        before = [CommitPoint(record.before, source.end_at(seq - 1), seq - 1) for source in self._sources]
        return before, [CommitPoint(record.after, source.end_at(seq), seq) for source in self._sources]

    def ended(self, record: LoggedCommit, by_event: bool = False) -> list[tuple[Combinations, np.ndarray]]:
        """Matches that end in the commit, and their ends; `by_event`: also those that began at the same instant."""
        found = []
        before, after = self.stood(record)
        for first in range(len(self._sources)):
            spans = [self._alive(k, before[k], after[k].taken) for k in range(len(self._sources))]
            low, end = spans[first]
            stays = self._rows_of[first].first_staying(after[first])
            spans[first] = (low, max(low, min(stays, end)))
            for matches in self._matches(first, spans, before, after[first]):
                lives, whole = self._lives(matches, after)
                shown = (whole.starts < whole.ends + by_event) | self.there(matches, before)
                mine = (whole.ends == lives[first].ends) & shown
                for earlier in lives[:first]:
                    mine &= earlier.ends > whole.ends
                rows = np.flatnonzero(mine)
                found.append((matches.take(rows), whole.ends[rows]))
        return found

    def there(self, found: Combinations, at: list[CommitPoint]) -> np.ndarray:
        """Return for each match of a join whether all its rows are older than the commit read.

        Such a match was alive after the previous commit. If it began at the clock and a row displaces it at the same instant, its
        life in event time is empty now, but it was shown.
        """
        there = np.ones(len(found), np.bool_)
        for k, stood in enumerate(at):
            there &= found.at(k) < stood.taken
        return there
