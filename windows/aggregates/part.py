"""What every aggregate's state does in a commit.

A **part** is the state of some aggregates over one operand: per group, and where it needs it per live row. In a commit rows
`enter`, the part walks the steps, and what it was at each reading is asked for by kind. State of a group that lost all its rows
is as that of one that never had any, so group codes are handed on without a word.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from filters.values.vector import Array
from windows.aggregates.aggregate import AggregateKind
from windows.aggregates.steps import AggregateSteps


class AggregatePart(ABC):
    """The state of some aggregates over one operand."""

    #: values that could not be computed; grows only
    errors: int = 0

    @abstractmethod
    def clear(self) -> None:
        """Nothing is alive: fall back to the size of nothing."""

    @abstractmethod
    def hold(self, n_groups: int, n_slots: int) -> None:
        """Have room for so many groups and slots."""

    def enter(self, slots: Array, groups: Array) -> None:  # noqa: B027  # most parts need to know nothing before the walk
        """Rows begin in this commit; the operand has their values."""

    @abstractmethod
    def walk(self, steps: AggregateSteps) -> None:
        """Apply all steps; remember the readings until the next walk."""

    @abstractmethod
    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        """What the aggregate was at each reading: cells and null bytes."""

    def leave(self, slots: Array) -> None:  # noqa: B027  # as above
        """Rows have ended in this commit, and their slots are about to be free."""

    @property
    @abstractmethod
    def bytes(self) -> int: ...
