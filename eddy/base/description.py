"""Public descriptions and receipts: of streams, tables, pushes, table changes and answer changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple


class Receipt(NamedTuple):
    """The result of a push: rows accepted, rows of the call that were late, numbers of the accepted rows, and how many of these
    had already left every window of the stream (`eddy/streams/expiry.py`)."""

    accepted: int
    late: int
    first_row: int | None
    last_row: int | None
    expired: int = 0


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as `engine.streams` shows it."""

    name: str
    columns: Mapping[str, str]
    time: str | None
    timeline: str
    lateness_us: int
    late: str
    #: how long rows are kept for later queries; None: as long as some query needs them
    keep_us: int | None = None
    #: the columns by which its rows replace each other and are retracted; empty if they are not
    key: tuple[str, ...] = ()
    #: the column with the end of a row's life
    end: str | None = None


class TableReceipt(NamedTuple):
    """The result of an upsert or delete: keys that are new, keys whose row was replaced, keys deleted, keys not found."""

    inserted: int
    updated: int
    deleted: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table as `engine.tables` shows it."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    retroactive: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One signed row: the commit, when it takes effect, +1 or -1, and the output columns by name."""

    seq: int
    time: datetime
    sign: int
    row: dict[str, Any]
