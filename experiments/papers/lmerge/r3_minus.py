"""LMR3-: an index for each input and one for the output, each with its own copies of the payloads (L VI-A).

It gives out what `in2t.py` gives out under its default policy; it is there to show what sharing saves.
"""

from __future__ import annotations

from sortedcontainers import SortedDict

from experiments.papers.lmerge.elements import PhysicalElement, adjust
from experiments.papers.lmerge.merge import SlowMerge
from lmerge.cases.outcomes import CHANGED, KNOWN, NEW, REPEATED, SETTLED, UNKNOWN


class SlowR3Minus(SlowMerge):
    """Case R3 with nothing shared: insert first, adjust lazily."""

    case = "R3"

    def __init__(self, *, lag: int = 0) -> None:
        super().__init__(lag=lag)
        self._given: SortedDict = SortedDict()
        self._indexes: dict[int, SortedDict] = {}

    def _insert(self, number: int, element: PhysicalElement) -> int:
        key = (element.start, element.payload)
        outcome = KNOWN
        if key not in self._given:
            if element.start < self.stable:
                return SETTLED
            self._given[key] = element.end
            self._out.append(element)
            outcome = NEW
        elif key in self._indexes[number]:
            return REPEATED
        self._indexes[number][key] = element.end
        return outcome

    def _adjust(self, number: int, element: PhysicalElement) -> int:
        key = (element.start, element.payload)
        if key not in self._given:
            return SETTLED if element.start < self.stable else UNKNOWN
        if key not in self._indexes[number]:
            return UNKNOWN
        if element.end == element.start:
            del self._indexes[number][key]
        else:
            self._indexes[number][key] = element.end
        return CHANGED

    def _settle(self, number: int, reached: int) -> None:
        below = list(self._given.irange(maximum=(reached, -(2**63)), inclusive=(True, False)))
        for key in below:
            start, payload = key
            out = self._given[key]
            end = self._indexes[number].get(key)
            if start < self.stable and (end is None or end < self.stable):
                end = out
            elif end is None:
                end = start
            if end != out and (end < reached or out < reached):
                self._out.append(adjust(payload, start, out, end))
                self._given[key] = out = end
            if out < reached:
                del self._given[key]
                for index in self._indexes.values():
                    index.pop(key, None)

    def _entered(self, number: int, *, late: bool) -> None:
        self._indexes[number] = SortedDict()

    def _forget(self, number: int) -> None:
        del self._indexes[number]

    @property
    def n_live(self) -> int:
        return len(self._given)

    def bytes(self, payload_bytes: int) -> int:
        return (len(self._given) + sum(map(len, self._indexes.values()))) * (payload_bytes + 4 * 8)
