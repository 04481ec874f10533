"""A lock that refuses instead of waiting: one call at a time may use the engine.

A second thread, or a listener that calls back, is told so at once instead of waiting or breaking a commit.
"""

from __future__ import annotations

import threading
from types import TracebackType

from lineage.errors import ConflictError


class Turn:
    """A context for one caller; raises for a second caller, and for every caller once `closed`."""

    __slots__ = ("_lock", "closed")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.closed = False

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise ConflictError(
                "the engine is in use",
                code="engine_busy",
                hint="one thread at a time; a listener of on_commit may not call the engine",
            )
        if self.closed:
            self._lock.release()
            raise ConflictError("the engine is closed", code="closed")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()
