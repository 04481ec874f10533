"""What the slow merges have in common: inputs that join and leave, the stable point, and who moved it.

    joined    an input attached with `since` t has a say once the merge's stable point is at t or later; its stables before that
              move nothing (L8)
    left      an input that left has no entries: its number, given again, is a new input (L9)
    lag       the stable point follows the largest one of the joined inputs at a distance

One element at a time, in plain Python: the kernels of `lmerge/` are compared with these, output by output.
"""

from __future__ import annotations

from typing import NamedTuple

from experiments.papers.lmerge.elements import PhysicalElement, stable
from lineage.elements import BEGINNING, FOREVER
from lmerge.cases.outcomes import IGNORED, MOVED
from lmerge.streams.elements import ADJUST, INSERT


class Taken(NamedTuple):
    """The outcome of one element, and the elements that the merge gave out for it."""

    outcome: int
    out: list[PhysicalElement]


class SlowMerge:
    """One case of LMerge, the printed algorithm with its errata corrected."""

    case: str

    def __init__(self, *, lag: int = 0) -> None:
        self.lag = lag
        #: The merge's own stable point: MaxStable of the paper.
        self.stable = BEGINNING
        #: The input that last moved the stable point and is still there; -1 if there is none.
        self.leader = -1
        #: How often an input joined that lacks a part which no other will give.
        self.gaps = 0
        self._since: dict[int, int] = {}
        self._points: dict[int, int] = {}
        self._joined: set[int] = set()
        self._out: list[PhysicalElement] = []

    def attach(self, since: int | None = None) -> int:
        """The number of a new input; with `since` t it gives every event that ends at t or later."""
        number = next(k for k in range(len(self._points) + 1) if k not in self._points)
        start = BEGINNING if since is None else since
        self._since[number] = start
        self._points[number] = BEGINNING
        if start <= self.stable or not self._joined:
            self.gaps += BEGINNING < self.stable < start
            self._joined.add(number)
        self._entered(number, late=since is not None)
        return number

    def detach(self, number: int) -> None:
        """Remove an input with its points and entries."""
        del self._since[number], self._points[number]
        self._joined.discard(number)
        if self.leader == number:
            self.leader = -1
        self._forget(number)

    def joined(self, number: int) -> bool:
        """Whether an input has a say yet."""
        return number in self._joined

    def point(self, number: int) -> int:
        """The last stable point of an input."""
        return self._points[number]

    def push(self, number: int, element: PhysicalElement) -> Taken:
        """Take one element of an input."""
        assert number in self._points, f"no input has the number {number}"
        self._out = []
        if element.kind == INSERT:
            outcome = self._insert(number, element)
        elif element.kind == ADJUST:
            outcome = self._adjust(number, element)
        else:
            outcome = self._stable(number, element.end)
        return Taken(outcome, self._out)

    def _stable(self, number: int, point: int) -> int:
        self._points[number] = max(point, self._points[number])
        if number not in self._joined:
            return IGNORED
        reached = point if point == FOREVER else point - self.lag
        moves = reached > self.stable
        if moves:
            self._settle(number, reached)
        self._pass(number, point, max(reached, self.stable))
        if not moves:
            return IGNORED
        self.stable, self.leader = reached, number
        self._out.append(stable(reached))
        self._joined.update(other for other, since in self._since.items() if since <= reached)
        return MOVED

    def _insert(self, number: int, element: PhysicalElement) -> int:
        """Take an insert; returns its outcome."""
        raise NotImplementedError

    def _adjust(self, number: int, element: PhysicalElement) -> int:
        """Take an adjust; returns its outcome."""
        raise NotImplementedError

    def _settle(self, number: int, reached: int) -> None:
        """Make the output agree with the deciding input, as far as the new stable point freezes it."""

    def _pass(self, number: int, point: int, reached: int) -> None:
        """Give out what waits until an input's own point passes it."""

    def _entered(self, number: int, *, late: bool) -> None:
        """An input was attached; a late one does not begin with the first event."""

    def _forget(self, number: int) -> None:
        """An input left."""

    @property
    def n_live(self) -> int:
        """Events that are kept."""
        raise NotImplementedError

    def bytes(self, payload_bytes: int) -> int:
        """Bytes of state where a payload has that many: 8 for each number, and for each reference of a tree or hash table."""
        raise NotImplementedError
