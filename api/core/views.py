"""Streams, tables and queries as JSON objects, made in the engine's thread so that nothing changes meanwhile."""

from __future__ import annotations

from typing import Any

from api.core.holdings import Holdings
from eddy import Query, Stream, Table


def stream_view(stream: Stream) -> dict[str, Any]:
    return {
        "name": stream.name,
        "columns": dict(stream.columns),
        "time": stream.time,
        "timeline": stream.timeline,
        "lateness": stream.lateness_us / 1000,
        "late": stream.late,
        "keep": None if stream.keep_us is None else stream.keep_us / 1000,
        "key": list(stream.key),
        "end": stream.end,
    }


def table_view(table: Table) -> dict[str, Any]:
    return {"name": table.name, "columns": dict(table.columns), "key": list(table.key), "retroactive": table.retroactive}


def query_view(holdings: Holdings, query: Query) -> dict[str, Any]:
    asked = holdings.definitions[query.name.lower()].definition
    since = query.complete_since
    return {
        "id": query.id,
        "name": query.name,
        "sql": query.sql,
        "params": asked.get("params") or {},
        "tags": list(query.tags),
        "state": query.state,
        "kind": query.kind,
        "columns": query.columns,
        "streams": list(query.streams),
        "update_pattern": query.update_pattern,
        "history": asked.get("history") or "new",
        "emit": query.emit,
        "expiry": query.expiry,
        "complete_since": None if since is None else since.isoformat().replace("+00:00", "Z"),
    }
