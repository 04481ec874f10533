"""Algorithms R0, R1 and R2: inputs in order of their starts, with inserts only. Nothing is kept of who gave what.

| case | the same in all inputs | kept |
|---|---|---|
| R0 | one event a start | the largest start |
| R1 | the order within a start | and how many events of it each input gave |
| R2 | the events of a start, in any order | and their payloads; in the bag form how often each input gave each |

Corrected: an insert below the stable point is dropped (L6); a late joiner of R1 counts from the next start on (L7); an input that
has not joined is not listened to, as its early starts would shut out what the others still owe.
"""

from __future__ import annotations

from collections import Counter

from experiments.papers.lmerge.elements import PhysicalElement
from experiments.papers.lmerge.merge import SlowMerge
from lineage.elements import BEGINNING
from lineage.errors import EddyError
from lmerge.cases.outcomes import IGNORED, KNOWN, NEW, SETTLED


class SlowOrdered(SlowMerge):
    """What R0, R1 and R2 have in common."""

    def __init__(self, *, lag: int = 0) -> None:
        super().__init__(lag=lag)
        #: MaxVs of the paper.
        self.newest = BEGINNING

    def _insert(self, number: int, element: PhysicalElement) -> int:
        if not self.joined(number):
            return IGNORED
        if element.start < self.stable:
            return SETTLED
        if element.start < self.newest:
            return KNOWN
        if element.start > self.newest:
            self.newest = element.start
            self._begin()
        if not self._lacks(number, element):
            return KNOWN
        self._out.append(element)
        return NEW

    def _adjust(self, number: int, element: PhysicalElement) -> int:
        raise EddyError(
            f"an adjust is not possible in case {self.case}",
            code="bad_case",
            hint="R3 and R4 take inputs that change what they said.",
        )

    def _begin(self) -> None:
        """The first event of a new start has come."""

    def _lacks(self, number: int, element: PhysicalElement) -> bool:
        """Whether an event at the newest start is still to be given out; counts it."""
        raise NotImplementedError

    @property
    def n_live(self) -> int:
        return 0

    def bytes(self, payload_bytes: int) -> int:
        return 2 * 8


class SlowR0(SlowOrdered):
    """Algorithm R0: strictly rising starts."""

    case = "R0"

    def __init__(self, *, lag: int = 0) -> None:
        super().__init__(lag=lag)
        self._given = False

    def _begin(self) -> None:
        self._given = False

    def _lacks(self, number: int, element: PhysicalElement) -> bool:
        lacks = not self._given
        self._given = True
        return lacks


class SlowR1(SlowOrdered):
    """Algorithm R1: equal starts in the same order in all inputs."""

    case = "R1"

    def __init__(self, *, lag: int = 0) -> None:
        super().__init__(lag=lag)
        self._counts: Counter[int] = Counter()
        self._given = 0
        #: The newest start when a late input came: where it stands within that start is not known.
        self._bars: dict[int, int] = {}

    def _begin(self) -> None:
        self._counts.clear()
        self._given = 0

    def _lacks(self, number: int, element: PhysicalElement) -> bool:
        if element.start <= self._bars[number]:
            return False
        lacks = self._counts[number] == self._given
        self._counts[number] += 1
        self._given += lacks
        return lacks

    def _entered(self, number: int, *, late: bool) -> None:
        self._bars[number] = self.newest if late else BEGINNING

    def _forget(self, number: int) -> None:
        del self._counts[number], self._bars[number]

    def bytes(self, payload_bytes: int) -> int:
        return (2 + len(self._bars)) * 8


class SlowR2(SlowOrdered):
    """Algorithm R2: equal starts in any order; payload and start are a key."""

    case = "R2"

    def __init__(self, *, lag: int = 0) -> None:
        super().__init__(lag=lag)
        self._payloads: set[int] = set()

    def _begin(self) -> None:
        self._payloads.clear()

    def _lacks(self, number: int, element: PhysicalElement) -> bool:
        lacks = element.payload not in self._payloads
        self._payloads.add(element.payload)
        return lacks

    @property
    def n_live(self) -> int:
        return len(self._payloads)

    def bytes(self, payload_bytes: int) -> int:
        return 2 * 8 + len(self._payloads) * (payload_bytes + 8)


class SlowR2Bag(SlowOrdered):
    """Algorithm R2 for bags: as many copies of an event as the input that gave most of them has."""

    case = "R2"

    def __init__(self, *, lag: int = 0) -> None:
        super().__init__(lag=lag)
        self._counts: dict[int, Counter[tuple[int, int]]] = {}
        self._given: Counter[tuple[int, int]] = Counter()

    def _begin(self) -> None:
        for counts in self._counts.values():
            counts.clear()
        self._given.clear()

    def _lacks(self, number: int, element: PhysicalElement) -> bool:
        event = (element.payload, element.end)
        self._counts[number][event] += 1
        lacks = self._counts[number][event] > self._given[event]
        self._given[event] += lacks
        return lacks

    def _entered(self, number: int, *, late: bool) -> None:
        self._counts[number] = Counter()

    def _forget(self, number: int) -> None:
        del self._counts[number]

    @property
    def n_live(self) -> int:
        return len(self._given)

    def bytes(self, payload_bytes: int) -> int:
        return 2 * 8 + len(self._given) * (payload_bytes + 8 + 8 * len(self._counts))
