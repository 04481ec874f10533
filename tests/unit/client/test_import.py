"""What a program that only talks to a service has to load."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from eddy.client import AsyncClient, Client

ROOT = Path(__file__).resolve().parents[3]
#: What takes long to load, and no client needs before it has rows.
HEAVY = ("numba", "numpy", "pyarrow", "eddy.engine", "eddy.query", "fastapi", "pandas", "polars")


@pytest.mark.parametrize("module", ["eddy.client", "api.cli"])
def test_neither_the_client_nor_the_command_line_loads_the_engine(module: str) -> None:
    code = f"import sys, {module}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_both_clients_have_the_same_calls() -> None:
    both = [{name for name in dir(kind) if not name.startswith("_")} for kind in (Client, AsyncClient)]
    assert both[0] == both[1]
    assert {"push", "submit", "answer", "changes", "cancel", "trace"} <= both[0]
    for name in both[0] - {"changes", "merges", "streams", "tables", "queries", "close", "wait_ready"}:
        one, other = (inspect.signature(getattr(kind, name)) for kind in (Client, AsyncClient))
        assert one.parameters == other.parameters, name


def test_a_call_shows_its_arguments_and_says_what_it_does() -> None:
    assert list(inspect.signature(Client.push).parameters) == ["self", "stream", "rows", "input", "bad", "wait", "key"]
    assert (Client.push.__doc__ or "").startswith("Give a stream, or one input of a merged one, rows")
