"""The process that serves: opens the data directory, runs uvicorn, and ends in good order.

uvicorn alone waits for ever for streams that never end, so the first signal ends all subscriptions; then requests under way are
finished, what waits is done, a snapshot is written. A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from types import FrameType

import uvicorn

from api.app import make_app
from api.service import Service
from api.settings import Settings
from storage.directory import DataDirectory
from storage.disk import LocalDisk

#: Seconds that requests under way have to end.
GRACE = 3


class Server(uvicorn.Server):
    """uvicorn, which tells the service first when it is to end."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.end_subscriptions()
        super().handle_exit(sig, frame)


def serve(settings: Settings) -> int:
    """Serve until told to stop; returns the exit code."""
    directory = (
        None if settings.data is None else DataDirectory.open(LocalDisk(settings.data), discard_state=settings.discard_state)
    )
    service = Service(directory, settings.limits, policy=settings.policy, expiry=settings.expiry)
    config = uvicorn.Config(
        make_app(service), host=settings.host, port=settings.port, loop="uvloop", http="httptools", ws="websockets-sansio",
        timeout_graceful_shutdown=GRACE, log_level="warning", access_log=False, server_header=False,
        limit_concurrency=settings.limits.connections,
    )  # fmt: skip
    server = Server(config, service)
    service.on_failure = lambda error: setattr(server, "should_exit", True)
    bound = config.bind_socket()
    host, port = bound.getsockname()[:2]
    print(f"eddy: http://{host}:{port}", file=sys.stderr, flush=True)
    asyncio.run(_run(server, bound))
    return 1 if service.state == "failed" else 0


async def _run(server: Server, bound: socket.socket) -> None:
    await server.serve(sockets=[bound])
