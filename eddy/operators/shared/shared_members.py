"""The members of a shared group, by number, and what each has of its own: face, constants, names of its columns, birth, reader.

A member is **watched** while it is logged or somebody listens to commits: only then its cells are read at every commit. It is
**logged** from its first reader on (`docs/decisions/0013-aggregates-are-logged-for-readers.md`), the first few from their start
and until their log is given up (`eddy/base/change_log.py`).

**Readers** are the watched members in the order in which their changes are listed: those with one face side by side, of these
those with the same names, then by number. So a face is computed once for all, and a part of a commit is a stretch of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from eddy.operators.shared.shared_form import Face
from filters.expressions.expression import Literal
from filters.values.vector import Array, Vector
from lineage.growth import LEAST, fitted, room_for
from windows.shared.aggregates import SharedAggregates
from windows.state.cells import Cells
from windows.state.netting import group_stops

if TYPE_CHECKING:
    from eddy.operators.shared.shared_operation import SharedOperation

#: Members that are logged though nobody has read them: few enough that it is not felt, and a small engine has a whole log.
_LOGGED = 16

T = TypeVar("T", bound=Hashable)


class Interned(Generic[T]):
    """Equal values under one small number, with a count of those who have it."""

    __slots__ = ("_numbers", "_values", "_counts", "_free")

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        #: by number; None where it is free
        self._values: list[T | None] = []
        self._counts: list[int] = []
        self._free: list[int] = []

    def __getitem__(self, number: int) -> T:
        found = self._values[number]
        assert found is not None, "a number in use"
        return found

    def take(self, value: T) -> int:
        number = self._numbers.get(value)
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number = len(self._values)
                self._values.append(None)
                self._counts.append(0)
            self._numbers[value], self._values[number] = number, value
        self._counts[number] += 1
        return number

    def give(self, number: int) -> bool:
        """Count one less; returns whether nobody has the value any more."""
        self._counts[number] -= 1
        if self._counts[number]:
            return False
        value = self._values[number]
        assert value is not None, "a number in use"
        del self._numbers[value]
        self._values[number] = None
        self._free.append(number)
        return True


class FaceReaders(NamedTuple):
    """The readers of one face, `first` to `last`, and the stretches of those whose columns have the same names."""

    face: Face
    #: by number of the member
    parameters: Cells
    first: int
    last: int
    named: list[tuple[tuple[str, ...], int, int]]


class Readers:
    """The watched members of a group, in order."""

    __slots__ = ("numbers", "ids", "order_of", "faces", "face_at", "logged")

    def __init__(self, members: Members, readers_at: Array) -> None:
        """`readers_at`: the member at each place of what is shown, -1 where there is none."""
        numbers = np.flatnonzero(members.watched)
        faces, names = members.face_of[numbers], members.names_of[numbers]
        order = np.lexsort((numbers, names, faces))
        #: by place in the order: the member, and the id of its query
        self.numbers = numbers[order]
        self.ids = members.ids[self.numbers]
        place_in = np.zeros(len(members.watched), np.int64)
        place_in[self.numbers] = np.arange(len(numbers))
        #: by place of what is shown
        self.order_of = place_in[np.maximum(readers_at, 0)]
        self.faces = [
            FaceReaders(
                members.faces[face], members.parameters[face], first, last,
                [(members.names[names[order[at]]], at, stop) for at, stop in _stretches(names[order], first, last)],
            )
            for first, last in _stretches(faces[order], 0, len(numbers))
            for face in (int(faces[order[first]]),)
        ]  # fmt: skip
        #: by place in the order, the place of its face among those
        self.face_at = np.repeat(np.arange(len(self.faces)), [one.last - one.first for one in self.faces])
        #: places in the order of those who are logged
        self.logged = np.flatnonzero(members.logged[self.numbers]).tolist()


def _stretches(keys: Array, first: int, last: int) -> list[tuple[int, int]]:
    """The runs of equal neighbours between two places."""
    stops = (group_stops(keys[first:last]) + first).tolist()
    return list(zip([first, *stops], stops))


class Members:
    """The members of one group."""

    def __init__(self) -> None:
        self.operations: dict[int, SharedOperation] = {}
        self._free: list[int] = []
        #: by number: the slot of its leg, its birth, its results so far, the id of its query, its face, the names of its columns,
        #: extents that its rows were too late for
        self.slots = np.zeros(LEAST, np.int64)
        self.born = np.zeros(LEAST, np.int64)
        self.results = np.zeros(LEAST, np.int64)
        self.ids = np.zeros(LEAST, np.int64)
        self.face_of = np.zeros(LEAST, np.int64)
        self.names_of = np.zeros(LEAST, np.int64)
        self.missed = np.zeros(LEAST, np.int64)
        #: by number, whether its cells are read, whether its changes are logged, and whether its rows are listed one by one
        self.watched = np.zeros(LEAST, np.bool_)
        self.logged = np.zeros(LEAST, np.bool_)
        self.listed = np.zeros(LEAST, np.bool_)
        self.faces: Interned[Face] = Interned()
        self.names: Interned[tuple[str, ...]] = Interned()
        #: by number of a face, its constants by number of the member
        self.parameters: dict[int, Cells] = {}
        #: counts members that came or went
        self.version = 0
        #: None if they have changed
        self._readers: Readers | None = None

    def __len__(self) -> int:
        return len(self.operations)

    def join(
        self, member: SharedOperation, slot: int, born: int, face: Face, parameters: Sequence[Literal], names: tuple[str, ...]
    ) -> int:  # fmt: skip
        """Add a member that counts rows from `born` on; returns its number."""
        number = self._free.pop() if self._free else len(self.operations)
        if number == len(self.slots):
            self._fit(room_for(number + 1, number))
        self.operations[number] = member
        self.slots[number], self.born[number], self.ids[number] = slot, born, member.query.id
        self.results[number] = self.missed[number] = 0
        self.listed[number] = member.listed
        self.names_of[number] = self.names.take(names)
        kept = self.face_of[number] = self.faces.take(face)
        if kept not in self.parameters:
            self.parameters[kept] = Cells(face.parameters)
        held = self.parameters[kept]
        held.fit(len(self.slots))
        held.put(np.array([number]), [Vector.constant(literal.type, literal.value, 1) for literal in parameters])
        if held.many_texts(len(self)):
            held.compact_texts(np.flatnonzero((self.face_of == kept) & self._present()))
        self._changed()
        return number

    def _present(self) -> Array:
        found = np.zeros(len(self.slots), np.bool_)
        found[list(self.operations)] = True
        return found

    def _fit(self, capacity: int) -> None:
        for name in ("slots", "born", "results", "ids", "face_of", "names_of", "missed", "watched", "logged", "listed"):
            setattr(self, name, fitted(getattr(self, name), capacity))

    def leave(self, number: int) -> None:
        del self.operations[number]
        self.watched[number] = self.logged[number] = self.listed[number] = False
        self.names.give(int(self.names_of[number]))
        face = int(self.face_of[number])
        if self.faces.give(face):
            del self.parameters[face]
        self._free.append(number)
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._readers = None

    def parameters_of(self, number: int) -> list[Vector]:
        """The constants of a member's face, as one row."""
        return self.parameters[int(self.face_of[number])].take(np.array([number]))

    # ---- readers

    def watch(self, numbers: Array, on: bool = True) -> None:
        self.watched[numbers] = on
        self._readers = None

    def log(self, number: int, on: bool = True) -> None:
        self.logged[number] = on
        self._readers = None

    @property
    def logs_more(self) -> bool:
        """Whether so few are logged that one more may be, though nobody has read it."""
        return int(np.count_nonzero(self.logged)) < _LOGGED

    def readers(self, sums: SharedAggregates) -> Readers:
        """The watched members, which these sums are shown to."""
        if self._readers is None:
            self._readers = Readers(self, sums.readers_at())
        return self._readers

    @property
    def bytes(self) -> int:
        arrays = (self.slots, self.born, self.results, self.ids, self.face_of, self.names_of, self.missed)
        return sum(array.nbytes for array in arrays) + sum(held.bytes for held in self.parameters.values())

    def check(self) -> None:
        present = self._present()
        assert not (self.logged & ~self.watched).any() and not (self.watched & ~present).any(), "who is logged is read"
        for number, member in self.operations.items():
            face = int(self.face_of[number])
            assert self.faces[face] == member.face and face in self.parameters, "a group knows the faces of its members"
