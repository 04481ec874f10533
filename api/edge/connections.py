"""HTTP connections with bounds: on their number, and on the time and size of a request's head.

uvicorn reads heads without a bound on their size or time, so a client that sends a byte now and then would hold a connection
for ever, and one that never ends a header would fill the memory. Here

* a head that has not come within `read_seconds` closes its connection with 408; so does a connection on which nothing is asked;
* a head of more than `head_bytes` closes it with 431;
* what is no HTTP closes it with 400;
* rows that there is no room for are refused by the head of their request;
* a text on a WebSocket that is not UTF-8 closes it with 1007;
* beyond `connections` every request is answered with 503, and beyond `SPARE` more there is no answer at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from api.base.limits import Limits
from api.edge.body_reader import Receive
from api.edge.guard import Scope, Send
from api.edge.problems import problem

#: What a WebSocket is closed with on which a text comes that is none.
NOT_UTF8 = 1007
#: Connections over the limit that still get an answer.
SPARE = 64


#: The whole answer to a request that is refused by its method, path and headers; None: it is not.
HeadRefusal = Callable[[str, str, Sequence[tuple[bytes, bytes]]], bytes | None]


def protocol_of(limits: Limits, refusal: HeadRefusal) -> type[asyncio.Protocol]:
    """Return the class that uvicorn instantiates for each connection."""

    class Connection(BoundedConnection):
        bounds = limits
        refuse = staticmethod(refusal)

    return Connection


class Refused:
    """Stand-in for uvicorn's current request: the answer was sent, and the rest of the request is discarded."""

    response_complete = True

    def __init__(self) -> None:
        #: set when the connection is lost; nobody waits for it
        self.message_event = asyncio.Event()


class SocketConnection(WebSocketsSansIOProtocol):
    """A uvicorn WebSocket that closes on invalid input instead of logging an error."""

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self.conn.send_close(NOT_UTF8)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()


class BoundedConnection(HttpToolsProtocol):
    """A uvicorn connection with bounds."""

    bounds: Limits
    refuse: HeadRefusal

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        #: whether the head of a request is awaited or under way, and its bytes so far
        self._in_head = True
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        #: whether this is one connection too many, and whether it is not even answered
        self._too_many = False
        self._aborted = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        n = len(self.connections)
        if n >= self.bounds.connections + SPARE:
            self._aborted = True
            transport.abort()
            return
        if n >= self.bounds.connections:
            self._too_many = True
            self.app = _too_many
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if not self._aborted:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._aborted:
            return
        if self._in_head:
            if self._deadline is None:
                self._arm()
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self.bounds.head_bytes and not self.transport.is_closing():
            self._end(431, "head_too_large", f"the head of the request is larger than {self.bounds.head_bytes:,} bytes")

    def on_headers_complete(self) -> None:
        # what came with the head in one piece may belong to the body
        self._in_head = False
        self._head_bytes = 0
        self._disarm()
        if not self._is_refused():
            super().on_headers_complete()

    def _is_refused(self) -> bool:
        """Return whether the current request was answered by its head alone."""
        if not (self.cycle is None or self.cycle.response_complete) or self._too_many or not self.parser.should_keep_alive():
            return False
        path = self.url.partition(b"?")[0].decode("latin-1")
        answer = self.refuse(self.parser.get_method().decode("latin-1"), path, self.headers)
        if answer is None:
            return False
        self.cycle = Refused()  # type: ignore[assignment]  # all that uvicorn asks of a request that is answered
        self.transport.write(answer)
        self.on_response_complete()
        return True

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        if self._too_many:
            self._end(503, "too_many_connections", "there are too many connections")
            return
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        self._end(400, "bad_request", "this is no HTTP request, or its address is too long")

    def _arm(self) -> None:
        self._deadline = self.loop.call_later(self.bounds.read_seconds, self._too_slow)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if not self._in_head or self.transport.is_closing():
            return
        if not self._head_bytes or (self.cycle is not None and not self.cycle.response_complete):
            self.transport.close()  # nothing was asked, or an answer is under way
        else:
            self._end(408, "too_slow", f"no whole request came within {self.bounds.read_seconds:g} s")

    def _end(self, status: int, code: str, detail: str) -> None:
        """Send an error and close the connection."""
        self._disarm()
        response = problem(status, code, detail, headers={"Connection": "close"})
        lines = [f"HTTP/1.1 {status} {code}".encode(), *(name + b": " + value for name, value in response.raw_headers)]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))
        self.transport.close()


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"Connection": "close", "Retry-After": "1"}
    response = problem(503, "too_many_connections", "there are too many connections", hint="try again", headers=headers)
    await response(scope, receive, send)
