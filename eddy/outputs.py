"""Which queries read which slots: from a slot's rows to lists per query."""

from __future__ import annotations

import numpy as np

from lineage.slots import grown


class Outputs:
    """Which queries read which slots of a page of legs, kept up to date query by query."""

    def __init__(self) -> None:
        #: id and birth of the first query on each slot; 0 where there is none
        self.query_of = np.zeros(64, np.int64)
        self.born_of = np.zeros(64, np.int64)
        #: further queries on a slot
        self.more: dict[int, list[tuple[int, int]]] = {}
        self._more_arrays: tuple[np.ndarray, np.ndarray] | None = None
        self._version = -1
        #: one entry per query, slots ascending
        self.slot = np.zeros(0, np.int32)
        self.query = np.zeros(0, np.int64)
        self.born = np.zeros(0, np.int64)
        self.class_of = np.zeros(0, np.int32)
        self.no_rows = np.zeros(0, np.int32)

    def grow(self, n_slots: int) -> None:
        self.query_of = grown(self.query_of, n_slots, 0)
        self.born_of = grown(self.born_of, n_slots, 0)
        self._more_arrays = None

    def put(self, slot: int, queries: list[tuple[int, int]]) -> None:
        """The (id, birth) of the queries on a slot are these."""
        self.query_of[slot], self.born_of[slot] = queries[0] if queries else (0, 0)
        if len(queries) > 1:
            self.more[slot] = queries[1:]
            self._more_arrays = None
        elif self.more.pop(slot, None) is not None:
            self._more_arrays = None

    def more_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """`(at, ids)`: the further queries of a slot are `ids[at[slot]:at[slot + 1]]`; `at` is empty when there are none."""
        if self._more_arrays is None:
            at, ids = np.zeros(0, np.int64), np.zeros(0, np.int64)
            if self.more:
                counts = np.zeros(len(self.query_of) + 1, np.int64)
                for slot, held in self.more.items():
                    counts[slot + 1] = len(held)
                at = np.cumsum(counts)
                ids = np.array([id_ for slot in sorted(self.more) for id_, _ in self.more[slot]], np.int64)
            self._more_arrays = (at, ids)
        return self._more_arrays

    def derive(self, slots: np.ndarray, slot_class: np.ndarray, version: int) -> None:
        """Lay the entries out for listing; `slots` are the legs' slots, ascending."""
        if version == self._version:
            return
        self._version = version
        query, born = self.query_of[slots], self.born_of[slots]
        if self.more:
            more = [(slot, id_, when) for slot, held in self.more.items() for id_, when in held]
            slots = np.concatenate([slots, np.array([m[0] for m in more], np.int32)])
            query = np.concatenate([query, np.array([m[1] for m in more], np.int64)])
            born = np.concatenate([born, np.array([m[2] for m in more], np.int64)])
            order = np.argsort(slots, kind="stable")
            slots, query, born = slots[order], query[order], born[order]
        self.slot, self.query, self.born = slots, query, born
        self.class_of = slot_class[slots]
        self.no_rows = np.zeros(len(slots), np.int32)
