"""Every bound of a service in one table: what `GET /v1/limits` shows is what is enforced."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds; each is enforced where its comment says."""

    #: bytes of a request's body, after decompression (api/guard.py)
    body_bytes: int = 64 << 20
    #: seconds in which the body of a request must have come (api/guard.py)
    read_seconds: float = 10.0
    #: requests of one client in a second, and at once (api/guard.py)
    requests_per_second: float = 2000.0
    #: connections that may be open (api/server.py)
    connections: int = 2000
    #: calls and bytes that may wait for the engine, and reads (api/inbox.py)
    queue_calls: int = 4096
    queue_bytes: int = 256 << 20
    queue_reads: int = 1024
    #: queries, streams and tables there may be, and columns of one (api/admission.py)
    queries: int = 100_000
    streams: int = 1000
    tables: int = 1000
    columns: int = 256
    #: queries of one batch (api/admission.py)
    batch_queries: int = 20_000
    #: subscriptions there may be, and bytes that may wait for one reader (api/routes/changes.py)
    subscriptions: int = 1000
    subscription_bytes: int = 8 << 20
    #: bytes that the engine may hold (eddy/state_cap.py)
    state_bytes: int = 8 << 30
    #: seconds that a row's time may be ahead of the clock (eddy/engine.py)
    max_ahead_seconds: float = 3600.0
    #: bytes, tokens and depth of a query's text (queries/guards.py)
    sql_bytes: int = 65_536
    sql_tokens: int = 2_000
    sql_depth: int = 32

    @staticmethod
    def fixed() -> frozenset[str]:
        """Limits that no setting changes: the reader of SQL is built around them."""
        return frozenset({"sql_bytes", "sql_tokens", "sql_depth"})

    def as_dict(self) -> dict[str, int | float]:
        return dataclasses.asdict(self)
