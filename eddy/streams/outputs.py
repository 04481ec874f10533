"""The queries on each slot of a page of legs: from a slot's rows to lists per query.

Nearly every slot has one query: `query_of[slot]`, `born_of[slot]`. Further queries of a slot, which ask for exactly the same
rows, are entries `more_*[:n_more]` in no order. Adding or removing a query costs O(1), and the listing kernels walk the mask of
the legs' slots, so nothing is derived that a change would make stale.

Where a batch holds the rows that leave windows of several lengths, every window class has a segment of it
(`eddy/lives/leaving.py`).
"""

from __future__ import annotations

import numpy as np

from lineage.bits import OutputArrays
from lineage.kernels import kernel
from lineage.slots import resized

#: Columns of segments `[window classes, 4]`: the position of the first row in the store, the rows first..stop of the batch, none
#: where these are equal, and what is added to their numbers in the batch for those in the part.
POSITION, FIRST, STOP, SHIFT = range(4)


@kernel(
    "void(int64[:,::1], int32[::1], int64[::1], int32[::1], int64[::1], int64, int32[::1], int32[::1], int32[::1], int32[::1])"
)
def spread_segments(
    segments: np.ndarray, slot_class: np.ndarray, born_of: np.ndarray, more_slot: np.ndarray, more_born: np.ndarray,
    n_more: int, first_of: np.ndarray, stop_of: np.ndarray, shift_of: np.ndarray, more_first: np.ndarray,
) -> None:  # fmt: skip
    """Fill in the segment of each slot, and each query's first row by its birth."""
    for slot in range(len(slot_class)):
        position, first, stop, shift = segments[slot_class[slot]]
        first_of[slot] = min(first + max(born_of[slot] - position, 0), stop)
        stop_of[slot] = stop
        shift_of[slot] = shift
    for k in range(n_more):
        position, first, stop, _ = segments[slot_class[more_slot[k]]]
        more_first[k] = min(first + max(more_born[k] - position, 0), stop)


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

    def resize(self, n_slots: int) -> None:
        self.query_of = resized(self.query_of, n_slots, 0)
        self.born_of = resized(self.born_of, n_slots, 0)

    def add(self, slot: int, query: int, born: int) -> None:
        """Add a query to a slot."""
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
        """Remove a query from a slot; `heir` is the (id, birth) of another query on it, if there is one."""
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
        """The arrays for the listing kernels: every query from the first row on."""
        return self.query_of, _NO_ROWS, self.more_slot, self.more_query, _NO_ROWS, self.n_more, _NO_ROWS, _NO_ROWS

    def arrays_from(self, first_of_class: np.ndarray, slot_class: np.ndarray) -> OutputArrays:
        """The arrays for the listing kernels: each query from the first row that counts for its window class on."""
        first_of = first_of_class[slot_class]
        more_first = first_of[self.more_slot[: self.n_more]]
        return self.query_of, first_of, self.more_slot, self.more_query, more_first, self.n_more, _NO_ROWS, _NO_ROWS

    def arrays_of(self, segments: np.ndarray, slot_class: np.ndarray) -> OutputArrays:
        """The arrays for the listing kernels: each query from its birth on in the segment of its window class."""
        first_of, stop_of, shift_of = np.empty((3, len(slot_class)), np.int32)
        more_first = np.empty(self.n_more, np.int32) if self.n_more else _NO_ROWS
        spread_segments(
            segments, slot_class, self.born_of, self.more_slot, self.more_born, self.n_more, first_of, stop_of, shift_of,
            more_first,
        )  # fmt: skip
        return self.query_of, first_of, self.more_slot, self.more_query, more_first, self.n_more, stop_of, shift_of


_NO_ROWS = np.zeros(0, np.int32)
