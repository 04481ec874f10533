"""Changed cells of shared aggregates, and lists of them by reader."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from filters.values.vector import Array
from lineage.kernels import kernel


@kernel("void(int64[::1], int64[::1], int64[::1], int32[::1])")
def list_by_reader(readers: np.ndarray, rows: np.ndarray, offsets: np.ndarray, listed: np.ndarray) -> None:
    """List the places in `rows` by reader. `offsets` holds zeros, one for each reader and two more."""
    for k in range(len(rows)):
        offsets[readers[rows[k]] + 2] += 1
    for r in range(2, len(offsets)):
        offsets[r] += offsets[r - 1]
    for k in range(len(rows)):
        reader = readers[rows[k]]
        listed[offsets[reader + 1]] = k
        offsets[reader + 1] += 1


@dataclass(slots=True)
class Collected:
    """Changed cells with their old and new measures; valid until the next changes are asked for."""

    readers: Array
    groups: Array
    #: `[measure, cell]`
    before: Array
    now: Array

    @classmethod
    def none(cls, n_measures: int) -> Collected:
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, np.zeros((n_measures, 0), np.int64), np.zeros((n_measures, 0), np.int64))

    def __len__(self) -> int:
        return len(self.groups)

    def take(self, cells: Array) -> Collected:
        return Collected(self.readers[cells], self.groups[cells], self.before[:, cells], self.now[:, cells])
