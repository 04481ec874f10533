"""Seconds from starting Python to the first answer, kernels compiled before: import, create, submit, push, answer."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.machine import Machine
from experiments.bench.base.options import Options, Step

RUNS = 5
#: Bar, in seconds.
BAR = 2.0

_PROGRAM = """
from eddy import Engine
engine = Engine()
engine.create_stream("readings", {"sensor": "int", "temp": "float"})
query = engine.submit("SELECT sensor, temp FROM readings WHERE temp > :max", params={"max": 30})
engine.push("readings", {"sensor": [1, 2], "temp": [31.5, 20.0]})
assert engine.answer(query).num_rows == 1
"""


def _start() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True)
    return time.perf_counter() - start


def _run() -> list[Line]:
    machine = Machine()
    first = _start()
    found = []
    for _ in range(RUNS):
        found.append(_start())
        machine.look()
    later = float(np.median(found))
    measures = {
        "seconds": Measure(later, "s"),
        "first_run": Measure(first, "s"),
        "machine": Measure(machine.slowness, "x"),
    }
    return [Line("startup", "import to first answer, warm kernels", measures, Bar.at_most(later, BAR, "s"))]


def steps(options: Options) -> list[Step]:
    return [_run]
