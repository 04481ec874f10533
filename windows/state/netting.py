"""Changes of equal values cancel out: what remains of a group of events, value by value.

With p beginnings and m ends of a value in a group, min(p, m) of each cancel; the + with the latest starts and the - with the
latest ends remain (semantics 12). Groups are events (ISTREAM, DSTREAM), instants (`emit="event"`) or commits (`emit="commit"`).
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.kernels import kernel
from windows.state.growth import LEAST


@kernel("int64(int64[::1], int64[::1], int64[::1], int64[:,::1], int64[::1])")
def net_groups(codes: np.ndarray, signs: np.ndarray, stops: np.ndarray, counts: np.ndarray, remaining: np.ndarray) -> int:
    """The events of each group that remain, ends before beginnings; group g stops before `stops[g]`. Returns how many.

    `counts[value]` is (ends, beginnings) of the group, 0 between groups.
    """
    n = np.int64(0)
    start = np.int64(0)
    for g in range(len(stops)):
        for k in range(start, stops[g]):
            counts[codes[k], np.int64(signs[k] > 0)] += 1
        for k in range(start, stops[g]):
            code = codes[k]
            cancelled = min(counts[code, 0], counts[code, 1])
            counts[code, 0] = cancelled
            counts[code, 1] = cancelled
        # the first of either sign have a counterpart
        for side in range(2):
            for k in range(start, stops[g]):
                if np.int64(signs[k] > 0) == side:
                    if counts[codes[k], side] > 0:
                        counts[codes[k], side] -= 1
                    else:
                        remaining[n] = k
                        n += 1
        start = stops[g]
    return int(n)


class Netting:
    """Scratch by code for `net_groups`."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        #: by code, 0 between calls: ends, beginnings
        self._counts = np.zeros((LEAST, 2), np.int64)

    def remaining(self, codes: Array, signs: Array, stops: Array, capacity: int) -> Array:
        """Places of the events that remain, ends first within a group; codes are below `capacity`."""
        if len(self._counts) != capacity:
            self._counts = np.zeros((capacity, 2), np.int64)
        found = np.empty(len(codes), np.int64)
        return found[: net_groups(codes, signs, stops, self._counts, found)]

    @property
    def bytes(self) -> int:
        return self._counts.nbytes

    def shrink(self) -> None:
        """Nothing is alive."""
        self._counts = np.zeros((LEAST, 2), np.int64)


def group_stops(*keys: Array) -> Array:
    """Where groups of equal neighbours stop."""
    n = len(keys[0])
    if n == 0:
        return np.zeros(0, np.int64)
    differs = np.zeros(n - 1, np.bool_)
    for key in keys:
        differs |= key[1:] != key[:-1]
    return np.append(np.flatnonzero(differs) + 1, n)
