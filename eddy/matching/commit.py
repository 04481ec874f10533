"""Parts of a commit for the listeners of `on_commit`: the shared result rows once, with lists of rows per query.

A large commit comes in parts. A part is a stretch of rows of one stream, or of matches of one join, with one sign: rows that
joined answers (+1), or rows that left them (-1); a row that left windows of several lengths is there once for each, for its ends
differ. `row_lists()` is a CSR triple over the part's rows; queries without rows are not listed. The last part may be empty: where
joins run, only then it is known to be the last. Buffers are pooled: what `row_lists` and `counts` return is valid inside the
callback only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddy.matching.row_lists import PartRows, RowLists
from filters.values.vector import Vector
from lineage.schema import Type


class Commit:
    """One part of a commit. Valid inside the callback only."""

    __slots__ = ("seq", "stream", "part", "last", "added", "_sign", "_names", "_rows", "_columns")

    def __init__(self, seq: int, stream: str, names: Sequence[str], rows: PartRows, sign: int, part: int, last: bool) -> None:
        #: the number of the commit
        self.seq = seq
        #: the stream of the rows; of matches the streams of the join, with commas; of results of operators the name of the query,
        #: or the stream of those that share them
        self.stream = stream
        #: number of the part in the commit, from 0, and whether it is the last one
        self.part = part
        self.last = last
        #: whether its rows joined answers (+1) or left them (-1); matches that left are searched for only if somebody asks for
        #: anything else
        self.added = sign > 0
        self._sign = sign
        self._names = names
        self._rows = rows
        self._columns: Mapping[str, pa.Array] | None = None

    @property
    def n_rows(self) -> int:
        return self._rows.n_rows

    @property
    def sign(self) -> np.ndarray:
        """+1 or -1 for each row."""
        return np.full(self.n_rows, self._sign, np.int8)

    @property
    def rows(self) -> np.ndarray:
        """The row numbers that the stream gave the rows; of matches of several inputs `[rows, inputs]`."""
        return self._rows.numbers()

    @property
    def time(self) -> pa.Array:
        """When each change takes effect: the start of the row's life, or its end."""
        return Vector(Type.TIMESTAMP, self._rows.times()).to_arrow()

    @property
    def columns(self) -> Mapping[str, pa.Array]:
        """The stream's columns of the rows; of matches the columns of all inputs. A name that several inputs have is written
        `stream.name`, and `stream#2.name` for the second input over one stream."""
        if self._columns is None:
            frame = self._rows.frame()
            self._columns = {name: frame.column(i).to_arrow() for i, name in enumerate(self._names)}
        return self._columns

    def row_lists(self) -> RowLists:
        """`(query_ids, offsets, row_numbers)`: query k has the part's rows `row_numbers[offsets[k]:offsets[k + 1]]`."""
        return self._rows.row_lists()

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """`(query_ids, counts)` of the queries that have rows in the part."""
        return self._rows.counts()

    def __repr__(self) -> str:
        return f"<Commit {self.seq} part {self.part} of {self.stream!r}, sign {self._sign:+d}>"
