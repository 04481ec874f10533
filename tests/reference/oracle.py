"""DuckDB as the second opinion on an answer: recompute it from the rows taken, as one-time SQL.

The rows a stream has taken, in release order, are kept in a table with their effective time `t_`, start `start_` and
position `position_`. An answer at `T` is the query's own text with its FROM item replaced by the rows of that table that
are alive at `T` and not older than the query's birth (Definition 1 of the contract). DuckDB knows nothing of windows,
commits, netting or sharing; it shares with the model only the clock rules, which gave `t_` and `start_`.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from tests.reference.naive import NEWEST, UNBOUNDED, Row, canonical_row

_numbers = itertools.count()
_ARROW = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(), "timestamp": pa.timestamp("us")}


def arrow_type(declared: str) -> pa.DataType:
    """The Arrow type of a declared column type, without a zone."""
    return _ARROW[declared.split("[")[0]]


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database for all oracles of a process: opening one costs more than a short run."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class Oracle:
    """A DuckDB database with one table of taken rows per stream; `close` drops them."""

    def __init__(self) -> None:
        self.connection = _database()
        #: put before table names, so that two oracles never share one
        self._prefix = f"o{next(_numbers)}_"
        self._loaded: dict[str, int] = {}
        self._schemas: dict[str, pa.Schema] = {}

    def create_stream(self, name: str, columns: Mapping[str, str]) -> None:
        fields = [(column, arrow_type(declared)) for column, declared in columns.items()]
        fields += [("t_", pa.int64()), ("start_", pa.int64()), ("position_", pa.int64())]
        self._schemas[name] = pa.schema(fields)
        empty = self._schemas[name].empty_table()
        self.connection.register("incoming", empty)
        self.connection.execute(f'CREATE TABLE "{self._prefix}{name}" AS SELECT * FROM incoming')
        self._loaded[name] = 0

    def load(self, name: str, taken: list[tuple[int, int, Row]]) -> None:
        """Append what the stream has taken since the last call; `taken` is the whole list so far."""
        first = self._loaded[name]
        if first == len(taken):
            return
        rows = [{**row, "t_": t, "start_": s, "position_": first + i} for i, (t, s, row) in enumerate(taken[first:])]
        self.connection.register("incoming", pa.Table.from_pylist(rows, schema=self._schemas[name]))
        self.connection.execute(f'INSERT INTO "{self._prefix}{name}" SELECT * FROM incoming')
        self._loaded[name] = len(taken)

    def answer(self, name: str, sql: str, birth: int, width: float | None, now: int | None) -> Counter[tuple[Any, ...]]:
        """The answer of `sql`, whose FROM item is written `{source}`, as a multiset of canonical rows."""
        columns = ", ".join(f'"{c}"' for c in self._schemas[name].names if not c.endswith("_"))
        alive = f"position_ >= {birth}"
        if width is not None:
            alive += " AND FALSE" if now is None else f" AND start_ <= {now}"
            if width != UNBOUNDED and now is not None:
                alive += f" AND t_::HUGEINT + {int(width)} > {now}"
        source = f'(SELECT {columns} FROM "{self._prefix}{name}" WHERE {alive} ORDER BY position_)'
        text = sql.replace("{source}", source)
        if width is None:
            text = f"SELECT * FROM ({text}) OFFSET (SELECT greatest(0, count(*) - {NEWEST}) FROM ({text}))"
        return Counter(canonical_row(row) for row in self.connection.execute(text).fetchall())

    def close(self) -> None:
        for name in self._loaded:
            self.connection.execute(f'DROP TABLE "{self._prefix}{name}"')
