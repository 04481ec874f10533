"""Small numbers that are handed out and taken back: slots of rows, codes of values, ids of copies.

    capacity    every number is below it: the size of the arrays that are indexed by these numbers
    high        numbers from it on have not been handed out
    free        a stack of numbers below it that have been taken back
    limit       numbers from it on are not handed out again; the capacity, unless that is about to fall

Capacity doubles when it is full. When an eighth of it or less is in use, only the numbers below twice as many as are alive are
handed out, and the capacity falls as far as no number that is alive is beyond it. The owner says what is alive by an array that
is not 0 there. It looks when as many numbers have been freed as an eighth of the capacity, and at least every sixteenth time any
is: constant work for each.

Kernels hand out and take back through `free` and `header` themselves: `hand_out`, `take_back`.
"""

from __future__ import annotations

import numpy as np

from lineage.growth import LEAST, fitted, room_for
from lineage.kernels import Number, inline

#: A capacity up to this does not fall before nothing is alive.
_SMALL = 1024

#: Places of `header`.
_HIGH, _N_FREE, _LIMIT = 0, 1, 2


@inline
def hand_out(free: Number, header: Number) -> Number:
    """Return a free number; there is one."""
    if header[_N_FREE] > 0:
        header[_N_FREE] -= 1
        number = free[header[_N_FREE]]
    else:
        number = header[_HIGH]
        header[_HIGH] += 1
    return number


@inline
def take_back(number: Number, free: Number, header: Number) -> None:
    if number < header[_LIMIT]:
        free[header[_N_FREE]] = number
        header[_N_FREE] += 1


class Numbers:
    """A pool of numbers; the owner knows which number belongs to what."""

    __slots__ = ("capacity", "free", "header", "_until_look")

    def __init__(self) -> None:
        self.capacity = LEAST
        self.free = np.zeros(LEAST, np.int64)
        self.header = np.array([0, 0, LEAST], np.int64)
        self._until_look = LEAST

    @property
    def _available(self) -> int:
        high, n_free, limit = self.header.tolist()
        return n_free + limit - high  # type: ignore[no-any-return]  # numpy has no types for lists

    def reserve(self, n: int, alive: np.ndarray) -> bool:
        """Make sure of `n` free numbers; returns whether the capacity grew."""
        if n <= self._available:
            return False
        if self.header[_LIMIT] < self.capacity:
            self._open(self.capacity, alive)
        missing = n - self._available
        if missing <= 0:
            return False
        self.capacity = room_for(self.capacity + missing, self.capacity)
        self.free = fitted(self.free, self.capacity)
        self.header[_LIMIT] = self.capacity
        return True

    def _open(self, limit: int, alive: np.ndarray) -> None:
        """Put the numbers below `limit` that are not alive on the stack, the lowest on top."""
        free = np.flatnonzero(alive[:limit] == 0)[::-1]
        self.free[: len(free)] = free
        self.header[:] = limit, len(free), limit

    def take(self, n: int) -> np.ndarray:
        """Return numbers for new things; they are reserved before."""
        high, n_free, _ = self.header.tolist()
        reused = min(n, n_free)
        self.header[_HIGH] = high + n - reused
        self.header[_N_FREE] = n_free - reused
        return np.concatenate([self.free[n_free - reused : n_free][::-1], np.arange(high, high + n - reused)])

    def give(self, numbers: np.ndarray) -> None:
        """Take back the numbers of things that are gone."""
        numbers = numbers[numbers < self.header[_LIMIT]]
        n_free = int(self.header[_N_FREE])
        self.free[n_free : n_free + len(numbers)] = numbers
        self.header[_N_FREE] = n_free + len(numbers)

    def shrink(self, n_freed: int, alive: np.ndarray, n_alive: int) -> bool:
        """Shrink, if it is time, after `n_freed` numbers were taken back; returns whether the capacity fell."""
        self._until_look -= 8 * n_freed + self.capacity // 16 + 1
        if self._until_look > 0:
            return False
        self._until_look = self.capacity
        if self.capacity <= _SMALL or 8 * n_alive > self.capacity:
            return False
        enough = room_for(2 * n_alive, _SMALL)
        if self.header[_LIMIT] != enough:
            self._open(enough, alive)
        capacity = room_for(int(np.flatnonzero(alive).max(initial=-1)) + 1, enough)
        if capacity == self.capacity:
            return False
        self.capacity = capacity
        self.free = fitted(self.free, capacity)
        return True

    @property
    def bytes(self) -> int:
        return self.free.nbytes

    def check(self, alive: np.ndarray) -> None:
        """Assert that every number is alive, free once, or not yet handed out."""
        high, n_free, limit = self.header.tolist()
        free = self.free[:n_free].tolist()
        live = np.flatnonzero(alive)
        assert len(alive) == self.capacity >= limit >= high, "arrays by number have the capacity"
        assert len(set(free)) == n_free and not set(free) & set(live.tolist()), "a number is free once, or alive"
        assert n_free + np.count_nonzero(live < limit) == high, "every number handed out is free or alive"
