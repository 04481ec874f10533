"""Changes of a shared group's members in a commit: computed once per face, then cut up for each member's log.

A changed cell is a (member, group) with its measures before and after. Its row leaves the answer (-) if it stood there and is not
the same now, and joins it (+) if it stands now and was not the same: each face keeps all keys, so rows of different groups
are never equal, and the changes are net. Constants in which members differ are columns, by member. Columns and times are made on
demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from eddy.base.results import Results
from eddy.matching.row_lists import RowLists
from eddy.operators.shared.shared_form import Face
from eddy.operators.shared.shared_group import GroupMoves, SharedGroup
from eddy.operators.shared.shared_members import FaceReaders
from filters.expressions.evaluate import evaluate, true_rows
from filters.expressions.expression import ColumnRef
from filters.values.vector import Array, Frame, ListFrame, Vector, merged_texts
from lineage.schema import Type
from windows.shared.collecting import Collected, list_by_reader
from windows.state.netting import group_stops


class FaceFrame(Frame):
    """What a face is computed over, for some cells: keys, computed on demand, aggregates, bounds of the extent, parameters."""

    __slots__ = ("_group", "_groups", "_keys", "_shown", "n_keys", "n_telling", "overflows")

    def __init__(
        self, group: SharedGroup, face: Face, groups: Array, measures: Array, clock: int, parameters: list[Vector]
    ) -> None:
        super().__init__(len(groups))
        self._group = group
        self._groups = groups
        self._keys: list[Vector] | None = None
        # how many aggregates have no value for being too large
        aggregates, self.overflows = group.aggregates(face, measures)
        telling = [*aggregates, *group.extents(clock, len(groups))]
        self._shown = [*telling, *parameters]
        self.n_keys = len(group.form.keys)
        #: aggregates and bounds, in which two rows of one group can differ
        self.n_telling = len(telling)

    def column(self, position: int) -> Vector:
        if position >= self.n_keys:
            return self._shown[position - self.n_keys]
        if self._keys is None:
            self._keys = self._group.keys(self._groups)
        return self._keys[position]

    def taken(self, positions: Sequence[int], rows: Array) -> list[Vector]:
        """Columns of some of the cells, without the keys of others."""
        keys = self._group.keys(self._groups[rows]) if any(position < self.n_keys for position in positions) else []
        return [keys[at] if at < self.n_keys else self._shown[at - self.n_keys].take(rows) for at in positions]


class Projected:
    """The output rows of a face for given cells at a clock, and which of them are in the answer."""

    def __init__(
        self, group: SharedGroup, face: Face, groups: Array, measures: Array, clock: int, parameters: list[Vector]
    ) -> None:
        self._face = face
        self._frame = FaceFrame(group, face, groups, measures, clock, parameters)
        self.stands = np.ones(len(groups), np.bool_) if group.form.scalar else measures[0] > 0
        if face.having is not None:
            holds = np.zeros(len(groups), np.bool_)
            holds[true_rows(face.having, self._frame)] = True
            self.stands &= holds

    @cached_property
    def _computed(self) -> list[Vector]:
        return [evaluate(column, self._frame).widened(column.type) for column in self._face.columns]

    @cached_property
    def _places(self) -> list[int] | None:
        """The columns of the frame behind the output columns; None if any output is computed."""
        found = [column.position for column in self._face.columns if isinstance(column, ColumnRef)]
        return found if len(found) == len(self._face.columns) else None

    def columns(self, rows: Array) -> list[Vector]:
        """The output columns of the given cells."""
        if self._places is None:
            return [column.take(rows) for column in self._computed]
        return self._frame.taken(self._places, rows)

    @property
    def telling(self) -> list[Vector]:
        """The columns in which two rows of one group can differ."""
        if self._places is None:
            return self._computed
        first, n = self._frame.n_keys, self._frame.n_telling
        return [self._frame.column(place) for place in self._places if first <= place < first + n]

    @property
    def errors(self) -> int:
        """Values that could not be computed."""
        return self._frame.overflows + self._frame.errors


def _equal(left: Vector, right: Vector) -> Array:
    """For each row, whether two columns are equal: NULL = NULL, NaN = NaN, -0.0 = 0.0."""
    a, b = merged_texts([left, right])[1] if left.type is Type.STRING else (left.values, right.values)
    same = a == b
    if left.type is Type.FLOAT and not same.all():
        same |= (a != a) & (b != b)
    if left.nulls is not None or right.nulls is not None:
        was, now = left.null_mask(), right.null_mask()
        same = np.where(was | now, was == now, same)
    found: Array = same
    return found


class FaceChanges:
    """The changed cells of all members with one face.

    Readers are members by their place in the order of the group's readers (`eddy/operators/shared/shared_members.py`).
    """

    def __init__(self, group: SharedGroup, of: FaceReaders, cells: Collected, moves: GroupMoves) -> None:
        self._group = group
        self._moves = moves
        self._readers = group.readers()
        #: stretches of readers whose columns have the same names
        self.named = of.named
        self._cells = cells
        parameters = of.parameters.take(self._readers.numbers[cells.readers])
        self._before = Projected(group, of.face, cells.groups, cells.before, moves.former, parameters)
        self._after = Projected(group, of.face, cells.groups, cells.now, moves.boundary, parameters)
        same = self._before.stands & self._after.stands
        for left, right in zip(self._before.telling, self._after.telling, strict=True):
            same &= _equal(left, right)
        differ = ~same
        #: by sign: the cells whose row left, and those whose row came
        self._rows = {
            -1: np.flatnonzero(self._before.stands & differ),
            1: np.flatnonzero(self._after.stands & differ),
        }  # fmt: skip
        self._lists: dict[int, tuple[Array, Array]] = {}

    def n_rows(self, sign: int) -> int:
        return len(self._rows[sign])

    def lists(self, sign: int) -> tuple[Array, Array]:
        """Offsets and places of the rows of one sign, by reader."""
        if sign not in self._lists:
            rows = self._rows[sign]
            offsets, listed = np.zeros(len(self._readers.numbers) + 2, np.int64), np.empty(len(rows), np.int32)
            list_by_reader(self._cells.readers, rows, offsets, listed)
            self._lists[sign] = offsets[:-1], listed
        return self._lists[sign]

    def columns(self, sign: int, places: Array | slice = slice(None)) -> list[Vector]:
        rows = self._rows[sign][places]
        return (self._before if sign < 0 else self._after).columns(rows)

    def times(self, sign: int, places: Array | slice = slice(None)) -> Array:
        """When a row left, or came: with the extent that holds it, else when its cell was touched, of a value when it flipped."""
        rows, form = self._rows[sign][places], self._group.form
        if form.by_extent:
            return np.full(len(rows), self._moves.boundary if sign > 0 else self._moves.former + form.window.slide_us)
        members, groups = self._readers.numbers[self._cells.readers[rows]], self._cells.groups[rows]
        if form.distinct and sign > 0:
            return self._moves.touches.flipped(members, groups, self._cells.now[0, rows])
        return self._moves.touches.touched(members, groups)

    def logged(self) -> dict[int, list[Results]]:
        """The changes of each logged reader that has any, - before +, each in order of time."""
        found: dict[int, list[Results]] = {}
        for sign in (-1, 1):
            offsets, listed = self.lists(sign)
            spans = [(reader, int(offsets[reader]), int(offsets[reader + 1])) for reader in self._readers.logged]
            spans = [span for span in spans if span[1] < span[2]]
            if not spans:
                continue
            places = np.concatenate([listed[first:last] for _, first, last in spans])
            times = self.times(sign, places)
            owners = np.repeat(np.arange(len(spans)), [last - first for _, first, last in spans])
            since = times - times.min()
            order = np.argsort(owners * (int(since.max()) + 1) + since, kind="stable")
            whole = Results(self.columns(sign, places[order]), times[order], sign)
            at = 0
            for reader, first, last in spans:
                found.setdefault(reader, []).append(whole.take(slice(at, at + last - first)))
                at += last - first
        return found


class CellRows:
    """Rows of one sign of readers whose columns have the same names, for the listeners of `on_commit`."""

    __slots__ = ("_changes", "_sign", "_ids", "_offsets", "_places")

    def __init__(self, changes: FaceChanges, sign: int, ids: Array, first: int, last: int) -> None:
        """`ids`: the query ids, in the order of readers; `first` .. `last`: the readers."""
        self._changes = changes
        self._sign = sign
        offsets, listed = changes.lists(sign)
        self._ids = ids[first:last]
        self._offsets = offsets[first : last + 1]
        #: the rows of the part among those of the face; all of them are in their own order
        self._places = listed[offsets[first] : offsets[last]]

    @property
    def _whole(self) -> bool:
        return len(self._places) == self._changes.n_rows(self._sign)

    @property
    def _rows(self) -> Array | slice:
        return slice(None) if self._whole else self._places

    @property
    def n_rows(self) -> int:
        return len(self._places)

    def frame(self) -> Frame:
        return ListFrame(self._changes.columns(self._sign, self._rows), self.n_rows)

    def times(self) -> np.ndarray:
        return self._changes.times(self._sign, self._rows)

    def numbers(self) -> np.ndarray:
        """The places of the rows in the part: groups have no row numbers."""
        return np.arange(self.n_rows)

    def row_lists(self) -> RowLists:
        some = np.flatnonzero(np.diff(self._offsets))
        listed = self._places if self._whole else np.arange(self.n_rows, dtype=np.int32)
        return self._ids[some], np.append(self._offsets[some], self._offsets[-1]) - self._offsets[0], listed

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        counts = np.diff(self._offsets)
        some = np.flatnonzero(counts)
        return self._ids[some], counts[some]


def changes_by_face(group: SharedGroup, moves: GroupMoves) -> Iterator[FaceChanges]:
    """The changes of the watched members, by face, in a commit already applied to the group's sums."""
    cells, readers = group.changes(moves), group.readers()
    if len(cells) == 0:
        return
    if len(readers.faces) == 1:
        yield FaceChanges(group, readers.faces[0], cells, moves)
        return
    face_at = readers.face_at[cells.readers]
    order = np.argsort(face_at, kind="stable")
    stops = group_stops(face_at[order])
    for first, stop in zip(np.append(0, stops), stops):
        mine = order[first:stop]
        yield FaceChanges(group, readers.faces[int(face_at[mine[0]])], cells.take(mine), moves)
