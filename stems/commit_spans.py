"""The commits in which versions of a table's rows count, by the number of the version: opened <= commit < closed.

`stems/table.py` has one for all versions of a table, which joins of streams share; `windows/operators/versions.py` one for the
versions that an operator keeps. What "as it was in a commit" means is said here alone.
"""

from __future__ import annotations

import numpy as np

#: In place of the commit that ended a version, while none did.
OPEN = 2**62


class CommitSpans:
    """For each number below a capacity, the commits that opened and closed its version.

    >>> spans = CommitSpans(4)
    >>> spans.put(np.array([0, 1]), np.array([3, 4]), OPEN); spans.close(np.array([0]), 5)
    >>> [spans.counts(np.array([0, 1]), commit).tolist() for commit in (3, 4, 5)]
    [[True, False], [True, True], [False, True]]
    """

    __slots__ = ("_opened", "_closed")

    def __init__(self, capacity: int) -> None:
        self._opened = np.zeros(capacity, np.int64)
        self._closed = np.zeros(capacity, np.int64)

    @property
    def capacity(self) -> int:
        return len(self._opened)

    def put(self, numbers: np.ndarray | slice, opened: np.ndarray | int, closed: np.ndarray | int) -> None:
        """Give versions these numbers; they count from `opened` on, until `closed`."""
        self._opened[numbers], self._closed[numbers] = opened, closed

    def close(self, numbers: np.ndarray, commit: int) -> None:
        """End versions in a commit."""
        self._closed[numbers] = commit

    def opened(self, numbers: np.ndarray | slice) -> np.ndarray:
        """Return the commits that opened versions."""
        return self._opened[numbers]

    def closed(self, numbers: np.ndarray | slice) -> np.ndarray:
        """Return the commits that closed versions; `OPEN` where none did."""
        return self._closed[numbers]

    def counts(self, numbers: np.ndarray, commits: np.ndarray | int) -> np.ndarray:
        """Return which versions count in a commit: one for all, or one for each."""
        return (self.opened(numbers) <= commits) & (commits < self.closed(numbers))

    def keep(self, numbers: np.ndarray | slice, capacity: int) -> None:
        """Forget all versions but these, which get the first numbers in this order; `capacity` has room for them."""
        before = self._opened[numbers], self._closed[numbers]
        self._opened, self._closed = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
        self.put(slice(len(before[0])), *before)

    def fit(self, capacity: int) -> None:
        """Change the capacity; versions with numbers beyond it are dropped."""
        if capacity != self.capacity:
            self.keep(slice(capacity), capacity)

    @property
    def bytes(self) -> int:
        return self._opened.nbytes + self._closed.nbytes
