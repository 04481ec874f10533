"""Contradictions: rows of one event that differ in columns which are no part of what makes them one.

The first row of an event is the one that counts. Every other row of it that differs is counted for its input; the last few are
kept with both values, for whoever looks for the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eddy.merges.event_rows import EventRows
from lineage.dictionary import Dictionary
from lineage.schema import Schema, Type
from lineage.times import to_iso

#: Contradictions that are shown.
SHOWN = 32


class Contradiction(NamedTuple):
    """A value of an event that differs from the value in its first row."""

    input: str
    time: str
    column: str
    #: the columns that name the event
    event: dict[str, Any]
    kept: Any
    given: Any


class Contradictions:
    """The contradictions in one merged stream."""

    __slots__ = ("_schema", "_dictionaries", "_identity", "_columns", "last")

    def __init__(
        self, schema: Schema, dictionaries: Sequence[Dictionary | None], identity: Sequence[int], columns: Sequence[int]
    ) -> None:  # fmt: skip
        """`identity` are the columns that name an event beside its time, `columns` those in which its rows may differ."""
        self._schema = schema
        self._dictionaries = dictionaries
        self._identity = identity
        self._columns = columns
        #: the last ones, the newest behind
        self.last: list[Contradiction] = []

    def count(
        self, of: str, events: EventRows, rows: np.ndarray, nodes: np.ndarray, cells: Sequence[np.ndarray],
        nulls: Sequence[np.ndarray | None], times: np.ndarray,
    ) -> int:  # fmt: skip
        """How many of some rows, by their numbers in a call, differ from the rows kept of their events."""
        if not len(self._columns) or not len(rows):
            return 0
        wrong = np.zeros(len(rows), np.bool_)
        for column in self._columns:
            null = nulls[column]
            differ = events.differ(column, nodes, cells[column][rows], None if null is None else null[rows])
            wrong |= differ
            for at in np.flatnonzero(differ)[-SHOWN:].tolist():
                row = int(rows[at])
                cell = np.array([cells[column][row]])
                if self._schema.columns[column].type is Type.FLOAT:
                    cell = cell.view(np.int64)
                given = self._value(column, int(cell[0]), null is not None and bool(null[row]))
                node = int(nodes[at])
                event = {self._schema.names[k]: self._value(k, *events.cell(k, node)) for k in self._identity}
                kept = self._value(column, *events.cell(column, node))
                self.last.append(Contradiction(of, to_iso(int(times[row])), self._schema.names[column], event, kept, given))
        self.last = self.last[-SHOWN:]
        return int(np.count_nonzero(wrong))

    def _value(self, column: int, cell: int, null: bool) -> Any:
        """A cell as its users see it."""
        if null:
            return None
        type_, dictionary = self._schema.columns[column].type, self._dictionaries[column]
        if dictionary is not None:
            return dictionary.as_array()[cell]
        if type_ is Type.FLOAT:
            return float(np.int64(cell).view(np.float64))
        if type_ is Type.TIMESTAMP:
            return to_iso(cell)
        return bool(cell) if type_ is Type.BOOL else cell
