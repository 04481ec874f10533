"""Compiling the kernels: at set-up by `python -m eddy.base.compile`, else when the first engine is made."""

from __future__ import annotations

import importlib
import sys

from lineage.kernels import compile_kernels

_done = False


def ensure() -> None:
    """Compile every kernel or load it from the cache; writes to stderr before it compiles."""
    global _done
    if not _done:
        # importing a module declares its kernels, and the engine imports all that have any
        importlib.import_module("eddy.engine")
        importlib.import_module("lmerge.merge")
        compile_kernels(lambda text: print(f"eddy: {text}", file=sys.stderr, flush=True), _show_progress)
        _done = True


def _show_progress(done: int, total: int) -> None:
    """Count the compiled kernels on stderr, if that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r  {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    ensure()
    print("kernels are compiled")
