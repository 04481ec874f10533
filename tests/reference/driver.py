"""Drive an engine and the naive model side by side and compare them after every step.

A run is a `Script` (`script.py`): the set-up and a list of steps, all plain data. `steps.make_script(seed, n)` draws one,
`replay(script, make_engine)` runs it in a `Harness` (`harness.py`, which says what is compared) and raises `Mismatch` at
the first difference, `shrinking.shrink` removes steps, rows and conditions from a failing script while it still fails,
and `script.as_python` prints what is left as engine calls.
"""

from __future__ import annotations

import os
from typing import Any

from tests.reference.harness import Harness, MakeEngine
from tests.reference.script import Script
from tests.reference.steps import make_script


def replay(script: Script, make_engine: MakeEngine, use_duckdb: bool = True) -> None:
    """Run a script; raises `Mismatch`, or whatever the engine raises, at the first step that goes wrong."""
    harness = Harness(script, make_engine, use_duckdb)
    try:
        for number, step in enumerate(script.steps):
            try:
                harness.do(step)
            except Exception as error:
                error.add_note(f"at step {number}: {type(step).__name__}")
                raise
        harness.compare(everything=True)
    finally:
        harness.close()


def subject(**options: Any) -> Any:
    """The engine under test; with EDDY_SUBJECT=twin in the environment the model plays it, to test the tests."""
    if os.environ.get("EDDY_SUBJECT") == "twin":
        from tests.reference.twin import Twin

        return Twin(**options)
    from eddy import Engine

    return Engine(**options)


def run(seed: int, n_steps: int, make_engine: MakeEngine, use_duckdb: bool = True) -> None:
    """Make the script of `seed` and replay it; the failure names the seed."""
    try:
        replay(make_script(seed, n_steps), make_engine, use_duckdb)
    except Exception as error:
        error.add_note(f"seed {seed}, {n_steps} steps")
        raise
