"""Reading one query over several inputs: its answer, and its changes in a logged commit.

Like `eddy/reader.py` it derives all from the row stores: a match lives from the latest start of its rows to their earliest end,
so which rows can take part follows from times, and the walker finds the combinations among them.

    answer at T      rows of every input alive at T
    + of a commit    at least one row came in it; found at the first input, in the order of FROM, that has such a row
    - of a commit    the earliest end falls into it; found at the first input whose row ends then
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eddy.join_query import JoinQuery, JoinRun
from eddy.query import Kept
from eddy.reader import Results, net
from eddy.result_log import Record
from eddy.walk import Combinations, Reach
from filters.evaluate import evaluate
from filters.vector import Frame
from lineage.elements import Elements
from stems.frame import condition_rows

Span = tuple[int, int]


class JoinReader:
    """Reads one join."""

    def __init__(self, query: JoinQuery) -> None:
        self.query = query
        self._plan = query.join_plan
        self._sources = query.sources
        self._widths = [window.width_us for window in query.windows]
        run = query.runs[-1]
        assert isinstance(run, JoinRun)
        self._run = run
        #: values that could not be computed
        self.errors = 0

    # ---- rows of an input

    def _alive(self, k: int, clock: int, end: int) -> Span:
        """The positions of an input from the first alive at a clock up to `end`, none from before the query's birth."""
        first = self._sources[k].store.first_after(clock - self._widths[k])
        return min(max(first, self._run.births[k]), end), end

    def _satisfying(self, k: int, span: Span) -> np.ndarray:
        """For each position of a span, whether its row satisfies the conditions of the input alone."""
        source = self._sources[k]
        found = np.zeros(span[1] - span[0], np.bool_)
        for page, at, stop in source.store.slices(*span):
            first = page.base + at - span[0]
            found[first : first + stop - at] = condition_rows(
                self._plan.conditions[k], source.store, page, at, stop, source.dictionaries, self._run.modules_of[k]
            )
        return found

    def _matches(self, first: int, spans: list[Span]) -> Iterator[Combinations]:
        """The combinations of rows within the spans of their inputs, starting from one input."""
        masks = [self._satisfying(k, span) for k, span in enumerate(spans)]

        def keep(found: Combinations, added: int) -> Combinations:
            mask = masks[added][found.at(added) - spans[added][0]]
            return found if mask.all() else found.take(np.flatnonzero(mask))

        walker = self.query.group.walker
        reach = [Reach(*span) for span in spans]
        yield from walker.walk(first, reach[first], walker.order(first), reach, keep)

    def _lives(self, found: Combinations) -> tuple[list[Elements], Elements]:
        """The lives of the rows by input, and of the matches."""
        lives = []
        for k, (source, width) in enumerate(zip(self._sources, self._widths, strict=True)):
            lives.append(source.store.elements_at(found.at(k), width))
        starts = np.max([life.starts for life in lives], axis=0)
        ends = np.min([life.ends for life in lives], axis=0)
        return lives, Elements(starts, ends)

    # ---- outputs

    def project(self, frame: Frame) -> Results:
        columns = [evaluate(column.expression, frame) for column in self.query.outputs]
        self.errors += frame.errors
        return Results(columns, np.zeros(0, np.int64), 1)

    def _results(self, parts: list[tuple[Combinations, np.ndarray]], sign: int) -> Results:
        """Output rows of matches that take effect at the given times, in order of time."""
        times = np.concatenate([np.zeros(0, np.int64), *(times for _, times in parts)])
        found = self._joined([matches for matches, _ in parts]).take(np.argsort(times, kind="stable"))
        columns = self.project(self.query.group.walker.frame(found)).columns
        return Results(columns, np.sort(times), sign)

    def _joined(self, parts: list[Combinations]) -> Combinations:
        none = np.zeros(0, np.int64)
        positions: list[np.ndarray | None] = []
        for k in range(len(self._sources)):
            positions.append(np.concatenate([none, *(column for part in parts if (column := part.positions[k]) is not None)]))
        return Combinations(positions, sum(map(len, parts)))

    # ---- answers

    def _answer(self, clock: int) -> list[tuple[Combinations, np.ndarray]]:
        """The matches alive at a clock, and their starts."""
        spans = [self._alive(k, clock, source.store.end) for k, source in enumerate(self._sources)]
        fewest = min(range(len(spans)), key=lambda k: spans[k][1] - spans[k][0])
        return [(found, self._lives(found)[1].starts) for found in self._matches(fewest, spans)]

    def answer(self, clock: int) -> Results:
        kept = self.query.kept
        if kept is not None:
            return Results(self.project(kept.frame()).columns, kept.starts, 1)
        return self._results(self._answer(clock), 1)

    def keep(self, clock: int) -> Kept:
        """The matches of the answer with all columns of all inputs, to keep over a pause."""
        parts = self._answer(clock)
        found = self._joined([matches for matches, _ in parts])
        frame = self.query.group.walker.frame(found)
        n_columns = sum(len(source.schema) for source in self._sources)
        times = np.concatenate([np.zeros(0, np.int64), *(times for _, times in parts)])
        numbers = np.column_stack([source.store.numbers_at(found.at(k)) for k, source in enumerate(self._sources)])
        return Kept([frame.column(at) for at in range(n_columns)], times, numbers, len(times))

    # ---- changes

    def changes(self, record: Record) -> list[Results]:
        """The net changes of a commit: - first, then +, each in order of time."""
        run = next((run for run in self.query.runs if run.covers(record.seq)), None)
        if run is None:
            return []
        assert isinstance(run, JoinRun)
        self._run = run
        if run.taken_back is not None and run.after == record.seq - 1:
            kept = run.taken_back
            minus = Results(self.project(kept.frame()).columns, kept.times(), -1)
        else:
            minus = self._results(self._ended(record), -1)
        plus = self._results(self._begun(record), 1)
        if len(minus) and len(plus):
            minus, plus = net(minus, plus)
        return [part for part in (minus, plus) if len(part)]

    def _begun(self, record: Record) -> list[tuple[Combinations, np.ndarray]]:
        """Matches with a row that came in the commit, and their starts."""
        found = []
        for first in range(len(self._sources)):
            spans = []
            for k, other in enumerate(self._sources):
                before, after = other.end_at(record.seq - 1), other.end_at(record.seq)
                low, _ = self._alive(k, record.before, after)
                if k < first:
                    spans.append((min(low, before), before))
                elif k == first:
                    spans.append((min(max(low, before), after), after))
                else:
                    spans.append((low, after))
            for matches in self._matches(first, spans):
                _, lives = self._lives(matches)
                rows = np.flatnonzero(lives.starts < lives.ends)
                found.append((matches.take(rows), lives.starts[rows]))
        return found

    def _ended(self, record: Record) -> list[tuple[Combinations, np.ndarray]]:
        """Matches whose life ends in the commit, and their ends."""
        found = []
        for first in range(len(self._sources)):
            spans = [self._alive(k, record.before, source.end_at(record.seq)) for k, source in enumerate(self._sources)]
            low, end = spans[first]
            leaves = self._sources[first].store.first_after(record.after - self._widths[first])
            spans[first] = (low, max(low, min(leaves, end)))
            for matches in self._matches(first, spans):
                lives, whole = self._lives(matches)
                mine = (whole.ends == lives[first].ends) & (whole.starts < whole.ends)
                for earlier in lives[:first]:
                    mine &= earlier.ends > whole.ends
                rows = np.flatnonzero(mine)
                found.append((matches.take(rows), whole.ends[rows]))
        return found
