"""One copy of the row of every event that a merge has a record of, by the number of that record, its node.

cells, nulls     the columns as the first input gave them
payload          the code of the identity (`eddy/merges/event_codes.py`)
receipt          when it came first: rows pushed into the merge are numbered
position         the row of the stream that it became; -1 while it waits, -2 where there is no record
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddy.streams.timeline import Rows
from lineage.elements import FOREVER
from lineage.growth import LEAST, fitted
from lineage.schema import Schema, Type

#: Stand for the position of a row that waits, and of no row.
WAITS, GONE = -1, -2

_PAYLOAD, _RECEIPT, _POSITION = range(3)


class EventRows:
    """The rows of the events of one merged stream."""

    __slots__ = ("_schema", "_cells", "_nulls", "_facts", "n_waiting")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._cells = np.zeros((len(schema), LEAST), np.int64)
        self._nulls = np.zeros((len(schema), LEAST), np.uint8)
        #: payloads, receipts, positions
        self._facts = np.full((3, LEAST), GONE)
        self.n_waiting = 0

    def fit(self, capacity: int) -> None:
        """Follow the number of records."""
        self._cells, self._nulls = fitted(self._cells, capacity), fitted(self._nulls, capacity)
        self._facts = fitted(self._facts, capacity, GONE)

    @property
    def capacity(self) -> int:
        return self._facts.shape[1]

    # ---- in

    def put(
        self, nodes: np.ndarray, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], payloads: np.ndarray,
        receipts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Keep rows that came first, which wait; returns which of them are kept with a reference to their payload."""
        for k, column in enumerate(self._schema.columns):
            given = np.asarray(cells[k])
            self._cells[k, nodes] = given.view(np.int64) if column.type is Type.FLOAT else given
            null = nulls[k]
            self._nulls[k, nodes] = 0 if null is None else null
        self._facts[_PAYLOAD, nodes], self._facts[_RECEIPT, nodes], self._facts[_POSITION, nodes] = payloads, receipts, WAITS
        self.n_waiting += len(nodes)
        return np.ones(len(nodes), np.bool_)

    def differ(
        self, column: int, nodes: np.ndarray, cells: np.ndarray, nulls: np.ndarray | None
    ) -> np.ndarray:  # fmt: skip
        """Which rows have another value in a column than the ones kept."""
        kept, kept_null = self._cells[column, nodes], self._nulls[column, nodes] != 0
        null = np.zeros(len(nodes), np.bool_) if nulls is None else nulls != 0
        given = np.asarray(cells)
        if self._schema.columns[column].type is Type.FLOAT:
            old = kept.view(np.float64)
            same = (old == given) | (np.isnan(old) & np.isnan(given))
        else:
            same = kept == given
        found: np.ndarray = np.where(null | kept_null, null != kept_null, ~same)
        return found

    def enter(self, nodes: np.ndarray, ends: np.ndarray, first: int) -> None:
        """Note that rows are in the stream, with some ends and from a position on; some may be there for a second time."""
        self.n_waiting -= int(np.count_nonzero(self._facts[_POSITION, nodes] == WAITS))
        self._facts[_POSITION, nodes] = np.arange(first, first + len(nodes))

    def end(self, rows: np.ndarray) -> None:
        """Note that rows in the stream have the ends that they keep."""

    def leave(self, nodes: np.ndarray) -> None:
        """The records of these nodes are gone."""
        self.n_waiting -= int(np.count_nonzero(self._facts[_POSITION, nodes] == WAITS))
        self._facts[_POSITION, nodes] = GONE

    # ---- out

    def live(self) -> np.ndarray:
        """The nodes that have a record, ascending."""
        return np.flatnonzero(self._facts[_POSITION] != GONE)

    def waiting(self, nodes: np.ndarray) -> np.ndarray:
        """The row of each event that enters next."""
        return nodes

    def entered(self, nodes: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The row of each event that is in the stream with an end."""
        return nodes

    def payloads(self, nodes: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._facts[_PAYLOAD, nodes]
        return found

    def receipts(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._facts[_RECEIPT, rows]
        return found

    def positions(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._facts[_POSITION, rows]
        return found

    def cell(self, column: int, node: int) -> tuple[int, bool]:
        """One cell, and whether it is NULL."""
        return int(self._cells[column, node]), bool(self._nulls[column, node])

    def rows(self, nodes: np.ndarray, times: np.ndarray, ends: np.ndarray, end_column: int | None, first: int) -> Rows:
        """The rows as they enter the stream: with their effective times, the ends they have now, and numbers from `first` on."""
        cells: list[np.ndarray] = []
        nulls: list[np.ndarray | None] = []
        for k, column in enumerate(self._schema.columns):
            found = self._cells[k, nodes]
            null = self._nulls[k, nodes]
            if k == end_column:
                null = (ends >= FOREVER).astype(np.uint8)
                found = np.where(null != 0, 0, ends)
            cells.append(found.view(np.float64) if column.type is Type.FLOAT else found)
            nulls.append(null if null.any() else None)
        return Rows(len(nodes), cells, nulls, times, first)

    # ---- upkeep

    def used_codes(self, column: int) -> np.ndarray:
        """Codes of a string column among the rows kept."""
        found: np.ndarray = self._cells[column, self.live()]
        return found

    def recode(self, column: int, new_code: np.ndarray) -> None:
        """The dictionary of a string column was compacted."""
        live = self.live()
        self._cells[column, live] = np.maximum(new_code[self._cells[column, live]], 0)

    def row_bytes(self) -> int:
        """The cost of a row, at most: arrays double."""
        return 2 * (9 * len(self._schema) + 24)

    @property
    def bytes(self) -> int:
        return self._cells.nbytes + self._nulls.nbytes + self._facts.nbytes

    def check(self, n_live: int, next_row: int) -> None:
        """Assert that there is a row for each record, and that positions are those of rows that there are.

        What only an input that left had given is told with the next push.
        """
        positions = self._facts[_POSITION, self.live()]
        assert len(positions) >= n_live, "every record has its row"
        assert int(np.count_nonzero(positions == WAITS)) == self.n_waiting, "rows that wait are counted"
        assert (positions < next_row).all(), "a row that entered has a number"
