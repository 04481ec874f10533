"""A dataset into an engine, at the pace of its own clock: the loop, and what it tells of itself.

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
from pipeline.merged import SLICE_ROWS, Merged, Position, Slice
from pipeline.pace import Pace
from pipeline.read_ahead import ReadAhead

#: Seconds of the wall clock whose rows go together, at most: rows wait that long for those after them.
TICK = 0.1
#: How often the position may turn out to have moved before the replay gives up.
_MOVES = 100


class Moved(Exception):
    """The target's position is not where the slice begins: somebody else has sent rows of the same data."""


class Target(Protocol):
    """What takes the rows."""

    def position(self) -> Position:
        """The rows of each stream that it has taken."""
        ...

    def take(self, some: Slice) -> int:
        """Take a slice that begins at the position, once; gives how many of its rows were late. Raises `Moved` if it does not."""
        ...


@dataclass(slots=True)
class Progress:
    """How far a replay is."""

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
    pace: Pace,
    *,
    slice_rows: int = SLICE_ROWS,
    tell: Callable[[Progress], object] = lambda progress: None,
    progress: Progress | None = None,
) -> Progress:
    """Replay what the target has not taken yet. `tell` hears of every slice; `progress` is where whoever stops us can look."""
    found = progress if progress is not None else Progress(0)
    found.total = sum(stored.rows for stored in dataset.streams.values())
    found.position = target.position()
    found.before = sum(found.position.values())
    span_us = None if pace.speed is None else max(1, round(TICK * pace.speed * 1e6))
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
    pace: Pace,
    slice_rows: int,
    span_us: int | None,
    tell: Callable[[Progress], object],
    found: Progress,
) -> None:
    slices = Merged(dataset, start=found.position, slice_rows=slice_rows, span_us=span_us)
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
