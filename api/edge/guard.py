"""The checks that every request passes before the application sees it, in this order:

    id         X-Request-ID, taken or made, is in the answer, in problem documents and in logs
    host       on loopback: the Host, and the Origin that a browser adds, must be this server's (421, 403), so that no page of
               another site reaches it, by a name that it points here either (DNS rebinding)
    token      who asks, and whether that role may (401, 403); without a token file everybody may do everything
    rate       of each token, or address (429)
    room       rows that there is no room for are refused before they are read (429, 503); most were at the connection already,
               before anything else (`api/edge/room.py`)
    body       counted, timed and decompressed (408, 413, 415, 429): see `api/edge/body_reader.py`

and what every answer carries. WebSockets pass the same doors, only without a body. The application gets a whole body or none.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from api.base.limits import Limits
from api.base.refusals import ForbiddenError, MisdirectedError, UnauthorizedError
from api.edge.access_tokens import OPEN, ApiRoute, Tokens, expect, expect_input, route_of
from api.edge.body_reader import BodyReader, ClientGoneError, Message, Receive
from api.edge.problems import as_problem
from api.edge.rates import RateLimiter
from api.edge.room import HEADERS, POLICY, SMALL, request_id
from eddy import EddyError

_log = logging.getLogger("eddy.requests")

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
#: Told of every answer: the route, the status, and the seconds until its first byte.
Observe = Callable[[ApiRoute, int, float], None]

#: Seconds for which what still comes is read away before a connection is closed: else the client may never see the answer.
LINGER = 1.0

_PAGE = b"default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; img-src 'self' data:"
#: What pages come by.
_SCHEMES = ("http", "https")
#: Pages have their own, and narrow it further (`api/routes/page.py`).
_POLICIES = dict.fromkeys(("/", "/docs"), _PAGE + b"; frame-ancestors 'none'")


class Guard:
    """The checks in front of an application."""

    def __init__(
        self, app: App, limits: Limits, *, reader: BodyReader | None = None, tokens: Tokens | None = None,
        hosts: frozenset[str] | None = None, admit: Callable[[ApiRoute], None] = lambda route: None,
        observe: Observe = lambda route, status, seconds: None,
    ) -> None:  # fmt: skip
        self._app = app
        self._tokens = tokens
        #: the names of this server; None: any
        self._hosts = hosts
        #: raises if what a route is for cannot be done now
        self._admit = admit
        self._observe = observe
        self._rates = RateLimiter(limits.requests_per_second)
        self.reader = BodyReader(limits) if reader is None else reader

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        headers = _headers(scope)
        id_ = request_id(headers.get(b"x-request-id", b""))
        scope.setdefault("state", {})["request_id"] = id_
        route = route_of("WS" if scope["type"] == "websocket" else scope["method"], scope["path"])
        send = self._dressed(scope, route, id_, began, send)
        held = 0

        def holding(n_bytes: int) -> None:
            nonlocal held
            held += n_bytes
            self.reader.held += n_bytes

        try:
            try:
                self._check_host(headers)
                self._check_token(scope, headers, route)
                if scope["type"] == "http" and _has_body(headers):
                    self._admit(route)
                    bound = self.reader.bound_of(route)
                    bound.check(int(headers.get(b"content-length", b"0")))
                    encoding = headers.get(b"content-encoding", b"").decode("latin-1")
                    receive = _replayed(await self.reader.read(receive, encoding, holding, bound), receive)
            except EddyError as error:
                await _refuse(error, id_, scope, headers, receive, send)
                return
            except ClientGoneError:
                return
            await self._app(scope, receive, send)
        finally:
            self.reader.held -= held

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        if self._hosts is None:
            return
        host = headers.get(b"host", b"").decode("latin-1")
        if _name(host) not in self._hosts:
            fact = f'this server is not "{host[:80]}"'
            raise MisdirectedError(fact, hint=f"it answers to {', '.join(sorted(self._hosts))}")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in {f"{scheme}://{host.lower()}" for scheme in _SCHEMES}:
            raise ForbiddenError("the request comes from a page of another site", code="other_origin")

    def _check_token(self, scope: Scope, headers: dict[bytes, bytes], route: ApiRoute) -> None:
        """Raise unless the token is known, its role may use the route, and its rate is within the limit."""
        client = scope["client"][0] if scope.get("client") else ""
        if self._tokens is None:
            if route.role != OPEN:
                self._rates.take(client)
            scope["state"]["role"] = "admin"
            return
        secret = _secret(scope, headers)
        token = None if secret is None else self._tokens.find(secret)
        if route.role == OPEN:
            return
        self._rates.take(client if token is None else (token.name, token.hash))
        if token is None:
            fact = "the request has no token" if secret is None else "the token is not known"
            raise UnauthorizedError(fact, hint="Authorization: Bearer and a secret that `eddy token add` printed")
        expect(token.role, route.role)
        expect_input(token, route, scope["path"])
        scope["state"]["role"] = token.role

    def _dressed(self, scope: Scope, route: ApiRoute, id_: str, began: float, send: Send) -> Send:
        """Return a `send` that adds the headers of every answer."""
        added = [(b"x-request-id", id_.encode()), *HEADERS]

        async def dressed(message: Message) -> None:
            kind = message["type"]
            if kind in ("http.response.start", "websocket.http.response.start"):
                own = list(message.get("headers", ()))
                policy = _POLICIES.get(scope["path"], POLICY)
                message = {**message, "headers": [*own, *added, (b"content-security-policy", policy)]}
                seconds = time.monotonic() - began
                self._observe(route, message["status"], seconds)
                if _log.isEnabledFor(logging.DEBUG):
                    facts = {"route": route.template, "status": message["status"], "ms": round(1e3 * seconds, 3)}
                    _log.debug("answered", extra=facts | {"request_id": id_})
            elif kind == "websocket.accept":
                message = {**message, "headers": [*message.get("headers", ()), (b"x-request-id", id_.encode())]}
                self._observe(route, 101, time.monotonic() - began)
            await send(message)

        return dressed


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """Return headers by name; of a repeated one the last counts. uvicorn's parser refuses two different lengths."""
    return dict(scope["headers"])


def _name(host: str) -> str:
    """Return the host of a Host header, without its port."""
    name = host.rpartition(":")[0] if re.search(r":\d*$", host) and not host.endswith("]") else host
    return name.strip("[]").rstrip(".").lower()


def _has_body(headers: dict[bytes, bytes]) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _secret(scope: Scope, headers: dict[bytes, bytes]) -> str | None:
    """Return the secret of a request; it is removed from the address if it stands there."""
    scheme, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return secret.strip()
    if b"token=" not in scope["query_string"]:
        return None
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    scope["query_string"] = urlencode([pair for pair in pairs if pair[0] != "token"]).encode()
    streams = b"text/event-stream" in headers.get(b"accept", b"") and scope.get("method") == "GET"
    if scope["type"] != "websocket" and not streams:
        return None
    return next((value for name, value in pairs if name == "token"), None)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was already read, and then later messages."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replayed() -> Message:
        nonlocal first
        if first is None:
            return await receive()
        message, first = first, None
        return message

    return replayed


async def _refuse(
    error: EddyError, id_: str, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send
) -> None:  # fmt: skip
    """Answer with a problem; with a large body still on its way, close the connection after the client could read the answer."""
    response = as_problem(error, id_)
    pending = scope["type"] == "http" and _has_body(headers)
    if pending and int(headers.get(b"content-length", str(SMALL + 1))) > SMALL:
        response.headers["Connection"] = "close"
        await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
        await send({"type": "http.response.body", "body": response.body, "more_body": True})
        await _read_away(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return
    await response(scope, receive, send)


async def _read_away(receive: Receive) -> None:
    """Read and discard messages for a while."""
    try:
        async with asyncio.timeout(LINGER):
            while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
                pass
    except TimeoutError:
        return
