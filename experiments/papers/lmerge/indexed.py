"""What the merges with an index have in common: R3 over in2t and R4 over in3t.

    nodes[(Vs, p)]    what every input says of the event, and what was given out; ordered as the paper's tree is

A node is there iff its event may still change in the output. Where a node's start is below the stable point, its event is out.
"""

from __future__ import annotations

from typing import Any

from sortedcontainers import SortedDict

from experiments.papers.lmerge.elements import PhysicalElement, adjust, insert
from experiments.papers.lmerge.merge import SlowMerge
from experiments.papers.lmerge.policies import SlowPolicy
from lineage.elements import BEGINNING

Key = tuple[int, int]


class SlowIndexed(SlowMerge):
    """An index by start and payload; how a node looks is for the case to say."""

    def __init__(self, *, policy: SlowPolicy | None = None, lag: int = 0) -> None:
        super().__init__(lag=lag)
        self.policy = policy or SlowPolicy()
        self.nodes: SortedDict = SortedDict()
        #: The largest start that each input gave.
        self._highest: dict[int, int] = {}

    def _entered(self, number: int, *, late: bool) -> None:
        self._highest[number] = BEGINNING

    def _forget(self, number: int) -> None:
        del self._highest[number]
        for key, node in list(self.nodes.items()):
            node.drop(number)
            self._let_go(key, node)

    def _let_go(self, key: Key, node: Any) -> None:
        """Drop a node of which nothing is left."""
        if not node.given and not node.held:
            del self.nodes[key]

    def _below(self, point: int) -> list[Key]:
        """The nodes with a start below a point, in order."""
        return list(self.nodes.irange(maximum=(point, -(2**63)), inclusive=(True, False)))

    def _wanted(self, number: int, node: Any, copies: int) -> bool:
        """Whether the insert policy gives out the event of a node, which has that many copies in this input, now."""
        word = self.policy.insert
        if word == "first":
            return True
        if word in ("stable", "half-frozen") or not self.joined(number):
            return False
        if word == "leader":
            return number == self.leader
        if word == "highest":
            return self._highest[number] == max(self._highest[k] for k in self._joined)
        if word == "unfrozen":
            return self._unfrozen(number) == max(map(self._unfrozen, self._joined))
        holders: int = sum(node.copies(k) >= copies for k in self._joined)
        return holders >= self.policy.fraction * len(self._joined)

    def _unfrozen(self, number: int) -> int:
        """How many events of an input are not below its own stable point."""
        point = self._points[number]
        return sum(node.copies(number) for (start, _), node in self.nodes.items() if start >= point)

    def _follows(self, number: int) -> bool:
        """Whether the adjust policy gives out changes of an input at once."""
        return self.policy.adjust == "every" or (self.policy.adjust == "leader" and number == self.leader)

    def _emit_insert(self, key: Key, end: int) -> None:
        self._out.append(insert(key[1], key[0], end))

    def _emit_adjust(self, key: Key, old: int, end: int) -> None:
        self._out.append(adjust(key[1], key[0], old, end))

    def _settle(self, number: int, reached: int) -> None:
        for key in self._below(reached):
            node = self.nodes[key]
            self._agree(number, key, node, reached)
            if not node.open_at(reached):
                del self.nodes[key]

    def _agree(self, number: int, key: Key, node: Any, reached: int) -> None:
        """Make what was given out of one event agree with the deciding input, as far as it becomes frozen."""
        raise NotImplementedError

    @property
    def n_live(self) -> int:
        return len(self.nodes)

    def _note(self, number: int, element: PhysicalElement) -> Key:
        """The key of an insert, whose start may be the largest of its input."""
        self._highest[number] = max(self._highest[number], element.start)
        return element.start, element.payload
