"""The steps of one commit, which aggregates apply in order, and the readings: where they write a group's value.

    step      one row that begins (+1) or ends (-1) in its group, in event order
    reading   the state of one group after an event that touched it; one for each (event, group), or for each group when only
              the commit's net counts

A step whose group no later step of the same event touches has a reading, numbered in the order of steps. So an aggregate walks
the steps once: it applies each, and where there is a reading it writes what it is now. Sign 0 changes nothing and is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from filters.values.vector import Array
from lineage.kernels import kernel


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, int64[::1])")
def number_readings(groups: np.ndarray, events: np.ndarray, seen: np.ndarray, first: int, readings: np.ndarray) -> int:
    """Number the readings: write each step's or -1, return how many. `events` ascend from `first`, above the events in `seen`."""
    n = len(groups)
    for k in range(n - 1, -1, -1):
        group, event = groups[k], first + events[k]
        readings[k] = 0 if seen[group] != event else -1
        seen[group] = event
    count = np.int64(0)
    for k in range(n):
        if readings[k] == 0:
            readings[k] = count
            count += 1
    return int(count)


@dataclass(slots=True)
class AggregateSteps:
    """The steps of one commit: group, slot, sign and reading of each."""

    #: the row of each, by its slot; 0 under sign 0
    slots: Array
    signs: Array
    groups: Array
    #: its reading, or -1
    readings: Array
    n_readings: int

    def __len__(self) -> int:
        return len(self.slots)
