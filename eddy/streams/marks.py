"""Marks of table changes on a stream: for each row, the last commit of the table before it came.

A row of a stream does not carry its commit. For each stream that queries join with a table, the table notes at every change of
its own how far the stream's row store reached then:

    mark (commit, end)      rows at end and above came after that commit, rows below it before
    commit_of(position)   = the commit of the last mark whose end is not above the position

so it is the last change of the table before the row came, or the commit in which marking began, and for a query that is younger
than the row the commit in which it began. Several marks at one end are
one, the last; marks below the watermark of the stream are one too: there are never more marks than rows held, and one.
"""

from __future__ import annotations

import numpy as np


class Marks:
    """The marks of one table on one stream."""

    __slots__ = ("_commits", "_ends", "_arrays")

    def __init__(self) -> None:
        self._commits: list[int] = []
        self._ends: list[int] = []
        #: the same as arrays; None until asked for
        self._arrays: tuple[np.ndarray, np.ndarray] | None = None

    def __getstate__(self) -> tuple[list[int], list[int]]:
        """All but the arrays, which are rebuilt on demand."""
        return self._commits, self._ends

    def __setstate__(self, state: tuple[list[int], list[int]]) -> None:
        self._commits, self._ends = state
        self._arrays = None

    def note(self, commit: int, end: int) -> None:
        """Note that the stream's rows from `end` on come after this commit."""
        self._arrays = None
        if self._ends and self._ends[-1] == end:
            self._commits[-1] = commit
            return
        assert not self._ends or self._ends[-1] < end, "a store only grows"
        self._commits.append(commit)
        self._ends.append(end)

    def reach_back(self, position: int) -> None:
        """Keep the marks for rows from a position on, for a query that sees them by history."""
        if position < self._ends[0]:
            self._arrays = None
            self._commits.insert(0, self._commits[0] - 1)
            self._ends.insert(0, position)

    def commits_of(self, positions: np.ndarray, opened: int) -> np.ndarray:
        """The commit before each row; rows older than a query that began after `opened` count as if they came then."""
        if self._arrays is None:
            self._arrays = np.array(self._commits, np.int64), np.array(self._ends, np.int64)
        commits, ends = self._arrays
        found: np.ndarray = np.maximum(commits[np.searchsorted(ends, positions, "right") - 1], opened)
        return found

    @property
    def oldest(self) -> int:
        """The earliest commit returned for any row."""
        return self._commits[0]

    def __len__(self) -> int:
        return len(self._ends)

    def trim(self, watermark: int) -> None:
        """Drop the marks of rows below the watermark."""
        n = 0
        while n + 1 < len(self._ends) and self._ends[n + 1] <= watermark:
            n += 1
        if n:
            del self._commits[:n], self._ends[:n]
            self._arrays = None

    def check(self, end: int) -> None:
        """Assert the invariants; `end` is that of the stream's store."""
        assert self._ends and self._ends[-1] <= end, "a mark is inside the store"
        assert all(a < b for a, b in zip(self._ends, self._ends[1:])), "marks ascend"
        assert all(a < b for a, b in zip(self._commits, self._commits[1:])), "commits ascend with them"
