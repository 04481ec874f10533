"""When to save a snapshot: early at first, then less and less often, and never so often that clients notice.

With `calls` and `bytes` written since the last snapshot, or since the start, `before` the same up to then:

    worth     calls >= min(max(before, EARLY_CALLS), MOST_CALLS), or the same of bytes
    cheap     the last one is `EASE` times as long ago as it took, and `EARLY_SECONDS` if it is only early: below the most

It is due when both hold. So a kill has the next start replay at most as much as there was before the last snapshot, and never
all, once there was enough to speak of; snapshots take a small part of the time however large the state is; a service that is
called no more makes no more of them; and after some doublings they come as seldom as the journal allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: What is worth a first snapshot: replaying less takes no time.
EARLY_CALLS = 256
EARLY_BYTES = 16 << 20
EARLY_SECONDS = 60.0
#: What the journal may grow by before there is one in any case: replaying it takes some seconds.
MOST_CALLS = 200_000
MOST_BYTES = 256 << 20
#: A snapshot takes at most one part in so many of the time.
EASE = 20


class SnapshotRhythm:
    """The schedule of one service's snapshots; `now` is a clock in seconds that never goes back."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last = now()
        self._before_calls = 0
        self._before_bytes = 0
        #: seconds for which the last one held up the engine
        self._held_up = 0.0

    def due(self, calls: int, n_bytes: int, writing: float) -> bool:
        """Return whether to save a snapshot after so many calls and bytes; `writing` is the seconds of the last one."""
        passed = self._now() - self._last
        if passed < EASE * (self._held_up + writing):
            return False
        if calls >= MOST_CALLS or n_bytes >= MOST_BYTES:
            return True
        worth = calls >= max(self._before_calls, EARLY_CALLS) or n_bytes >= max(self._before_bytes, EARLY_BYTES)
        return worth and passed >= EARLY_SECONDS

    def made(self, calls: int, n_bytes: int, make: Callable[[], T]) -> T:
        """Make a snapshot by `make`, note its time and sizes, and return it."""
        began = self._now()
        found = make()
        self._last = self._now()
        self._held_up = self._last - began
        self._before_calls += calls
        self._before_bytes += n_bytes
        return found
