"""Slow twin of `stems/row_ends.py`: a dict of deques, one row at a time."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from tests.reference.lives import UNBOUNDED
from tests.reference.values import Value, canonical_row


class SlowRowEnds:
    """The end of every row there ever was, in windows of n rows per key, and which row displaced it."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.starts: list[int] = []
        self.by: list[float] = []
        self._newest: dict[Value, deque[int]] = defaultdict(deque)

    def push(self, key: Sequence[object], start: int) -> None:
        rows = self._newest[canonical_row(key)]
        rows.append(len(self.starts))
        self.starts.append(start)
        self.by.append(UNBOUNDED)
        if len(rows) > self.n:
            self.by[rows.popleft()] = rows[-1]

    def end(self, position: int, taken: int) -> float:
        by = self.by[position]
        return self.starts[int(by)] if by < taken else UNBOUNDED

    def first_alive(self, first: int, taken: int) -> int:
        """The first position from `first` on that no row before `taken` displaces."""
        return next((p for p in range(first, taken) if self.by[p] >= taken), taken)
