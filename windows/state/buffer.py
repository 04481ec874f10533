"""What a state buffer is asked: see `windows/state/due.py` for the kinds there are."""

from __future__ import annotations

from abc import ABC, abstractmethod

from filters.values.vector import Array


class Buffer(ABC):
    """Rows with a scheduled end, by slot; `ends` is their owner's array of ends by slot."""

    __slots__ = ("n_rows", "looked_at")

    def __init__(self) -> None:
        self.n_rows = 0
        #: rows looked at so far in search of those due
        self.looked_at = 0

    @abstractmethod
    def add(self, slots: Array, ends: Array) -> None:
        """Rows in the order they come; `ends` by slot."""

    @abstractmethod
    def remove(self, slots: Array, ends: Array) -> None:
        """Rows that are in here."""

    @abstractmethod
    def due(self, upto: int, ends: Array) -> Array:
        """The slots of the rows with end <= upto, in order of (end, order of coming); they are no longer in here."""

    @property
    @abstractmethod
    def bytes(self) -> int: ...

    @abstractmethod
    def slots(self) -> Array:
        """The rows in here; those of equal end in order of coming."""
