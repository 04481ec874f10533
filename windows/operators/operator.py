"""The protocol of window operators: once a commit, take a delta of each input and return the delta of the output.

    process      all events of the commit, and all ends up to its clock `upto`: afterwards the output is that of `upto`
    answer       the rows of the output that are alive, all as + at one instant: what a new reader begins with

An operator that keeps no state derives its answer from its inputs', which is why `answer` is given those. State is bounded by
what is alive: ids, codes and slots of rows that ended are used again.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from filters.values.vector import Array
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
        """Return the output's delta of one commit. O(events), no Python per row."""

    def show_events(self) -> None:  # noqa: B027 - most show every event as it is
        """From now on return the changes of every event, not only the net changes of the commit."""

    @abstractmethod
    def answer(self, children: Sequence[Child], now: int) -> Delta:
        """Return the live rows of the output as + at `now`, rank 0, with their scheduled ends; a window's in order of coming."""

    def open(self, seats: Array) -> None:  # noqa: B027 - most show nothing before a row comes
        """Show what these seats show without any row, from the next commit on."""

    def sweep(self, dead: Array, now: int) -> None:  # noqa: B027 - an operator without state has nothing to sweep
        """Forget the rows of the seats marked in `dead`; rows begin with their seat (`windows/operators/seats.py`).

        What the operator would say of their ends is not said: whoever reads it forgets these rows as well.
        """

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Return the size of the state in bytes; a constant when no row is alive."""

    def stats(self) -> dict[str, int]:
        """Return figures for `stats` and experiments."""
        return {"bytes": self.bytes, "errors": self.errors}

    @abstractmethod
    def check(self) -> None:
        """Assert every invariant of the state; O(state)."""


class InputState(enum.Enum):
    """What an input of a merge gives in a commit."""

    CHANGES = "changes"
    #: all of its rows, for it has just come back; of a stream those that come now
    WHOLE = "whole"
    #: it is paused
    NOTHING = "nothing"


class MergeOperator(Operator):
    """An operator over inputs that present the same rows: how far each has come decides which one counts."""

    #: the number of the input that decides; -1 before the first
    leader: int

    @abstractmethod
    def stand(self, points: Sequence[int | None], states: Sequence[InputState]) -> None:
        """Say, before `process`, where the inputs stand after the commit; None: it has no say, for it is paused."""


class TimedOperator(Operator):
    """An operator that schedules the ends of rows, and can count the ends to come."""

    @abstractmethod
    def most_ends(self, upto: int) -> int:
        """Return an upper bound on the number of ends up to an instant. O(1)."""

    @abstractmethod
    def count_ends(self, upto: int) -> Callable[[int], int]:
        """Return the number of ends by an instant <= `upto`, of the rows alive now; O(rows) once, then O(log rows)."""
