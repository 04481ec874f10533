"""What joins keep: rows and SteMs are shared, and cost the same however many queries there are."""

from __future__ import annotations

import numpy as np
import pytest

from eddy import Engine

N_ROWS = 20_000
SQL = "SELECT q.price FROM quotes [RANGE {w} SECONDS] q, articles [RANGE {w} SECONDS] a WHERE q.symbol = a.symbol"


def filled(n_queries: int, n_windows: int = 1, filtered: bool = True) -> Engine:
    """An engine with so many queries over the same two streams, and rows."""
    engine = Engine()
    engine.create_stream("quotes", {"symbol": "int", "price": "float", "ts": "timestamp"}, time="ts")
    engine.create_stream("articles", {"symbol": "int", "ts": "timestamp"}, time="ts")
    for q in range(n_queries):
        text = SQL.format(w=1000 - q % n_windows) + (" AND q.price > :low" if filtered else "")
        engine.submit(text, params={"low": q / 7} if filtered else None)
    rng = np.random.default_rng(5)
    ts = np.arange(N_ROWS)
    engine.push_many({
        "quotes": {"symbol": rng.integers(0, 5000, N_ROWS), "price": rng.random(N_ROWS) * 9, "ts": ts},
        "articles": {"symbol": rng.integers(0, 5000, N_ROWS), "ts": ts},
    })  # fmt: skip
    return engine


def state_bytes(engine: Engine) -> int:
    streams = engine.stats()["streams"].values()
    return sum(stream["bytes"]["rows"] + stream["bytes"]["stems"] for stream in streams)


@pytest.mark.parametrize("n_windows", [1, 16])
def test_a_thousand_queries_keep_what_one_does_and_four_bytes_a_filtered_attribute(n_windows: int) -> None:
    alone = state_bytes(filled(1, filtered=False))
    many = filled(1000, n_windows)
    assert alone < state_bytes(many) <= alone + 4 * N_ROWS + 16 * n_windows
    shown = many.stats()["queries"]["q1"]
    assert shown["own_bytes"] < 2000 and shown["shared_bytes"] >= state_bytes(many)
    many.check()


def test_the_store_shrinks_when_the_query_with_the_largest_window_leaves() -> None:
    engine = Engine(log_rows=1)
    engine.create_stream("quotes", {"symbol": "int", "price": "float", "ts": "timestamp"}, time="ts")
    engine.create_stream("articles", {"symbol": "int", "ts": "timestamp"}, time="ts")
    long, _ = engine.submit(SQL.format(w=1000)), engine.submit(SQL.format(w=1))
    ts = np.arange(50_000)
    engine.push_many({"quotes": {"symbol": ts, "price": ts * 1.0, "ts": ts}, "articles": {"symbol": ts, "ts": ts}})
    before = state_bytes(engine)
    engine.cancel(long)
    for ms in (50_001, 50_002):
        engine.advance(ms)
    held = {name: stream["held"] for name, stream in engine.stats()["streams"].items()}
    assert max(held.values()) <= 2000 and state_bytes(engine) < before / 2
    engine.check()
