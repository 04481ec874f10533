"""The options of a user, and the shape of a case: a list of steps, each giving some lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.bench.base.lines import Line

Step = Callable[[], list[Line]]


@dataclass(frozen=True, slots=True)
class Options:
    #: numbers of queries; None: the case's own
    queries: tuple[int, ...] | None = None
    #: rows a push, where the case does not vary them
    rows: int = 4096
    #: seconds of measuring a line, all contestants together
    seconds: float = 1.0
    #: also time other libraries
    peers: bool = False

    def counts(self, default: tuple[int, ...]) -> tuple[int, ...]:
        return default if self.queries is None else self.queries
