"""The change stream of one query: a cursor over the result log.

Iterating gives the changes up to now and then stops; iterating again goes on where it stopped. The signs of a row sum to its
multiplicity in the answer at every commit. A cursor costs nothing while nobody reads it; when the log has dropped what it
had not read, it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from eddy.query import Query
from eddy.reader import Results
from filters.vector import Vector
from lineage.schema import Type


@dataclass(frozen=True, slots=True)
class Change:
    """One signed row: the commit, when it takes effect, +1 or -1, and the output columns by name."""

    seq: int
    time: datetime
    sign: int
    row: dict[str, Any]


#: (commit, its results) pairs, and the commit up to which they go.
Fetch = Callable[["Changes"], tuple[list[tuple[int, Results]], int]]


class Changes:
    """A cursor; `seq` is the last commit it has read."""

    def __init__(self, query: Query, fetch: Fetch, seq: int, snapshot: bool) -> None:
        self.query = query
        self._fetch = fetch
        self.seq = seq
        #: whether the answer itself comes first
        self.snapshot = snapshot

    def _read(self) -> list[tuple[int, Results]]:
        found, self.seq = self._fetch(self)
        self.snapshot = False
        return found

    def __iter__(self) -> Iterator[Change]:
        names = [column.name for column in self.query.outputs]
        for seq, results in self._read():
            columns = [column.to_pylist() for column in results.columns]
            times = Vector(Type.TIMESTAMP, results.times).to_pylist()
            for time, *values in zip(times, *columns, strict=True):
                yield Change(seq, time, results.sign, dict(zip(names, values, strict=True)))

    def arrow(self) -> pa.Table:
        """The changes up to now as one table: seq, time, sign, then the output columns."""
        found = self._read()
        tables = []
        columns = self.query.outputs
        names = ["seq", "time", "sign", *(column.name for column in columns)]
        for seq, results in found:
            head = [
                pa.array(np.full(len(results), seq)),
                Vector(Type.TIMESTAMP, results.times).to_arrow(),
                pa.array(np.full(len(results), results.sign, np.int8)),
            ]
            tables.append(pa.Table.from_arrays([*head, *(column.to_arrow() for column in results.columns)], names=names))
        if tables:
            return pa.concat_tables(tables, promote_options="permissive")
        empty = [Vector.constant(column.type, None, 0).to_arrow() for column in columns]
        head = [pa.array([], pa.int64()), pa.array([], pa.timestamp("us", tz="UTC")), pa.array([], pa.int8())]
        return pa.Table.from_arrays([*head, *empty], names=names)

    def __repr__(self) -> str:
        return f"<Changes of {self.query.name!r} after commit {self.seq}>"
