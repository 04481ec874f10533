"""Every bound of a service in one table: `GET /v1/limits` shows the values that are enforced.

Most can be set (`eddy serve --limit NAME=VALUE`); those of `FIXED` are part of the OpenAPI document or of the reader of SQL.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from eddy.base.log_bounds import LOG_BYTES, LOG_ROWS
from queries.guards import MAX_BYTES, MAX_DEPTH, MAX_TOKENS

#: Characters of a name, and of a tag; tags of a query.
NAME_CHARACTERS = 128
TAG_CHARACTERS = 128
TAGS = 64
#: Items of one page of a listing.
PAGE_ITEMS = 1000
#: Queries, and as many tags, that one subscription names.
SUBSCRIPTION_QUERIES = 1000
#: Characters of an idempotency key, and keys that are remembered, the newest.
KEY_CHARACTERS = 256
KEYS = 65_536


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a service; the comment of each field names the module that enforces it."""

    #: bytes of a request's body, as it comes and after decompression (api/edge/body_reader.py), and of what Arrow stands for:
    #: those of its values, eight each, and those of buffers that are compressed (api/arrow/buffers.py)
    body_bytes: int = 64 << 20
    #: bytes of a request that brings one query (api/edge/body_reader.py)
    query_bytes: int = 1 << 20
    #: bytes of all bodies that are being read or dealt with (api/edge/body_reader.py)
    receiving_bytes: int = 512 << 20
    #: seconds in which the head and the body of a request must have come, and bytes for which a body has a second more
    #: (api/edge/connections.py, api/edge/body_reader.py)
    read_seconds: float = 10.0
    read_bytes_per_second: int = 65_536
    #: bytes of a request's first line and headers (api/edge/connections.py)
    head_bytes: int = 128 << 10
    #: requests of one token, or address, in a second, and at once (api/edge/rates.py)
    requests_per_second: int = 10_000
    #: connections that may be open (api/edge/connections.py)
    connections: int = 2000
    #: calls and bytes of rows that may be under way or wait for the engine, and reads (api/core/inbox.py)
    queue_calls: int = 1024
    queue_bytes: int = 2 << 20
    queue_reads: int = 1024
    #: queries, streams and tables there may be, and columns of one (api/core/admission.py)
    queries: int = 100_000
    streams: int = 1000
    tables: int = 1000
    columns: int = 256
    #: queries of one batch (api/core/admission.py)
    batch_queries: int = 20_000
    #: subscriptions there may be, those of one WebSocket, and bytes that may wait for one reader (api/core/service.py,
    #: api/routes/socket.py, api/core/hub.py)
    subscriptions: int = 1000
    socket_subscriptions: int = 100
    subscription_bytes: int = 8 << 20
    #: runs of experiments that are kept, and seconds that one may take (api/experiment_runs.py)
    experiment_runs: int = 20
    experiment_seconds: float = 3600.0
    #: bytes that the engine may hold (eddy/commit/state_cap.py)
    state_bytes: int = 8 << 30
    #: rows of one stream, and bytes of one timeline, that are kept for nothing but to be read as changes
    #: (eddy/history/retention.py)
    log_rows: int = LOG_ROWS
    log_bytes: int = LOG_BYTES
    #: seconds that a row's time may be ahead of the clock (eddy/engine.py)
    max_ahead_seconds: float = 3600.0
    #: bytes, tokens and depth of a query's text (queries/guards.py)
    sql_bytes: int = MAX_BYTES
    sql_tokens: int = MAX_TOKENS
    sql_depth: int = MAX_DEPTH
    #: of names and tags, pages, subscriptions and idempotency keys (api/wire/models.py, api/routes, api/core/holdings.py)
    name_characters: int = NAME_CHARACTERS
    tag_characters: int = TAG_CHARACTERS
    tags: int = TAGS
    page_items: int = PAGE_ITEMS
    subscription_queries: int = SUBSCRIPTION_QUERIES
    key_characters: int = KEY_CHARACTERS
    keys: int = KEYS

    def as_dict(self) -> dict[str, int | float]:
        return dataclasses.asdict(self)


#: Limits that no setting changes.
FIXED = frozenset({
    "sql_bytes", "sql_tokens", "sql_depth", "name_characters", "tag_characters", "tags", "page_items", "subscription_queries",
    "key_characters", "keys",
})  # fmt: skip
