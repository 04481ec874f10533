"""Algorithm R3 over in2t: payload and start are a key; everything else may come in any order and change.

    nodes[(Vs, p)] = {input: Ve}, and the end given out

Corrected (L5): an input without an entry says "removed" only while the start is not below the stable point; later it has no say,
and neither has an end below the stable point. With `missing="any"` what the deciding input lacks is looked up at the other joined
inputs.
"""

from __future__ import annotations

from experiments.papers.lmerge.elements import PhysicalElement
from experiments.papers.lmerge.indexed import Key, SlowIndexed
from lmerge.cases.outcomes import CHANGED, KNOWN, NEW, REPEATED, SETTLED, UNKNOWN


class In2tNode:
    """One event: the end that each input gives it, and the one given out."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}
        self.out: int | None = None

    @property
    def given(self) -> bool:
        return self.out is not None

    @property
    def held(self) -> bool:
        return bool(self.ends)

    def copies(self, number: int) -> int:
        return int(number in self.ends)

    def drop(self, number: int) -> None:
        self.ends.pop(number, None)

    def open_at(self, point: int) -> bool:
        """Whether a stable point leaves the end given out open."""
        return self.out is not None and self.out >= point


class SlowR3(SlowIndexed):
    """Algorithm R3."""

    case = "R3"

    def _insert(self, number: int, element: PhysicalElement) -> int:
        key = self._note(number, element)
        node = self.nodes.get(key)
        outcome = KNOWN
        if node is None:
            if element.start < self.stable:
                return SETTLED
            node = self.nodes[key] = In2tNode()
            outcome = NEW
        elif number in node.ends:
            return REPEATED
        node.ends[number] = element.end
        if node.out is not None:
            self._follow(number, key, node, element.end)
        elif self._wanted(number, node, 1):
            self._emit_insert(key, element.end)
            node.out = element.end
        return outcome

    def _adjust(self, number: int, element: PhysicalElement) -> int:
        key = (element.start, element.payload)
        node = self.nodes.get(key)
        if node is None:
            return SETTLED if element.start < self.stable else UNKNOWN
        if number not in node.ends:
            return UNKNOWN
        if element.end == element.start:
            del node.ends[number]
        else:
            node.ends[number] = element.end
        if node.out is not None:
            self._follow(number, key, node, element.end)
        self._let_go(key, node)
        return CHANGED

    def _follow(self, number: int, key: Key, node: In2tNode, end: int) -> None:
        """Give out another end at once, if the policy wants that and the stable point allows it."""
        if node.out is None or node.out == end or end < self.stable or not self._follows(number):
            return
        self._emit_adjust(key, node.out, end)
        node.out = None if end == key[0] else end

    def _agree(self, number: int, key: Key, node: In2tNode, reached: int) -> None:
        end = self._said(number, key, node)
        if node.out is None:
            if end != key[0]:
                self._emit_insert(key, end)
                node.out = end
        elif end != node.out and (end < reached or node.out < reached):
            self._emit_adjust(key, node.out, end)
            node.out = end

    def _said(self, number: int, key: Key, node: In2tNode) -> int:
        """The end that counts when an input decides; the start if the event is to go."""
        start = key[0]
        end = node.ends.get(number)
        if end is None and self.policy.missing == "any":
            holders = [(self._points[other], end) for other, end in node.ends.items() if other in self._joined]
            end = max(holders)[1] if holders else None
        if start >= self.stable:
            return start if end is None else end
        assert node.out is not None, "what the stable point has passed is out"
        return node.out if end is None or end < self.stable else end

    def _pass(self, number: int, point: int, reached: int) -> None:
        if self.policy.insert != "half-frozen":
            return
        for key in self._below(point):
            node = self.nodes[key]
            if key[0] >= reached and node.out is None and number in node.ends:
                node.out = node.ends[number]
                self._emit_insert(key, node.out)

    def bytes(self, payload_bytes: int) -> int:
        entries = sum(len(node.ends) + 1 for node in self.nodes.values())
        return len(self.nodes) * (payload_bytes + 3 * 8) + entries * 2 * 8
