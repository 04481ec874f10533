"""Counters of an operator's work, and of how late the answer was in virtual time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from experiments.papers.machine.messages import ENDS, MessageKind


@dataclass(slots=True)
class OperatorCounters:
    """The work of one operator."""

    received: Counter[MessageKind] = field(default_factory=Counter)
    emitted: Counter[MessageKind] = field(default_factory=Counter)
    #: which of +->+, +->-, -->+, -->- it did, and how often
    cases: Counter[str] = field(default_factory=Counter)
    #: rows of another state looked at for a match; a look that finds none counts as one
    probes: int = 0
    #: the part of `probes` and of the rows emitted that ends caused
    probes_of_ends: int = 0
    emitted_of_ends: int = 0
    #: rows whose life was over when they came, and ends of rows that were not here
    dropped: int = 0
    #: messages dropped from its queue because a flag says the same
    purged: int = 0
    #: looks for due rows that its own clock made
    ticks: int = 0
    busy_us: int = 0
    largest_queue: int = 0

    @property
    def n_received(self) -> int:
        return sum(self.received.values())

    @property
    def n_ends(self) -> int:
        """Ends that came in, of all kinds."""
        return sum(self.received[kind] for kind in ENDS)

    @property
    def negative_ratio(self) -> float:
        """Ends that came in over rows that came in (N Figure 13a, 15)."""
        return self.n_ends / self.received[MessageKind.POSITIVE] if self.received[MessageKind.POSITIVE] else 0.0


@dataclass(slots=True)
class Delays:
    """From an arrival or end outside to its effect in the answer (N 8.1)."""

    n_effects: int = 0
    total_us: int = 0
    largest_us: int = 0

    def add(self, delay_us: int) -> None:
        self.n_effects += 1
        self.total_us += delay_us
        self.largest_us = max(self.largest_us, delay_us)

    @property
    def average_us(self) -> float:
        return self.total_us / self.n_effects if self.n_effects else 0.0


@dataclass(slots=True)
class Occupancy:
    """Messages that wait in all queues together, over virtual time."""

    waiting: int = 0
    largest: int = 0
    _integral: int = 0
    _since_us: int = 0
    _began_us: int | None = None

    def change(self, by: int, now_us: int) -> None:
        self._upto(now_us)
        self.waiting += by
        self.largest = max(self.largest, self.waiting)

    def average(self, now_us: int) -> float:
        """The mean since the first change."""
        self._upto(now_us)
        began = now_us if self._began_us is None else self._began_us
        return self._integral / (now_us - began) if now_us > began else 0.0

    def _upto(self, now_us: int) -> None:
        if self._began_us is None:
            self._began_us = now_us
        else:
            self._integral += self.waiting * (now_us - self._since_us)
        self._since_us = now_us
