"""Ends of micro-batches: positions along a dataset, by the clock and by the number of rows.

    next(start, max_rows)   a position after `start`, or `start` itself when nothing is due:
                            no more than `max_rows` rows, none that is not due, and all that is due where there is room

The walk is in the merged order (`pipeline/merged.py`), by the time columns alone, and goes on where the last call left it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from pipeline.dataset import Dataset
from pipeline.merged import MergedSlices, Position, Slice

#: Parts of a micro-batch in which the walk goes, so that it comes near to the number of rows.
_PARTS = 16


class ReplaySteps:
    """Positions of a dataset, one after the other; `speed` None: everything is due at once."""

    def __init__(
        self, dataset: Dataset, max_rows: int, speed: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._dataset = dataset
        self._slice_rows = max(1, max_rows // (_PARTS * max(1, len(dataset.streams))))
        self._speed = speed
        self._clock = clock
        #: the moment and the event time at which the clock was started
        self._began: tuple[float, int] | None = None
        self._walk: MergedSlices | None = None
        #: the slice that comes next, which was not due or had no room
        self._waiting: Slice | None = None

    def begin(self) -> Position:
        return dict.fromkeys(self._dataset.streams, 0)

    def end(self) -> Position:
        return {name: stored.rows for name, stored in self._dataset.streams.items()}

    def next(self, start: Mapping[str, int], max_rows: int | None) -> Position:
        position = {name: int(start[name]) for name in self._dataset.streams}
        if max_rows is None and self._speed is None:
            return self.end()
        n_rows = 0
        while (some := self._next_slice(position)) is not None:
            # the first always goes, however small the number: a stream that never moves would be no help
            full = max_rows is not None and n_rows and n_rows + some.n_rows > max_rows
            if full or not self._due(some):
                self._waiting = some
                break
            n_rows += some.n_rows
            position = some.end
        return position

    def _next_slice(self, position: Position) -> Slice | None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.start == position:
            return waiting
        if self._walk is None or self._walk.position != position:
            self._walk = MergedSlices(self._dataset, start=position, slice_rows=self._slice_rows, time_only=True)
        return next(self._walk, None)

    def _due(self, some: Slice) -> bool:
        if self._speed is None:
            return True
        if self._began is None:
            self._began = self._clock(), some.first_us
        start, first_us = self._began
        return (some.last_us - first_us) / 1e6 / self._speed <= self._clock() - start
