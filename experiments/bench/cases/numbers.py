"""Costs that should not grow with the number of queries: cancels, submits of windows that count rows, and a deletion by tag.

    cancel      CPU time of one among 8,192 queries of a form, as many times that of one among 1,024
    submit      CPU time of one with a `[ROWS n]` of its own while 1,000 others run
    deletion    20,000 queries with a tag, through the engine's thread and the writer on a data directory: CPU seconds of all
                of it, and the longest turn of the engine's thread, in which nobody else is served

The least of several runs counts for the first two, for neighbours only add.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from api.base.limits import Limits
from api.core.calls import Call
from api.core.core import Core, recover
from api.core.deletions import delete_tagged
from api.core.inbox import InboxItem
from eddy import Engine, Query
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.service.running import MEMORY
from storage.directory import DataDirectory
from storage.disk import LocalDisk

#: `{k}` is another number for each query.
CANCELLED = {
    "the same aggregate": "SELECT n, COUNT(*) AS c FROM a [RANGE 1 HOUR] GROUP BY n",
    "LIKE": "SELECT i FROM a WHERE i > {k} AND n LIKE '%{k}%'",
    "i > k": "SELECT i FROM a WHERE i > {k}",
    "joins": "SELECT a.i, b.v FROM a [RANGE {k} SECONDS], b [RANGE 1 HOUR] WHERE a.i = b.i AND a.i > {k}",
    "[ROWS n]": "SELECT i FROM a [ROWS {k}]",
    "DISTINCT": "SELECT DISTINCT n FROM a [RANGE 1 HOUR] WHERE i > {k}",
}
FEW, MANY = 1024, 8192
#: Cancels of a run, and runs.
CANCELS = 128
RUNS = 4
#: What grows is memory that is not in the cache, and a kernel that moves the ranks of all predicates: a nanosecond a query.
RATIO = 2.0

COUNTING = {
    "[ROWS n]": ("SELECT i FROM a [ROWS {k}]", "new"),
    "[ROWS n], history": ("SELECT i FROM a [ROWS {k}]", "window"),
    "[PARTITION BY n ROWS n]": ("SELECT i FROM a [PARTITION BY n ROWS {k}]", "new"),
    "[PARTITION BY n ROWS n], history": ("SELECT i FROM a [PARTITION BY n ROWS {k}]", "window"),
    "[PARTITION BY n ROWS n RANGE w], history": ("SELECT i FROM a [PARTITION BY n ROWS {k} RANGE 1 HOUR]", "window"),
    "aggregate of [ROWS n]": ("SELECT COUNT(*) AS c FROM a [ROWS {k}]", "new"),
}
RUNNING = 1000
SUBMITS = 64
SUBMIT_MS = 2.0

DELETED = 20_000
DELETED_TEXTS = {
    "filters": ("SELECT i FROM a [RANGE 1 MINUTE] WHERE i > {k}",),
    "of several forms": tuple(sql for form, sql in CANCELLED.items() if form != "LIKE"),
}
CPU_SECONDS = 3.0
TURN_MS = 50.0


def _engine() -> Engine:
    engine = Engine()
    engine.create_stream("a", {"i": "int", "n": "string"})
    engine.create_stream("b", {"i": "int", "v": "int"})
    return engine


def _push(engine: Engine) -> None:
    engine.push("a", {"i": [1, 20, 300], "n": ["x", "y", "x"]})
    engine.push("b", {"i": [1, 20], "v": [1, 2]})


def _cancels(sql: str, n: int) -> float:
    """Microseconds of a cancel among n queries."""
    engine, chance = _engine(), random.Random(n)
    queries: list[Query] = [engine.submit(sql.format(k=k)) for k in range(1, n + 1)]
    found = []
    for _ in range(RUNS):
        chosen = [queries.pop(chance.randrange(len(queries))) for _ in range(CANCELS)]
        began = time.thread_time()
        for query in chosen:
            engine.cancel(query)
        found.append((time.thread_time() - began) / CANCELS)
        queries += [engine.submit(sql.format(k=n + k)) for k in range(CANCELS)]
    return 1e6 * min(found)


def measure_cancel(form: str) -> list[Line]:
    few, many = _cancels(CANCELLED[form], FEW), _cancels(CANCELLED[form], MANY)
    measures = {
        f"among_{FEW}": Measure(few, "us"), f"among_{MANY}": Measure(many, "us"), "ratio": Measure(many / few, "x"),
    }  # fmt: skip
    return [Line("numbers", f"cancel, {form}", measures, Bar.at_most(many / few, RATIO, "x"), {"queries": MANY})]


def measure_submit(form: str) -> list[Line]:
    sql, history = COUNTING[form]
    engine = _engine()
    _push(engine)
    for k in range(1, RUNNING + 1):
        engine.submit(sql.format(k=k), history=history)
    found = []
    for k in range(SUBMITS):
        if not k % 8:
            _push(engine)
        began = time.thread_time()
        query = engine.submit(sql.format(k=RUNNING + 1 + k), history=history)
        found.append(1000 * (time.thread_time() - began))
        engine.cancel(query)
    median = statistics.median(found)
    measures = {"median": Measure(median, "ms"), "most": Measure(max(found), "ms")}
    return [Line("numbers", f"submit, {form}", measures, Bar.at_most(median, SUBMIT_MS, "ms"), {"queries": RUNNING})]


class _Direct:
    """A service whose engine's thread and writer are this thread: everything is done, written and told at once."""

    def __init__(self, directory: DataDirectory) -> None:
        holdings, clock = recover(directory, lambda clock: Engine(clock=clock))
        self._core = Core(holdings, clock, directory, Limits(), lambda news: None, lambda do: do())
        #: CPU seconds of turns of the engine's thread
        self.turns: list[float] = []

    def do(self, what: Any) -> Any:
        told: list[Any] = []
        began = time.thread_time()
        group = self._core.work([InboxItem(what, lambda result, error: told.extend((result, error)))])
        self.turns.append(time.thread_time() - began)
        self._core.writer.write(group)
        group.release(None)
        self._core.writer.define(group)
        if told[1] is not None:
            raise told[1]
        return told[0]

    async def ask(self, call: Call, then: Any = None) -> Any:
        return self.do(call)

    async def read(self, look: Callable[[Core], Any]) -> Any:
        return self.do(look)


def measure_deletion(work: str) -> list[Line]:
    texts = DELETED_TEXTS[work]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        directory = DataDirectory.open(LocalDisk(Path(folder) / "data"))
        service = _Direct(directory)
        for name, columns in (("a", {"i": "int", "n": "string"}), ("b", {"i": "int", "v": "int"})):
            service.do(Call("create_stream", {"name": name, "definition": {"columns": columns}}))
        for first in range(0, DELETED, 1000):
            definitions = [
                # counts that few share: thousands of columns of ends are another matter
                {"sql": texts[k % len(texts)].format(k=k % 1000 + 1), "tags": ["bench"]}
                for k in range(first, first + 1000)
            ]
            service.do(Call("submit_many", {"definitions": definitions, "partial": False}))
        service.turns.clear()
        began = time.process_time()
        n_deleted = asyncio.run(delete_tagged(service, "bench"))  # type: ignore[arg-type]  # it has what a deletion asks for
        seconds = time.process_time() - began
        directory.close()
    assert n_deleted == DELETED, "all of them are gone"
    longest = 1000 * max(service.turns)
    measures = {"cpu": Measure(seconds, "s"), "longest_turn": Measure(longest, "ms"), "turns": Measure(len(service.turns), "")}
    name, setting = f"delete {DELETED:,} by tag, {work}", {"queries": DELETED}
    return [
        Line("numbers", f"{name}: CPU seconds", measures, Bar.at_most(seconds, CPU_SECONDS, "s"), setting),
        Line("numbers", f"{name}: longest turn", measures, Bar.at_most(longest, TURN_MS, "ms"), setting),
    ]


def steps(options: Options) -> list[Step]:
    return [
        *(partial(measure_cancel, form) for form in CANCELLED),
        *(partial(measure_submit, form) for form in COUNTING),
        *(partial(measure_deletion, work) for work in DELETED_TEXTS),
    ]
