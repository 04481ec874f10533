"""DuckDB as the second opinion on an answer: recompute it from the rows taken, as one-time SQL.

The rows a stream has taken are kept in a DuckDB table with their effective time `t_`, start `start_`, position `position_`
and commit `seq_`. The changes of a table are kept in another, each with its commit, its `T` and whether it deletes; a version
of a row is open from its change to the next one of its key: in commits `opened_` to `closed_`, in time `from_` to `to_`
(on timeline main). An answer at `T` is the query's own conditions and outputs over FROM items that are replaced by
their contents at `T` (Definition 1 of the contract), all written in SQL:

    stream [RANGE w]       start_ <= T < t_ + w, from the first row the query may see on
    stream [.. ROWS n]     and among the n last by position_ of those with start_ <= T (of their key)
    keyed stream           and T < end_: the first of its own end, the start of the next row of its key, and the next retraction
    table, as it is        from_ <= T < to_
    table, as it was       opened_ <= the largest seq_ of the match's stream rows < closed_

DuckDB knows nothing of netting, sharing, or of how a match gets its life; it shares with the model only the clock rules,
which gave `t_`, `start_` and the commits. What a query may see it is told. Many times are asked at once: a table of times is
one more FROM item.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from tests.reference.lives import UNBOUNDED, Window
from tests.reference.matching import Meaning
from tests.reference.naive import NEWEST, Naive
from tests.reference.timelines import Taken
from tests.reference.values import Row, Value, canonical_row

_numbers = itertools.count()
_ARROW = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(), "timestamp": pa.timestamp("us")}
_STREAM = ["t_", "start_", "position_", "seq_"]
_TABLE = ["number_", "seq_", "time_", "deleted_"]
_RETRACTED = ["position_", "time_"]
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
def database() -> duckdb.DuckDBPyConnection:
    """One database for all oracles of a process: opening one costs more than a short run."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    atexit.register(_close)
    return connection


def _close() -> None:
    """Let go of the database: of one that is there when Python ends DuckDB lists all that hangs on it as leaked."""
    database().close()
    database.cache_clear()


def asked(sql: str, contents: Mapping[str, list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """DuckDB's answer to a text, windows left out of it, over tables of columns i, j and s with these rows."""
    with database().cursor() as connection:
        for name, rows in contents.items():
            connection.execute(f"CREATE TEMP TABLE {name} (i BIGINT, j BIGINT, s VARCHAR)")
            if rows:
                connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        return connection.execute(re.sub(r"\[.*?\]", "", sql)).fetchall()


class Oracle:
    """A DuckDB database with a table per stream and table of the model; `close` drops them."""

    def __init__(self) -> None:
        self.connection = database()
        #: put before table names, so that two oracles never share one
        self._prefix = f"o{next(_numbers)}_"
        #: rows of a stream, changes of a table loaded so far
        self._loaded: dict[str, int] = {}
        self._schemas: dict[str, pa.Schema] = {}
        #: key columns of tables and of keyed streams, and columns with the ends of rows
        self._keys: dict[str, tuple[str, ...]] = {}
        self._ends: dict[str, str] = {}

    def create_stream(self, name: str, columns: Mapping[str, str], key: Sequence[str] = (), end: str | None = None) -> None:
        self._create(name, columns, _STREAM)
        if key:
            self._keys[name] = tuple(key)
            self._create(_retracted(name), {column: columns[column] for column in key}, _RETRACTED)
        if end is not None:
            self._ends[name] = end

    def create_table(self, name: str, columns: Mapping[str, str], key: Sequence[str]) -> None:
        self._keys[name] = tuple(key)
        self._create(name, columns, _TABLE)

    def _create(self, name: str, columns: Mapping[str, str], added: list[str]) -> None:
        fields = [(column, arrow_type(declared)) for column, declared in columns.items()]
        self._schemas[name] = pa.schema(fields + [(column, pa.int64()) for column in added])
        self.connection.register("incoming", self._schemas[name].empty_table())
        self.connection.execute(f'CREATE TABLE "{self._prefix}{name}" AS SELECT * FROM incoming')
        self._loaded[name] = 0

    def load(self, name: str, taken: Sequence[Taken], retracted: Sequence[tuple[int, int, Row]] = ()) -> None:
        """Append what the stream has taken, and taken back, since the last call; both are the whole lists so far."""
        first = self._loaded[name]
        entries = enumerate(taken[first:], first)
        self._insert(name, [{**e.row, "t_": e.t, "start_": e.start, "position_": i, "seq_": e.seq} for i, e in entries])
        if name in self._keys:
            given = retracted[self._loaded[_retracted(name)] :]
            self._insert(_retracted(name), [{**key, "position_": position, "time_": time} for position, time, key in given])

    def upsert(self, name: str, rows: Sequence[Row], seq: int, now: int | None) -> None:
        """The rows of one commit of a table, which took effect at `now`."""
        self._change(name, rows, seq, now, deleted=0)

    def delete(self, name: str, keys: Sequence[Sequence[Any]], seq: int, now: int | None) -> None:
        rows = [dict(zip(self._keys[name], key, strict=True)) for key in keys]
        self._change(name, rows, seq, now, deleted=1)

    def _change(self, name: str, rows: Sequence[Row], seq: int, now: int | None, deleted: int) -> None:
        time = -_NEVER if now is None else now
        first = self._loaded[name]
        added = [(number, seq, time, deleted) for number in range(first, first + len(rows))]
        self._insert(name, [{**row, **dict(zip(_TABLE, more, strict=True))} for row, more in zip(rows, added, strict=True)])

    def _insert(self, name: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            self.connection.register("incoming", pa.Table.from_pylist(rows, schema=self._schemas[name]))
            self.connection.execute(f'INSERT INTO "{self._prefix}{name}" SELECT * FROM incoming')
            self._loaded[name] += len(rows)

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
            sources.append(f"{self._versions(item.source)} AS {alias}")
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
            keys = ", ".join(["time_", *self._key(name, window.partition)])
            rank = f", row_number() OVER (PARTITION BY {keys} ORDER BY position_ DESC) AS rank_"
        seen = f"SELECT *{rank} FROM {self._lives(name)}, {at} WHERE position_ >= {first} AND start_ <= time_"
        kept = ["end_ > time_"] + ([f"rank_ <= {window.rows}"] if window.rows is not None else [])
        kept += [] if window.width == UNBOUNDED else [f"t_::HUGEINT + {int(window.width)} > time_"]
        return f"(SELECT * FROM ({seen}) WHERE {' AND '.join(kept)})"

    def _lives(self, name: str) -> str:
        """The rows of a stream, each with `end_`: when something else than a window ends it."""
        ends = [str(_NEVER), self._own_end(name)]
        if name in self._keys:
            key, gone = (self._key(name, self._keys[name], of) for of in ("live_.", "gone_."))
            ends.append(f"lead(start_, 1, {_NEVER}) OVER (PARTITION BY {', '.join(key)} ORDER BY position_)")
            same = " AND ".join(f"{here} IS NOT DISTINCT FROM {there}" for here, there in zip(key, gone))
            found = f'SELECT min(gone_.time_) FROM "{self._prefix}{_retracted(name)}" AS gone_'
            ends.append(f"coalesce(({found} WHERE {same} AND gone_.position_ > live_.position_), {_NEVER})")
        return f'(SELECT *, least({", ".join(ends)}) AS end_ FROM "{self._prefix}{name}" AS live_)'

    def _own_end(self, name: str) -> str:
        return f'coalesce(epoch_us("{self._ends[name]}"), {_NEVER})' if name in self._ends else str(_NEVER)

    def _versions(self, name: str) -> str:
        """The versions of a table's rows: each change up to the next one of its key, deletions left out."""
        order = f"OVER (PARTITION BY {', '.join(self._key(name, self._keys[name]))} ORDER BY number_)"
        opened = "seq_ AS opened_, time_ AS from_"
        closed = f"lead(seq_, 1, {_NEVER}) {order} AS closed_, lead(time_, 1, {_NEVER}) {order} AS to_"
        versions = f'SELECT * EXCLUDE (seq_, time_), {opened}, {closed} FROM "{self._prefix}{name}"'
        return f"(SELECT * FROM ({versions}) WHERE deleted_ = 0)"

    def _key(self, name: str, columns: Sequence[str], of: str = "") -> list[str]:
        """Columns to partition by: -0.0 is 0.0 as a key; NaN and NULL are one key each for DuckDB too."""
        floats = {field.name for field in self._schemas[name] if pa.types.is_floating(field.type)}
        return [f'CASE WHEN {of}"{c}" = 0 THEN 0 ELSE {of}"{c}" END' if c in floats else f'{of}"{c}"' for c in columns]

    def _newest(self, model: Naive, meaning: Meaning, view: View, question: Question) -> Counter[Value]:
        """The newest results of a stream query: every row it could see with the tables as they were, the last 1,000."""
        order: list[str] = []
        links: list[str] = []
        seqs = _seqs(model, meaning, question)
        sources: list[str] = []
        for item, alias, first in zip(meaning.inputs, question.aliases, view.seen_from, strict=True):
            if item.source in model.streams:
                rows = f'(SELECT *, {self._own_end(item.source)} AS scheduled_ FROM "{self._prefix}{item.source}")'
                sources.append(f"{rows} AS {alias}")
                order.insert(0, f"{alias}.position_")
                # what was over when it came is not shown
                links.append(f"{alias}.position_ >= {first} AND {alias}.scheduled_ > {alias}.start_")
            else:
                sources.append(f"{self._versions(item.source)} AS {alias}")
                order.append(f"{alias}.number_")
                links.append(_as_it_was(alias, seqs))
        found = sorted(self._select(order, question, sources, links), key=lambda row: row[: len(order)])
        return Counter(canonical_row(row[len(order) :]) for row in found[-NEWEST:])

    def _select(self, leading: list[str], question: Question, sources: list[str], links: list[str]) -> list[tuple[Any, ...]]:
        outputs = ", ".join([*leading, *question.outputs])
        where = " AND ".join([*links, f"({question.condition})"])
        return self.connection.execute(f"SELECT {outputs} FROM {', '.join(sources)} WHERE {where}").fetchall()

    def close(self) -> None:
        for name in self._loaded:
            self.connection.execute(f'DROP TABLE "{self._prefix}{name}"')


def _retracted(name: str) -> str:
    """The table of a stream's retractions."""
    return f"{name} retracted"


def _seqs(model: Naive, meaning: Meaning, question: Question) -> list[str]:
    """The commits in which the stream rows of a match were taken."""
    named = zip(meaning.inputs, question.aliases, strict=True)
    return [f"{alias}.seq_" for item, alias in named if item.source in model.streams]


def _as_it_was(alias: str, seqs: list[str]) -> str:
    """The version that was there when the last of the stream rows came to the query."""
    last = f"greatest({', '.join(seqs)})"
    return f"{alias}.opened_ <= {last} AND {last} < {alias}.closed_"
