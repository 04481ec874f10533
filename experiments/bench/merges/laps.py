"""Contestants that take turns, a lap each: a new merge is filled with live events, then the rest of the workload is clocked."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from experiments.bench.merges.contestants import BenchedMerge
from experiments.bench.merges.merge_workload import MergeWorkload
from lmerge.streams.elements import ElementBatch

_MIN_LAPS = 21

#: A new contestant and what it takes; contestants of one race may take different elements.
Entry = tuple[Callable[[], BenchedMerge], MergeWorkload]


def run_lap(entry: Entry) -> float:
    """Return the CPU seconds of the clocked pushes for each of their elements."""
    make, workload = entry
    contestant = make()
    for number, batch in workload.pushes[: workload.n_filling]:
        contestant.push(number, batch)
    clocked = workload.pushes[workload.n_filling :]
    gc.collect()
    start = time.thread_time()
    for number, batch in clocked:
        contestant.push(number, batch)
    return (time.thread_time() - start) / workload.n_clocked


class Laps(NamedTuple):
    """CPU seconds an element of every contestant in every lap; the lower quartile counts, which neighbours disturb least."""

    seconds: Mapping[str, list[float]]

    def quartile(self, name: str) -> float:
        return float(np.quantile(self.seconds[name], 0.25))

    def mean(self, name: str) -> float:
        return float(np.mean(self.seconds[name]))

    def ratio(self, name: str, other: str) -> float:
        """How many times the time of `name` that of `other` is."""
        return self.quartile(other) / self.quartile(name)


def race_laps(entries: Mapping[str, Entry], seconds: float) -> Laps:
    """Run laps in turn for about `seconds` in all, and at least so many of each that a quartile says something."""
    found: dict[str, list[float]] = {name: [] for name in entries}
    for entry in entries.values():
        run_lap(entry)
    until = time.perf_counter() + seconds
    while min(map(len, found.values())) < _MIN_LAPS or time.perf_counter() < until:
        for name, entry in entries.items():
            found[name].append(run_lap(entry))
    return Laps(found)


def race_pushes(entries: Mapping[str, Entry]) -> Laps:
    """Fill every contestant once, then clock one push after the other, in turn: for those that take long to fill."""
    found: dict[str, list[float]] = {name: [] for name in entries}
    contestants = {name: make() for name, (make, _) in entries.items()}
    for name, (_, workload) in entries.items():
        for number, batch in workload.pushes[: workload.n_filling]:
            contestants[name].push(number, batch)
    for k in range(min(len(workload.pushes) - workload.n_filling for _, workload in entries.values())):
        for name, (_, workload) in entries.items():
            number, batch = workload.pushes[workload.n_filling + k]
            start = time.thread_time()
            contestants[name].push(number, batch)
            found[name].append((time.thread_time() - start) / len(batch.kinds))
    return Laps(found)


def check_outputs(workload: MergeWorkload, ours: BenchedMerge, other: BenchedMerge) -> None:
    """Assert that both give out the same elements for each push, in whatever order."""
    for number, batch in workload.pushes:
        ours.push(number, batch)
        other.push(number, batch)
        assert np.array_equal(_in_order(ours.given()), _in_order(other.given())), "they give out other elements"


def _in_order(batch: ElementBatch) -> np.ndarray:
    """Return elements as rows in one order."""
    table = np.stack(list(batch))
    return table[:, np.lexsort(table)]
