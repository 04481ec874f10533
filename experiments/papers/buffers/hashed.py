"""Rows found by id and key alone: a told end touches one row, finding due rows scans all.

For the negative tuple approach (U 2.3.1), where every end is told.
"""

from __future__ import annotations

from collections.abc import Callable

from experiments.papers.buffers.element import Element
from experiments.papers.buffers.row_buffer import Key, RowBuffer, whole_row


class HashBuffer(RowBuffer):
    kind = "hash"

    def __init__(self, key: Key = whole_row) -> None:
        super().__init__(key)
        self._placed: dict[object, Element] = {}

    def take_ending(self, end: int) -> list[Element]:
        return self._take_where(lambda row: row.end == end)

    def _place(self, element: Element) -> None:
        self._placed[element.id] = element

    def _unplace(self, element: Element) -> None:
        self.touched += 1
        self._placed.pop(element.id, None)

    def _take(self, upto: int) -> list[Element]:
        return self._take_where(lambda row: row.end <= upto)

    def _take_where(self, due: Callable[[Element], bool]) -> list[Element]:
        self.touched += len(self._placed)
        taken = [row for row in self._placed.values() if due(row)]
        for row in taken:
            del self._placed[row.id]
        return taken

    def _arranged(self) -> list[Element]:
        return list(self._placed.values())
