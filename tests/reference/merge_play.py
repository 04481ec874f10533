"""Playing steps of inputs into a slow merge: tables of all inputs and of the output, kept up to date element by element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from experiments.papers.lmerge import PhysicalElement, SlowMerge
from lineage.elements import BEGINNING
from lmerge.cases.outcomes import MOVED, OUTCOMES
from lmerge.streams.conditions import Presented, find_breach, find_count_breach
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
        self._sinces: dict[int, int] = {}
        #: The input that last moved the stable point, also when it has left.
        self._decided = -1

    def run(self, steps: Iterable[Step], after: Callable[[MergePlay], None] = lambda play: None) -> MergePlay:
        """Play all steps; `after` is called after every element. The output must be a valid stream all along."""
        for step in steps:
            if isinstance(step, Attach):
                self._numbers[step.stream] = self.merge.attach(step.since)
                self.inputs[step.stream] = SlowTable(key=self.key)
                self._sinces[step.stream] = BEGINNING if step.since is None else step.since
            elif isinstance(step, Detach):
                self.merge.detach(self._numbers.pop(step.stream))
            else:
                for element in step.elements:
                    self.push(step.stream, element)
                    after(self)
        return self

    def push(self, stream: int, element: PhysicalElement) -> None:
        """Take one element of an input, told by its place in the order of attaching."""
        self.inputs[stream].take(element)
        outcome, out = self.merge.push(self._numbers[stream], element)
        self.taken[element.kind] += 1
        self.outcomes[OUTCOMES[outcome]] += 1
        self._decided = stream if outcome == MOVED else self._decided
        for one in out:
            self.output.take(one)
            self.given[one.kind] += 1
        assert not self.output.fault, self.output.fault

    def compatible(self) -> None:
        """The output holds to C1-C3, or in a bag to the counts of the input that decided."""
        compared()
        output = self.output.presented()
        if self.key:
            breach = find_breach([table.presented() for table in self.inputs.values()], output)
        elif self._decided >= 0:
            since = self._sinces[self._decided]
            breach = find_count_breach(_ending(self.inputs[self._decided].presented(), since), _ending(output, since))
        else:
            breach = None
        assert breach is None, breach


def _ending(one: Presented, since: int) -> Presented:
    """What a stream says of events that end at a time or later: all that an input gives that began with it."""
    return Presented(one.stable, {key: [end for end in ends if end >= since] for key, ends in one.events.items()})
