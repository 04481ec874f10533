"""Public descriptions and receipts: of streams, tables, pushes, table changes and answer changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple


class Receipt(NamedTuple):
    """The result of a push: rows accepted, rows of the call that were late, numbers of the accepted rows, and how many of these
    had already left every window of the stream (`eddy/streams/expiry.py`)."""

    accepted: int
    late: int
    first_row: int | None
    last_row: int | None
    expired: int = 0


class MergeReceipt(NamedTuple):
    """The result of a call for one input of a merged stream: rows that count, rows that this input had given before, rows that
    came too late; the time before which nothing counts any more, and the input that decides. A sender may throw away what is
    older than `settled_before`."""

    accepted: int
    duplicate: int
    settled: int
    settled_before: datetime | None
    leader: str | None


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as `engine.streams` shows it."""

    kind: ClassVar[str] = "stream"

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


@dataclass(frozen=True, slots=True)
class MergedStream(Stream):
    """A stream that is merged from several inputs, as `engine.streams` shows it."""

    kind: ClassVar[str] = "merge"

    #: the inputs it begins with; ties between them go to the first
    inputs: tuple[str, ...] = ()
    #: the columns that make two rows of one time one event; None: equal rows are several
    unique: tuple[str, ...] | None = None
    missing: str = "leader"
    #: R0 to R4, chosen if none was named
    case: str = "R4"
    policy: str = "stable"
    order: str | None = None
    lag_us: int = 0


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
