"""Slow twin of `lmerge/streams/table.py`: a Counter, one element at a time, with the first fault of the stream."""

from __future__ import annotations

from bisect import insort

from experiments.papers.lmerge import PhysicalElement
from lineage.elements import BEGINNING
from lmerge.streams.conditions import Presented
from lmerge.streams.elements import INSERT, STABLE
from lmerge.streams.table import EventKey


class SlowTable:
    """The table of a stream as far as it has come."""

    def __init__(self, *, key: bool = False) -> None:
        self.key = key
        self.stable = BEGINNING
        self.ends: dict[EventKey, list[int]] = {}
        self.fault = ""

    def take(self, element: PhysicalElement) -> None:
        """Take one element; the first that the stream may not hold is the fault, and changes nothing."""
        if element.kind == STABLE:
            self.stable = max(self.stable, element.end)
            return
        wrong = self._wrong(element)
        if wrong:
            self.fault = self.fault or f"{element} after stable({self.stable}): {wrong}"
            return
        ends = self.ends.setdefault((element.start, element.payload), [])
        if element.kind != INSERT:
            ends.remove(element.old)
        if element.end > element.start:
            insort(ends, element.end)
        if not ends:
            del self.ends[element.start, element.payload]

    def _wrong(self, element: PhysicalElement) -> str:
        ends = self.ends.get((element.start, element.payload), [])
        if element.kind == INSERT:
            if element.end <= element.start:
                return "empty life"
            if element.start < self.stable:
                return "insert below the stable point"
            return "key twice" if self.key and ends else ""
        if element.end < element.start:
            return "ends before its start"
        if min(element.old, element.end) < self.stable:
            return "adjust below the stable point"
        return "" if element.old in ends else "adjust of nothing"

    def presented(self) -> Presented:
        """The table as the conditions take it."""
        return Presented(self.stable, self.ends)

    def events(self) -> list[tuple[int, int, int]]:
        """All events, a copy each, in order."""
        return sorted((payload, start, end) for (start, payload), ends in self.ends.items() for end in ends)
