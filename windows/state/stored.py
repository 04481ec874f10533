"""The live rows of one input with their columns."""

from __future__ import annotations

from collections.abc import Sequence

from filters.values.vector import Array, Vector
from lineage.schema import Type
from windows.delta import Delta
from windows.state.cells import Cells
from windows.state.rows import LiveRows, RowEvents


class StoredRows:
    """Live rows, and their cells by slot; rows that ended in a commit can be read until it is settled."""

    __slots__ = ("rows", "_cells")

    def __init__(self, types: Sequence[Type], rows: LiveRows) -> None:
        self.rows = rows
        self._cells = Cells(types)

    def __len__(self) -> int:
        return len(self.rows)

    def apply(self, delta: Delta, upto: int) -> tuple[Array, RowEvents]:
        """Apply a delta as `LiveRows.apply` does, and store the columns."""
        slots, events = self.rows.apply(delta, upto)
        self._cells.fit(self.rows.capacity)
        self._cells.put(slots, delta.plus.columns)
        return slots, events

    def take(self, slots: Array) -> list[Vector]:
        return self._cells.take(slots)

    def column(self, position: int, slots: Array) -> Vector:
        return self._cells.column(position, slots)

    def kill(self, dead: Array) -> None:
        """End the live rows of the seats marked in `dead` with the next `apply`; rows begin with their seat."""
        slots = self.rows.live()
        self.rows.kill(slots[dead[self.column(0, slots).values]])

    def settle(self) -> None:
        """End the commit: free the slots of rows that ended, and the texts without live rows."""
        self.rows.settle()
        if not len(self.rows):
            self._cells = Cells(self._cells.types)
        elif self._cells.many_texts(len(self.rows)):
            self._cells.compact_texts(self.rows.live())

    @property
    def bytes(self) -> int:
        return self.rows.bytes + self._cells.bytes

    def check(self) -> None:
        self.rows.check()
        self._cells.check()
