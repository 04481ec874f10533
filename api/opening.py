"""The start of a service: recovery, then the demo, then a message that says where to look.

The demo begins by itself only where there is nothing yet: in a new data directory, or in none. `--demo` starts it anywhere,
`--no-demo` nowhere; queries that an earlier run left behind are pointed out, for they answer nothing while it does not run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from api.base.settings import Settings
from api.core.service import Service
from api.demo import runner
from api.demo.runner import Demo
from api.demo.simulated_building import SimulatedBuilding
from eddy import EddyError

_log = logging.getLogger("eddy.demo")

Say = Callable[[str], None]


class Opening:
    """Starts a service, prints the welcome, and runs the demo."""

    def __init__(self, service: Service, settings: Settings, *, is_new: bool, url: str, say: Say) -> None:
        self._service = service
        self._settings = settings
        self._wants_demo = is_new if settings.demo is None else settings.demo
        self._url = url
        self._say = say

    async def run(self) -> None:
        """Start the service, then run the demo, if there is one, until cancelled."""
        await self._service.begin()
        if not self._service.ready:
            return
        demo = Demo(self._service)
        n_queries = await _define(demo) if self._wants_demo else None
        n_left = 0 if n_queries is not None else await self._service.read(runner.defined)
        if n_left:
            await demo.empty()
            _log.info("the demo is defined but not running", extra={"queries": n_left})
        self._say(welcome(self._settings, self._url, n_queries, n_left))
        if n_queries is not None:
            await demo.run()


async def _define(demo: Demo) -> int | None:
    """Define the demo and return its number of queries; None if it cannot start."""
    try:
        return await demo.define()
    except EddyError as error:
        _log.warning("the demo cannot start", extra={"reason": error.fact, "hint": error.hint})
        return None


def welcome(settings: Settings, url: str, n_queries: int | None, n_left: int = 0) -> str:
    """Return the text with the address and three commands to paste; `n_left` counts queries of a demo that does not run."""
    kept = (
        "Nothing is kept: this service is ephemeral." if settings.data is None else f"Data is kept in {settings.data.absolute()}."
    )
    lines = [f"Eddy is ready at {url}", ""]
    if n_queries is not None:
        n_sensors = sum(len(sensors.ids) for sensors in SimulatedBuilding().sensors.values())
        lines += [f"A building with {n_sensors} sensors is streaming; {n_queries} queries answer. A day there takes ten minutes."]
    if n_left:
        lines += [
            f"The demo is defined but not running: its {n_left} queries are from an earlier start, and no rows come for them.",
            "To run it, start again with --demo; to remove its queries: eddy query cancel --tag demo (in a checkout ./eddyctl).",
            "",
        ]
    lines += [f"{kept} Ctrl-C stops it.", "", f"Open {url}/ in a browser, or paste:", ""]
    return "\n".join([*lines, *curls(url, demo=n_queries is not None, tokens=settings.token_file is not None), ""])


def curls(url: str, *, demo: bool, tokens: bool) -> list[str]:
    """Return three commands that work as pasted, any number of times."""
    curl = "curl -s" + (' -H "Authorization: Bearer $EDDY_TOKEN"' if tokens else "")
    send = f"{curl} -H 'Content-Type: application/json'"
    if demo:
        sql = "SELECT room, MAX(value) AS celsius FROM demo_temperature [RANGE 1 MINUTE] GROUP BY room HAVING MAX(value) > 20"
        return [
            f"  {curl} '{url}/v1/queries/demo_rooms/answer?format=csv'",
            f"  {curl} -N '{url}/v1/queries/demo_floors/changes?format=ndjson' | head -n 20",
            f'  {send} -X PUT {url}/v1/queries/warm_rooms -d \'{{"sql": "{sql}"}}\'',
        ]
    sql = "SELECT sensor, temp FROM readings [RANGE 5 MINUTES] WHERE temp > 30"
    return [
        f'  {send} -X PUT {url}/v1/streams/readings -d \'{{"columns": {{"sensor": "int", "temp": "float"}}}}\'',
        f'  {send} -X PUT {url}/v1/queries/hot -d \'{{"sql": "{sql}"}}\'',
        f'  {send} {url}/v1/streams/readings/rows -d \'{{"sensor": 1, "temp": 31.5}}\'',
    ]
