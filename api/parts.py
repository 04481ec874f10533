"""The changes of one query in one commit, as they go to subscribers: made once, encoded once in each format, shared by all.

JSON of a change is `{"query": .., "seq": .., "time": .., "sign": .., "row": {..}}`, times in ISO 8601; numbers that JSON does not
have (NaN, infinities) are null. A part is never changed, so what was encoded can be handed to any number of sockets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from api.jsons import to_json, to_line

#: Changes of one part; a larger commit is several.
MAX_CHANGES = 4096


class Part:
    """Changes of one query in one commit, or a piece of them; `last` if no more of that commit follow."""

    __slots__ = ("id", "query", "seq", "table", "last", "_json", "_lines")

    def __init__(self, id_: int, query: str, seq: int, table: pa.Table, last: bool) -> None:
        self.id = id_
        self.query = query
        self.seq = seq
        #: the columns seq, time, sign, then those of the query
        self.table = table
        self.last = last
        self._json: bytes | None = None
        self._lines: bytes | None = None

    def __len__(self) -> int:
        n_rows: int = self.table.num_rows
        return n_rows

    @property
    def n_bytes(self) -> int:
        """What it takes while it waits, near enough."""
        n_bytes: int = self.table.nbytes
        return 64 + n_bytes

    def _changes(self) -> list[dict[str, Any]]:
        names = self.table.column_names[3:]
        _, times, signs, *columns = (column.to_pylist() for column in self.table.columns)
        query, seq = self.query, self.seq
        rows = [dict(zip(names, values)) for values in zip(*columns)] if columns else [{} for _ in times]
        return [
            {"query": query, "seq": seq, "time": time, "sign": sign, "row": row} for time, sign, row in zip(times, signs, rows)
        ]

    @property
    def json(self) -> bytes:
        """The changes as JSON objects with commas between them, without the brackets."""
        if self._json is None:
            self._json = to_json(self._changes())[1:-1]
        return self._json

    @property
    def lines(self) -> bytes:
        """The changes as JSON, one a line."""
        if self._lines is None:
            self._lines = b"".join(map(to_line, self._changes()))
        return self._lines


def parts_of(id_: int, query: str, table: pa.Table) -> Iterator[Part]:
    """The parts of a table of changes, by commit and in order."""
    n_rows = table.num_rows
    if not n_rows:
        return
    seqs = table.column(0)
    first, last = seqs[0].as_py(), seqs[n_rows - 1].as_py()
    edges: Sequence[int] = [0, n_rows]
    if first != last:
        runs = pc.run_end_encode(seqs.combine_chunks())
        edges = [0, *runs.run_ends.to_pylist()]
    for start, stop in zip(edges, edges[1:]):
        seq = seqs[start].as_py()
        for at in range(start, stop, MAX_CHANGES):
            end = min(at + MAX_CHANGES, stop)
            yield Part(id_, query, seq, table.slice(at, end - at), end == stop)
