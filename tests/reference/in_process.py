"""A service in this process: its application is asked without sockets, its event loop runs in a thread.

with in_process(Limits(queries=7)) as service:
    service.put("/v1/streams/s", json={...}).status_code
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import httpx
import orjson

from api.app import make_app
from api.base.limits import Limits
from api.core.service import Service
from api.edge.access_tokens import Tokens
from storage.directory import DataDirectory
from tests.reference.asgi import ask

T = TypeVar("T")

#: Seconds that anything may take.
PATIENCE = 60.0


class InProcess:
    """A service, and a client of it."""

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop, tokens: Tokens | None = None) -> None:
        self.service = service
        self.app = make_app(service, tokens=tokens)
        self._loop = loop
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://127.0.0.1")
        self.get, self.put, self.post, self.delete, self.patch = (
            partial(self.request, method) for method in ("GET", "PUT", "POST", "DELETE", "PATCH")
        )

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        """Run something in the service's event loop."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(PATIENCE)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.do(self._client.request(method, path, timeout=PATIENCE, **more))

    def socket(self, *messages: dict[str, Any], **more: Any) -> list[Any]:
        """Send messages on a WebSocket, as ASGI has them; what was said until it was closed."""
        given: list[dict[str, Any]] = [{"type": "websocket.connect"}, *messages]

        async def receive() -> Any:
            if given:
                return given.pop(0)
            await asyncio.sleep(0.05)  # for answers that are under way
            return {"type": "websocket.disconnect", "code": 1000}

        sent = self.do(ask(self.app, path="/v1/ws", kind="websocket", receive=receive, **more)).messages
        return [orjson.loads(one["text"]) for one in sent if one["type"] == "websocket.send"]

    def close(self) -> None:
        self.do(self._client.aclose())


@contextmanager
def in_process(
    limits: Limits | None = None, tokens: Tokens | None = None, directory: DataDirectory | None = None
) -> Iterator[InProcess]:
    """A service that has started, and stops at the end; with a directory it keeps what it is told."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    found = InProcess(Service(directory, limits or Limits()), loop, tokens)
    try:
        found.do(found.service.start())
        yield found
    finally:
        found.do(found.service.stop())
        found.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
