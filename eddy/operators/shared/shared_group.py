"""Aggregates of many queries over one stream, window, keys and values: one set of sums, fed once a commit from the row store.

    low <= position < end      the rows in the sums: those in the window (`shared_window.py`) that came since the group was made;
                               rows from `end` on wait for the next boundary of a window in steps
    groups[position]           the code of the row's group (`windows/state/values.py`), with a reference a row
    regions[position]          its region id on the attribute when it was counted: it is taken back where it was added, though
                               `recall` may have written another id into the store since

What the sums are and which path a query is on is told by `windows/shared/aggregates.py`; which queries may be here by
`shared_form.py`; what each member has of its own by `shared_members.py`. A query that looks back behind its submit makes the
group start again from the stored rows.

The rows of members whose condition is more than one interval are **listed** (`shared_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.operators.shared.shared_form import Face, Shareable, SharedForm
from eddy.operators.shared.shared_members import Members, Readers
from eddy.operators.shared.shared_rows import MemberRows
from eddy.operators.shared.shared_window import WindowRange
from eddy.streams.source import Source
from filters.values.vector import DTYPES, Array, Vector
from lineage.growth import LEAST, room_for
from lineage.schema import Type
from stems.frame import PageFrame
from windows.shared.aggregates import AttributeRanges, Listed, MovedRows, SharedAggregates
from windows.shared.collecting import Collected
from windows.shared.measures import finish
from windows.shared.touching import Touches
from windows.state.values import ValueCodes

if TYPE_CHECKING:
    from eddy.operators.shared.shared_operation import SharedOperation

#: Rows that are applied together where a whole window is.
_STEP = 1 << 16
#: Words that the sums may take, and what each member allows more: beyond, members get operators of their own.
_ROOM = 1 << 22
_ROOM_A_MEMBER = 1 << 13

#: Room for so many times as many groups as there may be, and more than a few, is given up.
_LESS = 4
_FEW = 1024

_NO_NULLS = np.zeros(0, np.uint8)
_NO_BITS = np.zeros((0, 1), np.uint64)


class GroupMoves:
    """What a commit did to a group."""

    __slots__ = ("former", "boundary", "_rows", "_touches")

    def __init__(self, former: int, boundary: int, rows: Callable[[], Touches] | None = None) -> None:
        """`rows`: gives the rows that came and went; None if there are none."""
        #: the boundaries at which the extents shown before and after it were complete; equal if there are none
        self.former = former
        self.boundary = boundary
        self._rows = rows
        self._touches: Touches | None = None

    @property
    def touches(self) -> Touches:
        """When cells changed; a listener that asks for no times never needs it."""
        if self._touches is None:
            assert self._rows is not None, "a cell changes by rows"
            self._touches = self._rows()
        return self._touches


class SharedGroup:
    """The members of one shared form, and their common sums."""

    def __init__(self, form: SharedForm, source: Source) -> None:
        self.form = form
        self.source = source
        self.window = WindowRange(source, form.window)
        self._types = [source.schema.columns[key].type for key in form.keys]
        self.codes = ValueCodes(self._types)
        self.members = Members()
        self.rows = MemberRows(source, self.members)
        self.sums = SharedAggregates([value for _, value in form.values], self.rows.bits)
        self.low = self.end = source.store.end
        #: rows before this position have been looked at for extents that they were too late for
        self._judged = source.store.end
        self.sums.settle(self.low)
        self._mask = LEAST - 1
        self._groups = np.zeros(LEAST, np.int64)
        self._regions = np.zeros(LEAST, np.int64)
        self._ranges: tuple[int, int, AttributeRanges] | None = None
        #: positions that a commit which was admitted adds, and those that it takes away
        self._spans = [(self.end, self.end), (self.end, self.end)]
        #: groups of the rows that the last commit ended
        self._ended = np.zeros(0, np.int64)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def _ungrouped(self) -> bool:
        """Whether all rows are of one group."""
        return not self.form.keys

    # ---- members

    def join(self, member: SharedOperation, shareable: Shareable, slot: int, born: int, log: bool) -> int:
        """Add a member that counts rows from `born` on; returns its number."""
        number = self.members.join(member, slot, born, shareable.face, shareable.parameters, shareable.names)
        self.sums.add(number, born, self.low, listed=member.listed)
        if born < self.end:
            self._start_again(min(self.low, born), self.sums.n_groups)
        if log or self.members.logs_more:
            self.log(number)
        return number

    def leave(self, number: int) -> None:
        self.sums.remove(number)
        self.members.leave(number)

    def log(self, number: int) -> None:
        """Log a member's changes from now on: it has a reader."""
        self.members.log(number)
        self._watch(np.array([number]))

    def _watch(self, numbers: Array) -> None:
        numbers = numbers[~self.members.watched[numbers]]
        self.members.watch(numbers)
        self.sums.watch(numbers, self.ranges())

    def watch_all(self, listening: bool) -> None:
        """Watch all members while there are listeners to commits, else only the logged ones."""
        watched = int(np.count_nonzero(self.members.watched))
        if listening:
            if watched < len(self.members):
                self._watch(np.array(sorted(self.members.operations)))
        elif watched > np.count_nonzero(self.members.logged):
            unread = np.flatnonzero(self.members.watched & ~self.members.logged)
            self.sums.unwatch(unread)
            self.members.watch(unread, False)

    def readers(self) -> Readers:
        """The watched members."""
        return self.members.readers(self.sums)

    def ranges(self) -> AttributeRanges:
        """The range of regions of each member, from the grouped filter of the attribute."""
        bank, members = self.source.modules.bank, self.members
        known = self._ranges
        if known is not None and known[:2] == (bank.version, members.version):
            return known[2]
        if self.form.attribute is None:
            n = len(members.slots)
            found = AttributeRanges(np.zeros(1, np.int64), np.zeros(n, np.int64), np.ones(n, np.int64))
        else:
            f = self._filter()
            low, high = bank.low[f][members.slots], bank.high[f][members.slots]
            found = AttributeRanges(bank.filters[f].rank_of().astype(np.int64), low.astype(np.int64), high.astype(np.int64))
        self._ranges = bank.version, members.version, found
        return found

    def _filter(self) -> int:
        assert self.form.attribute is not None
        f = self.source.modules.bank.index(self.form.attribute)
        assert f is not None, "members have predicates on the attribute"
        return f

    # ---- rows

    def _start_again(self, first: int, n_groups: int) -> None:
        """Rebuild the sums from the live rows from `first` on: a member looks back, or there is room for too many groups."""
        now = self.source.timeline.now
        first = max(first, self.window.low(now))
        if self.window.slide:
            # a group that is new knows nothing of the rows before it, not even which wait for a boundary
            self.end = min(self.end, self.window.high(now, first) if first < self.source.store.end else first)
            self.low = min(self.low, self.end)
            first = min(first, self.end)
        parts = [(start, min(start + _STEP, self.end)) for start in range(first, self.end, _STEP)]
        for part in parts:
            self.sums.cover(self._values([part]), self.ranges())
        self.sums.restart(first, n_groups)
        self._hold_ring(self.end - first)
        self._enter(first, self.low)
        self.low = first
        self._write_regions(first, self.end)
        for part in parts:
            positions = np.arange(*part)
            self._apply(positions, np.ones(len(positions), np.int64), self._values([part]))
        self.sums.settle(first)

    def admit(self, record: LoggedCommit) -> bool:
        """Find the groups of a logged commit's new rows; False, and nothing changed, if there are too many groups."""
        self._spans = self.window.spans(self.low, self.end, record)
        first, last = self._spans[0]
        self._hold_ring(last - self.low)
        self._enter(first, last)
        n_words = len(self.codes) * self.sums.words_a_group(len(self.ranges().rank_of))
        if n_words <= _ROOM + _ROOM_A_MEMBER * len(self.members):
            return True
        self.codes.release(self._groups[np.arange(first, last) & self._mask])
        return False

    def take(self, record: LoggedCommit) -> GroupMoves | None:
        """Apply an admitted commit to the sums; None if it changes nothing."""
        window, spans = self.window, self._spans
        if window.slide:
            self._judge()
        (first, last), (low, high) = spans
        former, boundary = (window.boundary(clock) if self.form.by_extent else 0 for clock in (record.before, record.after))
        self.low, self.end = low, last
        if first >= last and low >= high:
            self._ended = self._ended[:0]
            return None if former == boundary else GroupMoves(former, boundary)
        self._write_regions(first, last)
        n_came = max(0, last - first)
        positions = np.concatenate([np.arange(*span) for span in spans])
        signs = np.ones(len(positions), np.int64)
        signs[n_came:] = -1
        self._ended = self._groups[positions[n_came:] & self._mask]
        values, kept = self._values(spans), None
        never = window.never_in(max(first, low), min(last, high))
        if len(never):
            kept = ~np.isin(positions, never)
            positions, signs = positions[kept], signs[kept]
            values = [(cells[kept], nulls[kept] if len(nulls) else nulls) for cells, nulls in values]
        rows, bits = self._apply(positions, signs, values)
        self.low = high
        self.sums.settle(high)

        def touches() -> Touches:
            ranges, times = self.ranges(), window.times(spans)
            return Touches(
                rows.groups, ranges.rank_of[rows.regions], positions, times if kept is None else times[kept], signs, ranges.low,
                ranges.high, self.members.born, self.rows.listed(), bits, bool(window.slide),
            )  # fmt: skip

        return GroupMoves(former, boundary, touches)

    def settle(self) -> None:
        """Drop the groups without rows, at the end of a commit."""
        if not self._ungrouped:
            self.codes.release(self._ended)
        self._ended = self._ended[:0]
        if self.sums.n_groups > max(_FEW, _LESS * self.codes.capacity):
            self._start_again(self.low, self.codes.capacity)

    def changes(self, moves: GroupMoves) -> Collected:
        """The changed cells of the watched members, in a commit already applied; where extents changed, all cells with rows."""
        order = self.readers().order_of
        if not self.form.by_extent:
            found = self.sums.changes(self.ranges())
            return Collected(order[found.places], found.groups, found.former, found.now)
        if moves.former == moves.boundary:
            return Collected.none(self.sums.planes.n_measures)
        former, now = self.sums.show_again(self.ranges())
        return Collected(
            order[np.concatenate([former.places, now.places])], np.concatenate([former.groups, now.groups]),
            np.concatenate([former.former, now.former], axis=1), np.concatenate([former.now, now.now], axis=1),
        )  # fmt: skip

    def _apply(self, positions: Array, signs: Array, values: list[tuple[Array, Array]]) -> tuple[MovedRows, Array]:
        """Add rows to the sums, or take them back; returns them, and the bits of the listed members."""
        slots = positions & self._mask
        listed = self.rows.listed()
        bits = self.rows.bits(listed, positions) if len(listed) else _NO_BITS
        rows = MovedRows(self._groups[slots], self._regions[slots], positions, signs, values)
        self.sums.apply(rows, self.ranges(), Listed(listed, bits) if len(listed) else None)
        return rows, bits

    def _judge(self) -> None:
        """Count the extents that rows which came since the last commit were too late for, for each member that they count for."""
        positions, missed = self.window.missed(self._judged, self.source.store.end)
        self._judged = self.source.store.end
        if len(positions):
            numbers, counts = self.rows.count(positions, missed)
            self.members.missed[numbers] += counts

    # ---- what is kept by position

    def _hold_ring(self, n_rows: int) -> None:
        capacity = room_for(n_rows, self._mask + 1)
        if capacity > self._mask + 1:
            held = np.arange(self.low, self.end)
            old = held & self._mask
            for name in ("_groups", "_regions"):
                grown = np.zeros(capacity, np.int64)
                grown[held & (capacity - 1)] = getattr(self, name)[old]
                setattr(self, name, grown)
            self._mask = capacity - 1

    def _enter(self, first: int, last: int) -> None:
        """Find the groups of new rows."""
        if first < last:
            slots = np.arange(first, last) & self._mask
            self._groups[slots] = 0 if self._ungrouped else self._encode(self.codes, first, last)

    def _encode(self, codes: ValueCodes, first: int, last: int) -> Array:
        source, found = self.source, [np.zeros(0, np.int64)]
        for page, at, stop in source.store.slices(first, last):
            frame = PageFrame(page, source.schema, source.dictionaries, slice(at, stop))
            found.append(codes.encode([frame.column(key) for key in self.form.keys], stop - at))
        return np.concatenate(found)

    def _write_regions(self, first: int, last: int) -> None:
        if self.form.attribute is not None:
            store, f = self.source.store, self._filter()
            for page, at, stop in store.slices(first, last):
                slots = np.arange(page.base + at, page.base + stop) & self._mask
                self._regions[slots] = store.ids_of(page, f)[at:stop]

    def _values(self, spans: list[tuple[int, int]]) -> list[tuple[Array, Array]]:
        """Cells and null bytes of the value columns of stored rows."""
        pieces = [piece for span in spans for piece in self.source.store.slices(*span)]
        found = []
        for column, _ in self.form.values:
            cells = np.concatenate([page.cells[column, at:stop] for page, at, stop in pieces])
            nulls = _NO_NULLS
            if any(page.nulls is not None for page, _, _ in pieces):
                nulls = np.concatenate([
                    np.zeros(stop - at, np.uint8) if page.nulls is None else page.nulls[column, at:stop]
                    for page, at, stop in pieces
                ])  # fmt: skip
                if nulls.any():
                    cells[nulls != 0] = 0
                else:
                    nulls = _NO_NULLS
            found.append((cells, nulls))
        return found

    # ---- reading

    def keys(self, groups: Array) -> list[Vector]:
        return [] if self._ungrouped else self.codes.take(groups)

    def extents(self, clock: int, n: int) -> list[Vector]:
        """The bounds of the extent shown at a clock, n times; none where they are not keys."""
        if not self.form.by_extent:
            return []
        last = self.window.boundary(clock) if n else 0
        return [Vector.constant(Type.TIMESTAMP, at, n) for at in (last - self.form.window.width_us, last)]

    def aggregates(self, face: Face, measures: Array) -> tuple[list[Vector], int]:
        """The aggregates of cells, and how many could not be computed; `measures` is `[measure, cell]`."""
        columns, errors = [], 0
        for kind, column, type_ in face.aggregates:
            cells, nulls, n_errors = finish(self.sums.planes, kind, column, measures)
            mask = nulls.astype(np.bool_) if nulls.any() else None
            cells = np.ascontiguousarray(cells)
            values = cells.view(np.float64) if type_ is Type.FLOAT else cells.astype(DTYPES[type_], copy=False)
            columns.append(Vector(type_, values, mask))
            errors += n_errors
        return columns, errors

    def answer(self, number: int) -> tuple[Array, Array]:
        """A member's groups with rows, and their measures; without GROUP BY always one group."""
        groups, measures = self.sums.answer(number, self.ranges())
        if self.form.scalar and len(groups) == 0:
            return np.zeros(1, np.int64), np.zeros((self.sums.planes.n_measures, 1), np.int64)
        return groups, measures

    @property
    def bytes(self) -> int:
        return self.sums.bytes + self.codes.bytes + self.members.bytes + self._groups.nbytes + self._regions.nbytes

    def check(self) -> None:
        """Assert the invariants; O(rows)."""
        store = self.source.store
        assert self.window.slide or self.end == store.end, "every commit is taken"
        assert store.watermark <= self.low <= self.end, "rows in the sums are stored"
        self.members.check()
        self.sums.check()
        self.codes.check()
        if not self._ungrouped:
            counts = np.bincount(self._groups[np.arange(self.low, self.end) & self._mask], minlength=self.codes.capacity)
            live = self.codes.live()
            assert (self.codes.references(live) == counts[live]).all() and counts.sum() == counts[live].sum(), (
                "a row holds its group"
            )
