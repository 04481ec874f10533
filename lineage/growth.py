"""Arrays of state that follow a capacity."""

from __future__ import annotations

import numpy as np

#: Capacity of what is empty.
LEAST = 16


def room_for(needed: int, capacity: int) -> int:
    """Return a capacity of at least `needed`, doubled from the present one."""
    capacity = max(capacity, LEAST)
    while capacity < needed:
        capacity *= 2
    return capacity


def fitted(array: np.ndarray, capacity: int, fill: int = 0) -> np.ndarray:
    """Return the array, or a copy whose last axis has that capacity; new places hold `fill`."""
    have = array.shape[-1]
    if have == capacity:
        return array
    shape = (*array.shape[:-1], capacity)
    # zeroed memory is not touched before it is used
    copy = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    kept = min(have, capacity)
    copy[..., :kept] = array[..., :kept]
    return copy


def fitted_rows(array: np.ndarray, capacity: int, fill: int = 0) -> np.ndarray:
    """Return the array, or a copy whose first axis has that capacity; new places hold `fill`."""
    have = len(array)
    if have == capacity:
        return array
    shape = (capacity, *array.shape[1:])
    copy = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    kept = min(have, capacity)
    copy[:kept] = array[:kept]
    return copy
