"""Slots: the bit positions of query legs in a bit matrix, handed out, taken back and used again.

    taken | free = {0 .. 64 * n_words - 1}, disjoint; the lowest free slot is handed out first

so the matrix is about as wide as there are legs: it doubles when full and halves when a quarter of it would do. Reuse sweeps
nothing: whoever keeps state per slot is told by `on_assign` and resets it, and rows stored before a leg's birth never
count for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np


class Slots:
    """The slots of one page of legs."""

    __slots__ = ("n_words", "_free", "_next", "taken", "_upper", "_on_assign", "_on_resize")

    def __init__(self, on_assign: Callable[[int], None], on_resize: Callable[[int], None]) -> None:
        self.n_words = 1
        #: freed slots below `_next`, a heap
        self._free: list[int] = []
        self._next = 0
        self.taken = 0
        #: those of them in the upper half of the width
        self._upper = 0
        self._on_assign = on_assign
        self._on_resize = on_resize

    def take(self) -> int:
        """The lowest free slot; grows by doubling when there is none."""
        if self._free:
            slot = heapq.heappop(self._free)
        else:
            if self._next == self.n_words * 64:
                self.n_words *= 2
                self._upper = 0
                self._on_resize(self.n_words)
            slot = self._next
            self._next += 1
        self.taken += 1
        self._upper += slot >= self.n_words * 32
        self._on_assign(slot)
        return slot

    def give_back(self, slot: int) -> None:
        heapq.heappush(self._free, slot)
        self.taken -= 1
        self._upper -= slot >= self.n_words * 32

    def shrink(self) -> None:
        """Halve the width while a quarter of it is enough and no slot of the upper half is taken."""
        while self.n_words > 1 and self.taken * 4 <= self.n_words * 64 and not self._upper:
            self.n_words //= 2
            width = self.n_words * 64
            self._next = min(self._next, width)
            self._free = [slot for slot in self._free if slot < width]
            heapq.heapify(self._free)
            half = width // 2
            self._upper = max(0, self._next - half) - sum(slot >= half for slot in self._free)
            self._on_resize(self.n_words)

    def check(self, owned: set[int]) -> None:
        """`owned` are the slots that legs hold."""
        assert len(owned) == self.taken, "every slot taken has an owner"
        assert sum(slot >= self.n_words * 32 for slot in owned) == self._upper, "slots of the upper half are counted"
        assert not owned & set(self._free), "no owned slot is free"
        assert owned | set(self._free) == set(range(self._next)), "every slot handed out is owned or free"


def resized(array: np.ndarray, size: int, fill: int) -> np.ndarray:
    """A copy of `size` entries: cut, or with the new ones filled."""
    out = np.full(size, fill, array.dtype)
    kept = min(len(array), size)
    out[:kept] = array[:kept]
    return out
