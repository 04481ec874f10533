"""The regions of a table's versions on its grouped filters.

A stream keeps region ids with its rows as they come, for a query counts only rows that come after it. The versions of a table
are there before the query, so here nothing is kept: the ranks of all versions held are found when a walk asks for them, and
again when a predicate has come or gone or versions have changed their position. In between only new versions are looked at.
"""

from __future__ import annotations

import numpy as np

from filters.index.bank import FilterBank
from lineage.batch import TupleBatch
from lineage.slots import resized
from stems.row_store import RowStore


class VersionRanks:
    """The ranks of the versions of one store on the filters of one bank, computed on demand."""

    __slots__ = ("_store", "_bank", "_derived", "_ranks", "_ends")

    def __init__(self, store: RowStore, bank: FilterBank) -> None:
        self._store = store
        self._bank = bank
        #: what the ranks were derived from: the predicates, and where the first version stands
        self._derived = (-1, -1)
        #: by filter, the ranks from the first version held on, and the position up to which they are known
        self._ranks: dict[int, np.ndarray] = {}
        self._ends: dict[int, int] = {}

    def at(self, filter_: int, positions: np.ndarray, ranks: np.ndarray) -> None:
        """Fill in the ranks of versions held, in any order."""
        np.take(self._of(filter_), positions - self._store.watermark, out=ranks)

    def _refresh(self) -> None:
        state = (self._bank.version, self._store.watermark)
        if state != self._derived:
            self._derived = state
            self._ranks, self._ends = {}, {}

    def _of(self, filter_: int) -> np.ndarray:
        """The ranks of all versions on a filter, with spare room."""
        self._refresh()
        store, known = self._store, self._ends.get(filter_, self._store.watermark)
        held = self._ranks.get(filter_, np.zeros(64, np.int32))
        if known < store.end:
            n_rows = store.end - store.watermark
            if n_rows > len(held):
                held = resized(held, max(2 * len(held), n_rows), 0)
            for page, at, stop in store.slices(known, store.end):
                first = page.base + at - store.watermark
                batch = TupleBatch(page.cells, page.nulls, at, stop - at)
                self._bank.filters[filter_].find(batch, held[first : first + stop - at])
            self._ranks[filter_], self._ends[filter_] = held, store.end
        return held

    def bytes(self) -> int:
        self._refresh()
        return sum(ranks.nbytes for ranks in self._ranks.values())

    def check(self) -> None:
        """Assert that the ranks agree with the cells."""
        self._refresh()
        for filter_, held in self._ranks.items():
            for page, at, stop in self._store.slices(self._store.watermark, self._ends[filter_]):
                found = np.empty(stop - at, np.int32)
                self._bank.filters[filter_].find(TupleBatch(page.cells, page.nulls, at, stop - at), found)
                first = page.base + at - self._store.watermark
                assert (held[first : first + stop - at] == found).all(), "a version is in the region of its value"
