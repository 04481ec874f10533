"""Algorithm R4 over in3t: a bag, in which several events may have the same payload and start.

    nodes[(Vs, p)] = {input: {Ve: count}}, and {Ve: count} of what was given out

When the stable point passes a node, the ends of the deciding input that are not out and those out that it has not are put in
order and paired: a pair of which one becomes frozen is an adjust. That is the least number of them. Where counts differ, copies
are inserted or removed while the start is not below the stable point; later what has no partner has no say, as in R3 (L5).

Corrected: a removal only takes away (L3); AdjustOutputCount and GetMaxVe know the input and may find nothing (L4).
"""

from __future__ import annotations

from collections import Counter

from experiments.papers.lmerge.elements import PhysicalElement
from experiments.papers.lmerge.indexed import Key, SlowIndexed
from lineage.elements import BEGINNING
from lmerge.cases.outcomes import CHANGED, KNOWN, NEW, SETTLED, UNKNOWN


class In3tNode:
    """The events of one payload and start: how many with each end in each input, and given out."""

    def __init__(self) -> None:
        self.ends: dict[int, Counter[int]] = {}
        self.out: Counter[int] = Counter()

    @property
    def given(self) -> bool:
        return bool(self.out)

    @property
    def held(self) -> bool:
        return bool(self.ends)

    def copies(self, number: int) -> int:
        return self.ends[number].total() if number in self.ends else 0

    def drop(self, number: int) -> None:
        self.ends.pop(number, None)

    def open_at(self, point: int) -> bool:
        """Whether a stable point leaves the end of a copy given out open."""
        return max(self.out, default=BEGINNING) >= point


def move(counts: Counter[int], old: int | None, end: int | None) -> None:
    """Take one copy from an end to another; None: there is none."""
    if old is not None:
        counts[old] -= 1
        if not counts[old]:
            del counts[old]
    if end is not None:
        counts[end] += 1


class SlowR4(SlowIndexed):
    """Algorithm R4."""

    case = "R4"

    def _insert(self, number: int, element: PhysicalElement) -> int:
        key = self._note(number, element)
        node = self.nodes.get(key)
        if node is None:
            if element.start < self.stable:
                return SETTLED
            node = self.nodes[key] = In3tNode()
        move(node.ends.setdefault(number, Counter()), None, element.end)
        if element.start < self.stable:
            return KNOWN
        copies, n_out = node.copies(number), node.out.total()
        most = max((node.copies(other) for other in node.ends if other != number), default=0)
        if copies > n_out and self._wanted(number, node, n_out + 1):
            self._emit_insert(key, element.end)
            move(node.out, None, element.end)
        return NEW if copies > max(most, n_out) else KNOWN

    def _adjust(self, number: int, element: PhysicalElement) -> int:
        key = (element.start, element.payload)
        node = self.nodes.get(key)
        if node is None:
            return SETTLED if element.start < self.stable else UNKNOWN
        ends = node.ends.get(number)
        if not ends or not ends[element.old]:
            return UNKNOWN
        removal = element.end == element.start
        move(ends, element.old, None if removal else element.end)
        if not ends:
            del node.ends[number]
        if node.out[element.old] and self.stable <= min(element.old, element.end) and self._follows(number):
            self._emit_adjust(key, element.old, element.end)
            move(node.out, element.old, None if removal else element.end)
        self._let_go(key, node)
        return CHANGED

    def _agree(self, number: int, key: Key, node: In3tNode, reached: int) -> None:
        start = key[0]
        said = node.ends.get(number, Counter())
        lacking, extra = said - node.out, node.out - said
        if start < self.stable:
            lacking, extra = (Counter({end: n for end, n in c.items() if end >= self.stable}) for c in (lacking, extra))
        wanted, out = sorted(lacking.elements()), sorted(extra.elements())
        if start >= self.stable:
            while len(out) > len(wanted):
                self._change(key, node, out.pop(0), None)
            while len(wanted) > len(out):
                self._change(key, node, None, wanted.pop(0))
        for old, end in zip(out, wanted, strict=False):
            if min(old, end) < reached:
                self._change(key, node, old, end)

    def _change(self, key: Key, node: In3tNode, old: int | None, end: int | None) -> None:
        """Give out the insert of a copy, or the adjust or the removal of one."""
        if old is None:
            assert end is not None
            self._emit_insert(key, end)
        else:
            self._emit_adjust(key, old, key[0] if end is None else end)
        move(node.out, old, end)

    def _pass(self, number: int, point: int, reached: int) -> None:
        if self.policy.insert != "half-frozen":
            return
        for key in self._below(point):
            node = self.nodes[key]
            said = node.ends.get(number, Counter())
            lacking = sorted((said - node.out).elements())
            while key[0] >= reached and node.out.total() < said.total():
                self._change(key, node, None, lacking.pop(0))

    def bytes(self, payload_bytes: int) -> int:
        entries = sum(sum(map(len, node.ends.values())) + len(node.out) for node in self.nodes.values())
        inputs = sum(len(node.ends) + 1 for node in self.nodes.values())
        return len(self.nodes) * (payload_bytes + 3 * 8) + inputs * 2 * 8 + entries * 3 * 8
