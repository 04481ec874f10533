"""Who gets the demo, and what a start says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from api.base.limits import Limits
from api.base.settings import Settings
from api.core.calls import Call
from api.core.service import Service
from api.demo import runner
from api.demo.definitions import queries
from api.opening import Opening, curls, welcome

URL = "http://127.0.0.1:8000"


def opened(*, demo: bool | None, is_new: bool, before: Any = None) -> tuple[list[str], int]:
    """What an opening says, and how many queries there are then."""
    said: list[str] = []

    async def run() -> int:
        service = Service(None, Limits())
        begin = service.begin

        async def begin_with() -> None:
            await begin()
            if before is not None:
                await before(service)

        service.begin = begin_with  # type: ignore[method-assign]
        started = asyncio.Event()
        found = Opening(service, Settings(demo=demo), is_new=is_new, url=URL, say=lambda text: (said.append(text), started.set()))
        task = asyncio.create_task(found.run())
        try:
            async with asyncio.timeout(60):
                await started.wait()
            n_queries: int = await service.read(runner.defined)
        finally:
            task.cancel()
            await asyncio.wait([task])
            await service.stop()
        return n_queries

    return said, asyncio.run(run())


@pytest.mark.parametrize(
    ("demo", "is_new", "starts"),
    [
        (None, True, True),
        (None, False, False),
        (True, True, True),
        (True, False, True),
        (False, True, False),
        (False, False, False),
    ],
)
@pytest.mark.slow
def test_the_demo_starts_by_itself_where_there_is_nothing_yet_or_when_told(demo: bool | None, is_new: bool, starts: bool) -> None:
    said, n_queries = opened(demo=demo, is_new=is_new)
    assert n_queries == (len(queries()) if starts else 0)
    assert ("A building with" in said[0]) == starts


def test_a_demo_that_was_left_behind_is_pointed_out() -> None:
    async def define(service: Service) -> None:
        await runner.Demo(service).define()

    (said,), n_queries = opened(demo=None, is_new=False, before=define)
    assert f"defined but not running: its {n_queries} queries" in said and n_queries == len(queries())
    assert "start again with --demo" in said and "eddy query cancel --tag demo" in said
    assert "not running" not in welcome(Settings(), URL, n_queries)


def test_whether_the_demo_runs_can_be_asked() -> None:
    async def run() -> None:
        service = Service(None, Limits())
        await service.begin()

        async def state() -> str | None:
            return await service.read(lambda core: runner.state(service, core))

        try:
            assert await state() is None
            demo = runner.Demo(service)
            await demo.define()
            assert await state() == "defined"
            task = asyncio.create_task(demo.run())
            async with asyncio.timeout(60):
                while not service.demo_runs:
                    await asyncio.sleep(0)
            assert await state() == "running"
            task.cancel()
            await asyncio.wait([task])
            assert await state() == "defined"
            for name, _ in reversed(queries()):
                await service.ask(Call("cancel", {"query": name}))
            assert await state() is None
        finally:
            await service.stop()

    asyncio.run(run())


def test_what_a_demo_left_behind_is_not_taken_for_the_present() -> None:
    answers: list[int] = []

    async def earlier(service: Service) -> None:
        demo = runner.Demo(service, now_ms=lambda: runner.wall_ms() - 3_600_000)
        await demo.define()
        tick = (runner.wall_ms() - 3_600_000) // 1000
        for k in range(3):
            await demo.send(tick + k)
        look = service.read

        async def watched(what: Any) -> Any:
            answers.append(await look(lambda core: core.engine.answer("demo_rooms").num_rows))
            return await look(what)

        service.read = watched  # type: ignore[method-assign]

    opened(demo=False, is_new=False, before=earlier)
    assert answers[0] > 0 and answers[-1] == 0


def test_a_demo_that_cannot_start_is_a_line_and_not_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def take(service: Service) -> None:
        await service.ask(Call("create_stream", {"name": "demo_light", "definition": {"columns": {"mine": "int"}}}))

    said, n_queries = opened(demo=True, is_new=True, before=take)
    assert n_queries == 0 and said[0].startswith("Eddy is ready")
    assert any(record.getMessage() == "the demo cannot start" for record in caplog.records)


def test_a_start_says_where_to_look_and_what_is_kept() -> None:
    kept = welcome(Settings(data=Path("/somewhere")), URL, 284)
    assert URL in kept and "Data is kept in /somewhere." in kept and "284 queries" in kept and kept.count("  curl ") == 3
    assert "Nothing is kept" in welcome(Settings(), URL, None)


def test_with_tokens_the_commands_send_one() -> None:
    assert all("Authorization: Bearer $EDDY_TOKEN" in line for line in curls(URL, demo=True, tokens=True))
    assert not any("Authorization" in line for line in curls(URL, demo=True, tokens=False))
