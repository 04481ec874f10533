"""The rows of a table as versions: each counts from the commit that wrote it to the one that replaced or deleted it.

Versions are rows of a row store, in the order in which they were written. Beside the store are the commits in which each counts
(`stems/commit_spans.py`):

    opened[v] <= opened[v + 1]          the commit that wrote version v
    closed[v]                           the commit that ended it, `OPEN` while none did
    v counts in commit c                iff opened[v] <= c < closed[v]
    at most one open version a key      and it is the newest one of its key

so the table as it was after any commit can be read as long as its versions are held. `forget` lets go of those that ended up
to a commit before which nobody asks: as soon as they are the larger part, the others close ranks. That is O(1) a version,
amortised, and the only time a version changes its position; its number, kept as its row number, it has for ever.

The open version of a key is found through the newest row of the key in the hash index on the key columns: one look-up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from stems.commit_spans import OPEN, CommitSpans
from stems.indexes import Indexes
from stems.keys import Keys

#: Versions that nobody asks for any more before others close ranks.
MIN_FORGOTTEN = 1024


class Versions:
    """The versions of one table; its rows are in the store of `stems`."""

    def __init__(self, stems: Indexes, key: Sequence[int]) -> None:
        self.store = stems.store
        self._stems = stems
        #: on the key columns, ascending, so that joins on the key share it
        self.key_index = stems.hash_on(sorted(key))
        #: by position less the store's watermark
        self._spans = CommitSpans(64)
        self.n_open = 0
        #: (commit, versions closed up to it) of the commits that closed any, from the last one before which nobody asks
        self._closings: list[tuple[int, int]] = [(0, 0)]
        #: versions closed and let go of
        self._n_forgotten = 0

    # ---- in

    def find(self, keys: Keys) -> np.ndarray:
        """The position of the open version of each key; -1 where there is none."""
        found = self.key_index.newest(keys)
        there = np.flatnonzero(found >= 0)
        found[there[self.closed_at(found[there]) != OPEN]] = -1
        return found

    def close(self, positions: np.ndarray, commit: int) -> None:
        """A commit ends these versions, which are open and different."""
        if len(positions):
            self._spans.close(positions - self.store.watermark, commit)
            self.n_open -= len(positions)
            self._closings.append((commit, self._closings[-1][1] + len(positions)))

    def open(self, n_rows: int, commit: int) -> None:
        """A commit writes so many versions: the next rows of the store."""
        first = self.store.end - self.store.watermark
        if first + n_rows > self._spans.capacity:
            self._spans.fit(max(2 * self._spans.capacity, first + n_rows))
        self._spans.put(slice(first, first + n_rows), commit, OPEN)
        self.n_open += n_rows

    # ---- out

    @property
    def _held(self) -> slice:
        """All versions, as numbers of `_spans`."""
        return slice(self.store.end - self.store.watermark)

    def opened_at(self, positions: np.ndarray) -> np.ndarray:
        return self._spans.opened(positions - self.store.watermark)

    def closed_at(self, positions: np.ndarray) -> np.ndarray:
        return self._spans.closed(positions - self.store.watermark)

    def counts(self, positions: np.ndarray, commit: int) -> np.ndarray:
        """Whether each of these versions counts in a commit."""
        return self._spans.counts(positions - self.store.watermark, commit)

    def end_at(self, commit: int) -> int:
        """The end of the store after a commit."""
        opened = self._spans.opened(self._held)
        return self.store.watermark + int(np.searchsorted(opened, commit, "right"))

    def closed_by(self, commit: int) -> np.ndarray:
        """The positions of the versions that a commit ended, ascending."""
        if self.n_closed_until(commit) == self.n_closed_until(commit - 1):
            return np.zeros(0, np.int64)
        return self.store.watermark + np.flatnonzero(self._spans.closed(self._held) == commit)

    def n_closed_until(self, commit: int) -> int:
        """How many versions ended in the commits up to this one, which is not before what `forget` was told last."""
        return self._closings[max(0, bisect_right(self._closings, (commit, OPEN)) - 1)][1]

    def n_closed_since(self, commit: int) -> int:
        """How many versions ended after such a commit."""
        return self._closings[-1][1] - self.n_closed_until(commit)

    def commit_with(self, n_closed: int) -> int:
        """The first commit up to which at least so many versions had ended."""
        at = bisect_right(self._closings, n_closed - 1, key=lambda pair: pair[1])
        return self._closings[min(at, len(self._closings) - 1)][0]

    # ---- upkeep

    def n_forgettable(self, commit: int) -> int:
        """How many versions go if nobody asks for the table as it was before this commit; none as long as they are few."""
        found = self.n_closed_until(commit) - self._n_forgotten
        return 0 if found < max(MIN_FORGOTTEN, (self.store.end - self.store.watermark) // 2) else found

    def forget(self, commit: int) -> bool:
        """Nobody asks for the table as it was before this commit any more. Returns whether versions changed position."""
        n_closed, n_gone = self.n_closed_until(commit), self.n_forgettable(commit)
        del self._closings[: max(0, bisect_right(self._closings, (commit, OPEN)) - 1)]
        if not n_gone:
            return False
        kept = np.flatnonzero(self._spans.closed(self._held) > commit)
        self.store.close_ranks(self.store.watermark + kept)
        self._spans.keep(kept, max(64, len(kept)))
        self._stems.rebuild()
        self._n_forgotten = n_closed
        return True

    def bytes(self) -> int:
        return self._spans.bytes

    def check(self) -> None:
        """All invariants of the docstring."""
        held = self.store.end - self.store.watermark
        opened, closed = self._spans.opened(self._held), self._spans.closed(self._held)
        assert (np.diff(opened) >= 0).all(), "versions are in the order of the commits that wrote them"
        assert (opened < closed).all(), "no commit ends what it wrote"
        assert self.n_open == np.count_nonzero(closed == OPEN), "open versions are counted"
        assert (np.diff([total for _, total in self._closings]) > 0).all(), "closed versions are summed up"
        assert held - self.n_open == self._closings[-1][1] - self._n_forgotten, "what is closed and not forgotten is held"
        assert (np.diff(self.store.numbers_at(np.arange(self.store.watermark, self.store.end))) > 0).all(), "numbers ascend"
        for page, at, stop in self.store.slices(self.store.watermark, self.store.end):
            first = page.base - self.store.watermark
            rows = (at + np.flatnonzero(closed[first + at : first + stop] == OPEN)).astype(np.int32)
            columns = self.key_index.columns
            nulls = [None if page.nulls is None else page.nulls[column] for column in columns]
            keys = self.key_index.folding.fold([page.cells[column] for column in columns], nulls, rows)
            assert not len(keys.usable) or keys.usable.all(), "no key is NULL"
            assert (self.find(keys) == page.base + rows).all(), "the open version of a key is its newest"
