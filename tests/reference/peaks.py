"""How much memory work takes at most, measured in a child under a limit."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable

#: Address space that a child may take beyond what its parent has.
SPACE = 2 << 30


def limit_memory(space: int = SPACE) -> int:
    """Bound what this process may take from now on; gives the bytes that it has at most had resident."""
    with open("/proc/self/statm") as statm:
        bound = int(statm.read().split()[0]) * resource.getpagesize() + space
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return resident()


def resident() -> int:
    """The bytes that this process has at most had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_of(work: Callable[[], object]) -> int:
    """The bytes beyond what there was that a child takes at most for some work; raises if it dies or fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            base = limit_memory()
            work()
            os.write(writing, str(resident() - base).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise AssertionError(f"the child died: status {status}")
    return int(said)
