"""Rows in the bodies of requests, as Arrow: the service's reader, which trusts nothing, against pyarrow's, which trusts all.

Both read the same bodies and push what they read into engines with the same query. A body is what our client sends: a stream of
one batch, with a time, an int, a float, a text of 50 and a truth value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from api.wire.bodies import ARROW, parse_rows
from eddy import Engine
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.machine import Machine
from experiments.bench.base.options import Options, Step
from experiments.bench.base.timing import take_turns

#: Rows of one body.
ROWS = (1, 256, 65_536)
#: How much longer a push may take than with pyarrow's reader.
BAR = 1.1
#: Bodies that take turns.
_BODIES = 64
COLUMNS = {"ts": "timestamp", "sensor": "int", "temp": "float", "room": "string", "ok": "bool"}


def bodies(n_rows: int, n_bodies: int) -> list[bytes]:
    """Bodies with rows one after the other in time."""
    draw = np.random.default_rng(3)
    rooms = np.array([f"room {n}" for n in range(50)])
    found = []
    for n in range(n_bodies):
        table = pa.table({
            "ts": pa.array(np.arange(n * n_rows, (n + 1) * n_rows) * 1000, pa.timestamp("us")),
            "sensor": draw.integers(0, 1000, n_rows),
            "temp": draw.normal(21, 4, n_rows),
            "room": pa.array(rooms[draw.integers(0, 50, n_rows)], pa.string()),
            "ok": draw.random(n_rows) < 0.9,
        })  # fmt: skip
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        found.append(sink.getvalue().to_pybytes())
    return found


def _trusting(body: bytes) -> Any:
    with pa.ipc.open_stream(body) as reader:
        return reader.read_all()


def _checking(body: bytes) -> Any:
    return parse_rows(body, ARROW, len(COLUMNS), 64 << 20)


def _pusher(read: Callable[[bytes], Any], given: list[bytes], turns: int) -> Callable[[int], None]:
    engine = Engine(seed=0)
    engine.create_stream("readings", COLUMNS, time="ts")
    engine.submit("SELECT ts, sensor, temp FROM readings WHERE temp > 30 AND ok")

    def push(n: int) -> None:
        for _ in range(turns):
            engine.push("readings", read(given[n]))

    return push


def measure(n_rows: int, seconds: float) -> list[Line]:
    """The line of bodies of so many rows."""
    machine = Machine()
    given = bodies(n_rows, _BODIES if n_rows < 10_000 else 4)
    # several pushes a call, so that the clock is not what is measured
    turns = max(1, 256 // n_rows)
    contestants = {"checked": _pusher(_checking, given, turns), "pyarrow": _pusher(_trusting, given, turns)}
    rounds = take_turns(contestants, len(given), seconds)
    machine.look()
    ratio = rounds.ratio("pyarrow", "checked")
    measures = {
        "push_us": Measure(rounds.median("checked") / turns * 1e6, "us"),
        "pyarrow_us": Measure(rounds.median("pyarrow") / turns * 1e6, "us"),
        "of_pyarrow": Measure(ratio, "x"),
        "machine": Measure(machine.slowness, "x"),
    }
    return [Line("arrow", f"{n_rows:,} rows", measures, Bar.at_most(ratio, BAR, "x"), {"rows": n_rows})]


def steps(options: Options) -> list[Step]:
    return [partial(measure, n_rows, options.seconds) for n_rows in ROWS]
