"""The demo's task: defines its streams and queries, then pushes the building's readings, tick by tick.

Definitions, and the table of sensors, are calls like anybody's: they are recorded, and last. Rows are calls that are not recorded
(`Call.journaled`): after a restart the demo's windows fill up again by themselves. The demo asks for nothing that anybody could
need: one call is under way at a time, a tick is left out when the service is busy, and no tick is made up for later. It ends with
the service, or when one of its streams is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from api.base.jsons import to_json
from api.core.calls import Call
from api.core.core import Core
from api.core.inbox import BusyError, ClosedError
from api.core.service import Service
from api.demo.definitions import AIR, MERGE, SENSORS, STREAM, STREAMS, TABLE, TAG, TIMELINE, queries
from api.demo.gateways import GATEWAYS, BuildingGateways
from api.demo.simulated_building import TICK_MS, SimulatedBuilding
from api.wire.bodies import JSON
from eddy import EddyError

_log = logging.getLogger("eddy.demo")

#: Calls that wait for the engine while a tick is left out.
BUSY_CALLS = 16
#: Definitions that are asked for at a time.
STRETCH = 64


def wall_ms() -> int:
    """Return the wall clock."""
    return time.time_ns() // 1_000_000


class Demo:
    """The demo on one service."""

    def __init__(self, service: Service, seed: int = 0, now_ms: Callable[[], int] = wall_ms) -> None:
        self.building = SimulatedBuilding(seed)
        self.gateways = BuildingGateways(self.building)
        self._service = service
        self._now_ms = now_ms
        #: ticks that were sent, and left out because the service was busy
        self.sent = 0
        self.left_out = 0

    async def define(self) -> int:
        """Define what is missing and return the number of running queries; raise if a stream or the table differs."""
        for name in STREAMS:
            await self._service.ask(Call("create_stream", {"name": name, "definition": STREAM}))
        await self._service.ask(Call("create_merge", {"name": MERGE, "definition": AIR}))
        await self._service.ask(Call("create_table", {"name": TABLE, "definition": SENSORS}))
        await self._service.ask(sensors_call(self.building, self.gateways))
        wanted, refused = queries(), 0
        for first in range(0, len(wanted), STRETCH):
            calls = [
                Call("put_query", {"name": name, "definition": definition})
                for name, definition in wanted[first : first + STRETCH]
            ]
            # asked for together, they are carried out in this order and made durable together
            for found in await asyncio.gather(*map(self._service.ask, calls), return_exceptions=True):
                if isinstance(found, EddyError):
                    refused += 1
                    _log.warning("a query of the demo is left out", extra={"reason": found.fact})
                elif isinstance(found, BaseException):
                    raise found
        return len(wanted) - refused

    async def run(self) -> None:
        """Push ticks until cancelled, or until the service or a stream is gone."""
        self._service.demo_runs = True
        try:
            await self._run()
        finally:
            self._service.demo_runs = False

    async def _run(self) -> None:
        done = -1
        while True:
            now = self._now_ms()
            tick = max(now // TICK_MS, done + 1)
            # a tick is sent when it is over, so no row is ahead of the clock
            await asyncio.sleep(((tick + 1) * TICK_MS - now) / 1000)
            done = tick
            try:
                await self.send(tick)
            except ClosedError:
                return
            except EddyError as error:
                _log.warning("the demo has ended", extra={"reason": error.fact})
                return

    async def empty(self) -> None:
        """Advance the clock past the windows of an earlier run, whose rows in a snapshot are out of date."""
        await self._service.ask(Call("advance", {"timeline": TIMELINE, "time": self._now_ms()}))

    async def send(self, tick: int) -> None:
        """Push the rows of a tick, unless the service is busy."""
        if self._service.core.inbox.calls >= BUSY_CALLS:
            self.left_out += 1
            return
        try:
            await self._service.ask(Call("push_many", {}, rows=self.building.rows(tick), journaled=False))
            for gateway in GATEWAYS:
                header = {"merge": MERGE, "input": gateway, "media": JSON}
                rows = self.gateways.rows(gateway, tick)
                await self._service.ask(Call("push_input", header, rows=rows, journaled=False))
        except BusyError:
            self.left_out += 1
        else:
            self.sent += 1


def sensors_call(building: SimulatedBuilding, gateways: BuildingGateways) -> Call:
    """Return the call that fills the table of sensors."""
    air = gateways.table()
    rows = {column: [*values, *air[column]] for column, values in building.table().items()}
    return Call("upsert", {"table": TABLE, "media": JSON}, to_json(rows))


def state(service: Service, core: Core) -> str | None:
    """Return "running", "defined" if only the demo's queries are there, or None; for the engine's thread, and cheap."""
    if service.demo_runs:
        return "running"
    return "defined" if any(name in core.holdings.definitions for name in _names()) else None


@cache
def _names() -> tuple[str, ...]:
    return tuple(name.lower() for name, _ in queries())


def defined(core: Core) -> int:
    """Return how many queries of the demo a service has."""

    def is_ours(definition: dict[str, Any]) -> bool:
        return TAG in (definition.get("tags") or ())

    return sum(one.kind == "query" and is_ours(one.definition) for one in core.holdings.definitions.values())
