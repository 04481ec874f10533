"""The state of a service: an engine, definitions, and receipts of calls with an idempotency key.

    engine         streams, tables, queries, windows
    definitions    of every stream, table and query, as it was asked for, by name in lower case: what `PUT` compares with
    receipts       answers to calls that carried an idempotency key, the newest `KEYS`, oldest first

All of it follows from the calls alone (`api/core/calls.py`), so it is the same after a replay of the journal. A snapshot is all
of it: the first part is JSON, the others are the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from api.base.limits import KEYS
from eddy import Engine
from eddy.base.checking import changing
from eddy.state.dump import dump_state, load_state


class Definition(NamedTuple):
    """The definition of a stream, table or query as the client gave it; `kind` says which."""

    kind: str
    name: str
    definition: dict[str, Any]


class KeptReceipt(NamedTuple):
    """The receipt of a call with an idempotency key, and a digest of that call."""

    digest: str
    result: Any


@dataclass(slots=True)
class Holdings:
    """The state of a service."""

    engine: Engine
    definitions: dict[str, Definition] = field(default_factory=dict)
    receipts: dict[str, KeptReceipt] = field(default_factory=dict)
    #: the kinds of names whose definition came, changed or went since somebody looked
    touched: dict[str, str] = field(default_factory=dict)
    #: how often that was
    n_touched: int = 0

    @changing
    def define(self, kind: str, name: str, definition: dict[str, Any]) -> None:
        self.definitions[name.lower()] = Definition(kind, name, definition)
        self._touch(name, kind)

    @changing
    def undefine(self, name: str) -> None:
        self._touch(name, self.definitions.pop(name.lower()).kind)

    def _touch(self, name: str, kind: str) -> None:
        self.touched[name.lower()] = kind
        self.n_touched += 1

    @property
    def mark(self) -> tuple[int, int]:
        """Return a value that changes with every commit and definition."""
        return self.engine.seq, self.n_touched

    @changing
    def keep_receipt(self, key: str, receipt: KeptReceipt) -> None:
        self.receipts[key] = receipt
        if len(self.receipts) > KEYS:
            del self.receipts[next(iter(self.receipts))]

    def dump(self) -> list[Any]:
        """Return the state as parts of a snapshot, which later calls do not change."""
        head = {"definitions": self.definitions, "receipts": self.receipts}
        return [orjson.dumps(head, default=list), *dump_state(self.engine)]


def load_holdings(parts: Sequence[Any], clock: Callable[[], Any], wall: Callable[[], Any] | None = None) -> Holdings:
    """Return the state that `dump` gave, with these clocks."""
    head: Mapping[str, Any] = orjson.loads(parts[0])
    receipts = {key: KeptReceipt(*kept) for key, kept in head["receipts"].items()}
    definitions = {name: Definition(*kept) for name, kept in head["definitions"].items()}
    return Holdings(load_state(parts[1:], clock=clock, wall=wall), definitions, receipts)
