"""Columns of live rows by number: a slot of a row, or the code of a value.

cells    one 64-bit cell a column and number, as `lineage/schema.py` has them; a string is its code in `Texts` of its own
nulls    one byte a column and number; the cell under NULL is 0
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import DTYPES, Array, Vector
from lineage.growth import LEAST, fitted
from lineage.schema import Type
from windows.state.texts import Texts

#: Texts that nobody uses are thrown out when they are more than the live rows and this many.
_SLACK_TEXTS = 1024


class Cells:
    """The columns of numbered rows.

    >>> cells = Cells([Type.INT, Type.STRING])
    >>> cells.put(np.array([3, 1]), [Vector(Type.INT, np.array([5, 6])), Vector.of_strings(["a", None])])
    >>> [column.to_pylist() for column in cells.take(np.array([1, 3]))]
    [[6, 5], [None, 'a']]
    """

    __slots__ = ("types", "cells", "nulls", "_texts")

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        self.cells = np.zeros((len(self.types), LEAST), np.int64)
        self.nulls = np.zeros((len(self.types), LEAST), np.uint8)
        #: one for each string column
        self._texts = [Texts() if type is Type.STRING else None for type in self.types]

    def fit(self, capacity: int) -> None:
        """Make room for the numbers below `capacity`; drop the others."""
        self.cells = fitted(self.cells, capacity)
        self.nulls = fitted(self.nulls, capacity)

    def encoded(self, columns: Sequence[Vector], n_rows: int, *, folded: bool = False) -> tuple[Array, Array]:
        """Return cells and null bytes of some rows; `folded`: equal values have equal cells."""
        cells = np.empty((len(self.types), n_rows), np.int64)
        nulls = np.zeros((len(self.types), n_rows), np.uint8)
        for k, column in enumerate(columns):
            column = column.widened(self.types[k])
            texts = self._texts[k]
            if texts is not None:
                cells[k] = texts.encode(column)
            elif column.type is Type.FLOAT:
                values = column.values
                if folded:
                    # the sum turns -0.0 into 0.0
                    values = values + 0.0
                    values[np.isnan(values)] = np.nan
                cells[k] = np.ascontiguousarray(values).view(np.int64)
            else:
                cells[k] = column.values
            if column.nulls is not None:
                nulls[k] = column.nulls
                cells[k][column.nulls] = 0
        return cells, nulls

    def put(self, numbers: Array, columns: Sequence[Vector]) -> None:
        """Store rows at these numbers, for which there is room."""
        if len(numbers):
            self.cells[:, numbers], self.nulls[:, numbers] = self.encoded(columns, len(numbers))

    def take(self, numbers: Array) -> list[Vector]:
        """Return the columns of the rows with these numbers."""
        return [self.column(position, numbers) for position in range(len(self.types))]

    def column(self, position: int, numbers: Array) -> Vector:
        """Return one column of the rows with these numbers."""
        type = self.types[position]
        cells = self.cells[position][numbers]
        null_bytes = self.nulls[position][numbers]
        nulls = null_bytes.view(np.bool_) if null_bytes.any() else None
        texts = self._texts[position]
        if texts is not None:
            return texts.vector(cells, nulls)
        if type is Type.FLOAT:
            return Vector(type, cells.view(np.float64), nulls)
        return Vector(type, cells.astype(DTYPES[type], copy=False), nulls)

    def many_texts(self, n_live: int) -> bool:
        """Whether most of the texts belong to rows that ended."""
        return any(texts is not None and len(texts) > 2 * n_live + _SLACK_TEXTS for texts in self._texts)

    def compact_texts(self, live: Array) -> None:
        """Forget the texts of all but these rows; their cells change, vectors given out before do not."""
        for k, texts in enumerate(self._texts):
            if texts is not None:
                valid = live[self.nulls[k, live] == 0]
                remap = texts.compact(self.cells[k, valid])
                self.cells[k, valid] = remap[self.cells[k, valid]]

    @property
    def bytes(self) -> int:
        return self.cells.nbytes + self.nulls.nbytes + sum(texts.bytes for texts in self._texts if texts is not None)

    def check(self) -> None:
        for texts in self._texts:
            if texts is not None:
                texts.check()
