"""Aggregates of many queries over one stream, window, keys and values: one set of sums, fed once a commit from the row store.

    low <= position < end      the rows in the sums: those alive in the window that came since the group was made
    groups[position]           the code of the row's group (`windows/state/values.py`), with a reference a row
    regions[position]          its region id on the attribute when it was counted: it is taken back where it was added, though
                               `recall` may have written another id into the store since

What the sums are and which path a query is on is told by `windows/shared/aggregates.py`; which queries may be here by
`eddy/operators/shared_form.py`. A query that looks back behind its submit makes the group start again from the stored rows.

A member is **watched** while it is logged or somebody listens to commits: only then its cells are read at every commit. It is
**logged** from its first reader on (`docs/decisions/0013-aggregates-are-logged-for-readers.md`), the first few from their start
and until their log is given up (`eddy/base/change_log.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.operators.shared_form import Face, SharedForm
from eddy.streams.source import Source
from filters.values.vector import DTYPES, Array, Vector
from lineage.bits import words
from lineage.growth import LEAST, fitted, room_for
from lineage.schema import Type
from stems.frame import PageFrame, condition_rows
from windows.shared.aggregates import AttributeRanges, Listed, MovedRows, SharedAggregates
from windows.shared.collecting import Collected
from windows.shared.measures import finish
from windows.shared.touching import Touches
from windows.state.values import ValueCodes

if TYPE_CHECKING:
    from eddy.operators.shared_operation import SharedOperation

#: Rows that are applied together where a whole window is.
_STEP = 1 << 16
#: Members that are logged though nobody has read them: few enough that it is not felt, and a small engine has a whole log.
_LOGGED = 16
#: Words that the sums may take, and what each member allows more: beyond, members get operators of their own.
_ROOM = 1 << 22
_ROOM_A_MEMBER = 1 << 13

#: Room for so many times as many groups as there may be, and more than a few, is given up.
_LESS = 4
_FEW = 1024

_NO_NULLS = np.zeros(0, np.uint8)
_NO_BITS = np.zeros((0, 1), np.uint64)


class Readers:
    """The watched members of a group: those with the same face side by side, then by number."""

    __slots__ = ("numbers", "ids", "order_of", "faces", "logged")

    def __init__(self, group: SharedGroup) -> None:
        by_face: dict[Face, list[int]] = {}
        for number in sorted(group.watched):
            by_face.setdefault(group.members[number].face, []).append(number)
        ordered = [number for numbers in by_face.values() for number in numbers]
        #: by place in the order: the member, and the id of its query
        self.numbers = np.array(ordered, np.int64)
        self.ids = np.array([group.members[number].query.id for number in ordered], np.int64)
        place_in = np.zeros(len(group.born) + 1, np.int64)
        place_in[self.numbers] = np.arange(len(ordered))
        #: by place of `shown`
        self.order_of = place_in[group.sums.reader_of(np.arange(group.sums.shown.n_places))]
        #: a face, and from where to where in the order its members are
        self.faces: list[tuple[Face, int, int]] = []
        for face, numbers in by_face.items():
            first = self.faces[-1][2] if self.faces else 0
            self.faces.append((face, first, first + len(numbers)))
        #: places in the order of those who are logged
        self.logged = [place for place, number in enumerate(ordered) if number in group.logged]


class SharedGroup:
    """The members of one shared form, and their common sums."""

    def __init__(self, form: SharedForm, source: Source) -> None:
        self.form = form
        self.source = source
        self._types = [source.schema.columns[key].type for key in form.keys]
        self.codes = ValueCodes(self._types)
        self.sums = SharedAggregates([value for _, value in form.values], self._matches)
        self.low = self.end = source.store.end
        self.sums.settle(self.low)
        self._mask = LEAST - 1
        self._groups = np.zeros(LEAST, np.int64)
        self._regions = np.zeros(LEAST, np.int64)
        #: by number
        self.members: dict[int, SharedOperation] = {}
        self._free: list[int] = []
        #: by number of a member: the slot of its leg, its birth, and its results so far
        self._slots = np.zeros(LEAST, np.int64)
        self.born = np.zeros(LEAST, np.int64)
        self.results = np.zeros(LEAST, np.int64)
        #: members whose cells are read, and those of them with a log
        self.watched: set[int] = set()
        self.logged: set[int] = set()
        self._ranges: tuple[int, int, AttributeRanges] | None = None
        self._version = 0
        #: those who are watched, in the order in which their changes are told; None if they have changed
        self._readers: Readers | None = None
        #: members whose rows are listed one by one, in the order in which they came
        self._listed: dict[int, None] = {}
        #: groups of the rows that the last commit ended
        self._ended = np.zeros(0, np.int64)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def scalar(self) -> bool:
        return not self.form.keys

    # ---- members

    def join(self, member: SharedOperation, slot: int, born: int, log: bool) -> int:
        """Add a member that counts rows from `born` on; returns its number."""
        number = self._free.pop() if self._free else len(self.members)
        if number == len(self._slots):
            capacity = room_for(number + 1, number)
            self._slots, self.born = fitted(self._slots, capacity), fitted(self.born, capacity)
            self.results = fitted(self.results, capacity)
        self.members[number] = member
        self._slots[number], self.born[number], self.results[number] = slot, born, 0
        self._version += 1
        if member.listed:
            self._listed[number] = None
        self.sums.add(number, born, self.low, listed=member.listed)
        if born < self.end:
            self._start_again(min(self.low, born), self.sums.n_groups)
        if log or len(self.logged) < _LOGGED:
            self.log(number)
        return number

    def leave(self, number: int) -> None:
        self.sums.remove(number)
        del self.members[number]
        self.watched.discard(number)
        self.logged.discard(number)
        self._readers = None
        self._listed.pop(number, None)
        self._free.append(number)
        self._version += 1

    def log(self, number: int) -> None:
        """Log a member's changes from now on: it has a reader."""
        self.logged.add(number)
        self._readers = None
        self._watch(number)

    def unlog(self, number: int) -> None:
        """Stop logging a member whose log was given up unread."""
        self.logged.discard(number)
        self._readers = None

    def _watch(self, number: int) -> None:
        if number not in self.watched:
            self.watched.add(number)
            self._readers = None
            self.sums.watch(number, self.ranges())

    def watch_all(self, listening: bool) -> None:
        """Watch all members while there are listeners to commits, else only the logged ones."""
        if listening:
            if len(self.watched) < len(self.members):
                for number in self.members:
                    self._watch(number)
        elif len(self.watched) > len(self.logged):
            for number in self.watched - self.logged:
                self.sums.unwatch(number)
            self.watched = set(self.logged)
            self._readers = None

    def readers(self) -> Readers:
        """The watched members."""
        if self._readers is None:
            self._readers = Readers(self)
        return self._readers

    def ranges(self) -> AttributeRanges:
        """The range of regions of each member, from the grouped filter of the attribute."""
        bank = self.source.modules.bank
        known = self._ranges
        if known is not None and known[:2] == (bank.version, self._version):
            return known[2]
        if self.form.attribute is None:
            n = len(self._slots)
            found = AttributeRanges(np.zeros(1, np.int64), np.zeros(n, np.int64), np.ones(n, np.int64))
        else:
            f = self._filter()
            low, high = bank.low[f][self._slots], bank.high[f][self._slots]
            found = AttributeRanges(bank.filters[f].rank_of().astype(np.int64), low.astype(np.int64), high.astype(np.int64))
        self._ranges = bank.version, self._version, found
        return found

    def _filter(self) -> int:
        assert self.form.attribute is not None
        f = self.source.modules.bank.index(self.form.attribute)
        assert f is not None, "members have predicates on the attribute"
        return f

    # ---- rows

    def _start_again(self, first: int, n_groups: int) -> None:
        """Rebuild the sums from the live rows from `first` on: a member looks back, or there is room for too many groups."""
        store = self.source.store
        first = max(first, store.first_after(self.source.timeline.now - self.form.window.width_us))
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
        first, last = self._arrivals(record)
        self._hold_ring(last - self.low)
        self._enter(first, last)
        n_words = len(self.codes) * self.sums.words_a_group(len(self.ranges().rank_of))
        if n_words <= _ROOM + _ROOM_A_MEMBER * len(self.members):
            return True
        self.codes.release(self._groups[np.arange(first, last) & self._mask])
        return False

    def _arrivals(self, record: LoggedCommit) -> tuple[int, int]:
        """First position and end of the commit's rows, without rows so late that they had already left the window."""
        store = self.source.store
        return max(self.end, store.first_after(record.before - self.form.window.width_us)), store.end

    def take(self, record: LoggedCommit) -> Touches | None:
        """Apply an admitted commit to the sums; None if no row came or went."""
        store, width = self.source.store, self.form.window.width_us
        first, last = self._arrivals(record)
        low = max(self.low, store.first_after(record.before - width))
        high = max(low, store.first_after(record.after - width))
        self.low, self.end = low, last
        if first >= last and low >= high:
            self._ended = self._ended[:0]
            return None
        self._write_regions(first, last)
        spans = [(first, last), (low, high)]
        positions = np.concatenate([np.arange(*span) for span in spans])
        signs = np.ones(len(positions), np.int64)
        signs[max(0, last - first) :] = -1
        bits = self._apply(positions, signs, self._values(spans))
        self.low = high
        self.sums.settle(high)
        slots = positions & self._mask
        self._ended = self._groups[slots[max(0, last - first) :]]
        ranges = self.ranges()
        return Touches(
            self._groups[slots], ranges.rank_of[self._regions[slots]], positions, self._times(spans, width), ranges.low,
            ranges.high, self.born, list(self._listed), bits,
        )  # fmt: skip

    def settle(self) -> None:
        """Drop the groups without rows, at the end of a commit."""
        if not self.scalar:
            self.codes.release(self._ended)
        self._ended = self._ended[:0]
        if self.sums.n_groups > max(_FEW, _LESS * self.codes.capacity):
            self._start_again(self.low, self.codes.capacity)

    def changes(self) -> Collected:
        """The changed cells of the watched members."""
        found = self.sums.changes(self.ranges())
        return Collected(self.readers().order_of[found.places], found.groups, found.former, found.now)

    def _apply(self, positions: Array, signs: Array, values: list[tuple[Array, Array]]) -> Array:
        """Add rows to the sums, or take them back; returns the bits of the listed members."""
        slots = positions & self._mask
        listed = list(self._listed)
        bits = self._bits(listed, positions) if listed else _NO_BITS
        rows = MovedRows(self._groups[slots], self._regions[slots], positions, signs, values)
        self.sums.apply(rows, self.ranges(), Listed(np.array(listed), bits) if listed else None)
        return bits

    def _bits(self, listed: list[int], positions: Array) -> Array:
        """The rows that count for each listed member, as bits `[member, word of rows]`."""
        found = np.zeros((len(listed), 8 * words(len(positions))), np.uint8)
        for k, number in enumerate(listed):
            packed = np.packbits(self._matches(number, positions) & (positions >= self.born[number]), bitorder="little")
            found[k, : len(packed)] = packed
        return found.view(np.uint64)

    def _matches(self, number: int, positions: Array) -> Array:
        """For each stored row, whether it satisfies the condition of a member."""
        source, query = self.source, self.members[number].core.query
        found = np.zeros(len(positions), np.bool_)
        for page, which in source.store.by_page(positions):
            offsets = positions[which] - page.base
            first, last = int(offsets.min()), int(offsets.max()) + 1
            mask = condition_rows(
                query.plan.condition, source.store, page, first, last, source.dictionaries, query.runs[-1].modules
            )  # fmt: skip
            found[which] = mask[offsets - first]
        return found

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
            self._groups[slots] = 0 if self.scalar else self._encode(self.codes, first, last)

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

    def _times(self, spans: list[tuple[int, int]], width: int) -> Array:
        """The start of each row of the first span, and the end of each row of the second."""
        slices = self.source.store.slices
        starts = [page.elements(slice(at, stop), width).starts for page, at, stop in slices(*spans[0])]
        ends = [page.elements(slice(at, stop), width).ends for page, at, stop in slices(*spans[1])]
        return np.concatenate([*starts, *ends])

    # ---- reading

    def keys(self, groups: Array) -> list[Vector]:
        return [] if self.scalar else self.codes.take(groups)

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
        if self.scalar and len(groups) == 0:
            return np.zeros(1, np.int64), np.zeros((self.sums.planes.n_measures, 1), np.int64)
        return groups, measures

    @property
    def bytes(self) -> int:
        arrays = (self._groups, self._regions, self._slots, self.born, self.results)
        return self.sums.bytes + self.codes.bytes + sum(array.nbytes for array in arrays)

    def check(self) -> None:
        """Assert the invariants; O(rows)."""
        store = self.source.store
        assert self.end == store.end, "every commit is taken"
        assert store.watermark <= self.low <= self.end, "rows in the sums are stored"
        assert self.logged <= self.watched <= set(self.members), "who is logged is read"
        self.sums.check()
        self.codes.check()
        if not self.scalar:
            counts = np.bincount(self._groups[np.arange(self.low, self.end) & self._mask], minlength=self.codes.capacity)
            live = self.codes.live()
            assert (self.codes.references(live) == counts[live]).all() and counts.sum() == counts[live].sum(), (
                "a row holds its group"
            )
