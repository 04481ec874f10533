"""Seats: the queries that one run of operators serves. Rows begin with the seat of their query, the number it has there.

    row                   (seat, column, ..)        rows of different seats are different values, groups and keys
    parameters[k][seat]   constant k of the query on a seat
    errors[seat]          values of its rows that could not be computed

So one operator serves all queries of a template, and what it does for one of them does not depend on the others. A seat that was
left is not given to another query before every operator has swept its rows (`Operator.sweep`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from filters.values.vector import DTYPES, Array, Frame, Vector, strings_array
from lineage.growth import LEAST, fitted, room_for
from lineage.schema import Type


class Seats:
    """The seats of one run of operators, with the constants of their queries."""

    __slots__ = ("taken", "dead", "n_dead", "errors", "_free", "_types", "_cells", "_nulls", "_texts")

    def __init__(self, types: Sequence[Type]) -> None:
        """`types` are those of the constants."""
        #: by seat, whether a query has it, and whether one left whose rows are not swept
        self.taken = np.zeros(LEAST, np.bool_)
        self.dead = np.zeros(LEAST, np.bool_)
        self.n_dead = 0
        self.errors = np.zeros(LEAST, np.int64)
        #: seats that nobody has, the lowest last
        self._free = list(range(LEAST - 1, -1, -1))
        self._types = tuple(types)
        self._cells = [np.zeros(LEAST, DTYPES[type]) for type in types]
        self._nulls = np.zeros((len(self._types), LEAST), np.bool_)
        #: the texts of each constant of type string, by seat
        self._texts: list[Array | None] = [strings_array([""] * LEAST) if type is Type.STRING else None for type in types]

    @property
    def capacity(self) -> int:
        return len(self.taken)

    def numbers(self) -> Array:
        """The seats that are taken, ascending."""
        return np.flatnonzero(self.taken)

    def take(self, constants: Sequence[Any]) -> int:
        """Give a seat to a query with these constants."""
        if not self._free:
            self._grow()
        seat = self._free.pop()
        self.taken[seat] = True
        self.errors[seat] = 0
        for k, value in enumerate(constants):
            self._nulls[k, seat] = value is None
            texts = self._texts[k]
            if texts is not None:
                self._cells[k][seat] = seat
                texts[seat] = value or ""
            elif value is not None:
                self._cells[k][seat] = value
        return seat

    def leave(self, seat: int) -> None:
        """Take the seat of a query; its rows are still among those of the operators."""
        self.taken[seat] = False
        self.dead[seat] = True
        self.n_dead += 1

    def free_dead(self) -> None:
        """Make the seats that were left free: no operator has a row of them."""
        self._free += sorted(np.flatnonzero(self.dead).tolist(), reverse=True)
        self.dead[:] = False
        self.n_dead = 0

    def _grow(self) -> None:
        have, more = self.capacity, room_for(self.capacity + 1, self.capacity)
        self.taken, self.dead = fitted(self.taken, more), fitted(self.dead, more)
        self.errors, self._nulls = fitted(self.errors, more), fitted(self._nulls, more)
        self._cells = [fitted(cells, more) for cells in self._cells]
        self._texts = [None if texts is None else strings_array([*texts, *[""] * (more - have)]) for texts in self._texts]
        self._free = list(range(more - 1, have - 1, -1))

    def parameter(self, k: int, seats: Array) -> Vector:
        """Constant k of the query of each row, given the seats of the rows."""
        nulls = self._nulls[k, seats]
        return Vector(self._types[k], self._cells[k][seats], nulls if nulls.any() else None, self._texts[k])

    def fail(self, seats: Array, failures: Array) -> None:
        """Count values of rows on these seats that could not be computed: so many of each row."""
        np.add.at(self.errors, seats, failures)

    @property
    def bytes(self) -> int:
        arrays = (self.taken, self.dead, self.errors, self._nulls, *self._cells)
        return sum(array.nbytes for array in arrays) + 8 * self.capacity * sum(texts is not None for texts in self._texts)


class SeatFrame(Frame):
    """Rows that begin with their seat; behind their columns come the constants of their queries."""

    __slots__ = ("_columns", "_seats")

    def __init__(self, columns: Sequence[Vector], n_rows: int, seats: Seats) -> None:
        super().__init__(n_rows)
        self._columns = columns
        self._seats = seats

    def column(self, position: int) -> Vector:
        if position < len(self._columns):
            return self._columns[position]
        return self._seats.parameter(position - len(self._columns), self._columns[0].values)

    def count(self) -> int:
        """Count the values that could not be computed at their seats; returns how many."""
        if self.failures is not None:
            self._seats.fail(self._columns[0].values, self.failures)
        return self.errors
