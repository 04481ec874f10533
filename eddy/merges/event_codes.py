"""Codes of what makes two rows one event: the values of some columns of a stream, as LMerge takes them.

    code(a) = code(b)  iff  a and b are equal in the identity columns        NULL = NULL, NaN = NaN, -0.0 = 0.0

Texts are compared by their codes in the dictionaries of the stream. Every event that is alive has one reference to its code, so a
code stands for one value as long as an event has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Vector
from lineage.schema import Schema, Type
from windows.state.values import ValueCodes


class EventCodes:
    """The identities of the events of one merged stream."""

    __slots__ = ("columns", "_types", "_values")

    def __init__(self, schema: Schema, columns: tuple[int, ...]) -> None:
        #: the identity columns beside the time
        self.columns = columns
        self._types = [Type.FLOAT if schema.columns[column].type is Type.FLOAT else Type.INT for column in columns]
        self._values = ValueCodes(self._types)

    def encode(self, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], n_rows: int) -> np.ndarray:
        """The code of each row, given its identity columns alone; every row takes a reference."""
        if not self.columns:
            return np.zeros(n_rows, np.int64)
        given = [
            Vector(
                type_,
                np.asarray(column, np.float64 if type_ is Type.FLOAT else np.int64),
                None if null is None else null.view(np.bool_),
            )
            for type_, column, null in zip(self._types, cells, nulls, strict=True)
        ]
        return self._values.encode(given, n_rows)

    def of_rows(self, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], n_rows: int) -> np.ndarray:
        """The code of each row, given all columns of the stream; every row takes a reference."""
        return self.encode([cells[column] for column in self.columns], [nulls[column] for column in self.columns], n_rows)

    def release(self, codes: np.ndarray) -> None:
        """Give back a reference for each entry."""
        if self.columns:
            self._values.release(codes)

    def used_codes(self, column: int) -> np.ndarray:
        """The codes of a string column that identities hold."""
        if column not in self.columns:
            return np.zeros(0, np.int64)
        at = self.columns.index(column)
        return self._values.take(self._values.live())[at].values

    def recode(self, column: int, new_code: np.ndarray) -> None:
        """The dictionary of a string column was compacted. O(events)."""
        if column in self.columns:
            self._values.recode(self.columns.index(column), new_code)

    @property
    def n_live(self) -> int:
        return len(self._values)

    @property
    def bytes(self) -> int:
        return self._values.bytes

    def check(self, references: np.ndarray) -> None:
        """Assert that the codes alive are those of some events, each with a reference for each of them."""
        self._values.check()
        if self.columns:
            live, counts = np.unique(references, return_counts=True)
            assert live.tolist() == self._values.live().tolist(), "a code is alive iff an event has it"
            assert (self._values.references(live) == counts).all(), "every event has one reference"
