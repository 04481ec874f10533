"""Slots: the bit positions of query legs in a bit matrix, handed out, taken back and used again.

    taken | free = {0 .. 64 * n_words - 1}, disjoint; the lowest free slot is handed out first

so the matrix is as wide as the most legs there ever were at once, rounded to words. Reuse sweeps nothing: whoever keeps
state per slot is told by `on_assign` and resets it, and rows stored before a leg's birth never count for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np


class Slots:
    """The slots of one page of legs."""

    __slots__ = ("n_words", "_free", "_next", "taken", "_on_assign", "_on_grow")

    def __init__(self, on_assign: Callable[[int], None], on_grow: Callable[[int], None]) -> None:
        self.n_words = 1
        #: freed slots below `_next`, a heap
        self._free: list[int] = []
        self._next = 0
        self.taken = 0
        self._on_assign = on_assign
        self._on_grow = on_grow

    def take(self) -> int:
        """The lowest free slot; grows by doubling when there is none."""
        if self._free:
            slot = heapq.heappop(self._free)
        else:
            if self._next == self.n_words * 64:
                self.n_words *= 2
                self._on_grow(self.n_words)
            slot = self._next
            self._next += 1
        self.taken += 1
        self._on_assign(slot)
        return slot

    def give_back(self, slot: int) -> None:
        heapq.heappush(self._free, slot)
        self.taken -= 1

    def check(self, owned: set[int]) -> None:
        """`owned` are the slots that legs hold."""
        assert len(owned) == self.taken, "every slot taken has an owner"
        assert not owned & set(self._free), "no owned slot is free"
        assert owned | set(self._free) == set(range(self._next)), "every slot handed out is owned or free"


def grown(array: np.ndarray, size: int, fill: int) -> np.ndarray:
    """A copy with room for `size` entries, the new ones filled."""
    out = np.full(size, fill, array.dtype)
    out[: len(array)] = array
    return out
