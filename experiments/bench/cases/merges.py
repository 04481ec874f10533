"""Rows over HTTP into a merge of three inputs, against the same rows into three plain streams of the same server.

Every stream has the same queries. Three senders, one for each input or stream, send as fast as the server goes, in turns: some
requests to the streams, as many to each merge. Inputs send the same readings in orders of their own, so a merge takes three rows
for each that enters.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import orjson

from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options, Step
from experiments.bench.service.running import Running, running
from experiments.bench.service.sender import Connections

INPUTS = ("one", "two", "three")
QUERIES = 100
#: Rows of one request, and requests of a sender in one turn.
ROWS, REQUESTS = 1000, 10
#: Turns that do not count, for all that is done once.
WARM = 2
#: Of the rows/s of three plain streams.
SHARE = 0.5
COLUMNS = {"sensor": "int", "value": "float", "ts": "timestamp"}
#: How a merge is declared, by what a user would say of it.
MERGES: dict[str, dict[str, Any]] = {
    "bag": {"lateness": 1_000},
    "unique": {"unique": True, "lateness": 1_000},
    "unique, any": {"unique": True, "missing": "any", "lateness": 1_000},
    "unique, first": {"unique": True, "policy": "first", "lateness": 1_000},
    "ordered": {"unique": True, "order": "ordered"},
}


class MergeTarget(NamedTuple):
    """What is sent to in a turn: a path for each sender, and whether times must ascend."""

    paths: list[str]
    in_order: bool


def _define(server: Running) -> dict[str, MergeTarget]:
    client = server.client
    targets = {"streams": MergeTarget([f"/v1/streams/plain_{name}/rows" for name in INPUTS], False)}
    for name in INPUTS:
        definition = {"columns": COLUMNS, "time": "ts", "lateness": 1_000, "timeline": f"plain_{name}"}
        client.put(f"/v1/streams/plain_{name}", json=definition).raise_for_status()
        _submit(server, f"plain_{name}")
    for number, (words, more) in enumerate(MERGES.items()):
        definition = {"columns": COLUMNS, "time": "ts", "inputs": list(INPUTS), "timeline": f"merge_{number}", **more}
        client.put(f"/v1/merges/merge_{number}", json=definition).raise_for_status()
        targets[words] = MergeTarget([f"/v1/merges/merge_{number}/inputs/{name}/rows" for name in INPUTS], "order" in more)
        _submit(server, f"merge_{number}")
    return targets


def _submit(server: Running, stream: str) -> None:
    queries = [
        {
            "sql": f"SELECT sensor, value FROM {stream} [RANGE 1 MINUTE] WHERE value > :limit",
            "params": {"limit": 99 + n / QUERIES},
        }
        for n in range(QUERIES)
    ]
    server.client.post("/v1/queries/batch", json={"queries": queries}).raise_for_status()


def _bodies(turn: int, in_order: bool) -> list[list[bytes]]:
    """The bodies of a turn for each sender: the same readings, a millisecond apart, not far out of order."""
    generator = np.random.default_rng(turn)
    n = ROWS * REQUESTS
    times = 1_700_000_000_000 + turn * n + np.arange(n)
    columns = {"sensor": generator.integers(0, 500, n), "value": np.round(generator.uniform(0, 100, n), 2), "ts": times}
    found = []
    for _ in INPUTS:
        order = np.arange(n) if in_order else np.argsort(np.arange(n) + generator.uniform(0, 200, n))
        parts = [order[first : first + ROWS] for first in range(0, n, ROWS)]
        found.append([orjson.dumps({name: values[part].tolist() for name, values in columns.items()}) for part in parts])
    return found


async def _send(url: str, paths: list[str], bodies: list[list[bytes]]) -> float:
    """Send the bodies of all senders, each its own in order; the seconds until the last is answered."""
    place = urlsplit(url)
    host, port = place.hostname or "", place.port or 0
    connections = Connections(host, port)

    async def send(path: str, mine: list[bytes]) -> None:
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: "
        for body in mine:
            status = await connections.send(f"{head}{len(body)}\r\n\r\n".encode() + body)
            if status != 202:
                raise RuntimeError(f"{path} answered {status}")

    began = time.perf_counter()
    try:
        await asyncio.gather(*(send(path, mine) for path, mine in zip(paths, bodies)))
    finally:
        connections.close()
    return time.perf_counter() - began


def _rates(options: Options) -> list[Line]:
    seconds: dict[str, list[float]] = {}
    with running(in_memory=True) as server:
        targets = _define(server)
        turns = WARM + max(3, round(10 * options.seconds))
        for turn in range(turns):
            bodies = {in_order: _bodies(turn, in_order) for in_order in (False, True)}
            for words, target in targets.items():
                took = asyncio.run(_send(server.url, target.paths, bodies[target.in_order]))
                if turn >= WARM:
                    seconds.setdefault(words, []).append(took)
    n = ROWS * REQUESTS * len(INPUTS)
    rates = {words: n / float(np.median(taken)) for words, taken in seconds.items()}
    plain = rates.pop("streams")
    setting: dict[str, int | str] = {"queries": QUERIES, "rows": ROWS, "inputs": len(INPUTS)}
    lines = [Line("merges", "three plain streams", {"rows_per_s": Measure(plain, "/s")}, None, setting)]
    for words, rate in rates.items():
        measures = {"rows_per_s": Measure(rate, "/s"), "of_streams": Measure(rate / plain, "%")}
        lines.append(Line("merges", words, measures, Bar.at_least(rate / plain, SHARE, "%"), setting))
    return lines


def steps(options: Options) -> list[Step]:
    return [lambda: _rates(options)]
