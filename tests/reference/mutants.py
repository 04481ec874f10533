"""Functions with one expression changed: tests of the tests put one in and want it noticed."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any


def mutated(where: Any, name: str, old: str, new: str) -> Any:
    """A function of a module or class with one expression changed, in plain Python."""
    function = getattr(where, name)
    function = getattr(function, "py_func", function)
    source = textwrap.dedent(inspect.getsource(function))
    source = source[source.index("def ") :]
    assert source.count(old) == 1, f"{name} says that once"
    namespace = dict(function.__globals__)
    exec(source.replace(old, new), namespace)  # our own source
    return namespace[name]
