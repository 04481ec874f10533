"""The first reader of an aggregate is a recorded call like any other: so a replay keeps the logs that somebody read."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from api.base.limits import Limits
from api.core.calls import Call
from api.core.service import Service
from eddy.base.result_log import UNREAD_BYTES


@pytest.mark.parametrize(
    ("sql", "calls"),
    [
        ("SELECT k, SUM(v) AS total FROM s [RANGE 1 SECOND] GROUP BY k", 1),
        ("SELECT k, LAST(v) AS v FROM s [RANGE 1 SECOND] GROUP BY k", 1),
        ("SELECT DISTINCT v FROM s [RANGE 1 SECOND]", 1),
        ("SELECT k FROM s [RANGE 1 SECOND]", 0),
    ],
)
def test_a_subscription_records_that_it_is_the_first_of_an_aggregate(sql: str, calls: int) -> None:
    async def main() -> None:
        service = Service(None, Limits())
        await service.start()
        asked: list[str] = []
        ask = service.ask

        async def noted(call: Call, *rest: Any) -> Any:
            asked.append(call.kind)
            return await ask(call, *rest)

        try:
            columns = {"k": "int", "v": "int", "ts": "timestamp"}
            await ask(Call("create_stream", {"name": "s", "definition": {"columns": columns, "time": "ts"}}))
            await ask(Call("submit", {"definition": {"sql": sql, "name": "q"}}))
            service.ask = noted  # type: ignore[method-assign]
            for _ in range(2):
                await service.subscribe(["q"], frozenset(), "now", "conflate")
            assert asked == ["read"] * calls
            before = await service.read(lambda core: core.engine.seq)
            for at in range(0, 8000, 20):
                rows = {"k": [*range(20)], "v": [*range(at, at + 20)], "ts": [at] * 20}
                await ask(Call("push", {"stream": "s", "media": "application/json"}, orjson.dumps(rows)))
            whole = await service.read(lambda core: core.engine.changes("q", before).arrow())
            assert len(whole) > 40 or not calls
            if calls:
                assert whole.nbytes > UNREAD_BYTES, "it would have been given up"
        finally:
            await service.stop()

    asyncio.run(main())
