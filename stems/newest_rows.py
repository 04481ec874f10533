"""The newest row of each key of a keyed stream, and the ends it gives to older ones (semantics 34).

    place = (1, row, row, hash, key ...)       a `stems/partition_table.py` of one row a key: its newest that is held

A row that comes **lowers** the end of the newest row of its key to its own start, if that is still to come; so does a retraction,
to its own time. Each lowered end is stamped with the commit, for what was true before it can still be asked. A row that is
over keeps its place until a newer one takes it or the store forgets it.

Events are entered in order of their starts, so an end is lowered once at most: whatever comes later finds it reached.
Entering rows again changes no end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lineage.kernels import kernel
from stems.partition_table import COUNT, HASH, KEY, NEWEST, OLDEST, PartitionTable, find_place, free_place, load_end, store_end
from stems.row_store import Page

#: In place of the position of an event that is no row.
RETRACTION = -1


@kernel(
    "int64(int64[:,::1], int64[::1], int64, int64[::1], int64[::1], int64, int64[:,::1], int64[::1], int64[::1], int64[::1], "
    "int64, int64[:,::1], int64[::1])"
)
def enter_events(
    keys: np.ndarray, hashes: np.ndarray, done: int, positions: np.ndarray, starts: np.ndarray, commit: int, table: np.ndarray,
    n_keys: np.ndarray, ends: np.ndarray, commits: np.ndarray, bits: int, lowered: np.ndarray, counts: np.ndarray,
) -> int:  # fmt: skip
    """Let events `done ..` end the newest rows of their keys, listed in `lowered` with the event that did; rows among them take
    their place. `counts` are those lowered by rows, by retractions, and retractions that found no row. Returns how many events
    are in: fewer than all when the table needs more places."""
    for i in range(done, len(hashes)):
        at = find_place(table, hashes[i], keys, i)
        is_row = positions[i] != RETRACTION
        known = table[at, COUNT] != 0
        if is_row and not known and 2 * n_keys[0] >= len(table):
            return i
        newest = table[at, NEWEST]
        if known and newest != positions[i] and load_end(ends, bits, newest) > starts[i]:
            store_end(ends, bits, newest, starts[i])
            store_end(commits, bits, newest, commit)
            lowered[0, counts[0] + counts[1]] = newest
            lowered[1, counts[0] + counts[1]] = i
            counts[0 if is_row else 1] += 1
        elif not is_row:
            counts[2] += 1
        if is_row:
            if not known:
                n_keys[0] += 1
                table[at, COUNT] = 1
                table[at, HASH] = hashes[i]
                for k in range(len(keys)):
                    table[at, KEY + k] = keys[k, i]
            table[at, OLDEST] = positions[i]
            table[at, NEWEST] = positions[i]
    return len(hashes)


@kernel("void(int64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[::1])")
def leave_newest(keys: np.ndarray, hashes: np.ndarray, positions: np.ndarray, table: np.ndarray, n_keys: np.ndarray) -> None:
    """Take rows that are the newest of their keys from them: those keys go."""
    for i in range(len(positions)):
        at = find_place(table, hashes[i], keys, i)
        if table[at, COUNT] != 0 and table[at, NEWEST] == positions[i]:
            n_keys[0] -= 1
            free_place(table, at)


class Events(NamedTuple):
    """Rows and retractions in the order in which they take effect; a retraction has the position `RETRACTION`."""

    keys: np.ndarray
    hashes: np.ndarray
    positions: np.ndarray
    starts: np.ndarray


class NewestRows(PartitionTable):
    """The newest row of each key in some columns of a stream; ends and commits are pages of its owner."""

    __slots__ = ()

    def end_older(
        self, events: Events, commit: int, ends: np.ndarray, commits: np.ndarray, bits: int
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Let events end the newest rows of their keys. Returns the rows whose ends were lowered and the events that did, and the
        counts of `enter_events`."""
        n = len(events.hashes)
        lowered, counts = np.empty((2, n), np.int64), np.zeros(3, np.int64)
        done = 0
        while done < n:
            done = enter_events(
                events.keys, events.hashes, done, events.positions, events.starts, commit, self._table, self._n_keys, ends,
                commits, bits, lowered, counts,
            )  # fmt: skip
            if done < n:
                self._resize(2 * len(self._table))
        return lowered[:, : counts[0] + counts[1]], counts

    def leave_all(self, page: Page, at: int, stop: int) -> None:
        """Rows at offsets at..stop of a page, the oldest of the store, are forgotten."""
        keys, hashes = self.keys_of(page, slice(at, stop))
        leave_newest(keys, hashes, np.arange(page.base + at, page.base + stop), self._table, self._n_keys)
        self._shrink()

    @property
    def n_keys(self) -> int:
        return int(self._n_keys[0])
