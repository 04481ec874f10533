"""Which queries read which slots of a page of legs: from a slot's rows to lists per query.

Nearly every slot has one query: `query_of[slot]`, `born_of[slot]`. Further queries of a slot, which ask for exactly the same
rows, are entries `more_*[:n_more]` in no order. Adding or removing a query costs O(1), and the listing kernels walk the mask of
the legs' slots, so nothing is derived that a change would make stale.
"""

from __future__ import annotations

import numpy as np

from lineage.batch import OutputArrays
from lineage.slots import resized


class Outputs:
    """The queries of one page of legs."""

    def __init__(self) -> None:
        #: id and birth of the first query on each slot; 0 where there is none
        self.query_of = np.zeros(64, np.int64)
        self.born_of = np.zeros(64, np.int64)
        #: slot, id and birth of further queries, and where each query's entry is
        self.more_slot = np.zeros(64, np.int32)
        self.more_query = np.zeros(64, np.int64)
        self.more_born = np.zeros(64, np.int64)
        self.n_more = 0
        self._more_at: dict[int, int] = {}
        #: no query was born later
        self._latest_birth = 0

    def resize(self, n_slots: int) -> None:
        self.query_of = resized(self.query_of, n_slots, 0)
        self.born_of = resized(self.born_of, n_slots, 0)

    def add(self, slot: int, query: int, born: int) -> None:
        """One more query reads a slot."""
        self._latest_birth = max(self._latest_birth, born)
        if not self.query_of[slot]:
            self.query_of[slot], self.born_of[slot] = query, born
            return
        if self.n_more == len(self.more_slot):
            self.more_slot = resized(self.more_slot, 2 * self.n_more, 0)
            self.more_query = resized(self.more_query, 2 * self.n_more, 0)
            self.more_born = resized(self.more_born, 2 * self.n_more, 0)
        at = self.n_more
        self.more_slot[at], self.more_query[at], self.more_born[at] = slot, query, born
        self._more_at[query] = at
        self.n_more += 1

    def remove(self, slot: int, query: int, heir: tuple[int, int] | None) -> None:
        """A query reads a slot no more; `heir` is the (id, birth) of another one that reads it, if any does."""
        if self.query_of[slot] == query:
            self.query_of[slot], self.born_of[slot] = heir or (0, 0)
            if heir is None:
                return
            query = heir[0]
        at = self._more_at.pop(query)
        self.n_more -= 1
        last = self.n_more
        if at < last:
            # the last entry takes the place that was freed
            self.more_slot[at], self.more_query[at], self.more_born[at] = (
                self.more_slot[last],
                self.more_query[last],
                self.more_born[last],
            )
            self._more_at[int(self.more_query[at])] = at

    def readers(self, slot: int) -> list[tuple[int, int]]:
        """The (id, birth) of the queries on a slot; slow."""
        found = [(int(self.query_of[slot]), int(self.born_of[slot]))] if self.query_of[slot] else []
        mine = np.flatnonzero(self.more_slot[: self.n_more] == slot)
        return found + [(int(self.more_query[at]), int(self.more_born[at])) for at in mine]

    def arrays(self) -> OutputArrays:
        """As the listing kernels take them: every query from the first row on."""
        return self.query_of, _NO_ROWS, self.more_slot, self.more_query, _NO_ROWS, self.n_more

    def arrays_from(self, first_of_class: np.ndarray, slot_class: np.ndarray) -> OutputArrays:
        """The same, each query from the first row that counts for its window class on."""
        first_of = first_of_class[slot_class]
        return self.query_of, first_of, self.more_slot, self.more_query, first_of[self.more_slot[: self.n_more]], self.n_more

    def arrays_since_birth(self, base: int, n_rows: int) -> OutputArrays:
        """The same for rows base.. of the store, each query from its birth on."""
        if base >= self._latest_birth:
            return self.arrays()
        first_of, more_first = rows_since(self.born_of, base, n_rows), rows_since(self.more_born, base, n_rows)
        return self.query_of, first_of, self.more_slot, self.more_query, more_first, self.n_more


def rows_since(born: np.ndarray, base: int, n_rows: int) -> np.ndarray:
    """Births as numbers of rows of a batch that begins at position `base`."""
    first: np.ndarray = np.clip(born - base, 0, n_rows).astype(np.int32)
    return first


_NO_ROWS = np.zeros(0, np.int32)
