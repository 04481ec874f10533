"""Integers that order as the texts of a column do, for aggregates that compare.

    labels[a] < labels[b]  iff  text a < text b       by code; letters compare by their code points

A new text gets the middle between its neighbours, or a place a good deal outside of all. Where there is no integer between two
neighbours all are spread anew: labels then change, but not how any two of them compare.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from lineage.growth import LEAST, fitted, room_for

#: Labels are spread over twice this, and new ones at either end lie this much further out.
_WIDTH = 1 << 61
_STEP = 1 << 31


class TextOrder:
    """Labels of the texts of one column, by code.

    >>> order = TextOrder()
    >>> order.add(0, ["m", "a", "z"])
    False
    >>> [int(label) for label in np.argsort(order.labels[:3])]
    [1, 0, 2]
    """

    __slots__ = ("labels", "_sorted")

    def __init__(self) -> None:
        self.labels = np.zeros(LEAST, np.int64)
        #: texts in order, with their codes
        self._sorted: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, first: int, texts: list[str]) -> bool:
        """Label new texts with codes from `first` on; returns whether the labels of older texts changed."""
        self.labels = fitted(self.labels, room_for(first + len(texts), len(self.labels)))
        changed = False
        for code, text in enumerate(texts, first):
            at = bisect_left(self._sorted, (text, -1))
            first_label = int(self.labels[self._sorted[0][1]]) if self._sorted else _STEP
            last_label = int(self.labels[self._sorted[-1][1]]) if self._sorted else -_STEP
            below = int(self.labels[self._sorted[at - 1][1]]) if at else first_label - 2 * _STEP
            above = int(self.labels[self._sorted[at][1]]) if at < len(self._sorted) else last_label + 2 * _STEP
            self._sorted.insert(at, (text, code))
            self.labels[code] = (below + above) // 2
            if above - below < 2:
                self._spread()
                changed = True
        return changed

    def _spread(self) -> None:
        step = 2 * _WIDTH // (len(self._sorted) + 1)
        for k, (_, code) in enumerate(self._sorted):
            self.labels[code] = -_WIDTH + (k + 1) * step

    @property
    def bytes(self) -> int:
        return self.labels.nbytes + 16 * len(self._sorted)

    def check(self) -> None:
        labels = self.labels[[code for _, code in self._sorted]]
        assert (labels[1:] > labels[:-1]).all(), "labels ascend with the texts"
