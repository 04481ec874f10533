"""The change stream of one query: a cursor over the result log.

Iterating gives the changes up to now and then stops; iterating again goes on where it stopped. The signs of a row sum to its
multiplicity in the answer at every commit. A cursor costs nothing while nobody reads it; when the log has dropped what it
had not read, it says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from eddy.base.description import Change
from eddy.base.results import Results
from eddy.query import Query
from filters.values.vector import Vector, arrow_cells
from lineage.schema import Type

#: (commit, its results) pairs, and the commit up to which they go.
Fetch = Callable[["Changes"], tuple[list[tuple[int, Results]], int]]


class Changes:
    """A cursor over a query's changes; `seq` is the last commit read."""

    def __init__(self, query: Query, fetch: Fetch, seq: int, snapshot: bool) -> None:
        self.query = query
        self._fetch = fetch
        self.seq = seq
        #: whether the answer itself comes first
        self.snapshot = snapshot
        #: read from the log and not yet given out: (commit, results), the first from row `_row` on
        self._pending: deque[tuple[int, Results]] = deque()
        self._row = 0

    def _read(self) -> bool:
        """Fetch the changes since the last read; returns whether there are any."""
        found, self.seq = self._fetch(self)
        self.snapshot = False
        self._pending.extend(found)
        return bool(found)

    def __iter__(self) -> Iterator[Change]:
        """The changes up to now. A loop that is left early loses nothing: the next one continues behind the last change given."""
        names = [column.name for column in self.query.outputs]
        while self._pending or self._read():
            seq, results = self._pending[0]
            times = Vector(Type.TIMESTAMP, results.times).to_pylist()
            signs = results.signs.tolist()
            rows = list(zip(times, signs, *(column.to_pylist() for column in results.columns), strict=True))
            while self._row < len(rows):
                time, sign, *values = rows[self._row]
                self._row += 1
                yield Change(seq, time, sign, dict(zip(names, values, strict=True)))
            self._pending.popleft()
            self._row = 0

    def arrow(self) -> pa.Table:
        """The changes up to now as one table: seq, time, sign, then the output columns."""
        self._read()
        tables = []
        columns = self.query.outputs
        names = ["seq", "time", "sign", *(column.name for column in columns)]
        while self._pending:
            seq, results = self._pending.popleft()
            results, self._row = results.take(np.arange(self._row, len(results))), 0
            head = [
                arrow_cells(pa.int64(), np.full(len(results), seq)),
                Vector(Type.TIMESTAMP, results.times).to_arrow(),
                arrow_cells(pa.int8(), results.signs),
            ]
            tables.append(pa.Table.from_arrays([*head, *(column.to_arrow() for column in results.columns)], names=names))
        if tables:
            return pa.concat_tables(tables, promote_options="permissive")
        empty = [Vector.constant(column.type, None, 0).to_arrow() for column in columns]
        head = [pa.array([], pa.int64()), pa.array([], pa.timestamp("us", tz="UTC")), pa.array([], pa.int8())]
        return pa.Table.from_arrays([*head, *empty], names=names)

    def __repr__(self) -> str:
        return f"<Changes of {self.query.name!r} after commit {self.seq}>"
