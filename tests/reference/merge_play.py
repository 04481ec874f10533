"""Playing steps of inputs into a slow merge: tables of all inputs and of the output, kept up to date element by element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from experiments.papers.lmerge import PhysicalElement, SlowMerge
from lmerge.conditions import find_breach, find_count_breach
from lmerge.outcomes import OUTCOMES
from tests.reference.comparison import compared
from tests.reference.element_table import SlowTable
from tests.reference.presentations import Attach, Detach, Step


class MergePlay:
    """A merge with what went in and came out. Inputs that left stay as they were when they did."""

    def __init__(self, merge: SlowMerge, *, key: bool = True) -> None:
        self.merge = merge
        self.key = key
        self.inputs: dict[int, SlowTable] = {}
        self.output = SlowTable(key=key)
        #: Elements in and out by kind, outcomes by name.
        self.taken: Counter[int] = Counter()
        self.given: Counter[int] = Counter()
        self.outcomes: Counter[str] = Counter()
        self._numbers: dict[int, int] = {}

    def run(self, steps: Iterable[Step], after: Callable[[MergePlay], None] = lambda play: None) -> MergePlay:
        """Play all steps; `after` is called after every element. The output must be a valid stream all along."""
        for step in steps:
            if isinstance(step, Attach):
                self._numbers[step.stream] = self.merge.attach(step.since)
                self.inputs[step.stream] = SlowTable(key=self.key)
            elif isinstance(step, Detach):
                self.merge.detach(self._numbers.pop(step.stream))
            else:
                for element in step.elements:
                    self._push(step.stream, element)
                    after(self)
        return self

    def _push(self, stream: int, element: PhysicalElement) -> None:
        self.inputs[stream].take(element)
        outcome, out = self.merge.push(self._numbers[stream], element)
        self.taken[element.kind] += 1
        self.outcomes[OUTCOMES[outcome]] += 1
        for one in out:
            self.output.take(one)
            self.given[one.kind] += 1
        assert not self.output.fault, self.output.fault

    def compatible(self) -> None:
        """The output holds to C1-C3, or in a bag to the counts of the leading input."""
        compared()
        presented = [table.presented() for table in self.inputs.values()]
        if self.key:
            breach = find_breach(presented, self.output.presented())
        else:
            breach = find_count_breach(max(presented, key=lambda one: one.stable), self.output.presented())
        assert breach is None, breach
