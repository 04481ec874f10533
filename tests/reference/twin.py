"""The naive model behind the engine's own calls, so that the driver can be tested without an engine.

`Twin` takes what a client sends (dict of columns, list of dicts, Arrow; times as numbers, datetimes or Arrow) and gives
what the engine gives (Arrow tables, changes as dicts, commits as CSR lists). It cannot parse SQL: `learn(spec)` tells it
the meaning of a text before that text is submitted. A mutant is a subclass of `Naive` handed in as `model`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tests.reference.naive import Naive
from tests.reference.oracle import arrow_type
from tests.reference.timelines import Receipt
from tests.reference.values import NAN, Row, canonical
from tests.reference.workload import Spec, to_datetime

UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True)
class TwinChange:
    seq: int
    time: dt.datetime
    sign: int
    row: dict[str, Any]


@dataclass(frozen=True)
class TwinQuery:
    id: int
    model: Naive

    @property
    def complete_since(self) -> dt.datetime | None:
        since = self.model.queries[self.id].complete_since
        return None if since is None else to_datetime(since)


@dataclass(frozen=True)
class TwinCommit:
    """One part: the rows of one stream with one result each, for one query."""

    seq: int
    stream: str
    part: int
    last: bool
    sign: np.ndarray
    time: np.ndarray
    columns: dict[str, list[Any]]
    query: int

    def row_lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n = len(self.sign)
        return np.array([self.query]), np.array([0, n]), np.arange(n)


def decode(payload: Any, columns: dict[str, str]) -> list[Row]:
    """Rows in canonical values from any of the forms a client may send."""
    if isinstance(payload, pa.Table):
        payload = payload.to_pylist()
    if isinstance(payload, dict):
        n = len(next(iter(payload.values()), []))
        payload = [{name: values[i] for name, values in payload.items()} for i in range(n)]
    return [{name: _read(sent.get(name), declared) for name, declared in columns.items()} for sent in payload]


def _read(value: Any, declared: str) -> Any:
    if declared.startswith("timestamp") and isinstance(value, int):
        unit = declared[10:-1] if "[" in declared else "ms"
        return value * UNIT_US[unit]
    return canonical(value) if isinstance(value, dt.datetime) else value


class Twin:
    """Plays the engine."""

    def __init__(self, model: Callable[..., Naive] = Naive, clock: Callable[[], Any] = lambda: 0, **_: Any) -> None:
        self.model = model(lambda: canonical(clock()))
        self._columns: dict[str, dict[str, str]] = {}
        self._specs: dict[str, Spec] = {}
        self._running: dict[int, Spec] = {}
        self._listeners: list[Callable[[Any], None]] = []
        #: per query (identity of its result list, numbers of its parts, their values) of the results last told
        self._told: dict[int, list[tuple[int, tuple[int, ...], list[Any]]]] = {}

    def learn(self, spec: Spec) -> None:
        self._specs[spec.sql] = spec

    @property
    def seq(self) -> int:
        return self.model.seq

    def create_stream(self, name: str, columns: dict[str, str], **options: Any) -> None:
        self._columns[name] = columns
        for option in ("lateness", "keep"):
            if option in options:
                options[option] //= dt.timedelta(microseconds=1)
        self.model.create_stream(name, **options)

    def create_table(self, name: str, columns: dict[str, str], *, key: list[str], retroactive: bool) -> None:
        self._columns[name] = columns
        self.model.create_table(name, key=key, retroactive=retroactive)

    def register(self, name: str, fn: Callable[..., Any], *, returns: str) -> None:
        """Nothing to do: what it has learned calls the functions itself."""

    def upsert(self, table: str, payload: Any) -> None:
        self.model.upsert(table, decode(payload, self._columns[table]))
        self._tell()

    def delete(self, table: str, keys: list[Any]) -> None:
        self.model.delete(table, [key if isinstance(key, tuple) else (key,) for key in keys])
        self._tell()

    def push(self, stream: str, payload: Any) -> Receipt:
        receipt = self.model.push(stream, decode(payload, self._columns[stream]))
        self._tell()
        return receipt

    def push_many(self, payloads: dict[str, Any]) -> dict[str, Receipt]:
        receipts = self.model.push_many({name: decode(payload, self._columns[name]) for name, payload in payloads.items()})
        self._tell()
        return receipts

    def retract(self, stream: str, keys: list[Any], time: dt.datetime) -> None:
        self.model.retract(stream, [key if isinstance(key, tuple) else (key,) for key in keys], canonical(time))
        self._tell()

    def advance(self, time: dt.datetime, timeline: str = "main") -> None:
        if self.model.advance(canonical(time), timeline):
            self._tell()

    def submit(self, sql: str, *, params: dict[str, Any] | None = None, history: str = "new", emit: str = "commit") -> TwinQuery:
        spec = self._known(sql, params)
        number = self.model.submit(spec.meaning, history, emit)
        self._running[number] = spec
        self._told[number] = []
        self._tell()
        return TwinQuery(number, self.model)

    def replace(self, query: TwinQuery, sql: str, *, params: dict[str, Any] | None = None) -> None:
        spec = self._known(sql, params)
        self.model.replace(query.id, spec.meaning)
        self._running[query.id] = spec
        self._tell()

    def _known(self, sql: str, params: dict[str, Any] | None) -> Spec:
        spec = self._specs[sql]
        assert (params or {}) == spec.params or str(params) == str(spec.params)
        return spec

    def cancel(self, query: TwinQuery) -> None:
        self.model.cancel(query.id)

    def pause(self, query: TwinQuery) -> None:
        self.model.pause(query.id)

    def resume(self, query: TwinQuery) -> None:
        self.model.resume(query.id)
        self._tell()

    def answer(self, query: TwinQuery) -> pa.Table:
        spec = self._running[query.id]
        rows = [[float("nan") if v == NAN else v for v in value] for value in self.model.answer(query.id)]
        arrays = [pa.array([row[i] for row in rows], arrow_type(type)) for i, type in enumerate(spec.types)]
        return pa.table(arrays, names=spec.names, metadata={"seq": str(self.seq)})

    def changes(self, query: TwinQuery, since: int) -> Iterator[TwinChange]:
        names = self._running[query.id].names
        for seq, change in self.model.changes(query.id, since):
            yield TwinChange(seq, to_datetime(change.time), change.sign, dict(zip(names, change.value, strict=True)))

    def on_commit(self, fn: Callable[[Any], None]) -> Callable[[], None]:
        self._listeners.append(fn)
        return lambda: self._listeners.remove(fn)

    def check(self) -> None:
        for stream in self.model.streams.values():
            assert stream.waiting == sorted(stream.waiting, key=lambda entry: entry[:2])

    def _tell(self) -> None:
        """Tell the listeners the difference between the rows alive now and those told before, a query a part."""
        parts = []
        for number, query in self.model.queries.items():
            if query.kept is not None:
                continue
            alive = query.results if query.is_stream else self.model.alive(number)
            names = [(k, name) for k, item in enumerate(query.meaning.inputs) for name in self._columns[item.source]]
            now = [
                (id(query.results), tuple(part.number for part in r.parts), [r.parts[k].row[name] for k, name in names])
                for r in alive
            ]
            before, self._told[number] = self._told[number], now
            keys, old = {entry[:2] for entry in now}, {entry[:2] for entry in before}
            left = [e[-1] for e in before if e[:2] not in keys and not query.is_stream]
            came = [e[-1] for e in now if e[:2] not in old]
            stream = ", ".join(item.source for item in query.meaning.inputs)
            # apart, for a replaced query leaves rows of other inputs
            for sign, rows in ((-1, left), (1, came)):
                columns = {str(i): list(values) for i, values in enumerate(zip(*rows))}
                parts.append((stream, np.full(len(rows), sign, np.int8), columns, number))
        for i, (stream, sign, columns, number) in enumerate(parts):
            commit = TwinCommit(self.seq, stream, i, i == len(parts) - 1, sign, np.zeros(len(sign)), columns, number)
            for fn in self._listeners:
                fn(commit)
