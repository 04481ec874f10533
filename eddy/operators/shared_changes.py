"""Changes of a shared group's members in a commit: computed once per face, then cut up for each member's log.

A changed cell is a (member, group) with its measures before and after. Its row leaves the answer (-) if it stood there and is not
the same now, and joins it (+) if it stands now and was not the same: each face keeps all keys, so rows of different groups
are never equal, and the changes are net. Columns and times are made on demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from eddy.base.results import Results
from eddy.matching.row_lists import RowLists
from eddy.operators.shared_form import Face
from eddy.operators.shared_group import SharedGroup
from filters.expressions.evaluate import evaluate, true_rows
from filters.expressions.expression import ColumnRef
from filters.values.vector import Array, Frame, ListFrame, Vector
from lineage.schema import Type
from windows.shared.collecting import Collected, list_by_reader
from windows.shared.touching import Touches


class GroupFrame(Frame):
    """Rows of groups: keys, computed on demand, then aggregates."""

    __slots__ = ("_group", "_groups", "_keys", "aggregates", "overflows")

    def __init__(self, group: SharedGroup, face: Face, groups: Array, measures: Array) -> None:
        super().__init__(len(groups))
        self._group = group
        self._groups = groups
        self._keys: list[Vector] | None = None
        #: aggregates, and how many of them have no value for being too large
        self.aggregates, self.overflows = group.aggregates(face, measures)

    def column(self, position: int) -> Vector:
        n_keys = len(self._group.form.keys)
        if position >= n_keys:
            return self.aggregates[position - n_keys]
        if self._keys is None:
            self._keys = self._group.keys(self._groups)
        return self._keys[position]


class Projected:
    """The output rows of a face for given cells, and which of them are in the answer."""

    def __init__(self, group: SharedGroup, face: Face, groups: Array, measures: Array) -> None:
        self._face = face
        self._group = group
        self._groups = groups
        self._frame = GroupFrame(group, face, groups, measures)
        self._n_keys = len(group.form.keys)
        self.stands = np.ones(len(groups), np.bool_) if group.scalar else measures[0] > 0
        if face.having is not None:
            holds = np.zeros(len(groups), np.bool_)
            holds[true_rows(face.having, self._frame)] = True
            self.stands &= holds

    @cached_property
    def _computed(self) -> list[Vector]:
        assert self._face.columns is not None, "there is something to compute"
        return [evaluate(column, self._frame).widened(column.type) for column in self._face.columns]

    @cached_property
    def _places(self) -> list[int] | None:
        """The group columns behind the output columns; None if any output is computed."""
        columns = self._face.columns
        if columns is None:
            return list(range(self._n_keys + len(self._frame.aggregates)))
        found = [column.position for column in columns if isinstance(column, ColumnRef)]
        return found if len(found) == len(columns) else None

    def columns(self, rows: Array) -> list[Vector]:
        """The output columns of the given cells."""
        if self._places is None:
            return [column.take(rows) for column in self._computed]
        keys = self._group.keys(self._groups[rows])
        n_keys, aggregates = len(keys), self._frame.aggregates
        return [keys[place] if place < n_keys else aggregates[place - n_keys].take(rows) for place in self._places]

    @property
    def telling(self) -> list[Vector]:
        """The columns in which two rows of one group can differ."""
        if self._places is None:
            return self._computed
        return [self._frame.aggregates[place - self._n_keys] for place in self._places if place >= self._n_keys]

    @property
    def errors(self) -> int:
        """Values that could not be computed."""
        return self._frame.overflows + self._frame.errors


def _equal(left: Vector, right: Vector) -> Array:
    """For each row, whether two columns are equal: NULL = NULL, NaN = NaN, -0.0 = 0.0."""
    a, b = left.values, right.values
    if left.type is Type.STRING:
        assert left.dictionary is not None and right.dictionary is not None
        a, b = left.dictionary[a], right.dictionary[b]
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

    Readers are members by their place in the order of the group's readers (`eddy/operators/shared_group.py`).
    """

    def __init__(self, group: SharedGroup, face: Face, cells: Collected, touches: Touches) -> None:
        self._face = face
        self._touches = touches
        self._order = group.readers()
        self._cells = cells
        self._before = Projected(group, face, cells.groups, cells.before)
        self._after = Projected(group, face, cells.groups, cells.now)
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

    @property
    def names(self) -> tuple[str, ...]:
        return self._face.names

    def n_rows(self, sign: int) -> int:
        return len(self._rows[sign])

    def lists(self, sign: int) -> tuple[Array, Array]:
        """Offsets and places of the rows of one sign, by reader."""
        if sign not in self._lists:
            rows = self._rows[sign]
            offsets, listed = np.zeros(len(self._order.numbers) + 2, np.int64), np.empty(len(rows), np.int32)
            list_by_reader(self._cells.readers, rows, offsets, listed)
            self._lists[sign] = offsets[:-1], listed
        return self._lists[sign]

    def columns(self, sign: int, places: Array | slice = slice(None)) -> list[Vector]:
        rows = self._rows[sign][places]
        return (self._before if sign < 0 else self._after).columns(rows)

    def times(self, sign: int, places: Array | slice = slice(None)) -> Array:
        rows = self._rows[sign][places]
        return self._touches.times(self._order.numbers[self._cells.readers[rows]], self._cells.groups[rows])

    def logged(self) -> dict[int, list[Results]]:
        """The changes of each logged reader that has any, - before +, each in order of time."""
        found: dict[int, list[Results]] = {}
        for sign in (-1, 1):
            offsets, listed = self.lists(sign)
            spans = [(reader, int(offsets[reader]), int(offsets[reader + 1])) for reader in self._order.logged]
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
    """Rows of one sign, for the listeners of `on_commit`."""

    __slots__ = ("_changes", "_sign", "_ids")

    def __init__(self, changes: FaceChanges, sign: int, ids: Array) -> None:
        """`ids`: the query ids, in the order of readers."""
        self._changes = changes
        self._sign = sign
        self._ids = ids

    @property
    def n_rows(self) -> int:
        return self._changes.n_rows(self._sign)

    def frame(self) -> Frame:
        return ListFrame(self._changes.columns(self._sign), self.n_rows)

    def times(self) -> np.ndarray:
        return self._changes.times(self._sign)

    def numbers(self) -> np.ndarray:
        """The places of the rows in the part: groups have no row numbers."""
        return np.arange(self.n_rows)

    def row_lists(self) -> RowLists:
        offsets, listed = self._changes.lists(self._sign)
        some = np.flatnonzero(np.diff(offsets))
        return self._ids[some], np.append(offsets[some], len(listed)), listed

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        counts = np.diff(self._changes.lists(self._sign)[0])
        some = np.flatnonzero(counts)
        return self._ids[some], counts[some]


def changes_by_face(group: SharedGroup, touches: Touches) -> Iterator[FaceChanges]:
    """The changes of the watched members, by face, in a commit already applied to the group's sums."""
    cells = group.changes()
    faces = group.readers().faces
    if len(cells) == 0:
        return
    if len(faces) == 1:
        yield FaceChanges(group, faces[0][0], cells, touches)
        return
    for face, first, last in faces:
        mine = np.flatnonzero((cells.readers >= first) & (cells.readers < last))
        if len(mine):
            yield FaceChanges(group, face, cells.take(mine), touches)
