"""Running a commit: rows become taken, windows move, results leave.

A call makes one commit, or several when it ends very many rows (`eddy/commit/ends.py`). A commit takes the rows its streams
released, moves the clock of their timeline from `before` to `after`, and delivers what changed to the listeners. It settles:
when it returns, every end up to the clock has been applied.

    1  rows whose life ends in the commit leave: per stream and window class a range of positions   (- parts)
    2  the released rows of all streams are cut, in merged order of (time, order of streams, row), into slices of at
       most `batch_rows` a stream; each is stored and sent through the eddy                         (+ parts)
    3  joins find what that changed (`eddy/joins/joiner.py`)                                        (- and + parts)
    4  the commit is logged; operators take it in (`eddy/operators/templates.py`)                   (- and + parts)
    5  rows that no window and no reader needs are forgotten

A row that comes and goes inside the commit is matched but in no part: queries list the rows of a slice only from the first on
that is alive in their window at the end of the commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eddy.base.checking import changing
from eddy.base.log_bounds import LogBounds
from eddy.base.result_log import LoggedCommit
from eddy.base.results import Results
from eddy.commit.ends import cuts_of, split_at
from eddy.history.retention import Retention, row_bytes_spared
from eddy.joins.join_group import Before, JoinGroup
from eddy.joins.join_query import JoinQuery
from eddy.joins.joiner import Joiner
from eddy.joins.match_rows import MatchRows, NoRows
from eddy.lives.leaving import leaving_batches
from eddy.lives.ranks import Ranks
from eddy.matching.commit import Commit
from eddy.matching.eddy import Eddy
from eddy.matching.leaving_rows import LeavingRows
from eddy.matching.result_rows import ResultRows
from eddy.matching.row_lists import ListBuffers, MatchedRows, PartRows
from eddy.operators.templates import Templates
from eddy.operators.tree_query import TreeQuery
from eddy.query import Query
from eddy.streams.expiry import Left
from eddy.streams.retractions import take_out, with_due
from eddy.streams.source import Source
from eddy.streams.table_source import TableChange, TableSource
from eddy.streams.timeline import Rows, Timeline
from lineage.batch import TupleBatch
from lineage.numbering import Numbering
from stems.own_ends import NOTHING_TAKEN_OUT, TakenOut
from stems.row_store import Page

#: Bits of one batch's matrix at most: bounds the row lists of one part to 128 MB.
_MAX_BITS = 1 << 25
#: Batches of rows that come whose rows may leave in one.
_LEAVING_BATCHES = 4
#: Commits between two looks at what can be forgotten, unless there is a reason to look sooner.
_SETTLE_EVERY = 64

Listener = Callable[[Commit], None]
#: Rows of a stream, matches of a join or rows of a query's answer, and whether they joined answers or left them.
Part = tuple[Source | JoinGroup | Query, PartRows, int]


@dataclass(slots=True)
class _Slice:
    """Rows first..last of a source's released rows."""

    source: Source
    rows: Rows
    first: int
    last: int


def _count_before(rows: Rows, cut: tuple[int, int], k: int) -> int:
    """The number of rows of stream k before the cut (time, stream) in the merged order; at least up to the cut itself."""
    time, stream = cut
    if k == stream:
        return rows.n_rows
    if isinstance(rows.times, int):
        return rows.n_rows if rows.times < time or (rows.times == time and k < stream) else 0
    return int(rows.times.searchsorted(time, "right" if k < stream else "left"))


def _by_sign(parts: list[Results]) -> list[tuple[int, Results]]:
    return [signed for part in parts for signed in part.by_sign()]


class Committer:
    """Runs the commits of an engine."""

    def __init__(self, eddy: Eddy, batch_rows: int, bounds: LogBounds) -> None:
        self.eddy = eddy
        self.joiner = Joiner(eddy.policy)
        self.templates = Templates()
        self.batch_rows = batch_rows
        self.retention = Retention(bounds)
        self.seq = 0
        #: by a number for each registration
        self.listeners: dict[int, Listener] = {}
        self._registrations = Numbering()
        self._buffers = ListBuffers()
        self._part = 0
        #: whether joins or operators may bring further parts of the commit
        self._more = False
        self._failure: BaseException | None = None
        #: nanoseconds spent in commits, listeners included
        self.total_ns = 0

    def __getstate__(self) -> dict[str, object]:
        """All but the listeners, which are functions of the running program."""
        return {**vars(self), "listeners": {}, "_failure": None}

    @changing
    def run(
        self, timeline: Timeline, released: list[tuple[Source, Rows]], clock: int, heartbeat: bool
    ) -> None:  # fmt: skip
        """Run the commits of one call, nearly always one: `released` rows by stream, the clock moves to at least `clock`.

        `heartbeat`: time has passed without rows, so forget what it allows.
        """
        began = time.perf_counter_ns()
        before = timeline.now
        after = before if before > clock else clock
        for _, rows in released:
            newest = rows.time_at(rows.n_rows - 1)
            if newest > after:
                after = newest
        if timeline.keyed:
            released = with_due(timeline, released, after)
        self._failure = None
        leaving = [source for source in timeline.sources if source.placement.keeps_ids] if after > before else None
        cuts = cuts_of(timeline, leaving, released, after, self.templates.timed(timeline)) if leaving else None
        if cuts is not None:
            while (cut := cuts.next(released)) is not None:
                earlier, released = split_at(released, cut)
                self._commit(timeline, earlier, leaving, cut, False)
        self._commit(timeline, released, leaving, after, heartbeat)
        self.total_ns += time.perf_counter_ns() - began
        if self._failure is not None:
            raise self._failure

    def _commit(
        self, timeline: Timeline, released: list[tuple[Source, Rows]], leaving: list[Source] | None, after: int, heartbeat: bool
    ) -> None:  # fmt: skip
        """Run one commit, which moves the clock to `after`; `leaving` are the sources whose windows may move."""
        before = timeline.now
        self.seq += 1
        self._part = 0
        joins = self.joiner.begin(timeline, self.seq) if self.joiner.groups else None
        operating = timeline in self.templates
        self._more = bool(joins) or operating
        if leaving:
            self._expire(leaving, after, any(source.placement.legs for source, _ in released))
        retracted: dict[Source, TakenOut] = {}
        if timeline.keyed:
            released, retracted = take_out(released, before)
        if released:
            self._take(released, before, after)
        for source in timeline.keyed:
            assert source.own_ends is not None
            source.own_ends.settle(self.seq, retracted.get(source, NOTHING_TAKEN_OUT))
        if joins:
            self._join(joins, before, after)
        timeline.now = after
        timeline.log.append(self.seq, before, after)
        for source, _ in released:
            source.log.ends.append(self.seq, source.store.end)
        if operating:
            self._operate(
                timeline,
                LoggedCommit(self.seq, before, after),
                Ranks([(source, source.end_at(self.seq - 1)) for source, _ in released]),
            )
        if self._more:
            self._end_parts()
        if self.retention.crowded(timeline, released) or heartbeat or not self.seq % _SETTLE_EVERY:
            self.retention.trim(timeline, self.seq)

    def spare(self, timeline: Timeline) -> int:
        """A lower bound of the bytes freed by dropping a timeline's log."""
        return self.templates.log_bytes(timeline) + row_bytes_spared(timeline)

    @changing
    def change_table(self, table: TableSource, change: TableChange) -> None:
        """Run a commit that changes a table, on every timeline with a query on it; their clocks stay."""
        began = time.perf_counter_ns()
        self.seq += 1
        self._part, self._failure = 0, None
        joins = self.joiner.begin_change(table, self.seq) if table.readers else []
        rows = table.apply(change, self.seq)
        if rows is not None:
            self._take([(table, rows)], self.seq, self.seq)
        for group, standing in joins:
            self._join([(group, standing)], group.timeline.now, group.timeline.now)
        for timeline in table.readers:
            timeline.log.append(self.seq, timeline.now, timeline.now)
            if timeline in self.templates:
                self._operate(timeline, LoggedCommit(self.seq, timeline.now, timeline.now), Ranks([], changes_table=True))
        self._end_parts()
        settles = not self.seq % _SETTLE_EVERY
        for timeline in table.readers:
            if settles or self.retention.crowded_by(table, timeline.log):
                self.retention.trim(timeline, self.seq)
        if settles and not table.readers:
            table.forget_versions()
        self.total_ns += time.perf_counter_ns() - began
        if self._failure is not None:
            raise self._failure

    # ---- joins

    def _join(self, joins: list[tuple[JoinGroup, Before]], before: int, after: int) -> None:
        """Deliver the matches of a commit that moves the clock from `before` to `after`, and count new ones."""
        deliver = self._deliver_matches if self.listeners else None
        self.joiner.run(joins, before, after, self.batch_rows, self._buffers, deliver)

    def _end_parts(self) -> None:
        """Send an empty last part: the part before did not know that it was the last."""
        self._more = False
        if self._part:
            self._send("", (), NoRows(), 1, True)

    # ---- operators

    def _operate(self, timeline: Timeline, record: LoggedCommit, ranks: Ranks) -> None:
        """Run a commit through the operators of a timeline's queries, and deliver their changes."""
        before = record.seq - 1
        for group, names, rows, sign in self.templates.shared.run(timeline, record, before, bool(self.listeners)):
            self._send(group.name, names, rows, sign, False)
        for template, changes in self.templates.run(timeline, record, ranks):
            for column_names, found, sign in changes.parts() if self.listeners else ():
                self._send(template.name, column_names, found, sign, False)

    def open(self, query: TreeQuery, taken_back: Results | None, left: Sequence[Part]) -> None:
        """Commit the first answer of a query with operators, net of `taken_back`.

        `left`: parts of an earlier text without operators, rows of streams, which net with nothing.
        """
        timeline = query.timeline
        came, parts = query.open(LoggedCommit(self.seq + 1, timeline.now, timeline.now), taken_back)
        shown = [came] if left and len(came) else [] if left else parts
        self.show(query, timeline, [*left, *((query, ResultRows(part, query.id), sign) for sign, part in _by_sign(shown))])

    def show(self, query: Query, timeline: Timeline, parts: Sequence[Part]) -> None:
        """Commit the first answer of a query: the given parts with their signs, and the rows of its tables.

        No rows come and no time passes: no other query changes, so none is looked at.
        """
        began = time.perf_counter_ns()
        now = timeline.now
        self.seq += 1
        self._part, self._failure = 0, None
        joins = self.joiner.begin_opening(query, self.seq) if isinstance(query, JoinQuery) else []
        self._more = bool(joins)
        for k, (of, part, sign) in enumerate(parts):
            self._send(of.name, of.column_names, part, sign, k == len(parts) - 1 and not self._more)
        for source in timeline.keyed:
            assert source.own_ends is not None
            source.own_ends.settle(self.seq, NOTHING_TAKEN_OUT)
        if joins:
            self._join(joins, now, now)
            self._end_parts()
        timeline.log.append(self.seq, now, now)
        if not self.seq % _SETTLE_EVERY:
            self.retention.trim(timeline, self.seq)
        self.total_ns += time.perf_counter_ns() - began
        if self._failure is not None:
            raise self._failure

    # ---- rows that leave

    def _expire(self, sources: list[Source], after: int, more: bool) -> None:
        """Move each window class to its first live row at `after`, and deliver the rows that left."""
        leaving: list[tuple[Source, Left]] = []
        for source in sources:
            left = source.expiry.move(after)
            if left is not None and self.listeners and (listed := left.listed()) is not None:
                leaving.append((source, listed))
        for k, (source, left) in enumerate(leaving):
            final = not more and k == len(leaving) - 1
            for batch in leaving_batches(source, left, self._leaving_rows(source)):
                lineage = self.eddy.match_again(source, batch)
                self._deliver(source, LeavingRows(source, batch, lineage, self._buffers), -1, final and batch.last)

    def _leaving_rows(self, source: Source) -> int:
        """Return the maximum rows in one expiry batch: more than of rows that come, for windows have rows in common."""
        n_lists = max(source.placement.slots.n_words * 64, source.placement.slots.taken + source.placement.dense_outputs.n_more)
        return max(1, min(_LEAVING_BATCHES * self.batch_rows, _MAX_BITS // n_lists))

    # ---- rows that come

    def _take(self, released: list[tuple[Source, Rows]], before: int, after: int) -> None:
        if len(released) == 1:
            source, rows = released[0]
            step = self._slice_rows(source)
            if rows.n_rows <= step:
                self._take_slice(source, rows, 0, rows.n_rows, before, after, True)
                return
            for first in range(0, rows.n_rows, step):
                last = min(first + step, rows.n_rows)
                self._take_slice(source, rows, first, last, before, after, last == rows.n_rows)
            return
        slices = list(self._slices(released))
        final = max((k for k, piece in enumerate(slices) if piece.source.placement.legs), default=-1)
        for k, piece in enumerate(slices):
            self._take_slice(piece.source, piece.rows, piece.first, piece.last, before, after, k == final)

    def _slice_rows(self, source: Source) -> int:
        most = _MAX_BITS // (source.placement.slots.n_words * 64)
        return self.batch_rows if self.batch_rows <= most else max(1, most)

    def _slices(self, released: list[tuple[Source, Rows]]) -> Iterator[_Slice]:
        """Cut the merged order into slices: no slice holds a row older than one in an earlier slice."""
        at = [0] * len(released)
        while True:
            # the next slice ends before the earliest row that would be one too many of its stream
            cut: tuple[int, int] | None = None
            for k, (source, rows) in enumerate(released):
                over = at[k] + self._slice_rows(source)
                if over < rows.n_rows:
                    key = (rows.time_at(over), k)
                    cut = key if cut is None else min(cut, key)
            progress = False
            for k, (source, rows) in enumerate(released):
                stop = min(rows.n_rows, at[k] + self._slice_rows(source))
                if cut is not None and at[k] < rows.n_rows:
                    stop = min(stop, max(at[k], _count_before(rows, cut, k)))
                if stop > at[k]:
                    yield _Slice(source, rows, at[k], stop)
                    at[k] = stop
                    progress = True
            if not progress:
                return

    def _take_slice(self, source: Source, rows: Rows, first: int, last: int, before: int, after: int, final: bool) -> None:
        """Store rows first..last of a source's released rows and match them, page by page."""
        store = source.store
        while first < last:
            room = store.room()
            stop = last if last - first <= room else first + room
            times, numbers = rows.times, rows.numbers
            if not isinstance(times, int):
                times = times[first:stop]
            numbers = numbers + first if isinstance(numbers, int) else numbers[first:stop]
            page, at = store.append(rows.cells, rows.nulls, first, stop, times, before, numbers)
            if source.derived.columns:
                source.derived.build(page, at, at + stop - first)
            if source.stems.users:
                source.stems.build(page, at, at + stop - first)
            if source.row_ends.held:
                source.row_ends.build(page, at, at + stop - first)
            if source.placement.legs or source.placement.held:
                self._match_slice(source, page, at, stop - first, after, final and stop == last)
            first = stop

    def _match_slice(self, source: Source, page: Page, at: int, n_rows: int, after: int, final: bool) -> None:
        """Match newly stored rows; legs whose windows they have already left do not list them."""
        class_first = self._first_alive(source, page, at, n_rows, after) if source.placement.keeps_ids else None
        lineage = self.eddy.match(source, page, TupleBatch(page.cells, page.nulls, at, n_rows))
        if not source.placement.legs:
            return
        rows = MatchedRows(source, page, at, n_rows, lineage, self._buffers, class_first)
        if self.listeners:
            self._deliver(source, rows, 1, final)
        rows.finish()

    def _first_alive(self, source: Source, page: Page, at: int, n_rows: int, after: int) -> np.ndarray | None:
        """By window class, the first row of the slice alive at the end of the commit; None if all are."""
        windows, earliest = source.expiry.windows(), int(page.times[at])
        if not windows or earliest > after - source.expiry.narrowest_us:
            return None
        times = page.times[at : at + n_rows]
        found = None
        for window in windows:
            dead_until = after - window.window.width_us
            if earliest <= dead_until:
                k = int(np.searchsorted(times, dead_until, "right"))
                window.oldest = page.base + at + k
                if found is None:
                    found = np.zeros(source.placement.classes.n_numbers, np.int32)
                found[window.number] = k
        return found

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Deliver to one more listener; returns a function that removes it."""
        number = next(self._registrations)
        self.listeners[number] = listener

        def remove() -> None:
            self.listeners.pop(number, None)

        return remove

    # ---- delivery and upkeep

    def _deliver(self, source: Source, rows: PartRows, sign: int, last: bool) -> None:
        self._send(source.name, source.schema.names, rows, sign, last and not self._more)

    def _deliver_matches(self, group: JoinGroup, rows: MatchRows, sign: int) -> None:
        self._send(group.name, group.column_names, rows, sign, False)

    def _send(self, stream: str, names: Sequence[str], rows: PartRows, sign: int, last: bool) -> None:
        part = Commit(self.seq, stream, names, rows, sign, self._part, last)
        self._part += 1
        for listener in tuple(self.listeners.values()):
            try:
                listener(part)
            except BaseException as error:
                # whatever it is, the commit is finished first: half a commit must not stay behind
                self._failure = self._failure or error
