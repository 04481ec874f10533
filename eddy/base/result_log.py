"""The shared result log of a timeline: which commits there were, and how far the clock went in each.

Results are kept once, and implicitly: a commit is logged as its number and the clock before and after, a stream remembers
how far its row store reached after each commit, and the rows themselves are in the store. The changes of any query in any
logged commit follow from that, so the log costs the same for one query and for ten thousand:

    + of a commit    rows stored in it and still alive at its end
    - of a commit    rows stored before it whose life ended in it

Only the changes of queries with operators are kept as they were (`eddy/base/change_log.py`).

Retention: the newest `MAX_COMMITS` commits, of each stream `log_rows` rows, and of all that is kept for nothing but the log
`log_bytes` bytes, with some slack before they are cut back to that (`eddy/history/retention.py`). What is older is gone, and a
reader that asks for it is told so. What is kept only to be read with a commit (`hold`: values that a query took back, the
indexes of a text that was replaced) goes with it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from eddy.base.change_log import ChangeLog
    from eddy.base.seat_log import SeatLog

#: Commits that a timeline's log holds.
MAX_COMMITS = 65_536
#: What is kept of a stream, or of an aggregate, whose changes nobody has read: enough to look at, and for a small engine all.
UNREAD_BYTES = 256 << 10
#: What a commit takes itself: three numbers of the timeline, and two of the streams that brought rows.
COMMIT_BYTES = 40


class LoggedCommit(NamedTuple):
    """One commit: its number, and the clock before and after."""

    seq: int
    before: int
    after: int


class CommitEnds:
    """For each commit that brought rows: its number and the end of the stream's store after it; 16 bytes each."""

    __slots__ = ("_seqs", "_ends", "start")

    def __init__(self) -> None:
        self._seqs = array("q")
        self._ends = array("q")
        #: the end of the store before the first of them
        self.start = 0

    def __getstate__(self) -> tuple[np.ndarray, np.ndarray, int]:
        return np.array(self._seqs, np.int64), np.array(self._ends, np.int64), self.start

    def __setstate__(self, state: tuple[np.ndarray, np.ndarray, int]) -> None:
        *numbers, self.start = state
        self._seqs, self._ends = (array("q", each.tobytes()) for each in numbers)

    def __len__(self) -> int:
        return len(self._seqs)

    def append(self, seq: int, end: int) -> None:
        self._seqs.append(seq)
        self._ends.append(end)

    def at(self, seq: int) -> int | None:
        """The end of the store after a commit; None if no commit up to it is held."""
        n = bisect_right(self._seqs, seq)
        return self._ends[n - 1] if n else None

    def reaching(self, position: int) -> int:
        """The first commit after which the end was at or above a position; at most the last commit."""
        return self._seqs[min(bisect_left(self._ends, position), len(self._ends) - 1)]

    def drop(self, gone: int) -> None:
        """Drop the commits up to `gone`."""
        n = bisect_right(self._seqs, gone)
        if n:
            self.start = self._ends[n - 1]
            del self._seqs[:n], self._ends[:n]


class ChangeLogs:
    """The change logs of the queries and templates on one timeline, and their total size."""

    __slots__ = ("logs", "bytes", "added")

    def __init__(self) -> None:
        #: in the order in which they began
        self.logs: dict[ChangeLog | SeatLog, None] = {}
        self.bytes = 0
        #: bytes that came since somebody looked
        self.added = 0

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays: the commits held by the logs, with repetitions, and the bytes of each."""
        found = [pair for log in self.logs for pair in log.sizes()]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def forget(self, gone: int) -> None:
        """Drop the changes of commits up to `gone` from all logs."""
        for log in list(self.logs):
            log.forget(gone)


class ResultLog:
    """The commits of one timeline, oldest first."""

    __slots__ = ("_seqs", "_before", "_after", "gone", "_held", "changes", "charged")

    def __init__(self) -> None:
        self._seqs = array("q")
        self._before = array("q")
        self._after = array("q")
        #: commits up to this one are no longer held
        self.gone = 0
        #: (commit, what to call when it is gone), in order of commits
        self._held: list[tuple[int, Callable[[], None]]] = []
        #: what queries logged
        self.changes = ChangeLogs()
        #: what the rows that came since the log was last cut back can take
        self.charged = 0

    def __getstate__(self) -> tuple[object, ...]:
        numbers = [np.array(each, np.int64) for each in (self._seqs, self._before, self._after)]
        return numbers, self.gone, self._held, self.changes, self.charged

    def __setstate__(self, state: tuple[list[np.ndarray], int, list[tuple[int, Callable[[], None]]], ChangeLogs, int]) -> None:
        numbers, self.gone, self._held, self.changes, self.charged = state
        self._seqs, self._before, self._after = (array("q", each.tobytes()) for each in numbers)

    def __len__(self) -> int:
        return len(self._seqs)

    def append(self, seq: int, before: int, after: int) -> None:
        """Log a commit that took the clock from `before` to `after`."""
        self._seqs.append(seq)
        self._before.append(before)
        self._after.append(after)

    def after(self, seq: int) -> list[LoggedCommit]:
        """The held commits after commit `seq`."""
        n = bisect_right(self._seqs, seq)
        return list(map(LoggedCommit, self._seqs[n:], self._before[n:], self._after[n:]))

    def n_until(self, seq: int) -> int:
        """The number of held commits up to commit `seq`."""
        return bisect_right(self._seqs, seq)

    def clock_before(self, n: int, now: int) -> int:
        """The clock at which the log would begin without its oldest n commits; `now` is the clock after the last commit."""
        return self._before[n] if n < len(self._before) else now

    def clock_after(self, n: int) -> int:
        """The clock after the n-th held commit."""
        return self._after[n]

    def reaching(self, clock: int) -> int | None:
        """The first held commit after which the clock was at or above a time; None if there is none."""
        n = bisect_left(self._after, clock)
        return self._seqs[n] if n < len(self._seqs) else None

    def gone_with(self, n: int) -> int:
        """The value of `gone` after dropping the oldest n commits."""
        return self._seqs[n - 1] if n else self.gone

    def bytes_from(self) -> np.ndarray:
        """For each n, the bytes of the commits from the n-th on, in this log and in the change logs."""
        seqs, sizes = self.changes.sizes()
        n_bytes = np.full(len(self) + 1, COMMIT_BYTES)
        n_bytes[-1] = 0
        np.add.at(n_bytes, np.searchsorted(np.array(self._seqs, np.int64), seqs), sizes)
        return n_bytes[::-1].cumsum()[::-1]

    @property
    def bytes(self) -> int:
        """The bytes of all commits, in this log and in the change logs."""
        return self.changes.bytes + COMMIT_BYTES * len(self)

    def drop(self, n: int) -> None:
        """Forget the oldest n commits."""
        self.charged = self.changes.added = 0
        if n:
            self.gone = self._seqs[n - 1]
            del self._seqs[:n], self._before[:n], self._after[:n]
            self.changes.forget(self.gone)
            due = bisect_right(self._held, self.gone, key=lambda entry: entry[0])
            for _, release in self._held[:due]:
                release()
            del self._held[:due]

    def check(self) -> None:
        """Raise AssertionError if a counter differs from the contents."""
        assert len(self._seqs) == len(self._before) == len(self._after), "a commit has a number and two clocks"
        assert all(one < other for one, other in pairwise([self.gone, *self._seqs])), "commits are numbered upwards"
        assert self.changes.bytes == sum(log.bytes for log in self.changes.logs), "only logs that can be read hold anything"
        assert all(log.bytes == sum(size for _, size in log.sizes()) for log in self.changes.logs), "bytes are those of commits"

    def hold(self, seq: int, release: Callable[[], None]) -> None:
        """Call `release` once commit `seq`, or the next one of this timeline, is no longer held."""
        self._held.append((seq, release))
