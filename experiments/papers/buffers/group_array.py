"""The latest result of each group, in an array indexed by the group's label (U 5.3.2).

A result with the id of one that is here takes its place: nobody need tell the end of the old one. Places of groups that ended are
used again.
"""

from __future__ import annotations

from collections.abc import Hashable

from experiments.papers.buffers.element import Element
from experiments.papers.buffers.row_buffer import Key, RowBuffer, whole_row


class GroupArray(RowBuffer):
    kind = "array"

    def __init__(self, key: Key = whole_row) -> None:
        super().__init__(key)
        self._array: list[Element | None] = []
        #: label -> place in the array
        self._places: dict[Hashable, int] = {}
        self._free: list[int] = []

    def take_ending(self, end: int) -> list[Element]:
        self.touched += len(self._array)
        return self._emptied([row for row in self._array if row is not None and row.end == end])

    def _place(self, element: Element) -> None:
        if not self._free:
            self._free.append(len(self._array))
            self._array.append(None)
        place = self._free.pop()
        self._places[element.id] = place
        self._array[place] = element

    def _unplace(self, element: Element) -> None:
        self.touched += 1
        self._emptied([element])

    def _take(self, upto: int) -> list[Element]:
        self.touched += len(self._array)
        return self._emptied([row for row in self._array if row is not None and row.end <= upto])

    def _emptied(self, rows: list[Element]) -> list[Element]:
        for row in rows:
            place = self._places.pop(row.id)
            self._array[place] = None
            self._free.append(place)
        return rows

    def _arranged(self) -> list[Element]:
        return [row for row in self._array if row is not None]
