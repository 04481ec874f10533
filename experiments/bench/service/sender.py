"""The other side of a load test, a process of its own: sends requests, listens for their results, and prints what it saw.

    python -m experiments.bench.service.sender URL FORMAT ROWS SECONDS RATE

With a rate it is an open loop: requests have times at which they are due, whatever became of those before, and every latency is
counted from then, so a server that falls behind cannot hide it. With rate 0 it is a closed loop of some connections: as fast as
the server goes. A request that is due while `MAX_CONNECTIONS` wait for an answer is counted as not sent.

Prints one JSON object: requests and rows by outcome, latencies of acknowledgements, of refusals, and from due to visible.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
import orjson
import uvloop

from experiments.bench.service.request_templates import RequestTemplate, make, mark_of

MAX_CONNECTIONS = 400
CLOSED_CONNECTIONS = 32
#: Seconds that answers and results may still come after the last request.
DRAIN = 10.0


@dataclass(slots=True)
class Seen:
    """Outcomes and latencies of the requests."""

    due: dict[int, float] = field(default_factory=dict)
    accepted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)
    broken: int = 0
    unsent: int = 0


class Connections:
    """Connections that are kept open and used again."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.in_use = 0

    async def send(self, request: bytes) -> int:
        """Send a request; the status of its answer."""
        self.in_use += 1
        try:
            reader, writer = self._free.pop() if self._free else await asyncio.open_connection(self._host, self._port)
            writer.write(request)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
            await reader.readexactly(length)
            if b"connection: close" in head.lower():
                writer.close()
            else:
                self._free.append((reader, writer))
            return int(head[9:12])
        finally:
            self.in_use -= 1

    def close(self) -> None:
        for _, writer in self._free:
            writer.close()


async def _listen(host: str, port: int, seen: Seen, ready: asyncio.Event) -> None:
    """Follow the query of marked rows."""
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 26)
    path = "/v1/queries/marked/changes?since=now&format=ndjson"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    try:
        while line := await reader.readline():
            if line.startswith(b'{"progress"'):
                ready.set()
            elif line.startswith(b'{"query"'):
                now = time.perf_counter()
                due = seen.due.pop(mark_of(orjson.loads(line)["row"]["n"]), None)
                if due is not None:
                    seen.visible.append(now - due)
    finally:
        writer.close()


async def _request(connections: Connections, template: RequestTemplate, mark: int, due: float, seen: Seen) -> None:
    seen.due[mark] = due
    try:
        status = await connections.send(template.request(mark))
    except (OSError, asyncio.IncompleteReadError):
        seen.broken += 1
        return
    took = time.perf_counter() - due
    if status == 202:
        seen.accepted.append(took)
        return
    seen.due.pop(mark, None)
    if status in (429, 503):
        seen.refused.append(took)
    else:
        seen.broken += 1


async def _closed(connections: Connections, templates: list[RequestTemplate], seconds: float, seen: Seen) -> float:
    began = time.perf_counter()
    marks = itertools.count(1)

    async def go() -> None:
        while (due := time.perf_counter()) < began + seconds:
            mark = next(marks)
            await _request(connections, templates[mark % len(templates)], mark, due, seen)

    await asyncio.gather(*(go() for _ in range(CLOSED_CONNECTIONS)))
    return time.perf_counter() - began


async def _open(connections: Connections, templates: list[RequestTemplate], seconds: float, rate: float, seen: Seen) -> float:
    began = time.perf_counter()
    tasks: set[asyncio.Task[None]] = set()
    for mark in range(1, int(seconds * rate) + 1):
        due = began + mark / rate
        delay = due - time.perf_counter()
        if delay > 0:
            await asyncio.sleep(delay)
        if connections.in_use >= MAX_CONNECTIONS:
            seen.unsent += 1
            await asyncio.sleep(0)
            continue
        task = asyncio.create_task(_request(connections, templates[mark % len(templates)], mark, due, seen))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    took = time.perf_counter() - began
    if tasks:
        await asyncio.wait(tasks, timeout=DRAIN)
    return took


def _quantiles(values: list[float]) -> dict[str, float]:
    return {} if not values else {"p50": float(np.quantile(values, 0.5)), "p99": float(np.quantile(values, 0.99))}


async def run(url: str, format_: str, n_rows: int, seconds: float, rate: float) -> dict[str, object]:
    place = urlsplit(url)
    assert place.hostname and place.port, "an address with a port"
    seen, connections = Seen(), Connections(place.hostname, place.port)
    templates = make(format_, n_rows, place.netloc)
    ready = asyncio.Event()
    listening = asyncio.create_task(_listen(place.hostname, place.port, seen, ready))
    await asyncio.wait_for(ready.wait(), DRAIN)
    if rate:
        took = await _open(connections, templates, seconds, rate, seen)
    else:
        took = await _closed(connections, templates, seconds, seen)
    n_accepted = len(seen.accepted)
    deadline = time.perf_counter() + DRAIN
    while len(seen.visible) < n_accepted and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    connections.close()
    return {
        "seconds": took,
        "accepted": n_accepted,
        "refused": len(seen.refused),
        "unsent": seen.unsent,
        "broken": seen.broken,
        "seen": len(seen.visible),
        "rows_per_s": n_accepted * n_rows / took,
        "ack": _quantiles(seen.accepted),
        "refusal": _quantiles(seen.refused),
        "visible": _quantiles(seen.visible),
    }


if __name__ == "__main__":
    url, format_, n_rows, seconds, rate = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(orjson.dumps(runner.run(run(url, format_, int(n_rows), float(seconds), float(rate)))).decode())
