"""The replay of a dataset into an engine or a service, at the speed of its own clock.

    replay(dataset, target, speed)      slices in the merged order (`pipeline/merged.py`), read ahead by a thread, each
                                        taken by the target when its last row is due (`pipeline/pace.py`)

A target is an engine in this process or a service (`pipeline/targets.py`). It knows the position up to which it has taken
rows, and the replay begins there: the position lies with the rows, so the two cannot disagree. A service keeps both, and whatever
ended a replay (Ctrl-C, a kill, a service that went away), the next one goes on without loss or duplicate. An engine in this
process keeps neither: a replay into it begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from lineage.errors import ConflictError
from pipeline.dataset import Dataset
from pipeline.merged import SLICE_ROWS, MergedSlices, Position, Slice
from pipeline.pace import ReplayPace
from pipeline.read_ahead import ReadAhead

#: Seconds of the wall clock whose rows go together, at most: rows wait that long for those after them.
TICK = 0.1
#: How often the position may turn out to have moved before the replay gives up.
_MOVES = 100


class Moved(Exception):
    """The target's position is not the start of the slice: another sender pushes the same data."""


class Target(Protocol):
    """The receiver of a replay's rows."""

    def position(self) -> Position:
        """Return the number of rows of each stream that were taken."""
        ...

    def take(self, some: Slice) -> int:
        """Take a slice that begins at the position, once; return how many rows were late. Raise `Moved` if it begins
        elsewhere."""
        ...


@dataclass(slots=True)
class ReplayProgress:
    """The progress of a replay."""

    #: rows of the dataset, and those that had been taken before
    total: int
    before: int = 0
    #: rows taken now, how many were late, and slices
    rows: int = 0
    late: int = 0
    slices: int = 0
    #: event time of the last row; None before the first
    time_us: int | None = None
    position: Position = field(default_factory=dict)
    #: seconds behind the clock now and at worst
    lag: float = 0.0
    max_lag: float = 0.0
    #: seconds since the first slice was there
    seconds: float = 0.0
    #: CPU seconds of the thread that reads ahead
    reading_cpu: float = 0.0

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


def replay(
    dataset: Dataset,
    target: Target,
    pace: ReplayPace,
    *,
    slice_rows: int = SLICE_ROWS,
    span_us: int | None = None,
    tell: Callable[[ReplayProgress], object] = lambda progress: None,
    progress: ReplayProgress | None = None,
) -> ReplayProgress:
    """Replay the rows that the target has not taken; `tell` is called after every slice, `progress` shows how far it came.

    A slice has less event time than `span_us`, and than the pace allows.
    """
    found = progress if progress is not None else ReplayProgress(0)
    found.total = sum(stored.rows for stored in dataset.streams.values())
    found.position = target.position()
    found.before = sum(found.position.values())
    if pace.speed is not None:
        tick_us = max(1, round(TICK * pace.speed * 1e6))
        span_us = tick_us if span_us is None else min(span_us, tick_us)
    for _ in range(_MOVES):
        try:
            _from_position(dataset, target, pace, slice_rows, span_us, tell, found)
            return found
        except Moved:
            found.position = target.position()
            found.before = sum(found.position.values()) - found.rows
    raise ConflictError(
        "another replay of this dataset feeds the same streams", code="two_replays", hint="one at a time: stop the other first"
    )


def _from_position(
    dataset: Dataset,
    target: Target,
    pace: ReplayPace,
    slice_rows: int,
    span_us: int | None,
    tell: Callable[[ReplayProgress], object],
    found: ReplayProgress,
) -> None:
    slices = MergedSlices(dataset, start=found.position, slice_rows=slice_rows, span_us=span_us)
    clock = time.perf_counter
    with ReadAhead(slices) as ahead:
        began = None
        seconds, reading = found.seconds, found.reading_cpu
        for some in ahead:
            if began is None:
                began = clock()
                pace.begin(some.first_us)
            pace.wait(some.last_us)
            found.late += target.take(some)
            found.rows += some.n_rows
            found.slices += 1
            found.position = some.end
            found.time_us = some.last_us
            found.lag, found.max_lag = pace.lag, pace.max_lag
            found.seconds = seconds + clock() - began
            found.reading_cpu = reading + ahead.cpu_seconds
            tell(found)
