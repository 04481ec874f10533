"""All indexes over one row store: built, deleted from and forgotten in one step, each shared by all its users.

    index.end == store.end           for every index, whenever a batch probes: a stream's rows enter all its SteMs at once
    tombstones                       the rows deleted from all of them, so that an index made later leaves them out too

An index is made when the first query needs it and goes with the last. It begins with the rows that come after: a query sees
no row from before its birth. One that does (`history="window"`) calls `recall` first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lineage.schema import Type
from stems.hash_index import HashIndex
from stems.row_store import Page, RowStore
from stems.sorted_index import SortedIndex
from stems.tombstones import Tombstones

Index = HashIndex | SortedIndex


class Indexes:
    """The indexes of one stream."""

    def __init__(self, store: RowStore) -> None:
        self.store = store
        self.tombstones = Tombstones()
        self._hash: dict[tuple[int, ...], HashIndex] = {}
        self._sorted: dict[int, SortedIndex] = {}
        #: how many users each index has; an index is held iff it has one
        self.users: dict[Index, int] = {}

    def hash_on(self, columns: Sequence[int]) -> HashIndex:
        """The equality index on these columns, in this order; to be given back by `release`."""
        key = tuple(columns)
        index = self._hash.get(key)
        if index is None:
            index = self._hash[key] = HashIndex(self.store, key)
        self.users[index] = self.users.get(index, 0) + 1
        return index

    def sorted_on(self, column: int) -> SortedIndex:
        """The index for ranges of this column; to be given back by `release`."""
        index = self._sorted.get(column)
        if index is None:
            index = self._sorted[column] = SortedIndex(self.store, column)
        self.users[index] = self.users.get(index, 0) + 1
        return index

    def release(self, index: Index) -> None:
        """One user less; the last one takes the index away."""
        self.users[index] -= 1
        if not self.users[index]:
            del self.users[index]
            if isinstance(index, HashIndex):
                del self._hash[index.columns]
            else:
                del self._sorted[index.column]

    def recall(self, index: Index) -> None:
        """Index the rows from before the index was made, as far as the store holds them. O(rows)."""
        if index.since > self.store.watermark:
            index.rebuild(self.tombstones.marked(self.store.watermark))

    def build(self, page: Page, at: int, stop: int) -> None:
        """Index rows that were just appended to the store, at offsets at..stop of a page."""
        for index in self.users:
            index.build(page, at, stop)

    def delete(self, positions: np.ndarray) -> None:
        """Rows of a retractable source that were taken back: no index gives them again."""
        positions = positions[positions >= self.store.watermark]
        if len(positions):
            self.tombstones.mark(positions)
            for index in self.users:
                index.delete(positions)

    def forget(self) -> None:
        """The store's watermark has moved."""
        if self.store.watermark >= self.store.end:
            self.tombstones.clear()
        else:
            self.tombstones.drop_below(self.store.watermark)
        for index in self.users:
            index.forget()

    def rebuild(self) -> None:
        """The store closed ranks: its rows have other positions. O(rows) for each index."""
        assert not len(self.tombstones.marked(self.store.watermark)), "only rows that are not deleted closed ranks"
        for index in self.users:
            index.rebuild(np.zeros(0, np.int64))

    def recode(self, column: int) -> None:
        """The dictionary of a string column was compacted, and the store recoded its rows. O(rows) for each index on it."""
        assert self.store.columns[column].type is Type.STRING, "only texts have codes"
        for key, index in self._hash.items():
            if column in key:
                index.rebuild(self.tombstones.marked(self.store.watermark))

    @property
    def n_indexes(self) -> int:
        return len(self.users)

    def stats(self) -> dict[str, dict[str, int]]:
        """By the columns of each index."""
        columns = self.store.columns
        found = {", ".join(columns[at].name for at in key): index.stats() for key, index in self._hash.items()}
        return found | {f"range of {columns[at].name}": index.stats() for at, index in self._sorted.items()}

    def bytes(self) -> int:
        return self.tombstones.bytes() + sum(index.bytes() for index in self.users)

    def check(self) -> None:
        """All invariants, of every index too."""
        assert set(self.users) == {*self._hash.values(), *self._sorted.values()}, "an index is held iff it has users"
        assert all(users > 0 for users in self.users.values())
        for index in self.users:
            assert index.end == self.store.end, "a row enters all indexes at once"
            index.check()
