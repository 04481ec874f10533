"""Cleanse (L VI-D): events held until they are frozen and given out in order of their starts; the slow twin.

Corrected (L11): what starts after an event that is not frozen yet is held back with it, and the stable point given out is at most
the smallest start held. Events of one start come together, in order of payload and end: that is the order which R1 asks for.
"""

from __future__ import annotations

from sortedcontainers import SortedDict

from experiments.papers.lmerge.elements import PhysicalElement, insert, stable
from lineage.elements import BEGINNING, FOREVER
from lmerge.streams.elements import ADJUST, INSERT


class SlowCleanse:
    """One input, put in order."""

    def __init__(self) -> None:
        #: The last stable point given out.
        self.stable = BEGINNING
        #: (payload, end) of the events held, by start.
        self._held: SortedDict = SortedDict()

    def push(self, element: PhysicalElement) -> list[PhysicalElement]:
        """Take one element; returns what it lets out."""
        if element.kind == INSERT:
            self._held.setdefault(element.start, []).append((element.payload, element.end))
            return []
        if element.kind == ADJUST:
            held = self._held[element.start]
            held.remove((element.payload, element.old))
            if element.end > element.start:
                held.append((element.payload, element.end))
            elif not held:
                del self._held[element.start]
            return []
        out = self._release(element.end)
        point = min(element.end, self._held.peekitem(0)[0]) if self._held else element.end
        if point > self.stable:
            self.stable = point
            out.append(stable(point))
        return out

    def _release(self, point: int) -> list[PhysicalElement]:
        """Take out the events that nothing before them holds back; at the last of all stable points all of them."""
        out: list[PhysicalElement] = []
        while self._held:
            start, held = self._held.peekitem(0)
            if point < FOREVER and max(end for _, end in held) >= point:
                break
            del self._held[start]
            out += (insert(payload, start, end) for payload, end in sorted(held))
        return out

    @property
    def n_held(self) -> int:
        """Events that wait."""
        return sum(map(len, self._held.values()))

    def bytes(self, payload_bytes: int) -> int:
        """Bytes of state, counted as for `SlowMerge.bytes`."""
        return self.n_held * (payload_bytes + 2 * 8) + len(self._held) * 2 * 8
