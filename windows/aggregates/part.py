"""The protocol of an aggregate's state: enter rows, walk the steps, give values, let rows leave.

A **part** is the state of some aggregates over one operand: per group, and where it needs it per live row. In a commit rows
`enter`, the part walks the steps, and its values at the readings are asked for by kind. The state of a group that lost all its
rows equals that of a new group, so group codes are used again without a call.
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
    #: how many of them the last walk had at each reading; None: none
    failures: Array | None = None

    @abstractmethod
    def clear(self) -> None:
        """Reset to the initial size; no row is alive."""

    @abstractmethod
    def hold(self, n_groups: int, n_slots: int) -> None:
        """Make room for so many groups and slots."""

    def enter(self, slots: Array, groups: Array) -> None:  # noqa: B027  # most parts need to know nothing before the walk
        """Take the rows that begin in this commit; the operand has their values."""

    @abstractmethod
    def walk(self, steps: AggregateSteps) -> None:
        """Apply all steps and keep the values at the readings until the next walk."""

    @abstractmethod
    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        """Return the aggregate's value at each reading: cells and null bytes."""

    def leave(self, slots: Array) -> None:  # noqa: B027  # as above
        """Release the rows that ended in this commit; their slots are free after it."""

    @property
    @abstractmethod
    def bytes(self) -> int: ...
