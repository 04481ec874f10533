"""Queries that come and go leave nothing behind, by the service's own account."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from api.base.limits import Limits
from api.core.calls import Call
from api.core.core import Clock, Core
from api.core.holdings import Holdings
from api.core.inbox import InboxItem
from eddy import Engine

TEXTS = (
    "SELECT a FROM s WHERE a > {n}",
    "SELECT a FROM s [RANGE 1 MINUTE] WHERE a BETWEEN {n} AND 9000",
    "SELECT b, COUNT(*) AS c, SUM(a) AS x FROM s [RANGE 1 MINUTE] WHERE a > {n} GROUP BY b",
    "SELECT x.a FROM s [RANGE 1 SECOND] x, s [RANGE 1 MINUTE] y WHERE x.a = y.a AND x.a > {n}",
    "SELECT DISTINCT b FROM s [RANGE 1 MINUTE] WHERE a > {n}",
)


#: Bytes of a page of an index.
PAGE = 1 << 16


class Churn:
    """A service without threads."""

    def __init__(self) -> None:
        clock = Clock()
        self.core = Core(Holdings(Engine(clock=clock, log_rows=64)), clock, None, Limits(), lambda news: None, lambda do: do())
        columns = {"columns": {"a": "int", "b": "string", "ts": "timestamp"}, "time": "ts"}
        self.ask(Call("create_stream", {"name": "s", "definition": columns}))
        for sql in TEXTS:
            self.ask(Call("submit", {"definition": {"sql": sql.format(n=5)}}))
        self.clock = 0
        self.pass_time()

    def ask(self, *calls: Call) -> None:
        errors: list[BaseException] = []

        def told(result: Any, error: BaseException | None) -> None:
            if error is not None:
                errors.append(error)

        group = self.core.work([InboxItem(call, told) for call in calls])
        self.core.writer.write(group)
        group.release(None)
        assert not errors, errors

    def come_and_go(self, first: int, n: int) -> None:
        for i in range(first, first + n):
            name = f"come_{i}"
            self.ask(Call("submit", {"definition": {"name": name, "sql": TEXTS[i % len(TEXTS)].format(n=i)}}))
            self.ask(Call("cancel", {"query": name}))
            if i % 50 == 49:
                self.pass_time()

    def pass_time(self) -> None:
        """Rows of windows and of the log know the constants of queries that have gone: these go with them."""
        self.clock += 120_000
        self.ask(Call("advance", {"timeline": "main", "time": self.clock}))
        body = f'{{"a": [1, 7, 7], "b": ["x", "y", "y"], "ts": [{self.clock}, {self.clock}, {self.clock}]}}'
        self.ask(Call("push", {"stream": "s", "media": "application/json"}, body.encode()))

    def bytes(self) -> int:
        """Not of the queries that stay: their logs grow with the rows that are pushed."""
        found: dict[str, int] = self.core.engine.stats()["streams"]["s"]["bytes"]
        return sum(found.values())

    def held(self) -> dict[str, Any]:
        stats = self.core.engine.stats()
        return {
            "queries": list(stats["queries"]),
            "modules": sorted(stats["modules"]),
            "definitions": sorted(self.core.holdings.definitions),
            "watched": len(self.core.watches),
        }


def check(n: int) -> None:
    churn = Churn()
    churn.come_and_go(0, 1500)  # what grows by need has grown, and the log has been full
    before, bytes_before = churn.held(), churn.bytes()
    gc.collect()
    objects = len(gc.get_objects())
    churn.come_and_go(1500, n)
    assert churn.held() == before
    assert churn.bytes() - bytes_before <= PAGE, "a window that has moved may hold a page more"
    gc.collect()
    assert len(gc.get_objects()) - objects < 2000, "nothing is held for queries that have gone"


@pytest.mark.slow
def test_adding_and_cancelling_a_thousand_queries_leaves_memory_flat() -> None:
    check(1000)


@pytest.mark.long
def test_adding_and_cancelling_ten_thousand_queries_leaves_memory_flat() -> None:
    check(10_000)
