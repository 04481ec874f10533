"""`eddy generate sensors` at 1, 10 and 100 million rows: CPU seconds a million rows, and the peak memory of Java.

Linear means that a row costs no more in a larger dataset, bounded that memory does not follow the rows. Starting Spark and
compiling the job cost the same at any size, so the small one is dear. Needs the spark extra, and 2 GB of disk for a while.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step

SENSORS = 5000
#: Epochs of 30 s; six of seven packets arrive.
EPOCHS = (233, 2330, 23_300)
#: A row in ten times as many may cost so many times as much.
GROWTH = 1.25
#: Bytes that Java may hold at any size: a heap of 1 GB and what is around it.
MEMORY = 1.5e9


class _Sizes:
    """Runs of growing size, each compared with the one before."""

    def __init__(self) -> None:
        self._cost: float | None = None

    def run(self, epochs: int) -> list[Line]:
        with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
            facts, seconds, cpu, memory = _generated(Path(folder) / "sensors", epochs)
        rows = facts["streams"]["readings"]["rows"]
        cost = cpu / rows * 1e6
        measures = {
            "rows_per_s": Measure(rows / seconds, "/s"),
            "seconds": Measure(seconds, "s"),
            "cpu_s_per_million": Measure(cost, "s"),
            "memory": Measure(memory / 1e6, "MB"),
        }
        fits = memory <= MEMORY
        if self._cost is not None:
            measures["growth"] = Measure(cost / self._cost, "x")
            fits = fits and cost <= GROWTH * self._cost
        self._cost = cost
        bar = Bar(f"{GROWTH} x a row, {MEMORY / 1e6:,.0f} MB", fits)
        return [Line("generate", f"{rows:,} readings", measures, bar, {"rows": rows})]


def _generated(out: Path, epochs: int) -> tuple[dict[str, dict[str, dict[str, int]]], float, float, float]:
    """Facts, seconds, CPU seconds and bytes of one run; the child's include those of Java, for which it waits."""
    start = time.perf_counter()
    words = ["--sensors", str(SENSORS), "--hours", str(epochs * 30 / 3600), "--out", str(out), "--json"]
    child = subprocess.Popen([sys.executable, "-m", "pipeline.generate_command", "sensors", *words], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(child.returncode)
    return json.loads(said), time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0


def steps(options: Options) -> list[Step]:
    sizes = _Sizes()
    return [partial(sizes.run, epochs) for epochs in EPOCHS]
