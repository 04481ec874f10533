"""The bounded queue between the handlers of requests and the engine's thread.

    put      refuses at once when full: who is refused is told when to come again
    take     waits for something, then gives all of it up to a bound, in order of arrival

Calls that bring rows are bounded by number and bytes; reads, which free the queue rather than fill it, only by number, so that an
overloaded service can still be asked what it does. When it drains, `closed` refuses everything new.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from api.core.calls import Call
from eddy import LimitError

#: Told what came of it: a result, or an error.
Told = Callable[[Any, BaseException | None], None]


@dataclass(slots=True)
class InboxItem:
    """One task of the engine's thread: a call that may change state, or a read."""

    what: Call | Callable[[Any], Any]
    told: Told
    n_bytes: int = 0
    #: makes of the result what is told, in the engine's thread
    then: Callable[[Any], Any] | None = None


class BusyError(LimitError):
    """The input queue is full."""

    default_code = "busy"

    def __init__(self, fact: str, retry_after: float) -> None:
        super().__init__(fact, hint=f"try again in {retry_after:.0f} s")
        #: seconds after which there should be room
        self.retry_after = retry_after


class ClosedError(LimitError):
    """The service is stopping, or has failed."""

    default_code = "stopping"


class Inbox:
    """The tasks that wait for the engine's thread."""

    def __init__(self, max_calls: int, max_bytes: int, max_reads: int) -> None:
        self.max_calls = max_calls
        self.max_bytes = max_bytes
        self.max_reads = max_reads
        self._items: deque[InboxItem] = deque()
        self._changed = threading.Condition(threading.Lock())
        self.calls = 0
        self.reads = 0
        self.bytes = 0
        #: why nothing is taken any more; None while it is
        self.closed: ClosedError | None = None
        #: bytes and calls a second that were taken out lately, for `retry_after`
        self._bytes_rate = 0.0
        self._taken_at = time.monotonic()
        #: refused since the start
        self.refused = 0

    def put(self, item: InboxItem) -> None:
        with self._changed:
            if self.closed is not None:
                raise self.closed
            if isinstance(item.what, Call):
                # one call may be larger than what is left, or a large one would never find room: bodies have their own bound
                if self.calls >= self.max_calls or self.bytes >= self.max_bytes:
                    self.refused += 1
                    raise BusyError("the input queue is full", self._retry_after())
                self.calls += 1
                self.bytes += item.n_bytes
            else:
                if self.reads >= self.max_reads:
                    self.refused += 1
                    raise BusyError("too many requests wait for an answer", 1.0)
                self.reads += 1
            self._items.append(item)
            if len(self._items) == 1:
                self._changed.notify()

    def has_room(self, n_bytes: int) -> bool:
        """Return whether a call would be accepted now, with `n_bytes` of bodies in progress; approximate, without a lock."""
        return self.calls < self.max_calls and n_bytes < self.max_bytes

    def check_room(self, n_bytes: int) -> None:
        """Raise if there is no room for a call, before its body is read. `n_bytes` counts all bodies that were read and not
        answered, whether they wait here or elsewhere."""
        with self._changed:
            if self.calls >= self.max_calls or n_bytes >= self.max_bytes:
                self.refused += 1
                raise BusyError("the input queue is full", self._retry_after())

    def _retry_after(self) -> float:
        # whole seconds, as the header has them
        return min(60.0, max(1.0, math.ceil(self.bytes / self._bytes_rate) if self._bytes_rate else 1.0))

    def take(self, max_items: int, max_bytes: int, timeout: float) -> list[InboxItem]:
        """Return waiting tasks within the bounds; none after a timeout or when the inbox is closed and empty."""
        with self._changed:
            if not self._items and self.closed is None:
                self._changed.wait(timeout)
            taken: list[InboxItem] = []
            n_bytes = 0
            while self._items and len(taken) < max_items and n_bytes < max_bytes:
                item = self._items.popleft()
                n_bytes += item.n_bytes
                taken.append(item)
                if isinstance(item.what, Call):
                    self.calls -= 1
                else:
                    self.reads -= 1
            self.bytes -= n_bytes
            if n_bytes:
                now = time.monotonic()
                rate = n_bytes / max(now - self._taken_at, 1e-6)
                self._bytes_rate = rate if not self._bytes_rate else 0.9 * self._bytes_rate + 0.1 * rate
                self._taken_at = now
            return taken

    def close(self, why: ClosedError) -> None:
        """Refuse new tasks; waiting ones are still given out."""
        with self._changed:
            if self.closed is None:
                self.closed = why
            self._changed.notify()

    @property
    def empty(self) -> bool:
        with self._changed:
            return not self._items
