"""The measures last shown to the readers of shared aggregates, and the list of cells that a commit changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from filters.values.vector import Array
from lineage.growth import LEAST, room_for
from lineage.lanes import LANES


class ShownMeasures:
    """Measures of every (reader, group), by the reader's place: 0 where nothing is shown.

    cells[page, place, measure, lane]      group = page * LANES + lane
    """

    __slots__ = ("cells", "_free", "list")

    def __init__(self, n_measures: int) -> None:
        self.cells = np.zeros((1, LEAST, n_measures, LANES), np.int64)
        #: places nobody has, the lowest last
        self._free = list(range(LEAST - 1, -1, -1))
        #: cells that changed, then a row for each measure that was shown there, and for each that is
        self.list = np.zeros((1 + 2 * n_measures, LEAST), np.int64)

    @property
    def n_places(self) -> int:
        return self.cells.shape[1]

    def hold(self, n_pages: int) -> None:
        """Make room for so many pages of groups."""
        self._fit(n_pages, self.n_places)

    def _fit(self, n_pages: int, n_places: int) -> None:
        have = self.cells.shape
        if (n_pages, n_places) != have[:2]:
            cells = np.zeros((n_pages, n_places, *have[2:]), np.int64)
            cells[: have[0], : have[1]] = self.cells
            self.cells = cells

    def cut(self, n_pages: int) -> None:
        """Drop the pages beyond so many, on which nothing is shown, or make room for more."""
        if n_pages < len(self.cells):
            self.cells = self.cells[:n_pages].copy()
        self.hold(n_pages)

    def blank(self, n_measures: int) -> None:
        """Forget everything shown, and give cells another number of measures."""
        self.cells = np.zeros((*self.cells.shape[:2], n_measures, LANES), np.int64)

    def take_places(self, n: int) -> Array:
        """Return so many free places; their cells are 0."""
        if len(self._free) < n:
            have = self.n_places
            more = room_for(have + n - len(self._free), have)
            self._fit(len(self.cells), more)
            self._free = [*range(more - 1, have - 1, -1), *self._free]
        found = np.array(self._free[len(self._free) - n :][::-1], np.int64)
        del self._free[len(self._free) - n :]
        return found

    def leave_places(self, places: Array) -> None:
        """Give places back."""
        self.cells[:, places] = 0
        self._free.extend(places.tolist())

    def take_all(self) -> MeasureChanges:
        """Return all cells with rows as shown no more, and forget them."""
        pages, places, lanes = np.nonzero(self.cells[:, :, 0])
        former = np.ascontiguousarray(self.cells[pages, places, :, lanes].T)
        self.cells[:] = 0
        return MeasureChanges((places << 32) + pages * LANES + lanes, former, np.zeros_like(former))

    def room(self, capacity: int, listed: int = 0) -> None:
        """Make room for so many cells in the list and keep the first `listed`; memory is reused, for fresh memory is slow."""
        rows = 1 + 2 * self.cells.shape[2]
        if self.list.shape[0] != rows or self.list.shape[1] < capacity:
            list = np.empty((rows, room_for(capacity, LEAST)), np.int64)
            if listed:
                list[:, :listed] = self.list[:, :listed]
            self.list = list

    def changes(self, n: int) -> MeasureChanges:
        """Return the first n cells of the list."""
        n_measures = self.cells.shape[2]
        return MeasureChanges(self.list[0, :n], self.list[1 : 1 + n_measures, :n], self.list[1 + n_measures :, :n])

    def now(self, places: Array, groups: Array) -> Array:
        """Return the measures shown in these cells: `[measure, cell]`."""
        return self.cells[groups // LANES, places, :, groups % LANES].T

    @property
    def bytes(self) -> int:
        return self.cells.nbytes + self.list.nbytes


@dataclass(slots=True)
class MeasureChanges:
    """Cells whose measures changed, with the old and the new ones. Valid until the next changes are asked for."""

    #: place of the reader << 32 | group
    cells: Array
    #: `[measure, cell]`
    former: Array
    now: Array

    @property
    def places(self) -> Array:
        return self.cells >> 32

    @property
    def groups(self) -> Array:
        return self.cells & 0xFFFFFFFF

    def __len__(self) -> int:
        return len(self.cells)
