"""Kernels are compiled by the set-up or the first engine, which says so, and never by a push."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from eddy.streams.timeline import ascending
from lineage import kernels

ROOT = Path(__file__).parents[4]
PROGRAM = """
from eddy import Engine
from lineage import kernels
engine = Engine()
engine.create_stream("s", {"a": "int", "t": "string"})
engine.submit("SELECT a FROM s WHERE a > 1 AND t = 'x'")
engine.on_commit(lambda commit: commit.row_lists())
for n in (1, 20, 300):
    engine.push("s", {"a": list(range(n)), "t": ["x"] * n})
assert all(len(kernel.signatures) <= 1 for kernel, _ in kernels._declared)
assert sum(sum(kernel.stats.cache_misses.values()) for kernel, _ in kernels._declared) in (0, len(kernels._declared))
print("done")
"""


def run(cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, timeout=300, check=True
    )


@pytest.mark.long
def test_the_first_engine_on_a_machine_says_that_it_compiles_and_the_second_does_not(tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert "eddy: compiling kernels for this machine" in first.stderr
    assert first.stderr.count("compiling") == 1
    assert second.stderr == "" and first.stdout == second.stdout == "done\n"


def test_a_kernel_is_loaded_once_by_whoever_calls_it_first() -> None:
    program = """
import threading, numpy as np
from eddy import Engine
from eddy.streams.timeline import ascending
Engine()
try:
    ascending(np.array([1.0]))
except TypeError as error:
    assert "No matching definition" in str(error)
assert not ascending.signatures
found, ready = [], threading.Barrier(8)
def ask():
    ready.wait(60)
    found.append(ascending(np.arange(3)))
threads = [threading.Thread(target=ask) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join(60) for thread in threads]
assert found == [True] * 8 and len(ascending.signatures) == 1 and not ascending.stats.cache_misses
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, timeout=300, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_kernel_refuses_arrays_it_was_not_compiled_for() -> None:
    with pytest.raises(TypeError, match="No matching definition"):
        ascending(np.array([1.0, 2.0]))


def stamp_of(text: str, limit: object = 3) -> str:
    """The stamp of the function `outer` of a source text that reads a global `LIMIT`."""
    space: dict[str, Any] = {"kernels": kernels, "np": np, "LIMIT": limit}
    exec(text, space)
    return kernels._stamp(space["outer"].py_func, {})


HELPER = """
@kernels.inline
def helper(x):
    return x + LIMIT

@kernels.called
def outer(x):
    return helper(x) * 2
"""


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (HELPER.replace("* 2", "* 3"), 3),
        (HELPER.replace("x + LIMIT", "x - LIMIT"), 3),
        (HELPER, 4),
        (HELPER, np.int64(3)),
        (HELPER, np.array([3])),
        (HELPER.replace("x + LIMIT", "len((lambda: x, 1)) + LIMIT"), 3),
    ],
)
def test_compiled_code_is_good_only_while_nothing_changes_that_it_is_made_of(text: str, limit: object) -> None:
    assert stamp_of(text, limit) != stamp_of(HELPER)


def test_compiled_code_is_good_wherever_its_functions_stand() -> None:
    assert stamp_of("# a line\nOTHER = 1\n" + HELPER) == stamp_of(HELPER)


def test_the_stamps_of_all_kernels_are_the_same_in_another_process() -> None:
    program = """
import hashlib
from lineage import kernels
import eddy.engine
known = {}
print([kernels._stamp(kernel.py_func, known) for kernel, _ in kernels._declared])
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300, check=True
        ).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1] and len(set(eval(outputs[0]))) > 100


def test_a_kernel_can_allocate_nothing_for_it_counts_no_references() -> None:
    def allocate(n: int) -> int:
        return len(np.zeros(n))

    with pytest.raises(numba.core.errors.NumbaError, match="array passed into the function"):
        numba.njit("int64(int64)", **kernels.OPTIONS)(allocate)


def test_import_and_first_answer_do_without_pandas() -> None:
    program = """
import sys
from eddy import Engine
engine = Engine()
engine.create_stream("s", {"a": "int", "x": "float", "b": "bool", "ts": "timestamp"}, time="ts")
query = engine.submit("SELECT * FROM s [RANGE '1 hour'] WHERE a > 1")
engine.push("s", {"a": [1, 2], "x": [0.5, None], "b": [True, False], "ts": [1, 2]})
assert engine.answer(query).num_rows == 1
assert "pandas" not in sys.modules
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], env=environment, timeout=300, check=True)
