"""The changes of one query in one commit, encoded once in each format and shared by all subscribers.

JSON of a change is `{"query": .., "seq": .., "time": .., "sign": .., "row": {..}}`, times in ISO 8601; numbers that JSON does not
have (NaN, infinities) are null. A part is never changed, so what was encoded can be handed to any number of sockets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from api.base.jsons import to_json

#: Changes of one part; a larger commit is several.
MAX_CHANGES = 4096


class ChangePart:
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
        """Return about how many bytes the part takes while it waits."""
        n_bytes: int = self.table.nbytes
        return 64 + n_bytes

    def _changes(self) -> Iterator[bytes]:
        """Yield each change as JSON. The text before the row is encoded once for each time and sign."""
        names = self.table.column_names[3:]
        times = self.table.column(1)
        signs, *columns = (_values(column) for column in self.table.columns[2:])
        rows = [dict(zip(names, values)) for values in zip(*columns)] if columns else [{} for _ in signs]
        heads: dict[tuple[int, int], bytes] = {}
        for k, key in enumerate(zip(_values(times.cast(pa.int64())), signs)):
            head = heads.get(key)
            if head is None:
                facts = {"query": self.query, "seq": self.seq, "time": times[k].as_py(), "sign": key[1]}
                head = heads[key] = to_json(facts)[:-1] + b',"row":'
            yield head + to_json(rows[k]) + b"}"

    @property
    def json(self) -> bytes:
        """Return the changes as JSON objects with commas between them, without brackets."""
        if self._json is None:
            self._json = b",".join(self._changes())
        return self._json

    @property
    def lines(self) -> bytes:
        """Return the changes as JSON, one a line."""
        if self._lines is None:
            self._lines = b"\n".join(self._changes()) + b"\n"
        return self._lines


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; numbers without NULLs by a faster path."""
    if column.null_count == 0 and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        found: list[Any] = column.to_numpy().tolist()
        return found
    return list(column.to_pylist())


def parts_of(id_: int, query: str, table: pa.Table) -> Iterator[ChangePart]:
    """Yield the parts of a table of changes, by commit and in order."""
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
            yield ChangePart(id_, query, seq, table.slice(at, end - at), end == stop)
