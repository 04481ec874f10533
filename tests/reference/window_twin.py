"""The model of the whole language behind the engine's own calls, so that the harness can be tested without an engine.

It cannot parse SQL: `learn(sql, tree)` tells it the meaning of a text before that text is submitted.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.reference.operators import Tree
from tests.reference.oracle import arrow_type
from tests.reference.timelines import Receipt
from tests.reference.twin import TwinChange, decode
from tests.reference.values import NAN, Value, canonical
from tests.reference.window_model import WindowModel
from tests.reference.workload import to_datetime


@dataclass(frozen=True)
class WindowTwinQuery:
    id: int


class WindowTwin:
    """Plays the engine."""

    def __init__(self, model: Callable[[], WindowModel] = WindowModel, **_: Any) -> None:
        self.model = model()
        self._columns: dict[str, dict[str, str]] = {}
        self._trees: dict[str, Tree] = {}

    def learn(self, sql: str, tree: Tree) -> None:
        self._trees[sql] = tree

    def create_stream(self, name: str, columns: dict[str, str], *, lateness: Any, keep: Any = None, **options: Any) -> None:
        self._columns[name] = columns
        unit = dt.timedelta(microseconds=1)
        self.model.create_stream(name, lateness=lateness // unit, keep=None if keep is None else keep // unit, **options)

    def create_table(self, name: str, columns: dict[str, str], *, key: list[str], retroactive: bool) -> None:
        self._columns[name] = columns
        self.model.create_table(name, key=key, retroactive=retroactive)

    def push(self, name: str, payload: Any) -> Receipt:
        return self.model.push(name, decode(payload, self._columns[name]))

    def push_many(self, payloads: dict[str, Any]) -> dict[str, Receipt]:
        return self.model.push_many({name: decode(payload, self._columns[name]) for name, payload in payloads.items()})

    def advance(self, time: dt.datetime) -> None:
        self.model.advance(canonical(time))

    def retract(self, stream: str, keys: list[Any], time: dt.datetime) -> None:
        self.model.retract(stream, [key if isinstance(key, tuple) else (key,) for key in keys], canonical(time))

    def upsert(self, table: str, payload: Any) -> None:
        self.model.upsert(table, decode(payload, self._columns[table]))

    def delete(self, table: str, keys: list[Any]) -> None:
        self.model.delete(table, [key if isinstance(key, tuple) else (key,) for key in keys])

    def submit(self, sql: str, *, params: Any = None, expiry: Any = None, **options: Any) -> WindowTwinQuery:
        return WindowTwinQuery(self.model.submit(self._trees[sql], **options))

    def replace(self, query: WindowTwinQuery, sql: str, *, params: Any = None) -> None:
        self.model.replace(query.id, self._trees[sql])

    def cancel(self, query: WindowTwinQuery) -> None:
        self.model.cancel(query.id)

    def pause(self, query: WindowTwinQuery) -> None:
        self.model.pause(query.id)

    def resume(self, query: WindowTwinQuery) -> None:
        self.model.resume(query.id)

    def answer(self, query: WindowTwinQuery) -> pa.Table:
        columns = self.model.queries[query.id].tree.columns
        rows = [_sent(value, columns) for value in self.model.answer(query.id)]
        schema = pa.schema([(name, _zoned(type)) for name, type in columns.items()], {"seq": str(self.model.seq)})
        return pa.Table.from_pylist(rows, schema=schema)

    def changes(self, query: WindowTwinQuery, since: Any) -> list[TwinChange]:
        columns = self.model.queries[query.id].tree.columns
        if since == "snapshot":
            now = to_datetime(self.model.T.get("main", 0))
            return [TwinChange(self.model.seq, now, 1, _sent(value, columns)) for value in self.model.answer(query.id)]
        found = self.model.changes(query.id, since)
        return [TwinChange(seq, to_datetime(c.time), c.sign, _sent(c.value, columns)) for seq, c in found]

    def check(self) -> None:
        """A model has no invariants of its own."""


def _zoned(type: str) -> pa.DataType:
    return pa.timestamp("us", "UTC") if type.startswith("timestamp") else arrow_type(type)


def _sent(value: Value, columns: Any) -> dict[str, Any]:
    """A canonical value as a client gets it."""

    def sent(part: Any, type: str) -> Any:
        if part == NAN:
            return float("nan")
        return to_datetime(part) if type.startswith("timestamp") and part is not None else part

    return {name: sent(part, type) for part, (name, type) in zip(value, columns.items(), strict=True)}
