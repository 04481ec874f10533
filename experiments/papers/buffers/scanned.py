"""Rows in the order of arrival; the whole list is scanned for due rows.

What the papers' baselines keep: the input-triggered approach (N 4.1) and the direct approach (U 2.3.2). It knows nothing of ends,
so every look for due rows touches all of them.
"""

from __future__ import annotations

from experiments.papers.buffers.element import Element
from experiments.papers.buffers.row_buffer import Key, RowBuffer, whole_row


class ListBuffer(RowBuffer):
    kind = "list"

    def __init__(self, key: Key = whole_row) -> None:
        super().__init__(key)
        self._list: list[Element] = []

    def take_ending(self, end: int) -> list[Element]:
        self.touched += len(self._list)
        taken = [row for row in self._list if row.end == end]
        self._list = [row for row in self._list if row.end != end]
        return taken

    def _place(self, element: Element) -> None:
        self._list.append(element)

    def _unplace(self, element: Element) -> None:
        for place, row in enumerate(self._list):
            self.touched += 1
            if row.id == element.id:
                del self._list[place]
                return

    def _take(self, upto: int) -> list[Element]:
        self.touched += len(self._list)
        taken = [row for row in self._list if row.end <= upto]
        if taken:
            self._list = [row for row in self._list if row.end > upto]
        return taken

    def _arranged(self) -> list[Element]:
        return self._list
