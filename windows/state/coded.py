"""The live rows of one input by slot, each with the code of its value, for operators that compare whole values."""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array, Vector
from lineage.growth import LEAST, fitted
from windows.delta import Delta
from windows.state.rows import LiveRows, RowEvents
from windows.state.values import ValueCodes


class CodedRows:
    """Live rows whose columns are kept once for each value."""

    __slots__ = ("rows", "values", "_codes")

    def __init__(self, rows: LiveRows, values: ValueCodes) -> None:
        """`values`: value codes that two inputs may share."""
        self.rows = rows
        self.values = values
        #: by slot; a row has one reference
        self._codes = np.zeros(LEAST, np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def apply(self, delta: Delta, upto: int) -> tuple[RowEvents, Array]:
        """Apply a delta; return the events of the commit, and the code of each event's row."""
        slots, events = self.rows.apply(delta, upto)
        if not len(events):
            return events, events.slots
        self._codes = fitted(self._codes, self.rows.capacity)
        self._codes[slots] = self.values.encode(delta.plus.columns, len(slots))
        return events, self._codes[events.slots]

    def codes(self, slots: Array) -> Array:
        return self._codes[slots]

    def take(self, slots: Array) -> list[Vector]:
        return self.values.take(self._codes[slots])

    def kill(self, dead: Array) -> None:
        """End the live rows of the seats marked in `dead` with the next `apply`; rows begin with their seat."""
        slots = self.rows.live()
        self.rows.kill(slots[dead[self.values.column(0, self._codes[slots]).values]])

    def settle(self) -> None:
        """End the commit: free the slots of rows that ended, and the values without rows."""
        self.values.release(self._codes[self.rows.ended])
        self.rows.settle()
        self._codes = fitted(self._codes, self.rows.capacity)

    @property
    def bytes(self) -> int:
        """The size without the values, which may be shared."""
        return self.rows.bytes + self._codes.nbytes

    def check(self) -> None:
        self.rows.check()
        self.values.check()
        counts = np.bincount(self._codes[self.rows.live()], minlength=self.values.capacity)
        assert (self.values.references(self.values.live()) >= counts[self.values.live()]).all(), "every row has a reference"
        assert (counts[self.values.live()] > 0).sum() == (counts > 0).sum(), "every row's value is alive"
