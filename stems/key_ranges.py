"""Ranges of stored order keys that a band admits beside a probing row.

    low <= stored key - key <= high        exact, as if keys had no last bit; a bound of None is open

Each probing row gets `lowest <= stored key <= highest`, empty (lowest > highest) where nothing can match, as for NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lineage.schema import KEY_MAX, KEY_MIN

_MIN = np.int64(KEY_MIN)
_MAX = np.int64(KEY_MAX)


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """The range of each probing row, bounds inside; empty where lowest > highest."""

    lowest: np.ndarray
    highest: np.ndarray

    def __len__(self) -> int:
        return len(self.lowest)


def shifted_ranges(keys: np.ndarray, nulls: np.ndarray | None, low: int | None, high: int | None) -> KeyRanges:
    """The ranges of `low <= stored key - key <= high`, exact: a sum outside 64 bits is never reached or never passed."""
    lowest, highest = np.full(len(keys), _MIN), np.full(len(keys), _MAX)
    empty = np.zeros(len(keys), np.bool_) if nulls is None else nulls != 0
    if low is not None:
        with np.errstate(over="ignore"):
            lowest = keys + np.int64(low)
        if low > 0:
            empty |= lowest < keys
        else:
            lowest[lowest > keys] = _MIN
    if high is not None:
        with np.errstate(over="ignore"):
            highest = keys + np.int64(high)
        if high < 0:
            empty |= highest > keys
        else:
            highest[highest < keys] = _MAX
    lowest[empty], highest[empty] = 1, 0
    return KeyRanges(lowest, highest)
