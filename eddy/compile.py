"""Compiling the kernels: at set-up by `python -m eddy.compile`, else when the first engine is made."""

from __future__ import annotations

import importlib
import sys

from lineage.kernels import compile_kernels

_done = False


def ensure() -> None:
    """Compile every kernel, or load it from the cache; says on stderr when it has to compile."""
    global _done
    if not _done:
        # importing a module declares its kernels; the engine's ends, the indexes and the operators import all the others
        for module in (
            "eddy.committer",
            "stems.frame",
            "stems.indexes",
            "windows.distinct",
            "windows.group_by",
            "windows.shared_aggregates",
            "windows.join",
            "windows.recipient",
            "windows.to_stream",
            "windows.window",
        ):
            importlib.import_module(module)
        compile_kernels(lambda text: print(f"eddy: {text}", file=sys.stderr, flush=True))
        _done = True


if __name__ == "__main__":
    ensure()
    print("kernels are compiled")
