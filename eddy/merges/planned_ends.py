"""Rows of a merged stream that are taken back or end earlier than they said, until the clock is there.

    (time, position)    ascending by time: the retraction of that row takes effect then

A retraction that is due travels with the rows of a commit (`eddy/streams/retractions.py`).
"""

from __future__ import annotations

import numpy as np

from eddy.streams.retractions import row_retraction
from eddy.streams.timeline import Rows
from lineage.schema import Schema, Type

_NONE = np.zeros((2, 0), np.int64)


class PlannedEnds:
    """The ends of rows that are to come."""

    __slots__ = ("_planned",)

    def __init__(self) -> None:
        #: times and positions
        self._planned = _NONE

    def __len__(self) -> int:
        return self._planned.shape[1]

    def plan(self, times: np.ndarray, positions: np.ndarray) -> None:
        """Let rows end at times; of equal times the first named comes first."""
        planned = np.concatenate([self._planned, np.stack([times, positions])], axis=1)
        self._planned = planned[:, np.argsort(planned[0], kind="stable")]

    def take(self, clock: int, schema: Schema) -> Rows | None:
        """The retractions up to a clock, as rows; they are planned no more."""
        n = int(np.searchsorted(self._planned[0], clock, "right"))
        if not n:
            return None
        (times, positions), self._planned = self._planned[:, :n], self._planned[:, n:].copy()
        cells = [np.zeros(n, np.float64 if column.type is Type.FLOAT else np.int64) for column in schema.columns]
        return Rows(n, cells, [None] * len(cells), times, row_retraction(positions))

    @property
    def bytes(self) -> int:
        return self._planned.nbytes
