"""Rows that end in the order they came: the due ones are at the front.

    ends ascend from front to back

For edges with the weakest pattern. A row whose end is out of order (inputs of a union that lag each other) is put in its place
from the back, each row passed counted as touched, so the buffer is right for any input and cheap for the one it is meant for.
"""

from __future__ import annotations

from collections import deque

from experiments.papers.buffers.element import Element
from experiments.papers.buffers.row_buffer import Key, RowBuffer, whole_row


class FifoBuffer(RowBuffer):
    kind = "fifo"

    def __init__(self, key: Key = whole_row) -> None:
        super().__init__(key)
        self._queue: deque[Element] = deque()

    def take_ending(self, end: int) -> list[Element]:
        earlier = []
        while self._queue and self._queue[0].end < end:
            earlier.append(self._queue.popleft())
        taken = self._take(end)
        self.touched += len(earlier)
        self._queue.extendleft(reversed(earlier))
        return taken

    def check(self) -> None:
        super().check()
        ends = [row.end for row in self._queue]
        assert ends == sorted(ends), ends

    def _place(self, element: Element) -> None:
        later = []
        while self._queue and self._queue[-1].end > element.end:
            later.append(self._queue.pop())
        self.touched += len(later)
        self._queue.append(element)
        self._queue.extend(reversed(later))

    def _unplace(self, element: Element) -> None:
        for place, row in enumerate(self._queue):
            self.touched += 1
            if row.id == element.id:
                del self._queue[place]
                return

    def _take(self, upto: int) -> list[Element]:
        taken = []
        while self._queue and self._queue[0].end <= upto:
            taken.append(self._queue.popleft())
        self.touched += len(taken)
        return taken

    def _arranged(self) -> list[Element]:
        return list(self._queue)
