"""Rates of counters: their growth in a second, measured on request.

A rate covers the time since the previous reading, but at least `SPAN` seconds: readers who ask every second share one answer,
and none shortens the time for the others.

    looks    ... a ........ b ...... now        b - a >= SPAN; rates go from a to now, and from b once now - b >= SPAN
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

#: Seconds over which a rate is taken, at least.
SPAN = 1.0

Totals = Mapping[str, float]


class CounterRates(NamedTuple):
    """The growth of each counter in a second, over the last `seconds`."""

    seconds: float
    of: dict[str, float]


class Meter:
    """Two earlier readings of some counters; for one thread."""

    def __init__(self, totals: Totals, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._from = self._next = (now(), dict(totals))

    def look(self, totals: Totals) -> CounterRates:
        """Return the rates for these readings; a new counter counts from 0."""
        now = self._now()
        if now - self._next[0] >= SPAN:
            self._from, self._next = self._next, (now, dict(totals))
        began, before = self._from
        seconds = max(now - began, 1e-9)
        # a stream that was dropped and made again starts from 0
        return CounterRates(seconds, {name: max(total - before.get(name, 0), 0) / seconds for name, total in totals.items()})
