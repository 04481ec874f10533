"""A rate limit for each client: a bucket of requests, filled at a steady rate.

A client may send `rate` requests at once and `rate` a second in the long run. At most `MAX_CLIENTS` are kept, in the order of
their last request: a client that was silent for a second has a full bucket, like an unknown one.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from api.base.refusals import TooManyError

#: Clients that are told apart.
MAX_CLIENTS = 10_000


class RateLimiter:
    """The number of requests that each client may send now."""

    def __init__(self, rate: int, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = float(rate)
        self._now = now
        #: what was left in a bucket, and when
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: Hashable) -> None:
        """Count a request; raise `TooManyError` if the bucket is empty."""
        now = self._now()
        left, at = self._buckets.get(client, (self._rate, now))
        left = min(self._rate, left + (now - at) * self._rate)
        if left < 1.0:
            wait = (1.0 - left) / self._rate
            raise TooManyError(f"more than {self._rate:.0f} requests in a second", retry_after=wait)
        self._buckets[client] = (left - 1.0, now)
        self._buckets.move_to_end(client)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
