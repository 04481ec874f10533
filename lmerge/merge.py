"""Merges: one logical stream out of physically different presentations of it, by the case that their properties allow.

    R0        starts rise strictly                                         lmerge/cases/r0.py
    R1        equal starts come in one order                               lmerge/cases/r1.py
    R2        equal starts in any order, (payload, start) is a key         lmerge/cases/r2.py
              the same without the key: as a bag                           lmerge/cases/r2.py
    R3        any order, adjusts, (payload, start) is a key                lmerge/cases/r3.py
    R4        the same without the key                                     lmerge/cases/r4.py

Invariant of all: after every element the output is a valid stream that can still become what the inputs that have a say become.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lineage.errors import EddyError
from lmerge.cases.inputs import Counters as Counters
from lmerge.cases.merged import Merged as Merged
from lmerge.cases.policies import Policies, parse_policies
from lmerge.cases.r0 import R0Merge
from lmerge.cases.r1 import R1Merge
from lmerge.cases.r2 import R2Merge
from lmerge.cases.r3 import R3Merge
from lmerge.cases.r4 import R4Merge
from lmerge.streams.elements import ElementBatch


class Merge(Protocol):
    """A merge of some inputs."""

    #: "R0" .. "R4"
    case: str

    @property
    def stable(self) -> int:
        """The merge's own point; BEGINNING before the first."""

    @property
    def leader(self) -> int:
        """The input that last moved the point; -1 before, and once it has left."""

    @property
    def n_live(self) -> int:
        """Nodes: events that are not over."""

    @property
    def capacity(self) -> int:
        """Every number of a node is below it."""

    @property
    def bytes(self) -> int:
        """Bytes of state."""

    @property
    def counters(self) -> Counters:
        """Counts of the elements in and out and of their outcomes, over all inputs, detached ones included."""

    def counters_of(self, number: int) -> Counters:
        """Counts of the elements of one input and of their outcomes."""

    @property
    def work(self) -> dict[str, int]:
        """How much was looked at, in all."""

    def attach(self, since: int | None = None) -> int:
        """Return the number of a new input, which joins when the point reaches `since`; at once without, or if none is joined."""

    def detach(self, number: int) -> None:
        """Let an input leave: it has no say any more."""

    def joined(self, number: int) -> bool:
        """Whether an input has a say."""

    def point(self, number: int) -> int:
        """The last stable point of an input."""

    def push(self, number: int, batch: ElementBatch) -> Merged:
        """Merge elements of an input."""

    def check(self) -> None:
        """Assert the invariants of the state."""


_CASES: dict[str, Callable[[Policies], Merge]] = {"R0": R0Merge, "R1": R1Merge, "R3": R3Merge, "R4": R4Merge}


def make_merge(
    case: str, *, bag: bool = False, insert: str = "first", adjust: str = "lazy", missing: str = "leader", lag: int = 0
) -> Merge:  # fmt: skip
    """Return a merge without inputs; `bag` is for R2, and `lmerge/cases/policies.py` says what the other words mean."""
    policies = parse_policies(insert, adjust, missing, lag)
    if case == "R2":
        return R2Merge(policies, bag)
    if case not in _CASES:
        raise EddyError(f'"{case}" is no case of a merge', code="unknown_case", hint="one of R0, R1, R2, R3, R4")
    return _CASES[case](policies)
