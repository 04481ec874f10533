"""Streams, merges, tables and queries as JSON objects, made in the engine's thread so that nothing changes meanwhile."""

from __future__ import annotations

from typing import Any

from api.core.holdings import Holdings
from eddy import Engine, MergedStream, Query, Stream, Table


def stream_view(stream: Stream) -> dict[str, Any]:
    return {
        "name": stream.name,
        "kind": stream.kind,
        "columns": dict(stream.columns),
        "time": stream.time,
        "timeline": stream.timeline,
        "lateness": stream.lateness_us / 1000,
        "late": stream.late,
        "keep": None if stream.keep_us is None else stream.keep_us / 1000,
        "key": list(stream.key),
        "end": stream.end,
        **(_merge_options(stream) if isinstance(stream, MergedStream) else {}),
    }


def _merge_options(stream: MergedStream) -> dict[str, Any]:
    return {
        "inputs": list(stream.inputs),
        "unique": False if stream.unique is None else list(stream.unique),
        "missing": stream.missing,
        "case": stream.case,
        "policy": stream.policy,
        "order": stream.order,
        "lag": stream.lag_us / 1000,
    }


def merge_view(engine: Engine, stream: MergedStream) -> dict[str, Any]:
    """Return a merged stream with what its inputs have given."""
    return stream_view(stream) | {"state": engine.merge_stats(stream.name)}


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
