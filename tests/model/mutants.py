"""Mutants of the naive model that both comparisons, with the engine and with DuckDB, have to notice."""

from __future__ import annotations

from tests.reference.naive import Naive


class ClosedWindow(Naive):
    """t <= T - w is still in the window: the boundary is off by one."""

    def _end(self, t: int, start: int, width: float) -> float:
        return t + width + 1


class WindowFromStart(Naive):
    """A lagging row lives a whole window from its start."""

    def _end(self, t: int, start: int, width: float) -> float:
        return start + width
