"""Signed changes as elements, and back: the form of the open/close model of the LMerge paper (its Example 3).

    change      (sign, time, payload)    + at the start of a row's life, - at its end, in order of time
    elements    a + is insert(p, time, no end); a - gives an open event its end: of equal rows the oldest ends first
    one life    contiguous lives are one: a + at the instant at which an equal row ended opens it again; a row that ends at the
                instant at which it began was never there

So two change streams of one answer, cut in other places, make the same table although one takes a row back and gives it again
where the other keeps it. Back from elements: of every event a + at its start and a - at its end.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from lineage.elements import FOREVER
from lmerge.streams.elements import ADJUST, INSERT, ElementBatch
from lmerge.streams.table import TemporalTable


class SignedChanges(NamedTuple):
    """Changes of a bag of rows, in order of time."""

    signs: np.ndarray
    times: np.ndarray
    payloads: np.ndarray


class ChangeReader:
    """Elements of a stream of signed changes. It keeps the starts of open rows, and of those that ended at the last instant."""

    def __init__(self) -> None:
        #: Starts of the open rows of each payload, the oldest first.
        self._open: dict[int, deque[int]] = {}
        #: The same of rows that ended at the last instant.
        self._ended: dict[int, deque[int]] = {}
        self._now = -FOREVER

    def read(self, changes: SignedChanges) -> ElementBatch:
        """The elements of further changes; no change lies before an earlier one, and a - has an open row."""
        rows = [
            self._closed(payload, time) if sign < 0 else self._opened(payload, time)
            for sign, time, payload in zip(changes.signs.tolist(), changes.times.tolist(), changes.payloads.tolist())
        ]
        columns = np.array(rows, np.int64).reshape(-1, 5)
        return ElementBatch(*(np.ascontiguousarray(columns[:, k]) for k in range(5)))

    def _opened(self, payload: int, time: int) -> tuple[int, int, int, int, int]:
        self._reach(time)
        ended = self._ended.get(payload)
        if not ended:
            self._open.setdefault(payload, deque()).append(time)
            return INSERT, time, payload, 0, FOREVER
        # the youngest of those that ended now is older than every row that is open
        start = ended.pop()
        self._open.setdefault(payload, deque()).appendleft(start)
        return ADJUST, start, payload, time, FOREVER

    def _closed(self, payload: int, time: int) -> tuple[int, int, int, int, int]:
        self._reach(time)
        starts = self._open.get(payload)
        assert starts, f"a row with payload {payload} ends at {time} that is not there"
        # one that opened at this instant comes to nothing: the order of changes within an instant does not matter
        start = starts.pop() if starts[-1] == time else starts.popleft()
        if not starts:
            del self._open[payload]
        if start < time:
            self._ended.setdefault(payload, deque()).append(start)
        return ADJUST, start, payload, FOREVER, time

    def _reach(self, time: int) -> None:
        """Go to an instant: what ended before it stays ended."""
        assert time >= self._now, f"a change at {time} comes after one at {self._now}"
        if time > self._now:
            self._now = time
            self._ended.clear()

    def adopt(self, other: ChangeReader) -> None:
        """Take over the open rows of another reader by value: those of equal payloads have its starts from now on.

        A plan that began later has the same rows and other starts for those that were open then (L10). The two must hold the same
        bag.
        """
        assert self.n_open() == other.n_open(), "the two streams hold different rows"
        self._open = {payload: deque(starts) for payload, starts in other._open.items()}
        self._ended = {payload: deque(starts) for payload, starts in other._ended.items()}
        self._now = other._now

    def n_open(self) -> dict[int, int]:
        """How many rows of each payload are open."""
        return {payload: len(starts) for payload, starts in self._open.items()}


def changes_of(table: TemporalTable) -> SignedChanges:
    """The changes that a table implies: - before + within an instant, both in order of payload; none for an end that is not."""
    ending = table.ends < FOREVER
    times = np.concatenate([table.ends[ending], table.starts])
    signs = np.concatenate([np.full(np.count_nonzero(ending), -1), np.ones(len(table.starts), np.int64)])
    payloads = np.concatenate([table.payloads[ending], table.payloads])
    counts = np.concatenate([table.counts[ending], table.counts])
    order = np.lexsort((payloads, signs, times))
    order = np.repeat(order, counts[order])
    return SignedChanges(signs[order], times[order], payloads[order])
