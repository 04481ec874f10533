"""Templates: queries that differ in constants and conditions only, as one run of operators.

    seat        the number of a query in its template; rows begin with it (`windows/operators/seats.py`)
    feeds       the blocks of all its queries: each gives the rows of every seat, in one delta
    root        what stands above, once for all of them (`eddy/operators/stage.py`)
    recipient   nets the root's delta by value, the seat among the values; a query's answer is the rows of its seat

A query alone is a template of one. A query that comes opens its seat by its own rows, through operators that run. One that goes
leaves rows behind, which are swept together with those of others once as many queries have gone as are left; then its seat is
free again. So what the operators do for a query does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from eddy.base.log_bounds import LogBounds
from eddy.base.result_log import LoggedCommit
from eddy.base.results import Results
from eddy.base.seat_log import SeatLog
from eddy.operators.core import Core
from eddy.operators.replanning import Built, Replanner
from eddy.operators.seat_rows import SeatChanges
from eddy.operators.stage import CommitStep, FeedStage, OperatorStage, Stage
from eddy.operators.template_key import LiftedPlan
from eddy.reading.stream_feed import Feed
from eddy.streams.timeline import Timeline, effect_time
from lineage.elements import BEGINNING
from lineage.growth import fitted
from windows.delta import Delta
from windows.operators.operator import TimedOperator
from windows.operators.recipient import Recipient, SignedRows, StreamRecipient
from windows.operators.seats import Seats
from windows.operators.slide import SlideOperator

if TYPE_CHECKING:
    from eddy.operators.tree_query import TreeQuery

#: Seats that are expected to have a row before any came, and after how many times that they are counted anew.
_SEATS_PER_ROW = 64
_ANEW = 1.5
#: Aggregates of a template that are logged though nobody has read them: few enough that it is not felt.
_LOGGED = 16


class Member:
    """A query on its seat."""

    __slots__ = ("query", "template", "seat", "cores")

    def __init__(self, query: TreeQuery, template: Template, seat: int, cores: list[Core]) -> None:
        self.query = query
        self.template = template
        self.seat = seat
        #: the hidden queries of its blocks, in the order of the template's
        self.cores = cores

    @property
    def logged(self) -> bool:
        """Whether its changes are logged from its start: those of an aggregate if there are few."""
        return not self.query.log.unread or self.template.log.n_logged < _LOGGED

    def open(self, record: LoggedCommit) -> Results:
        """The first answer, in the commit that opens the query."""
        self.template.open(self.seat, record)
        return self.answer(record.after)

    def answer(self, clock: int) -> Results:
        """The live rows, or the newest rows of a stream, as + at the clock."""
        ids, columns = self.template.recipient.answer(self.seat)
        return Results(columns[1:], np.full(len(ids), effect_time(clock)), 1)

    def stop(self, seq: int) -> None:
        """Stop running, after commit `seq`."""
        self.template.leave(self)
        for core in self.cores:
            core.stop(seq)

    @property
    def n_results(self) -> int:
        """The number of results so far."""
        return int(self.template.results[self.seat])

    @n_results.setter
    def n_results(self, n: int) -> None:
        self.template.results[self.seat] = n

    @property
    def errors(self) -> int:
        """Values that could not be computed so far."""
        return int(self.template.seats.errors[self.seat]) + self.template.named_errors

    @property
    def bytes(self) -> int:
        """The bytes that are freed with the query: those of its template if it is alone there."""
        return self.template.bytes if len(self.template.members) == 1 else 0

    def check(self) -> None:
        assert self.template.members[self.seat] is self, "a template knows its queries"
        self.template.check()


class Template:
    """The operators of all queries with one key, and their seats."""

    def __init__(self, plan: LiftedPlan, timeline: Timeline, emit: str, bounds: LogBounds) -> None:
        self.key: Hashable = plan.key
        #: the selections of its trees, which read constants by seat
        self.selects = plan.selects
        self.timeline = timeline
        #: what its queries showed, for those who read it
        self.log = SeatLog(timeline.log.changes, bounds)
        #: whether changes are net over a "commit" or over each "event"
        self.emit = emit
        self.seats = Seats(plan.types)
        #: by seat
        self.members: dict[int, Member] = {}
        self.results = np.zeros(self.seats.capacity, np.int64)
        #: by seat, the number of a query, and which names its columns have
        self.ids = np.zeros(self.seats.capacity, np.int64)
        self.face_of = np.zeros(self.seats.capacity, np.int64)
        #: the names of columns that its queries have had
        self.names: list[tuple[str, ...]] = []
        #: those that the stages read now, each with the number of its block
        self.feeds: list[tuple[int, Feed]] = []
        #: seats that have a row, at most as far as was seen lately
        self._seats_per_row: float = _SEATS_PER_ROW / 2
        #: values of queries read by name that could not be computed, in stages that run no more
        self._named_errors_before = 0

    def run(self, replanner: Replanner) -> None:
        """Begin to run, with the operators that were chosen for the first query."""
        self.replanner = replanner
        self._install(replanner.built)

    def _install(self, built: Built) -> None:
        self.root: Stage = built.root
        self.recipient: Recipient | StreamRecipient = built.recipient
        #: whether a - may come for its results
        self.ends_early = self.root.ends_early
        own = [stage for stage in self.root.stages() if isinstance(stage, OperatorStage)]
        #: those of its operators whose rows the clock ends, but for windows of streams as they are pushed
        self.timed = [stage.operator for stage in own if isinstance(stage.operator, TimedOperator) and stage.slid is None]
        #: of those windows the ones that show each extent by rows of its own
        self.extents = [
            (stage.slid, stage.operator.window)
            for stage in own
            if stage.slid is not None and isinstance(stage.operator, SlideOperator) and stage.operator.bounds
        ]

    # ---- queries

    def join(self, query: TreeQuery, constants: tuple[object, ...], cores: list[Core]) -> Member:
        """Give a query a seat; its rows count from the next commit on."""
        seat = self.seats.take(constants)
        member = self.members[seat] = Member(query, self, seat, cores)
        if len(self.results) < self.seats.capacity:
            self.results, self.ids, self.face_of = (
                fitted(held, self.seats.capacity) for held in (self.results, self.ids, self.face_of)
            )  # fmt: skip
        if query.column_names not in self.names:
            self.names.append(query.column_names)
        self.results[seat], self.ids[seat], self.face_of[seat] = 0, query.id, self.names.index(query.column_names)
        for block, feed in self.feeds:
            feed.add(seat, cores[block].query)
        return member

    def leave(self, member: Member) -> None:
        """Take the seat of a query that stops."""
        del self.members[member.seat]
        self.seats.leave(member.seat)
        for _, feed in self.feeds:
            feed.remove(member.seat)
        if self.members and self.seats.n_dead >= len(self.members):
            self.sweep()

    def sweep(self) -> None:
        """Forget the rows of queries that are gone; their seats are free again."""
        if self.seats.n_dead:
            dead, now = self.seats.dead, self.timeline.now
            for stage in self.root.stages():
                stage.sweep(dead, now)
            self.recipient.sweep(dead, now)
            self.seats.free_dead()

    @property
    def name(self) -> str:
        """What listeners to commits see: the name of its query, or the names of the streams that its queries read."""
        member = next(iter(self.members.values()))
        return member.query.name if len(self.members) == 1 else ", ".join(member.query.streams)

    # ---- commits

    def open(self, seat: int, record: LoggedCommit) -> None:
        """Take the rows that a query has in the commit that opens it."""
        found = self._received(self.root.opened(record, np.array([seat])), record)
        assert (found.columns[0].values == seat).all(), "a query is opened by its own rows"
        self.forget()

    def take(self, step: CommitStep) -> SeatChanges | None:
        """The changes of the queries in a commit that was just logged; None if there are none."""
        found = self._received(self.root.delta(step), step.record)
        if not len(found):
            return None
        if found.times[0] == BEGINNING:
            found.times = np.where(found.times == BEGINNING, 0, found.times)
        only = next(iter(self.members)) if len(self.members) == 1 else None
        return SeatChanges(self.ids, self.face_of, self.names, found, only)

    def _received(self, delta: Delta, record: LoggedCommit) -> SignedRows:
        found = self.recipient.process(delta, record.after)
        if self.seats.n_dead and len(found):
            kept = np.flatnonzero(~self.seats.dead[found.columns[0].values])
            found = SignedRows(found.times[kept], found.signs[kept], [column.take(kept) for column in found.columns])
        if len(self.members) == 1:
            self.results[next(iter(self.members))] += np.count_nonzero(found.signs > 0)
        else:
            np.add.at(self.results, found.columns[0].values[found.signs > 0], 1)
        return found

    def reconsider(self, record: LoggedCommit) -> None:
        """Switch to another form or strategy from the next commit on, if it has become cheaper."""
        built = self.replanner.step(record)
        if built is not None:
            self._rebuild(built, record)

    def _rebuild(self, built: Built, record: LoggedCommit) -> None:
        """Switch to new stages, filled with the blocks' rows after a commit; the answers do not change."""
        self.sweep()
        named, errors, n_rows = self.named_errors, self.seats.errors.copy(), len(self.recipient)
        self._install(built)
        self.recipient.process(self.root.opened(record, self.seats.numbers()), record.after)
        assert len(self.recipient) == n_rows, "the answers are the same"
        self.seats.errors = errors
        self._named_errors_before += named - self.named_errors
        self.forget()

    def forget(self) -> None:
        """Drop the deltas of the last commit."""
        for stage in self.root.stages():
            stage.forget()

    # ---- looks

    @property
    def named_errors(self) -> int:
        """Values of the queries that it reads by name that could not be computed; then it has one seat."""
        named = (stage.feed for stage in self.root.stages() if isinstance(stage, FeedStage) and stage.feed.seats is None)
        return self._named_errors_before + sum(feed.errors for feed in named)

    @property
    def kept_per_row(self) -> int:
        """How many rows the operators may keep for one row of a stream, by what they were given lately."""
        return self.n_operators * min(len(self.members), int(2 * self._seats_per_row) + 1)

    def crowds(self) -> bool:
        """Look at how many seats had the rows of the last commit; returns whether `kept_per_row` is another than it was."""
        seen = max((feed.seats_per_row for _, feed in self.feeds if feed.seats_per_row is not None), default=None)
        if seen is None or len(self.members) < 2:
            return False
        before, self._seats_per_row = self._seats_per_row, max(seen, 0.99 * self._seats_per_row)
        return not before / _ANEW < self._seats_per_row < before * _ANEW

    @property
    def log_bytes(self) -> int:
        """The bytes of the change logs of its queries."""
        return self.log.bytes + sum(member.query.log.bytes for member in self.members.values())

    @property
    def n_operators(self) -> int:
        """The number of operators that may keep rows, the recipient included."""
        return 1 + sum(isinstance(stage, OperatorStage) for stage in self.root.stages())

    @property
    def bytes(self) -> int:
        arrays = (self.results, self.ids, self.face_of)
        stages = sum(stage.bytes for stage in self.root.stages())
        return self.recipient.bytes + stages + self.seats.bytes + sum(array.nbytes for array in arrays)

    def check(self) -> None:
        """Assert all invariants of the operators."""
        assert self.seats.numbers().tolist() == sorted(self.members), "a seat is taken by a query"
        self.recipient.check()
        for stage in self.root.stages():
            stage.check()
