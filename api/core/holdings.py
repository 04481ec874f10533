"""What a service holds: an engine, and what the service itself must remember of the calls that made it.

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
from eddy.state.state import dump_state, load_state


class Definition(NamedTuple):
    """What something was asked to be; `kind` is stream, table or query."""

    kind: str
    name: str
    definition: dict[str, Any]


class KeptReceipt(NamedTuple):
    """What a call with an idempotency key was, and what it was told."""

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
        """Equal as long as nothing was committed or defined."""
        return self.engine.seq, self.n_touched

    @changing
    def keep_receipt(self, key: str, receipt: KeptReceipt) -> None:
        self.receipts[key] = receipt
        if len(self.receipts) > KEYS:
            del self.receipts[next(iter(self.receipts))]

    def dump(self) -> list[Any]:
        """All of it as parts of a snapshot; what happens afterwards does not change them."""
        head = {"definitions": self.definitions, "receipts": self.receipts}
        return [orjson.dumps(head, default=list), *dump_state(self.engine)]


def load_holdings(parts: Sequence[Any], clock: Callable[[], Any], wall: Callable[[], Any] | None = None) -> Holdings:
    """What `dump` gave, with clocks."""
    head: Mapping[str, Any] = orjson.loads(parts[0])
    receipts = {key: KeptReceipt(*kept) for key, kept in head["receipts"].items()}
    definitions = {name: Definition(*kept) for name, kept in head["definitions"].items()}
    return Holdings(load_state(parts[1:], clock=clock, wall=wall), definitions, receipts)
