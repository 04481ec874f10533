"""The cases of merges as plain Python, with an expression changed: for mutants, and to show that the kernels do what they say.

Kernels call helpers of other modules, which are compiled into them. So all modules of `lmerge/cases/` and what their kernels use
are made again from their source, without numba.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from lineage import kernels, memory

ROOT = Path(__file__).parents[2]

#: Modules whose functions are part of kernels, those that others import first.
MODULES = [
    "lineage.numbers",
    "lineage.hash_table",
    "lmerge.streams.elements",
    *(
        f"lmerge.cases.{name}"
        for name in (
            "header", "outcomes", "policies", "inputs", "merged", "due", "pending", "ahead", "nodes", "points", "lookup",
            "copies", "events", "case_merge", "node_merge", "ordered", "r1", "r0", "r2", "r3", "r4",
        )
    ),
    "lmerge.merge",
]  # fmt: skip


def _same(function: Any) -> Any:
    return function


def _declare(signature: Any) -> Callable[[Any], Any]:
    return _same


@contextmanager
def plain_modules(module: str = "", old: str = "", new: str = "") -> Iterator[ModuleType]:
    """`lmerge.merge` without numba, with one text of one module changed."""
    replaced = {name: ModuleType(name) for name in MODULES}
    patches = [
        mock.patch.object(kernels, "kernel", _declare),
        mock.patch.object(kernels, "inline", _same),
        mock.patch.object(kernels, "called", _same),
        mock.patch.object(memory, "prefetch", lambda address: None),
        mock.patch.object(memory, "address_of", lambda array: 0),
        mock.patch.dict(sys.modules, replaced),
        np.errstate(over="ignore"),
    ]
    for patch in patches:
        patch.__enter__()
    try:
        for name, made in replaced.items():
            path = ROOT / f"{name.replace('.', '/')}.py"
            source = path.read_text()
            if name == module:
                assert source.count(old) == 1, f"{name} says {source.count(old)} times: {old}"
                source = source.replace(old, new)
            made.__file__ = str(path)
            exec(compile(source, str(path), "exec"), vars(made))  # our own source
        yield replaced["lmerge.merge"]
    finally:
        for patch in reversed(patches):
            patch.__exit__(None, None, None)
