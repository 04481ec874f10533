"""Rows partitioned by when they end (U 5.3.2, Figure 7): a calendar.

    partition p holds the rows with  p * width <= end < (p + 1) * width

                 upto
    width  |------|--x---|------|------|     whole partitions before the cut are due, the one that is cut is looked through,
             due    cut    later  later      later ones are not touched

Inside a partition rows are ordered by end (for states that must react to an end at once: insertion looks for the place) or by
insertion (for states that are cleaned now and then: the cut partition is scanned). The paper's array of partitions is a circle
over one window length; here `width` follows the span of the ends that are kept, so no window length need be known, and if the
buffer `adapts`, the number of partitions doubles and halves with the number of rows. A premature end names its row's scheduled
end, so it looks through one partition where the paper scans all.
"""

from __future__ import annotations

from experiments.papers.buffers.element import Element
from experiments.papers.buffers.row_buffer import Key, RowBuffer, whole_row
from lineage.elements import FOREVER

#: Rows a partition above which an adapting buffer has twice as many, and below which half as many.
MOST_ROWS, FEWEST_ROWS = 16, 2


class CalendarBuffer(RowBuffer):
    kind = "calendar"

    def __init__(self, key: Key = whole_row, *, partitions: int = 10, adapts: bool = True, by_end: bool = True) -> None:
        super().__init__(key)
        self._fewest = partitions
        self._adapts = adapts
        self.by_end = by_end
        #: how many partitions the span of ends is meant to fill
        self.partitions = partitions
        self._width = 1
        self._parts: dict[int, list[Element]] = {}
        #: rows without an end
        self._forever: list[Element] = []

    def take_ending(self, end: int) -> list[Element]:
        part = self._forever if end >= FOREVER else self._parts.get(end // self._width, [])
        self.touched += len(part)
        taken = [row for row in part if row.end == end]
        for row in taken:
            part.remove(row)
        self._drop_if_empty(end)
        return taken

    def check(self) -> None:
        super().check()
        for number, part in self._parts.items():
            assert part and all(row.end // self._width == number for row in part), (number, part)
            if self.by_end:
                assert part == sorted(part, key=lambda row: row.end), part
        assert len(self._parts) <= 2 * self.partitions, (len(self._parts), self.partitions)

    def _place(self, element: Element) -> None:
        if element.end >= FOREVER:
            self._forever.append(element)
            return
        self._put(element)
        if self._adapts and len(self._rows) > MOST_ROWS * self.partitions:
            self._spread(self.partitions * 2)
        elif len(self._parts) > 2 * self.partitions:
            self._spread(self.partitions)

    def _put(self, element: Element) -> None:
        part = self._parts.setdefault(element.end // self._width, [])
        place = len(part)
        while self.by_end and place and part[place - 1].end > element.end:
            place -= 1
        self.touched += len(part) - place
        part.insert(place, element)

    def _unplace(self, element: Element) -> None:
        part = self._forever if element.end >= FOREVER else self._parts[element.end // self._width]
        for place, row in enumerate(part):
            self.touched += 1
            if row.id == element.id:
                del part[place]
                break
        self._drop_if_empty(element.end)

    def _drop_if_empty(self, end: int) -> None:
        number = end // self._width
        if number in self._parts and not self._parts[number]:
            del self._parts[number]

    def _take(self, upto: int) -> list[Element]:
        cut = upto // self._width
        taken: list[Element] = []
        for number in sorted(number for number in self._parts if number <= cut):
            part = self._parts.pop(number)
            due = [row for row in part if row.end <= upto]
            # in order of end the look stops at the first row that is not due
            self.touched += min(len(part), len(due) + 1) if self.by_end else len(part)
            taken += due
            if len(due) < len(part):
                self._parts[number] = [row for row in part if row.end > upto]
        if self._adapts and self.partitions > self._fewest and len(self._rows) - len(taken) < FEWEST_ROWS * self.partitions:
            self._spread(max(self._fewest, self.partitions // 2))
        return taken

    def _spread(self, partitions: int) -> None:
        """Lay the rows out again over that many partitions of the span they have now."""
        rows = [row for part in self._parts.values() for row in part]
        self.partitions = partitions
        self._parts = {}
        if rows:
            ends = [row.end for row in rows]
            self._width = max(1, -(-(max(ends) - min(ends) + 1) // partitions))
        for row in rows:
            self.touched += 1
            self._put(row)

    def _arranged(self) -> list[Element]:
        return [row for part in self._parts.values() for row in part] + self._forever
