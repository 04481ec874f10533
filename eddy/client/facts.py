"""Streams, tables, queries, rows and receipts as the service describes them, by the engine's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import eddy.base.description as description
from eddy.base.description import MergedStream, Stream, Table


class Receipt(NamedTuple):
    """The result of a push. The first five fields are the engine's; `rejected` and `errors` belong to `bad="skip"`, `visible` to
    `wait`, `nulls` (NULL cells by column) to CSV."""

    accepted: int
    late: int
    first_row: int | None
    last_row: int | None
    expired: int = 0
    rejected: int = 0
    errors: tuple[Mapping[str, Any], ...] = ()
    visible: bool | None = None
    nulls: Mapping[str, int] | None = None


class MergeReceipt(NamedTuple):
    """The result of a call for one input of a merged stream. The first five fields are the engine's, the others as in
    `Receipt`. Rows older than `settled_before` need not be kept by their sender."""

    accepted: int
    duplicate: int
    settled: int
    settled_before: datetime | None
    leader: str | None
    rejected: int = 0
    errors: tuple[Mapping[str, Any], ...] = ()
    visible: bool | None = None
    nulls: Mapping[str, int] | None = None


class TableReceipt(NamedTuple):
    """The result of an upsert or delete: numbers of keys that were new, replaced, deleted, and not found."""

    inserted: int
    updated: int
    deleted: int
    unknown: int
    rejected: int = 0
    errors: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A query as the service described it when it was asked; calls take it, or its name, or its number."""

    id: int
    name: str
    sql: str
    params: Mapping[str, Any]
    tags: tuple[str, ...]
    state: str
    kind: str
    columns: Mapping[str, str]
    streams: tuple[str, ...]
    update_pattern: str
    history: str
    emit: str
    expiry: str | None
    complete_since: datetime | None
    #: bytes that cancelling it would free; only listings tell
    own_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Change(description.Change):
    """One signed row, and the query whose answer it changes."""

    query: str = ""


def as_time(text: str | None) -> datetime | None:
    """Parse a time of the service.

    >>> as_time("1970-01-01T00:00:01Z").isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    return None if text is None else datetime.fromisoformat(text)


def stream_of(facts: Mapping[str, Any]) -> Stream:
    keep = facts["keep"]
    shared = (
        facts["name"], facts["columns"], facts["time"], facts["timeline"], round(facts["lateness"] * 1000), facts["late"],
        None if keep is None else round(keep * 1000), tuple(facts["key"]), facts["end"],
    )  # fmt: skip
    if facts["kind"] != MergedStream.kind:
        return Stream(*shared)
    unique = facts["unique"]
    return MergedStream(
        *shared, tuple(facts["inputs"]), None if unique is False else tuple(unique), facts["missing"], facts["case"],
        facts["policy"], facts["order"], round(facts["lag"] * 1000),
    )  # fmt: skip


def table_of(facts: Mapping[str, Any]) -> Table:
    return Table(facts["name"], facts["columns"], tuple(facts["key"]), facts["retroactive"])


def query_of(facts: Mapping[str, Any]) -> Query:
    return Query(
        facts["id"], facts["name"], facts["sql"], facts["params"], tuple(facts["tags"]), facts["state"], facts["kind"],
        facts["columns"], tuple(facts["streams"]), facts["update_pattern"], facts["history"], facts["emit"], facts["expiry"],
        as_time(facts["complete_since"]), facts.get("own_bytes"),
    )  # fmt: skip


def receipt_of(facts: Mapping[str, Any]) -> Receipt:
    return Receipt(
        facts["accepted"], facts["late"], facts["first_row"], facts["last_row"], facts["expired"],
        facts["rejected"], tuple(facts.get("errors") or ()), facts.get("visible"), facts.get("nulls"),
    )  # fmt: skip


def merge_receipt_of(facts: Mapping[str, Any]) -> MergeReceipt:
    return MergeReceipt(
        facts["accepted"], facts["duplicate"], facts["settled"], as_time(facts["settled_before"]), facts["leader"],
        facts["rejected"], tuple(facts.get("errors") or ()), facts.get("visible"), facts.get("nulls"),
    )  # fmt: skip


def table_receipt_of(facts: Mapping[str, Any]) -> TableReceipt:
    errors = tuple(facts.get("errors") or ())
    return TableReceipt(facts["inserted"], facts["updated"], facts["deleted"], facts["unknown"], facts["rejected"], errors)
