"""The contestants of the merge experiments: our kernels, the printed algorithms, and Cleanse in front of R1; their bytes and
speed.

Bytes are accounted, not measured: those of the state, and 1,008 for every payload that is kept.

    kernel     a payload for each live event, whatever the number of inputs
    printed    R3: the same. R3-: one for each event of each input's index, and of the output's
    cleansed   one for each event that an input's Cleanse holds

Speed is elements in and events out a CPU second of this process; contestants take turns, and the fastest turn of each counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from experiments.lmerge.generator import PAYLOAD_BYTES
from experiments.papers.lmerge import PhysicalElement, elements_of, make_slow_merge
from lmerge.merge import make_merge
from lmerge.streams.cleanse import Cleanse
from lmerge.streams.elements import INSERT, ElementBatch

#: Number of an input, and elements of it.
Push = tuple[int, ElementBatch]
#: Times at which bytes are looked at, in the second half of a run.
LOOKS = 32
#: Elements of a push.
PUSH_ELEMENTS = 4000


class ContestSize(NamedTuple):
    """Numbers of inputs; elements an input, of our kernels and of the printed algorithms; turns of each kernel."""

    inputs: tuple[int, ...]
    elements: int
    printed: int
    turns: int
    #: elements of a push
    push: int = PUSH_ELEMENTS


class MergeContestant(Protocol):
    """One way to merge."""

    def prepared(self, pushes: Iterable[Push]) -> list[tuple[int, Any]]:
        """Return pushes in the form that `push` takes; not part of what is measured."""

    def push(self, number: int, part: Any) -> Any:
        """Take elements of an input; returns what is given out."""

    def n_events(self, given: Any) -> int:
        """Return how many events `push` gave out; not part of what is measured."""

    def bytes(self) -> int:
        """Accounted bytes."""


class KernelContestant:
    """A case of `lmerge/`."""

    def __init__(self, case: str, n_inputs: int, **policies: str) -> None:
        self.merge = make_merge(case, **policies)  # type: ignore[arg-type]  # of all its options only words are given
        for _ in range(n_inputs):
            self.merge.attach()

    def prepared(self, pushes: Iterable[Push]) -> list[tuple[int, Any]]:
        return list(pushes)

    def push(self, number: int, part: ElementBatch) -> ElementBatch:
        return self.merge.push(number, part).elements

    def n_events(self, given: ElementBatch) -> int:
        return int(np.count_nonzero(given.kinds == INSERT))

    def bytes(self) -> int:
        return self.merge.bytes + self.merge.n_live * PAYLOAD_BYTES


class PrintedContestant:
    """An algorithm as the paper prints it, corrected, one element at a time in Python (`experiments/papers/lmerge/`)."""

    def __init__(self, case: str, n_inputs: int) -> None:
        self.merge = make_slow_merge(case)
        for _ in range(n_inputs):
            self.merge.attach()

    def prepared(self, pushes: Iterable[Push]) -> list[tuple[int, Any]]:
        return [(number, list(elements_of(part))) for number, part in pushes]

    def push(self, number: int, part: list[PhysicalElement]) -> list[list[PhysicalElement]]:
        take = self.merge.push
        return [take(number, element).out for element in part]

    def n_events(self, given: list[list[PhysicalElement]]) -> int:
        return sum(out.kind == INSERT for outs in given for out in outs)

    def bytes(self) -> int:
        return self.merge.bytes(PAYLOAD_BYTES)


class CleansedContestant:
    """A Cleanse for each input, and R1 behind them."""

    def __init__(self, n_inputs: int) -> None:
        self.cleanses = [Cleanse() for _ in range(n_inputs)]
        self.merge = make_merge("R1")
        for _ in range(n_inputs):
            self.merge.attach()

    def prepared(self, pushes: Iterable[Push]) -> list[tuple[int, Any]]:
        return list(pushes)

    def push(self, number: int, part: ElementBatch) -> ElementBatch:
        return self.merge.push(number, self.cleanses[number].push(part)).elements

    def n_events(self, given: ElementBatch) -> int:
        return int(np.count_nonzero(given.kinds == INSERT))

    def bytes(self) -> int:
        return self.merge.bytes + sum(one.bytes + one.n_held * PAYLOAD_BYTES for one in self.cleanses)


def mean_bytes(contestant: MergeContestant, pushes: Sequence[Push], n_inputs: int) -> float:
    """Return the mean of the accounted bytes over the second half of a run, looked at after whole rounds of all inputs."""
    n_rounds = len(pushes) // n_inputs
    looks = {n_inputs * round(n) for n in np.linspace(n_rounds / 2, n_rounds - 1, LOOKS)}
    found = []
    for n, (number, part) in enumerate(contestant.prepared(pushes), 1):
        contestant.push(number, part)
        if n in looks:
            found.append(contestant.bytes())
    return float(np.mean(found))


def rates(
    makers: Mapping[str, Callable[[], MergeContestant]], pushes: Sequence[Push], turns: int
) -> dict[str, tuple[float, float]]:
    """Return for each contestant the elements that it takes and the events that it gives out in a CPU second."""
    n_elements = sum(len(part.kinds) for _, part in pushes)
    prepared = {name: make().prepared(pushes) for name, make in makers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    events = {}
    for turn in range(turns):
        # whoever is first in a turn is not so in the next
        for name in np.roll(list(makers), turn).tolist():
            contestant = makers[name]()
            began = time.thread_time()
            given = [contestant.push(number, part) for number, part in prepared[name]]
            seconds[name].append(time.thread_time() - began)
            events[name] = sum(map(contestant.n_events, given))
    return {name: (n_elements / min(spent), events[name] / min(spent)) for name, spent in seconds.items()}
