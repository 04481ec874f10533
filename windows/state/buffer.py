"""The protocol of state buffers, which find due rows; the kinds are in `windows/state/due.py`."""

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
        """Add rows in the order they come; `ends` by slot."""

    @abstractmethod
    def remove(self, slots: Array, ends: Array) -> None:
        """Remove rows of this buffer."""

    @abstractmethod
    def due(self, upto: int, ends: Array) -> Array:
        """Take out the rows with end <= upto; return their slots in order of (end, order of coming)."""

    @property
    @abstractmethod
    def bytes(self) -> int: ...

    @abstractmethod
    def slots(self) -> Array:
        """Return the slots of all rows; rows of equal end in order of coming."""
