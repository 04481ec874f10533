"""What a commit changed for the members of a shared group: once for all that show the same of a group, and cut up for each log.

A changed cell is a (member, group) with its measures before and after. Its row leaves the answer (-) if it stood there and is not
the same now, and joins it (+) if it stands now and was not the same: each face keeps all keys, so rows of different groups
are never equal, and the changes are net.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eddy.reader import Results
from eddy.row_lists import RowLists
from eddy.shared_form import Face
from eddy.shared_group import SharedGroup
from filters.evaluate import evaluate, true_rows
from filters.vector import Array, Frame, ListFrame, Vector
from lineage.schema import Type
from windows.shared.touching import Touches


@dataclass(slots=True)
class Projected:
    """The rows that a face shows of some cells, and which of them stand in the answer."""

    stands: Array
    columns: list[Vector]
    #: values that could not be computed
    errors: int


def project(group: SharedGroup, face: Face, groups: Array, measures: Array) -> Projected:
    """What a face shows of cells with these measures."""
    columns, errors = group.row(face, groups, measures)
    stands = np.ones(len(groups), np.bool_) if group.scalar else measures[0] > 0
    frame = ListFrame(columns, len(groups))
    if face.having is not None:
        holds = np.zeros(len(groups), np.bool_)
        holds[true_rows(face.having, frame)] = True
        stands = stands & holds
    if face.columns is not None:
        columns = [evaluate(column, frame).widened(column.type) for column in face.columns]
    return Projected(stands, columns, errors + frame.errors)


def _equal(left: Vector, right: Vector) -> Array:
    """Where two columns show the same: NULL = NULL, NaN = NaN, -0.0 = 0.0."""
    a, b = left.values, right.values
    if left.type is Type.STRING:
        assert left.dictionary is not None and right.dictionary is not None
        if left.dictionary is not right.dictionary:
            a, b = left.dictionary[a], right.dictionary[b]
    same = a == b
    if left.type is Type.FLOAT:
        same |= (a != a) & (b != b)
    if left.nulls is not None or right.nulls is not None:
        was, now = left.null_mask(), right.null_mask()
        same = np.where(was | now, was == now, same)
    found: Array = same
    return found


class FaceChanges:
    """The changed cells of all members with one face, in order of members."""

    def __init__(
        self, group: SharedGroup, face: Face, numbers: Array, groups: Array, former: Array, now: Array, touches: Touches
    ) -> None:  # fmt: skip
        self._group = group
        self._face = face
        self._numbers = numbers
        self._groups = groups
        self._touches = touches
        self._before = project(group, face, groups, former)
        self._after = project(group, face, groups, now)
        same = self._before.stands & self._after.stands
        for left, right in zip(self._before.columns, self._after.columns, strict=True):
            same &= _equal(left, right)
        #: the cells whose row left, and those whose row came
        self._cells = {-1: np.flatnonzero(self._before.stands & ~same), 1: np.flatnonzero(self._after.stands & ~same)}

    @property
    def names(self) -> tuple[str, ...]:
        return self._face.names

    def numbers(self, sign: int) -> Array:
        """The members of the rows of a sign, ascending."""
        return self._numbers[self._cells[sign]]

    def columns(self, sign: int, rows: Array | slice = slice(None)) -> list[Vector]:
        cells = self._cells[sign][rows]
        return [column.take(cells) for column in (self._before if sign < 0 else self._after).columns]

    def times(self, sign: int, rows: Array | slice = slice(None)) -> Array:
        cells = self._cells[sign][rows]
        return self._touches.times(self._numbers[cells], self._groups[cells])

    def results_of(self, number: int) -> list[Results]:
        """The changes of one member, - before +, each in order of time."""
        parts = []
        for sign in (-1, 1):
            of = self.numbers(sign)
            rows = slice(int(np.searchsorted(of, number)), int(np.searchsorted(of, number, "right")))
            times = self.times(sign, rows)
            if len(times):
                parts.append(Results(self.columns(sign, rows), times, sign).take(np.argsort(times, kind="stable")))
        return parts

    @property
    def errors(self) -> int:
        return self._after.errors


class CellRows:
    """Rows of one sign, for the listeners of `on_commit`."""

    def __init__(self, changes: FaceChanges, sign: int, ids: Array) -> None:
        """`ids`: the query of each member."""
        self._changes = changes
        self._sign = sign
        self._ids = ids

    @cached_property
    def _numbers(self) -> Array:
        return self._changes.numbers(self._sign)

    @property
    def n_rows(self) -> int:
        return len(self._numbers)

    def frame(self) -> Frame:
        return ListFrame(self._changes.columns(self._sign), self.n_rows)

    def times(self) -> np.ndarray:
        return self._changes.times(self._sign)

    def numbers(self) -> np.ndarray:
        """Groups have no row numbers: their places in the part."""
        return np.arange(self.n_rows)

    def row_lists(self) -> RowLists:
        ids, counts = self.counts()
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        return ids, offsets, np.arange(self.n_rows, dtype=np.int32)

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        counts = np.bincount(self._numbers, minlength=len(self._ids))
        listed = np.flatnonzero(counts)
        return self._ids[listed], counts[listed]


def changes_by_face(group: SharedGroup, touches: Touches) -> Iterator[FaceChanges]:
    """What a commit that was applied to a group's sums changed for the members that are watched."""
    changed = group.changes()
    if len(changed) == 0:
        return
    places, groups = changed.places, changed.groups
    number_of = group.sums.reader_of(np.arange(group.sums.shown.n_places))
    numbers = number_of[places]
    # a stable sort of small ints is by digits
    order = np.argsort(numbers.astype(np.uint16) if len(number_of) <= 1 << 16 else numbers, kind="stable")
    faces: dict[Face, list[int]] = {}
    for number in group.watched:
        faces.setdefault(group.members[number].face, []).append(number)
    for face, members in faces.items():
        chosen = order
        if len(faces) > 1:
            mine = np.zeros(int(numbers.max()) + 1 + max(members), np.bool_)
            mine[members] = True
            chosen = order[mine[numbers[order]]]
        if len(chosen):
            now = group.sums.shown.now(places[chosen], groups[chosen])
            yield FaceChanges(group, face, numbers[chosen], groups[chosen], changed.former[:, chosen], now, touches)
