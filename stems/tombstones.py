"""Which rows of a store were deleted: a byte a row, in pages that exist only where a row was.

marked = {p : watermark <= p, p was deleted}      pages below the watermark are given back
"""

from __future__ import annotations

import numpy as np

from stems.row_store import PAGE_ROWS


class Tombstones:
    """The deleted rows of one store."""

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        #: position // PAGE_ROWS -> 1 where deleted
        self._pages: dict[int, np.ndarray] = {}

    def mark(self, positions: np.ndarray) -> None:
        numbers = positions // PAGE_ROWS
        for number in np.unique(numbers).tolist():
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = np.zeros(PAGE_ROWS, np.uint8)
            page[positions[numbers == number] - number * PAGE_ROWS] = 1

    def marked(self, first: int) -> np.ndarray:
        """The positions marked from `first` on, ascending."""
        parts = [number * PAGE_ROWS + np.flatnonzero(page) for number, page in sorted(self._pages.items())]
        positions = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return positions[positions >= first]

    def drop_below(self, position: int) -> None:
        below = position // PAGE_ROWS
        for number in [number for number in self._pages if number < below]:
            del self._pages[number]

    def clear(self) -> None:
        self._pages.clear()

    def bytes(self) -> int:
        return sum(page.nbytes for page in self._pages.values())
