"""What every window operator does: take a delta per input and give one, once a commit, in the commit's own thread.

    process      all events of the commit, and all ends up to its clock `upto`: afterwards the output is that of `upto`
    answer       the rows of the output that are alive, all as + at one instant: what a new reader begins with

An operator that keeps no state derives its answer from its inputs', which is why `answer` is given those. State is bounded by
what is alive: ids, codes and slots of rows that ended are used again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from lineage.schema import Type
from windows.delta import Delta
from windows.state.values import ValueCodes

#: The answer of an input at the same instant; called only by operators that keep no copy of it.
Child = Callable[[], Delta]


class Operator(ABC):
    """One node of a query above its blocks."""

    #: types of the output's columns
    types: tuple[Type, ...]
    #: whether every end of the output travels as an explicit -, scheduled ones too
    sends_ends: bool = False
    #: the values of its output rows, where it keeps them by code: who reads it need not keep them again
    values: ValueCodes | None = None
    #: values that became NULL because they could not be computed; grows only
    errors: int = 0

    @abstractmethod
    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        """The output's delta of one commit. O(events), no Python per row."""

    def show_events(self) -> None:  # noqa: B027 - most show every event as it is
        """Somebody looks inside commits from now on: show what each event changes, not only what the whole commit does."""

    @abstractmethod
    def answer(self, children: Sequence[Child], now: int) -> Delta:
        """The live rows of the output as + at `now`, rank 0; scheduled ends as they are. A window gives them as they came."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Size of the state; what is empty again counts as nothing but a constant."""

    def stats(self) -> dict[str, int]:
        """Figures for `stats` and experiments."""
        return {"bytes": self.bytes, "errors": self.errors}

    @abstractmethod
    def check(self) -> None:
        """Assert every invariant of the state; O(state)."""


class TimedOperator(Operator):
    """An operator that gives rows their lives: it says when those that it has now will end."""

    @abstractmethod
    def most_ends(self, upto: int) -> int:
        """No fewer than the ends up to an instant. O(1)."""

    @abstractmethod
    def count_ends(self, upto: int) -> Callable[[int], int]:
        """How many ends there are by an instant up to `upto`, for the rows of now; O(rows) once, then O(log rows)."""
