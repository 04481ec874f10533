"""What listeners of `on_commit` get: the shared result rows of a commit, once, with lists of rows per query.

A large commit comes in parts. A part is a stretch of rows of one stream with one sign: rows that joined answers (+1), or rows
of one window length that left them (-1). `row_lists()` is a CSR triple over the part's rows; queries without rows are not
listed. Buffers are pooled: what `row_lists` and `counts` return is valid inside the callback only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa

from eddy.row_lists import Lists, RowLists
from filters.vector import Frame, Vector
from lineage.dictionary import Dictionary
from lineage.schema import Schema, Type
from stems.frame import PageFrame
from stems.row_store import Page


class PartRows(Protocol):
    """The rows of a part."""

    n_rows: int

    def frame(self) -> Frame: ...

    def times(self) -> np.ndarray:
        """When each row joined or left, in microseconds."""
        ...

    def numbers(self) -> np.ndarray: ...


class PageRows:
    """Rows of a page; `width_us` is given for rows that left a window of that width."""

    __slots__ = ("n_rows", "_page", "_at", "_schema", "_dictionaries", "_width_us")

    def __init__(
        self, page: Page, at: int, n_rows: int, schema: Schema, dictionaries: list[Dictionary | None], width_us: int | None
    ) -> None:
        self.n_rows = n_rows
        self._page = page
        self._at = at
        self._schema = schema
        self._dictionaries = dictionaries
        self._width_us = width_us

    def frame(self) -> Frame:
        return PageFrame(self._page, self._schema, self._dictionaries, slice(self._at, self._at + self.n_rows))

    def times(self) -> np.ndarray:
        stop = self._at + self.n_rows
        if self._width_us is None:
            return self._page.start_of(self._at, stop).copy()
        return self._page.times[self._at : stop] + self._width_us

    def numbers(self) -> np.ndarray:
        return self._page.rows_of(self._at, self._at + self.n_rows).copy()


class Commit:
    """One part of a commit. Valid inside the callback only."""

    __slots__ = ("seq", "stream", "part", "last", "n_rows", "_sign", "_schema", "_rows", "_lists", "_columns")

    def __init__(
        self, seq: int, stream: str, schema: Schema, rows: PartRows, sign: int, lists: Lists, part: int, last: bool
    ) -> None:
        #: the number of the commit
        self.seq = seq
        self.stream = stream
        #: number of the part in the commit, from 0, and whether it is the last one
        self.part = part
        self.last = last
        self.n_rows = rows.n_rows
        self._sign = sign
        self._schema = schema
        self._rows = rows
        self._lists = lists
        self._columns: Mapping[str, pa.Array] | None = None

    @property
    def sign(self) -> np.ndarray:
        """+1 or -1 for each row."""
        return np.full(self.n_rows, self._sign, np.int8)

    @property
    def rows(self) -> np.ndarray:
        """The row numbers that the stream gave the rows."""
        return self._rows.numbers()

    @property
    def time(self) -> pa.Array:
        """When each change takes effect: the start of the row's life, or its end."""
        return Vector(Type.TIMESTAMP, self._rows.times()).to_arrow()

    @property
    def columns(self) -> Mapping[str, pa.Array]:
        """The stream's columns of the rows."""
        if self._columns is None:
            frame = self._rows.frame()
            self._columns = {name: frame.column(i).to_arrow() for i, name in enumerate(self._schema.names)}
        return self._columns

    def row_lists(self) -> RowLists:
        """`(query_ids, offsets, row_numbers)`: query k has the part's rows `row_numbers[offsets[k]:offsets[k + 1]]`."""
        return self._lists.row_lists()

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """`(query_ids, counts)` of the queries that have rows in the part."""
        return self._lists.counts()

    def __repr__(self) -> str:
        return f"<Commit {self.seq} part {self.part}: {self.n_rows} rows of {self.stream!r}, sign {self._sign:+d}>"
