"""Which regions the versions of a table are in, whenever predicates, versions and positions change."""

from __future__ import annotations

import numpy as np
import pytest

from eddy import Engine
from tests.reference.limits import make_small
from tests.unit.eddy.test_tables import JOINED, make, upsert


def ranks(engine: Engine, column: int) -> list[int]:
    """Of all versions held, in order."""
    table = engine._catalog.tables["t"]
    filter_ = table.modules.bank.index(column)
    assert filter_ is not None
    found = np.empty(table.store.end - table.store.watermark, np.int32)
    table.ranks_at(filter_, np.arange(table.store.watermark, table.store.end), found)
    engine.check()
    return found.tolist()


def test_ranks_follow_predicates_and_new_versions() -> None:
    engine = make()
    upsert(engine, (1, "a"), (5, "b"), (9, None))
    engine.submit(JOINED + " AND t.k < 5")
    assert ranks(engine, 0) == [0, 1, 1]
    upsert(engine, (3, "c"), (7, "d"))
    assert ranks(engine, 0) == [0, 1, 1, 0, 1], "those that came"
    late = engine.submit(JOINED + " AND t.k < 8 AND t.name >= 'b'")
    assert ranks(engine, 0) == [0, 1, 2, 0, 1], "a cut more, for those that were there too"
    assert ranks(engine, 1) == [0, 1, 2, 1, 1], "NULL has a region of its own"
    late.cancel()
    assert ranks(engine, 0) == [0, 1, 1, 0, 1]


def test_ranks_follow_versions_that_close_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, {"MIN_FORGOTTEN"})
    engine = make(log_rows=1)
    engine.submit("SELECT name FROM t WHERE k < 5")
    upsert(engine, (1, "a"), (6, "b"), (2, "c"))
    assert ranks(engine, 0) == [0, 1, 0]
    first = engine._catalog.tables["t"].store.watermark
    for n in range(200):
        upsert(engine, (6, f"b{n}"))
    table = engine._catalog.tables["t"]
    assert table.store.watermark > first and table.store.end - table.store.watermark < 200
    held = ranks(engine, 0)
    assert held[:2] == [0, 0] and set(held[2:]) == {1}


def test_ranks_are_given_back_with_the_predicates() -> None:
    engine = make()
    upsert(engine, *((k, "n") for k in range(1000)))
    table = engine._catalog.tables["t"]
    before = table.bytes()
    query = engine.submit(JOINED + " AND t.k < 5")
    assert ranks(engine, 0)[:6] == [0, 0, 0, 0, 0, 1]
    assert table.bytes()["versions"] >= before["versions"] + 4000
    query.cancel()
    assert table.bytes()["versions"] == before["versions"]
