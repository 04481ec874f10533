"""The intake of a merged stream: rows of its inputs in, rows that enter the stream out (semantics 36).

    rows of an input  ->  elements (`eddy/merges/event_codes.py`)  ->  LMerge (`lmerge/`)  ->  rows that enter, rows taken back

The merge's point V says which rows are settled. A row enters in order of its time, rows of one time in order of their first
receipt, and has its number from then on: so the number of a row is its position in the store. A row that enters behind the front
takes the front as its effective time, as in a plain stream; under `policy="stable"` there is none, for all rows below V are in.

    end of a row is      goes out when V passes it, as
    its time             a retraction at once
    earlier than it was  a retraction at the new end, once the clock is there (`eddy/merges/planned_ends.py`)
    later than it was    a retraction at once; the row enters again, behind the front

R0 to R2 keep no record of events: what they give out waits here until V passes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eddy.base.checking import changing
from eddy.base.description import MergedStream, MergeReceipt
from eddy.merges.bag_rows import BagRows
from eddy.merges.cases import ORDERED_CASES
from eddy.merges.contradictions import Contradictions
from eddy.merges.event_codes import EventCodes
from eddy.merges.event_rows import EventRows
from eddy.merges.merge_inputs import MergeInput, MergeInputs
from eddy.merges.planned_ends import PlannedEnds
from eddy.streams.timeline import MAX_WAITING, Intake, Rows, merge
from lineage.dictionary import Dictionary
from lineage.elements import BEGINNING, FOREVER
from lineage.errors import LimitError, RowError
from lineage.ingest import Ingested
from lineage.schema import Schema
from lineage.times import MIN_US, to_datetime, to_iso
from lmerge.cases.merged import Merged
from lmerge.cases.node_merge import NodeMerge
from lmerge.cases.outcomes import CHANGED, IGNORED, KNOWN, NEW, OUTCOMES, REPEATED, SETTLED
from lmerge.merge import make_merge
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch

_NO_COUNTS = np.zeros(len(OUTCOMES), np.int64)


class Given(NamedTuple):
    """Rows of one call with what the merge needs to know of them."""

    cells: Sequence[np.ndarray]
    nulls: Sequence[np.ndarray | None]
    times: np.ndarray
    payloads: np.ndarray
    #: numbers of receipt
    receipts: np.ndarray


class MergeIntake(Intake):
    """The intake of one merged stream."""

    __slots__ = (
        "stream", "inputs", "contradictions", "identity", "_schema", "time_column", "end_column", "_merge", "codes", "_events",
        "_planned", "_receipts", "_max_waiting", "_n_taken_back", "_n_ends_changed", "_held", "_held_time",
    )  # fmt: skip

    def __init__(
        self, stream: MergedStream, schema: Schema, dictionaries: Sequence[Dictionary | None], max_waiting: int = MAX_WAITING
    ) -> None:  # fmt: skip
        super().__init__(0, False)
        #: rows that may wait for a stable point
        self._max_waiting = max_waiting
        #: as its users see it, but for the columns
        self.stream = stream
        self._schema = schema
        assert stream.time is not None, "rows are merged by their times"
        self.time_column = schema.position(stream.time)
        self.end_column = None if stream.end is None else schema.position(stream.end)
        keeps = stream.case not in ORDERED_CASES
        insert, bag = stream.policy if keeps else "first", stream.unique is None
        self._merge = make_merge(stream.case, bag=bag, insert=insert, missing=stream.missing, lag=stream.lag_us)
        self.inputs = MergeInputs(stream, self._merge)
        apart = (self.time_column, self.end_column)
        others = [column for column in range(len(schema)) if column not in apart]
        named = others if stream.unique is None else [schema.position(name) for name in stream.unique]
        #: the columns that name an event beside its time
        self.identity = tuple(named)
        self.codes = EventCodes(schema, self.identity if stream.case not in ("R0", "R1") else ())
        self.contradictions = Contradictions(schema, dictionaries, named, [one for one in others if one not in named])
        #: None where the merge keeps no record of events
        self._events: EventRows | None = None
        if keeps:
            self._events = BagRows(schema) if stream.unique is None else EventRows(schema)
        self._planned = PlannedEnds()
        #: rows that were given
        self._receipts = 0
        self._n_taken_back = self._n_ends_changed = 0
        #: without records: the codes of the rows of the newest time
        self._held, self._held_time = np.zeros(0, np.int64), BEGINNING

    @property
    def takes_back(self) -> bool:
        """Whether a row that entered may be taken back, or end at another time than it said."""
        return self._events is not None and (self.stream.policy != "stable" or self.end_column is not None)

    @property
    def keeps_events(self) -> bool:
        """Whether there is a record of events, by which they can be adjusted."""
        return self._events is not None

    # ---- checks

    def check_rows(self, of: MergeInput, checked: Ingested) -> None:
        """Raise if rows are below a point that their input said, over at once, or too many."""
        times = np.asarray(checked.cells[self.time_column], np.int64)
        of.check_said(times, self._schema.names[self.time_column])
        if self.end_column is not None:
            over = self._ends(checked.cells, checked.nulls, times) <= times
            if over.any():
                raise RowError(
                    "the row ends before it begins", code="bad_end", hint="an end is after the time; adjust removes a row",
                    row=int(np.argmax(over)), column=self._schema.names[self.end_column],
                )  # fmt: skip
        if self.n_waiting + checked.n_rows > self._max_waiting:
            named = ", ".join(f'"{name}"' for name in self.inputs.without_point()[:10])
            raise LimitError(
                f"more than {self._max_waiting} rows wait for a stable point", code="too_many_waiting",
                detail=f"inputs without a point, or with the smallest: {named}",
                hint="say one with stable(..), declare an order, or advance the timeline",
            )  # fmt: skip

    def _ends(self, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], times: np.ndarray) -> np.ndarray:
        """The ends of the events of rows: FOREVER for NULL; without such a column an event takes one instant."""
        if self.end_column is None:
            return times + 1
        ends, null = np.asarray(cells[self.end_column], np.int64), nulls[self.end_column]
        return ends if null is None else np.where(null != 0, FOREVER, ends)

    # ---- in

    def give(self, of: MergeInput, checked: Ingested, over: int) -> tuple[Rows | None, MergeReceipt]:
        """Take checked rows of an input; returns the rows that enter, and the receipt. `over` as for `accept`."""
        n = checked.n_rows
        if not n:
            return None, self.receipt()
        times = np.ascontiguousarray(checked.cells[self.time_column], np.int64)
        implied = of.imply(times, self.stream.order, self.stream.lateness_us)
        self.largest = max(self.largest, of.largest)
        given, n_settled = self._given(checked, times)
        n = len(given.times)
        batch = np.zeros((5, n + (implied is not None)), np.int64)
        batch[0, :n], batch[1, :n], batch[2, :n] = INSERT, given.times, given.payloads
        batch[4, :n] = self._ends(given.cells, given.nulls, given.times)
        if implied is not None:
            batch[0, n], batch[4, n] = STABLE, implied
        entering, counts = self._push(of, batch, given)
        of.outcomes[SETTLED] += n_settled
        counts[SETTLED] += n_settled
        if entering is not None and entering.time_at(0) <= over:
            self.expired_rows += entering.count_until(over)
        return entering, self.receipt(counts)

    def _given(self, checked: Ingested, times: np.ndarray) -> tuple[Given, int]:
        """Rows as the merge takes them, and the number of those left out because they are settled beyond doubt."""
        cells, nulls = checked.cells, checked.nulls
        receipts = np.arange(self._receipts, self._receipts + checked.n_rows)
        self._receipts += checked.n_rows
        if self._events is not None and self.end_column is None:
            # an event of one instant is let go of as soon as the point is past its end
            open_ = times >= self._merge.stable - 1
            if not open_.all():
                rows = np.flatnonzero(open_)
                cells, nulls = [column[rows] for column in cells], [None if null is None else null[rows] for null in nulls]
                times, receipts = times[rows], receipts[rows]
        payloads = self.codes.of_rows(cells, nulls, len(times))
        return Given(cells, nulls, times, payloads, receipts), checked.n_rows - len(times)

    def change(self, of: MergeInput, adjusts: np.ndarray) -> tuple[Rows | None, MergeReceipt]:
        """Take adjusts of an input: times, payloads, old and new ends. Gives back the references of the payloads."""
        n = adjusts.shape[1]
        batch = np.concatenate([np.full((1, n), ADJUST), adjusts])
        entering, counts = self._push(of, batch, None)
        self.codes.release(adjusts[1])
        return entering, self.receipt(counts)

    def say(self, of: MergeInput, time: int) -> Rows | None:
        """Let an input say a point; returns the rows that enter."""
        of.said = max(of.said, time)
        batch = np.zeros((5, 1), np.int64)
        batch[0, 0], batch[4, 0] = STABLE, time
        entering, _ = self._push(of, batch, None)
        return entering

    @changing
    def advance(self, time: int) -> Rows | None:
        """Let every joined input say a time."""
        found: Rows | None = None
        for of in [one for one in self.inputs.attached.values() if self.inputs.joined(one)]:
            entering = self.say(of, time)
            if entering is not None:
                found = entering if found is None else merge(found, entering)
        return found

    def unknown_events(self, of: MergeInput, times: np.ndarray, payloads: np.ndarray, olds: np.ndarray) -> np.ndarray:
        """Which events an input has not given, though they are not settled yet."""
        assert isinstance(self._merge, NodeMerge), "this case keeps a record of events"
        held, found = self._merge.holds(of.number, times, payloads, olds)
        unknown: np.ndarray = ~held & (found | (times >= self._merge.stable))
        return unknown

    def among(self, rows: Ingested, times: np.ndarray, payloads: np.ndarray, olds: np.ndarray) -> np.ndarray:
        """Which events are those of some rows; of a bag, with the old end."""
        starts = np.asarray(rows.cells[self.time_column], np.int64)
        own = self.codes.of_rows(rows.cells, rows.nulls, rows.n_rows)
        self.codes.release(own)
        given, wanted = [starts, own], [times, payloads]
        if self.stream.unique is None:
            given.append(self._ends(rows.cells, rows.nulls, starts))
            wanted.append(olds)
        found: np.ndarray = np.isin(_as_one(wanted), _as_one(given))
        return found

    def passed(self, time: int) -> bool:
        """Whether all rows up to a time have entered the stream or are settled."""
        return self._merge.stable > time or (self.stream.policy == "first" and self.front >= time)

    def receipt(self, counts: np.ndarray = _NO_COUNTS) -> MergeReceipt:
        """The receipt of a call with these outcomes."""
        point, leader = self._merge.stable, self.inputs.leader()
        return MergeReceipt(
            int(counts[NEW] + counts[KNOWN] + counts[CHANGED]), int(counts[REPEATED]), int(counts[SETTLED] + counts[IGNORED]),
            None if point < MIN_US else to_datetime(point), None if leader is None else leader.name,
        )  # fmt: skip

    def _push(self, of: MergeInput, batch: np.ndarray, given: Given | None) -> tuple[Rows | None, np.ndarray]:
        """Merge elements of an input; returns the rows that enter, and the outcomes of rows and adjusts."""
        before = self._merge.stable
        merged = self._merge.push(of.number, ElementBatch(*batch))
        if before > BEGINNING and self._merge.stable > before:
            of.led_us += self._merge.stable - before
        counts = of.count(merged.outcomes[batch[0] != STABLE])
        events = self._events
        if events is None:
            return self._pass_on(merged, given), counts
        events.fit(max(events.capacity, self._merge.capacity))
        if given is not None:
            self._keep(of, merged, given, events)
        entering = self._take_out(merged, events)
        self.codes.release(events.payloads(merged.freed))
        events.leave(merged.freed)
        events.fit(self._merge.capacity)
        return entering, counts

    def _keep(self, of: MergeInput, merged: Merged, given: Given, events: EventRows) -> None:
        """Keep the rows of new events, once whatever the number of inputs that give them."""
        n = len(given.times)
        outcomes, nodes = merged.outcomes[:n], merged.taken[:n]
        is_new = outcomes == NEW
        new = np.flatnonzero(is_new)
        cells = [column[new] for column in given.cells]
        nulls = [None if null is None else null[new] for null in given.nulls]
        kept = events.put(nodes[new], cells, nulls, given.payloads[new], given.receipts[new])
        self.codes.release(given.payloads[new[~kept]])
        if len(new) < n:
            self.codes.release(given.payloads[~is_new])
            again = np.flatnonzero(~is_new & (nodes >= 0))
            of.contradictions += self.contradictions.count(
                of.name, events, again, nodes[again], given.cells, given.nulls, given.times
            )  # fmt: skip

    # ---- out

    def _take_out(self, merged: Merged, events: EventRows) -> Rows | None:
        """The rows that enter by what a merge gave out; ends of rows in the stream are planned."""
        out, nodes = merged.elements, merged.nodes
        entering, changed = np.flatnonzero(out.kinds == INSERT), np.flatnonzero(out.kinds == ADJUST)
        chosen = events.waiting(nodes[entering])
        self.late_rows += int(np.count_nonzero(out.starts[entering] < self.front))
        if len(changed):
            rows = events.entered(nodes[changed], out.olds[changed])
            self._plan(events.positions(rows), out.starts[changed], out.olds[changed], out.ends[changed])
            # those whose end is later now enter again, behind the front
            again = out.ends[changed] > out.olds[changed]
            entering, chosen = np.concatenate([entering, changed[again]]), np.concatenate([chosen, rows[again]])
            events.end(rows[~again])
        if not len(entering):
            return None
        times = np.maximum(out.starts[entering], self.front)
        order = np.lexsort((events.receipts(chosen), times))
        times, entering, chosen = times[order], entering[order], chosen[order]
        rows_in = events.rows(nodes[entering], times, out.ends[entering], self.end_column, self.next_row)
        events.enter(chosen, out.ends[entering], self.next_row)
        self.next_row += len(chosen)
        self.front = int(times[-1])
        return rows_in

    def _plan(self, positions: np.ndarray, starts: np.ndarray, olds: np.ndarray, ends: np.ndarray) -> None:
        """Plan the ends of rows in the stream: at once, or at a new end that is earlier than the old one."""
        removed = ends == starts
        self._n_taken_back += int(np.count_nonzero(removed))
        self._n_ends_changed += int(np.count_nonzero(~removed))
        self._planned.plan(np.where((ends < olds) & ~removed, ends, self.front), positions)

    def due(self, clock: int, schema: Schema) -> Rows | None:
        return self._planned.take(clock, schema)

    def _pass_on(self, merged: Merged, given: Given | None) -> Rows | None:
        """The rows that enter by what a merge without records gave out: all, or those below its point."""
        stable = self.stream.policy == "stable"
        index = merged.nodes[merged.elements.kinds == INSERT]
        if given is not None:
            rows = Rows(len(index), [np.asarray(column)[index] for column in given.cells],
                        [None if null is None else null[index] for null in given.nulls], given.times[index], 0)  # fmt: skip
            self._hold_newest(merged, given)
            if not stable:
                return self._numbered(rows) if len(index) else None
            if len(index):
                self._wait(rows)
        return self._numbered(self._release(None, self._merge.stable - 1)) if stable else None

    def _hold_newest(self, merged: Merged, given: Given) -> None:
        """Keep references to the codes of rows of the newest time alone: no others are compared any more."""
        is_new = merged.outcomes[: len(given.times)] == NEW
        newest = max(self._held_time, int(given.times[is_new].max(initial=BEGINNING)))
        if newest > self._held_time:
            self.codes.release(self._held)
            self._held_time, self._held = newest, self._held[:0]
        held = (given.times == newest) & is_new
        self.codes.release(given.payloads[~held])
        self._held = np.concatenate([self._held, given.payloads[held]])

    def _numbered(self, rows: Rows | None) -> Rows | None:
        """Rows that enter now, with their numbers."""
        if rows is not None:
            rows.numbers = self.next_row
            self.next_row += rows.n_rows
            self.front = max(self.front, rows.time_at(rows.n_rows - 1))
        return rows

    # ---- facts

    @property
    def n_waiting(self) -> int:
        return super().n_waiting if self._events is None else self._events.n_waiting

    def released(self, row: int) -> bool:
        return row < self.next_row

    def row_bytes(self) -> int:
        return 400 + (0 if self._events is None else self._events.row_bytes())

    def bytes(self) -> int:
        events = 0 if self._events is None else self._events.bytes
        return super().bytes() + self._merge.bytes + self.codes.bytes + self._planned.bytes + events

    def used_codes(self, column: int) -> list[np.ndarray]:
        events = [] if self._events is None else [self._events.used_codes(column)]
        return [*super().used_codes(column), *events, self.codes.used_codes(column)]

    def recode(self, column: int, new_code: np.ndarray) -> None:
        super().recode(column, new_code)
        self.codes.recode(column, new_code)
        if self._events is not None:
            self._events.recode(column, new_code)

    def stats(self) -> dict[str, Any]:
        """Counts of the merge and of each input."""
        point, leader = self._merge.stable, self.inputs.leader()
        out = self._merge.counters
        return {
            "case": self.stream.case,
            "stable": None if point < MIN_US else to_iso(point),
            "leader": None if leader is None else leader.name,
            "live_events": self._merge.n_live,
            "bytes": self.bytes(),
            "taken_back": self._n_taken_back,
            "ends_changed": self._n_ends_changed,
            "chatter": out.adjusts_out,
            "gaps": {"count": self.inputs.n_gaps, "last": [(to_iso(first), to_iso(last)) for first, last in self.inputs.gaps]},
            "contradictions": [one._asdict() for one in self.contradictions.last],
            "inputs": self.inputs.stats(),
        }

    def check(self) -> None:
        super().check()
        self._merge.check()
        if self._events is not None:
            self._events.check(self._merge.n_live, self.next_row)
        self.codes.check(self._held if self._events is None else self._events.payloads(self._events.live()))


def check_order(intake: MergeIntake, of: MergeInput, checked: Ingested, schema: Schema) -> None:
    """Raise if rows of an input are against the declared order."""
    times = np.asarray(checked.cells[intake.time_column], np.int64)
    of.check_order(times, intake.stream.order, schema.names[intake.time_column])


def _as_one(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns of int64 as one column of their rows, equal where all are."""
    rows = np.ascontiguousarray(np.stack(columns, axis=1))
    return rows.view(f"S{8 * len(columns)}").reshape(-1)
