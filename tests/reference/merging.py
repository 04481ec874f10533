"""Merges played step by step: the kernel beside its slow twin, with the same inputs cut into the same pushes.

What they give is compared element by element: the outcome of each that was pushed, and the outputs it caused. Those of one
element are a bag, but for its stable, which comes last: the twin gives them in order of payloads, the kernel in order of coming.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.papers.lmerge import PhysicalElement, batch_of, elements_of, make_slow_merge
from experiments.papers.lmerge.merge import SlowMerge, Taken
from lmerge.cases.outcomes import OUTCOMES
from lmerge.merge import Merge, Merged, make_merge
from lmerge.streams.elements import STABLE
from tests.reference.comparison import Mismatch, compared
from tests.reference.presentations import Attach, Detach, Push, Step


class Pair:
    """A kernel and its twin; streams are told by their place in the steps."""

    def __init__(self, case: str, *, checks: bool = True, **words: object) -> None:
        self.kernel: Merge = make_merge(case, **words)  # type: ignore[arg-type]  # words come from tests
        self.twin: SlowMerge = make_slow_merge(case, **words)  # type: ignore[arg-type]  # as above
        self.checks = checks
        self.numbers: dict[int, tuple[int, int]] = {}
        #: the owner's rows: the payload of each node that is alive
        self.owned: dict[int, tuple[int, int]] = {}

    def step(self, step: Step) -> list[Taken]:
        """Play one step on both; returns what the twin gave for each element."""
        taken: list[Taken] = []
        if isinstance(step, Attach):
            self.numbers[step.stream] = (self.kernel.attach(step.since), self.twin.attach(step.since))
        elif isinstance(step, Detach):
            ours, theirs = self.numbers.pop(step.stream)
            self.kernel.detach(ours)
            self.twin.detach(theirs)
        else:
            taken = self._push(step)
        self._compare_state()
        return taken

    def play(self, steps: Iterable[Step]) -> list[Taken]:
        return [taken for step in steps for taken in self.step(step)]

    def _push(self, step: Push) -> list[Taken]:
        ours, theirs = self.numbers[step.stream]
        merged = self.kernel.push(ours, batch_of(step.elements))
        taken = [self.twin.push(theirs, element) for element in step.elements]
        compare_outputs(step.elements, merged, taken)
        self._own(step.elements, merged)
        compared(len(step.elements))
        return taken

    def _own(self, elements: Sequence[PhysicalElement], merged: Merged) -> None:
        """Keep payloads by node as an owner does."""
        if self.kernel.case not in ("R3", "R4"):
            for out, node in zip(elements_of(merged.elements), merged.nodes.tolist(), strict=True):
                if out.kind != STABLE and elements[node] != out:
                    raise Mismatch(f"{out} is not the pushed {elements[node]}")
            return
        events = [(element.start, element.payload) for element in elements]
        for event, node in zip(events, merged.taken.tolist(), strict=True):
            if node >= 0 and self.owned.setdefault(node, event) != event:
                raise Mismatch(f"node {node} of {event} is that of {self.owned[node]}")
        for out, node in zip(elements_of(merged.elements), merged.nodes.tolist(), strict=True):
            if out.kind != STABLE and self.owned.get(node) != (out.start, out.payload):
                raise Mismatch(f"node {node} of {out} is that of {self.owned.get(node)}")
        for node in merged.freed.tolist():
            del self.owned[node]
        if len(self.owned) != self.kernel.n_live or max(self.owned, default=-1) >= self.kernel.capacity:
            raise Mismatch(f"{len(self.owned)} nodes are owned, {self.kernel.n_live} are alive")

    def _compare_state(self) -> None:
        kernel, twin = self.kernel, self.twin
        names = dict(self.numbers.values()) | {-1: -1}
        ours = (kernel.stable, names[kernel.leader], kernel.n_live, kernel.counters.gaps)
        theirs = (twin.stable, twin.leader, twin.n_live, twin.gaps)
        if ours != theirs:
            raise Mismatch(f"point, leader, events, gaps: {ours}, twin {theirs}")
        for number, slow in self.numbers.values():
            if (kernel.joined(number), kernel.point(number)) != (twin.joined(slow), twin.point(slow)):
                raise Mismatch(f"input {number} stands elsewhere than in the twin")
        if self.checks:
            kernel.check()


def compare_outputs(elements: Sequence[PhysicalElement], merged: Merged, taken: Sequence[Taken]) -> None:
    """Compare what a push gave with what the twin gave for each of its elements."""
    given = list(elements_of(merged.elements))
    at = 0
    for element, outcome, theirs in zip(elements, merged.outcomes.tolist(), taken, strict=True):
        part = given[at : at + len(theirs.out)]
        at += len(theirs.out)
        if OUTCOMES[outcome] != OUTCOMES[theirs.outcome] or not _same(part, theirs.out):
            raise Mismatch(
                f"{element}: {OUTCOMES[outcome]} {' '.join(map(str, part))}, "
                f"twin {OUTCOMES[theirs.outcome]} {' '.join(map(str, theirs.out))}"
            )
    if at != len(given):
        raise Mismatch(f"gave more: {' '.join(map(str, given[at:]))}")


def _same(ours: Sequence[PhysicalElement], theirs: Sequence[PhysicalElement]) -> bool:
    stables = [k for k, element in enumerate(ours) if element.kind == STABLE]
    return sorted(ours) == sorted(theirs) and stables in ([], [len(ours) - 1])


class OneByOne:
    """A kernel with the calls of a slow merge: one element a push."""

    def __init__(self, kernel: Merge) -> None:
        self.kernel = kernel

    @property
    def stable(self) -> int:
        return self.kernel.stable

    def attach(self, since: int | None = None) -> int:
        return self.kernel.attach(since)

    def detach(self, number: int) -> None:
        self.kernel.detach(number)

    def push(self, number: int, element: PhysicalElement) -> Taken:
        merged = self.kernel.push(number, batch_of([element]))
        self.kernel.check()
        return Taken(int(merged.outcomes[0]), list(elements_of(merged.elements)))


def play_kernel(kernel: Merge, steps: Iterable[Step]) -> list[PhysicalElement]:
    """Play steps on a kernel alone; returns all it gave."""
    numbers: dict[int, int] = {}
    given: list[PhysicalElement] = []
    for step in steps:
        if isinstance(step, Attach):
            numbers[step.stream] = kernel.attach(step.since)
        elif isinstance(step, Detach):
            kernel.detach(numbers.pop(step.stream))
        else:
            given += elements_of(kernel.push(numbers[step.stream], batch_of(step.elements)).elements)
    return given
