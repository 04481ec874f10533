"""Reading ahead: a thread that fills a bounded queue, so that files are read and decoded on another core.

pyarrow decodes and the engine's kernels run without the interpreter's lock, so a thread is enough; a process would have to copy
every batch. The order is that of the iterator, an error of it comes out where it happened, and leaving the `with` ends the
thread, whatever it is waiting for.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Generic, Self, TypeVar

T = TypeVar("T")

#: Items that wait at most.
DEPTH = 16
#: Seconds after which the thread looks whether anybody still wants what it reads.
_LOOK = 0.1


class _End:
    """The last thing in the queue: the iterator is over, or has failed."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class ReadAhead(Generic[T]):
    """The items of an iterator, taken from it by a thread; for one reader."""

    def __init__(self, items: Iterator[T], depth: int = DEPTH) -> None:
        self._items = items
        self._queue: queue.Queue[T | _End] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._over = False
        #: CPU seconds that the thread has taken
        self.cpu_seconds = 0.0
        self._thread = threading.Thread(target=self._fill, name="read-ahead", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._thread.join()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._over:
            raise StopIteration
        item = self._queue.get()
        if not isinstance(item, _End):
            return item
        self._over = True
        if item.error is not None:
            raise item.error
        raise StopIteration

    def _fill(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._items:
                self.cpu_seconds = time.thread_time()
                if not self._put(item):
                    return
        except Exception as found:
            error = found
        self._put(_End(error))

    def _put(self, item: T | _End) -> bool:
        """Wait for room and put an item; return False if the reader has left."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_LOOK)
                return True
            except queue.Full:
                continue
        return False
