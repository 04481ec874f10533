"""A dataset of files replayed into the engine, reading ahead on the other core, against the same rows from memory.

Rows of a building's sensors are written once. Then engines with the same queries take turns over all of them: one is given the
slices as they are read, the next the same slices, read before. Results are compared.

The verdict goes by the wall clock, for waiting for each other is what two threads may cost: it wants two free cores. The CPU time
of the busier thread stands beside it, for machines that are busy.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddy import Engine
from experiments.bench.base.machine import Machine
from experiments.bench.base.options import Options, Step
from experiments.bench.base.report import Bar, Line, Measure
from pipeline.dataset import ARROW_TYPES, COMPRESSION, Dataset
from pipeline.draft import Declared, Draft, chunk_name
from pipeline.merged import SLICE_ROWS, MergedSlices, Slice
from pipeline.pace import ReplayPace
from pipeline.replay import replay
from pipeline.targets import EngineTarget

#: The bar of issue 6, and its rows and queries.
BAR = 0.8
ROWS = 10_000_000
QUERIES = 1000
TURNS = 9

SENSORS = 5000
_CHUNK_ROWS = 500_000
_EPOCH_US = 30_000_000
_BEGIN_US = 1_704_067_200_000_000
READINGS = Declared(
    {
        "ts": "timestamp", "sensor": "int", "epoch": "int",
        "temp": "float", "humidity": "float", "light": "float", "voltage": "float",
    },
    time="ts",
)  # fmt: skip


def write_readings(out: Path, n_rows: int, seed: int = 11) -> Dataset:
    """So many readings of a building, each sensor once in an epoch."""
    with Draft(out, kind="sensors", seed=seed, parameters={"rows": n_rows}) as draft:
        (draft.folder / "readings").mkdir()
        for number, first in enumerate(range(0, n_rows, _CHUNK_ROWS)):
            pq.write_table(
                _readings(first, min(_CHUNK_ROWS, n_rows - first), seed), draft.folder / "readings" / chunk_name(number),
                compression=COMPRESSION,
            )  # fmt: skip
        return draft.publish({"readings": READINGS}, {})


def _readings(first: int, n_rows: int, seed: int) -> pa.Table:
    draw = np.random.default_rng([seed, first])
    row = np.arange(first, first + n_rows)
    epoch, sensor = np.divmod(row, SENSORS)
    columns = [
        _BEGIN_US + epoch * _EPOCH_US + sensor * (_EPOCH_US // SENSORS),
        sensor,
        epoch,
        np.round(draw.normal(21, 4, n_rows), 3),
        np.round(draw.normal(40, 8, n_rows), 3),
        np.round(draw.exponential(200, n_rows), 2),
        np.round(draw.uniform(2, 3, n_rows), 4),
    ]
    arrays = [pa.array(values).cast(ARROW_TYPES[word]) for values, word in zip(columns, READINGS.columns.values(), strict=True)]
    return pa.table(arrays, names=list(READINGS.columns))


def make_engine(dataset: Dataset, n_queries: int) -> tuple[Engine, EngineTarget]:
    """An engine with queries of two kinds: one sensor above a limit, and all sensors out of a range in two ways."""
    engine = Engine(seed=0)
    target = EngineTarget(engine, dataset)
    draw = np.random.default_rng(5)
    for n in range(n_queries):
        if n % 2:
            params = {"sensor": int(draw.integers(SENSORS)), "temp": float(draw.uniform(15, 27))}
            engine.submit("SELECT ts, temp FROM readings WHERE sensor = :sensor AND temp > :temp", params=params)
        else:
            params = {"temp": float(draw.uniform(27, 35)), "humidity": float(draw.uniform(30, 50))}
            engine.submit("SELECT ts, sensor, temp FROM readings WHERE temp > :temp AND humidity < :humidity", params=params)
    return engine, target


def results_of(engine: Engine) -> list[int]:
    return [entry["results"] for entry in engine.stats()["queries"].values()]


class ReplayCost(NamedTuple):
    """Seconds of the wall clock; CPU seconds of the busier thread, which are those on a machine with two free cores; results."""

    wall: float
    cpu: float
    results: list[int]


def from_memory(dataset: Dataset, n_queries: int, slices: list[Slice]) -> ReplayCost:
    engine, target = make_engine(dataset, n_queries)
    wall, cpu = time.perf_counter(), time.thread_time()
    for some in slices:
        target.take(some)
    return ReplayCost(time.perf_counter() - wall, time.thread_time() - cpu, results_of(engine))


def from_files(dataset: Dataset, n_queries: int, slice_rows: int) -> ReplayCost:
    engine, target = make_engine(dataset, n_queries)
    wall, cpu = time.perf_counter(), time.thread_time()
    found = replay(dataset, target, ReplayPace(None), slice_rows=slice_rows)
    return ReplayCost(time.perf_counter() - wall, max(time.thread_time() - cpu, found.reading_cpu), results_of(engine))


def measure(n_rows: int, n_queries: int, slice_rows: int, n_turns: int) -> list[Line]:
    """The line of one setting."""
    machine = Machine()
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
        dataset = write_readings(Path(folder) / "readings", n_rows)
        slices = list(MergedSlices(dataset, slice_rows=slice_rows))
        # what a new engine does once is done before the clock starts
        from_memory(dataset, n_queries, slices[:2])
        turns = []
        for _ in range(n_turns):
            turns.append((from_memory(dataset, n_queries, slices), from_files(dataset, n_queries, slice_rows)))
            machine.look()
            assert turns[-1][0].results == turns[-1][1].results, "the replay gave other results than the same rows from memory"
    wall = np.array([(memory.wall, files.wall) for memory, files in turns])
    cpu = np.array([(memory.cpu, files.cpu) for memory, files in turns])
    share = _share(wall)
    measures = {
        "replay_rows_per_s": Measure(n_rows / float(np.median(wall[:, 1])), "/s"),
        "memory_rows_per_s": Measure(n_rows / float(np.median(wall[:, 0])), "/s"),
        "of_memory": Measure(share, "%"),
        "of_memory_cpu": Measure(_share(cpu), "%"),
        "machine": Measure(machine.slowness, "x"),
    }
    setting: dict[str, int | str] = {"queries": n_queries, "rows": n_rows, "slice_rows": slice_rows}
    return [Line("replay", f"{n_rows:,} rows, {n_queries} queries", measures, Bar.at_least(share, BAR, "%"), setting)]


def _share(seconds: np.ndarray) -> float:
    """What share of the speed from memory a replay has, by (memory, files) seconds of every turn."""
    return float(np.median(seconds[:, 0] / seconds[:, 1]))


def steps(options: Options) -> list[Step]:
    return list(_steps(options))


def _steps(options: Options) -> Iterator[Step]:
    for n_queries in options.counts((QUERIES,)):
        yield partial(measure, ROWS, n_queries, SLICE_ROWS, TURNS)
