"""A pause after which everything ends: how long each commit takes, and how much memory the whole takes more.

Times and memory are measured in runs of their own: counting every allocation takes time.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np

from eddy import Engine
from experiments.bench.windows.window_workload import COLUMNS, STREAM, TEXTS

#: By name; {w} is the window that holds all rows.
PAUSES = {
    "filter": "SELECT k, v FROM s {w} WHERE v < 50",
    **{name: text.replace("{p}", "50") for name, text in TEXTS.items()},
    "slide": "SELECT k, v FROM s [RANGE 1000 SECONDS SLIDE 1 SECOND] WHERE v < 50",
    "window over istream": "SELECT DISTINCT a.k FROM (ISTREAM (SELECT k, v FROM s [RANGE UNBOUNDED])) {w} AS a",
}
_PUSH = 1 << 14
_SPAN_US = 900_000_000


@dataclass(frozen=True, slots=True)
class MeasuredPause:
    n_rows: int
    #: CPU seconds of each commit
    commits: np.ndarray
    #: bytes of everything that was allocated before the pause, and at most during it
    before_bytes: int
    peak_bytes: int


def pause(sql: str, n_rows: int, *, at_once: bool = False) -> MeasuredPause:
    """Fill a window of so many rows, then let them all end in one call; `at_once`: all at one instant."""
    commits = _timed(_filled(sql, n_rows, at_once))
    gc.collect()
    tracemalloc.start()
    engine = _filled(sql, n_rows, at_once)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    _end_all(engine)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return MeasuredPause(n_rows, commits, before, peak)


def _filled(sql: str, n_rows: int, at_once: bool) -> Engine:
    engine = Engine(seed=0)
    engine.create_stream(STREAM, COLUMNS, time="ts")
    engine.submit(sql.replace("{w}", "[RANGE 1000 SECONDS]"))
    engine.on_commit(_take)
    rng = np.random.default_rng(0)
    for at in range(0, n_rows, _PUSH):
        n = min(_PUSH, n_rows - at)
        later = 0 if at_once else (at + np.arange(n)) * _SPAN_US // n_rows
        engine.push(
            STREAM, {"k": rng.integers(0, n_rows // 4, n), "v": rng.integers(0, 100, n), "ts": np.full(n, 10**12) + later}
        )
    return engine


def _timed(engine: Engine) -> np.ndarray:
    found: list[float] = []
    committer = engine._committer
    commit = committer._commit

    def timed(*arguments: Any) -> None:
        began = time.thread_time()
        commit(*arguments)
        found.append(time.thread_time() - began)

    committer._commit = timed  # type: ignore[method-assign, assignment]  # timed from outside: the engine reads no clock
    _end_all(engine)
    return np.array(found)


def _end_all(engine: Engine) -> None:
    engine.advance(np.datetime64(10**12 + 4 * _SPAN_US, "us"))


def _take(part: Any) -> None:
    part.sign[:1]
