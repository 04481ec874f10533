"""DuckDB as the second opinion on an answer: recompute it from the rows taken, as one-time SQL.

The rows a stream has taken are kept in a DuckDB table with their effective time `t_`, start `start_`, position `position_`
and commit `seq_`; the versions of a table's rows in another, with the commits `opened_`, `closed_` and the times `from_`, `to_`
at which these took effect. An answer at `T` is the query's own conditions and outputs over FROM items that are replaced by
their contents at `T` (Definition 1 of the contract), all written in SQL:

    stream [RANGE w]       start_ <= T < t_ + w, from the first row the query may see on
    stream [.. ROWS n]     and among the n last by position_ of those with start_ <= T (of their key)
    table, as it is        from_ <= T < to_
    table, as it was       opened_ <= the largest seq_ of the match's stream rows < closed_

DuckDB knows nothing of commits, netting, sharing, or of how a match gets its life; it shares with the model only the clock
rules, which gave `t_` and `start_`, and what a query may see. Many times are asked at once: a table of times is one more FROM
item.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from tests.reference.lives import UNBOUNDED, Window
from tests.reference.matching import Meaning
from tests.reference.naive import NEWEST, Naive
from tests.reference.values import Value, canonical_row

_numbers = itertools.count()
_ARROW = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(), "timestamp": pa.timestamp("us")}
_STREAM = ["t_", "start_", "position_", "seq_"]
_TABLE = ["number_", "opened_", "closed_", "from_", "to_"]
#: Stands for "never" on either side of all times and commits.
_NEVER = 2**62


def arrow_type(declared: str) -> pa.DataType:
    """The Arrow type of a declared column type, without a zone."""
    return _ARROW[declared.split("[")[0]]


@dataclass(frozen=True)
class Question:
    """A query in DuckDB's SQL: an alias for each FROM item, the outputs and the condition over them."""

    aliases: tuple[str, ...]
    outputs: tuple[str, ...]
    condition: str


@dataclass(frozen=True)
class View:
    """What a query may see: by input the position of its first row, and the last commit when it was opened."""

    seen_from: Sequence[int]
    opened: int


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database for all oracles of a process: opening one costs more than a short run."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class Oracle:
    """A DuckDB database with a table per stream and table of the model; `close` drops them."""

    def __init__(self) -> None:
        self.connection = _database()
        #: put before table names, so that two oracles never share one
        self._prefix = f"o{next(_numbers)}_"
        #: rows of a stream loaded so far; for a table the last commit loaded
        self._loaded: dict[str, int] = {}
        self._schemas: dict[str, pa.Schema] = {}

    def create_stream(self, name: str, columns: Mapping[str, str]) -> None:
        self._create(name, columns, _STREAM)

    def create_table(self, name: str, columns: Mapping[str, str]) -> None:
        self._create(name, columns, _TABLE)

    def _create(self, name: str, columns: Mapping[str, str], added: list[str]) -> None:
        fields = [(column, arrow_type(declared)) for column, declared in columns.items()]
        self._schemas[name] = pa.schema(fields + [(column, pa.int64()) for column in added])
        self.connection.register("incoming", self._schemas[name].empty_table())
        self.connection.execute(f'CREATE TABLE "{self._prefix}{name}" AS SELECT * FROM incoming')
        self._loaded[name] = 0

    def load(self, model: Naive, names: Iterable[str]) -> None:
        """Bring the tables of these streams and tables up to the model's last commit."""
        for name in names:
            if name in model.streams:
                self._load_stream(model, name)
            elif self._loaded[name] != model.seq:
                self._load_table(model, name)

    def _load_stream(self, model: Naive, name: str) -> None:
        first, taken = self._loaded[name], model.streams[name].taken
        entries = enumerate(taken[first:], first)
        rows = [{**e.row, "t_": e.t, "start_": e.start, "position_": i, "seq_": e.seq} for i, e in entries]
        self._insert(name, rows)
        self._loaded[name] = len(taken)

    def _load_table(self, model: Naive, name: str) -> None:
        """All versions anew: old ones may have closed since. The times are those of timeline main."""

        def clock(seq: float) -> int:
            return _NEVER if seq == math.inf else model.clocks[int(seq)].get("main", -_NEVER)

        rows = []
        for version in model.tables[name].versions:
            closed = _NEVER if version.closed == math.inf else int(version.closed)
            bounds = (version.number, version.opened, closed, clock(version.opened), clock(version.closed))
            rows.append({**version.row, **dict(zip(_TABLE, bounds, strict=True))})
        self.connection.execute(f'DELETE FROM "{self._prefix}{name}"')
        self._insert(name, rows)
        self._loaded[name] = model.seq

    def _insert(self, name: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            self.connection.register("incoming", pa.Table.from_pylist(rows, schema=self._schemas[name]))
            self.connection.execute(f'INSERT INTO "{self._prefix}{name}" SELECT * FROM incoming')

    # -- asking ------------------------------------------------------------------------------------------------------

    def answer(self, model: Naive, meaning: Meaning, view: View, question: Question) -> Counter[Value]:
        """The answer now."""
        streams = [item for item in meaning.inputs if item.source in model.streams]
        if any(item.window is None for item in streams):
            return self._newest(model, meaning, view, question)
        now = model.T.get(model.streams[streams[0].source].timeline if streams else "main")
        if now is None and streams:
            return Counter()
        return self.answers(model, meaning, view, question, [-_NEVER if now is None else now])[0]

    def answers(
        self, model: Naive, meaning: Meaning, view: View, question: Question, times: Sequence[int]
    ) -> list[Counter[Value]]:
        """A relation's answer after all events of each of these instants."""
        at = "(VALUES " + ", ".join(f"({time}::BIGINT)" for time in times) + ") AS at_(time_)"
        sources = [at]
        links: list[str] = []
        seqs = _seqs(model, meaning, question)
        for item, alias, first in zip(meaning.inputs, question.aliases, view.seen_from, strict=True):
            if item.window is not None:
                sources.append(f"{self._contents(item.source, item.window, first, at)} AS {alias}")
                links.append(f"{alias}.time_ = at_.time_")
                continue
            sources.append(f'"{self._prefix}{item.source}" AS {alias}')
            if seqs and not model.tables[item.source].retroactive:
                links.append(_as_it_was(alias, [*seqs, str(view.opened)]))
            else:
                links.append(f"{alias}.from_ <= at_.time_ AND at_.time_ < {alias}.to_")
        found: dict[int, Counter[Value]] = defaultdict(Counter)
        for time, *row in self._select(["at_.time_"], question, sources, links):
            found[time][canonical_row(row)] += 1
        return [found[time] for time in times]

    def _contents(self, name: str, window: Window, first: int, at: str) -> str:
        """The rows in a window at each of the times, with `time_`."""
        rank = ""
        if window.rows is not None:
            # -0.0 is 0.0 as a key, which PARTITION BY would tell apart; NaN and NULL are one key each there too
            floats = {f.name for f in self._schemas[name] if pa.types.is_floating(f.type)}
            keys = [f'CASE WHEN "{c}" = 0 THEN 0 ELSE "{c}" END' if c in floats else f'"{c}"' for c in window.partition]
            rank = f", row_number() OVER (PARTITION BY {', '.join(['time_', *keys])} ORDER BY position_ DESC) AS rank_"
        seen = f'SELECT *{rank} FROM "{self._prefix}{name}", {at} WHERE position_ >= {first} AND start_ <= time_'
        kept = [f"rank_ <= {window.rows}"] if window.rows is not None else []
        kept += [] if window.width == UNBOUNDED else [f"t_::HUGEINT + {int(window.width)} > time_"]
        return f"(SELECT * FROM ({seen}) WHERE {' AND '.join(kept) or 'TRUE'})"

    def _newest(self, model: Naive, meaning: Meaning, view: View, question: Question) -> Counter[Value]:
        """The newest results of a stream query: every row it could see with the tables as they were, the last 1,000."""
        order: list[str] = []
        links: list[str] = []
        seqs = _seqs(model, meaning, question)
        for item, alias, first in zip(meaning.inputs, question.aliases, view.seen_from, strict=True):
            if item.source in model.streams:
                order.insert(0, f"{alias}.position_")
                links.append(f"{alias}.position_ >= {first}")
            else:
                order.append(f"{alias}.number_")
                links.append(_as_it_was(alias, seqs))
        sources = [f'"{self._prefix}{item.source}" AS {a}' for item, a in zip(meaning.inputs, question.aliases, strict=True)]
        rows = sorted(self._select(order, question, sources, links), key=lambda row: row[: len(order)])
        return Counter(canonical_row(row[len(order) :]) for row in rows[-NEWEST:])

    def _select(self, leading: list[str], question: Question, sources: list[str], links: list[str]) -> list[tuple[Any, ...]]:
        outputs = ", ".join([*leading, *question.outputs])
        where = " AND ".join([*links, f"({question.condition})"])
        return self.connection.execute(f"SELECT {outputs} FROM {', '.join(sources)} WHERE {where}").fetchall()

    def close(self) -> None:
        for name in self._loaded:
            self.connection.execute(f'DROP TABLE "{self._prefix}{name}"')


def _seqs(model: Naive, meaning: Meaning, question: Question) -> list[str]:
    """The commits in which the stream rows of a match were taken."""
    named = zip(meaning.inputs, question.aliases, strict=True)
    return [f"{alias}.seq_" for item, alias in named if item.source in model.streams]


def _as_it_was(alias: str, seqs: list[str]) -> str:
    """The version that was there when the last of the stream rows came to the query."""
    last = f"greatest({', '.join(seqs)})"
    return f"{alias}.opened_ <= {last} AND {last} < {alias}.closed_"
