"""The shared result log of a timeline: which commits there were, and how far the clock went in each.

Results are kept once, and implicitly: a commit is logged as its number and the clock before and after, a stream remembers
how far its row store reached after each commit, and the rows themselves are in the store. The changes of any query in any
logged commit follow from that, so the log costs the same for one query and for ten thousand:

    + of a commit    rows stored in it and still alive at its end
    - of a commit    rows stored before it whose life ended in it

Retention: the newest `MAX_COMMITS` commits, and of each stream `log_rows` rows, with some slack before they are cut back to
that. What is older is gone, and a reader that asks for it is told so. What is kept only to be read with a commit (`hold`: values
that a query took back, the indexes of a text that was replaced) goes with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

#: Commits that a timeline's log holds.
MAX_COMMITS = 65_536
#: Rows of one stream that the log holds. 262,144 rows of five columns are 12 MB: they stay in the last cache level.
LOG_ROWS = 262_144


class Record(NamedTuple):
    """One commit: its number, and the clock before and after."""

    seq: int
    before: int
    after: int


class ResultLog:
    """The commits of one timeline, oldest first."""

    __slots__ = ("records", "gone", "_held")

    def __init__(self) -> None:
        self.records: list[Record] = []
        #: commits up to this one are no longer held
        self.gone = 0
        #: (commit, what to call when it is gone), in order of commits
        self._held: list[tuple[int, Callable[[], None]]] = []

    def append(self, record: Record) -> None:
        assert not self.records or self.records[-1].seq < record.seq, "commits are numbered upwards"
        self.records.append(record)

    def after(self, seq: int) -> list[Record]:
        """The commits held that come after commit `seq`."""
        return self.records[bisect_right(self.records, seq, key=lambda record: record.seq) :]

    def drop(self, n: int) -> None:
        """Forget the oldest n commits."""
        if n:
            self.gone = self.records[n - 1].seq
            del self.records[:n]
            due = bisect_right(self._held, self.gone, key=lambda entry: entry[0])
            for _, release in self._held[:due]:
                release()
            del self._held[:due]

    def hold(self, seq: int, release: Callable[[], None]) -> None:
        """Call `release` once commit `seq`, or the next one of this timeline, is no longer held."""
        self._held.append((seq, release))
