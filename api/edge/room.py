"""Early refusal of rows: answered from the head of a request when the inbox is full.

Under overload most requests are refused, so a refusal must be cheap. It needs the head alone: no task, no routing, no body
(`api/edge/connections.py`). A request with a large body, or one whose client waits for `100 Continue`, is refused later by the
guard, with the same text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache

from api.core.inbox import BusyError
from api.core.service import Service
from api.edge.access_tokens import ApiRoute, route_of
from api.edge.body_reader import BodyReader
from api.edge.metrics import Metrics
from api.edge.problems import as_problem

#: What every answer carries.
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
POLICY = b"default-src 'none'; frame-ancestors 'none'"
#: A body up to this size is read away after a refusal, a larger one closes the connection.
SMALL = 1 << 20

#: Stands for the id of a request, and is as long as those that are made here.
_ID_HERE = b"the-id-of-the-request-goes-here:"

_ID = re.compile(rb"[\w.:-]{1,128}", re.ASCII)


def request_id(given: bytes) -> str:
    """Return the X-Request-ID of a request, or a new one."""
    return given.decode() if _ID.fullmatch(given) else os.urandom(16).hex()


class Room:
    """The room that a service has for rows; `reader` knows the bytes that are being read."""

    def __init__(self, service: Service, reader: BodyReader, metrics: Metrics) -> None:
        self._service = service
        self._reader = reader
        self._metrics = metrics

    def check(self, route: ApiRoute) -> None:
        """Raise if a request brings rows and there is no room for them."""
        if route.role == "device":
            self._service.core.inbox.check_room(self._reader.held)

    def refusal(self, method: str, path: str, headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
        """Return the whole answer to a request that is refused by its head; None if it is let in, or refused later."""
        if not self._service.ready or self._service.core.inbox.has_room(self._reader.held):
            return None
        known = dict(headers)
        length = known.get(b"content-length", b"")
        if not length.isdigit() or int(length) > SMALL or b"expect" in known or b"transfer-encoding" in known:
            return None
        route = route_of(method, path)
        try:
            self.check(route)
        except BusyError as error:
            self._metrics.observe(route, 429, 0.0)
            id_ = request_id(known.get(b"x-request-id", b""))
            if len(id_) != len(_ID_HERE):
                return _answer(error, id_)
            return _template(error.fact, error.retry_after).replace(_ID_HERE, id_.encode())
        return None


def _answer(error: BusyError, id_: str) -> bytes:
    """Return the whole answer to a refused request."""
    response = as_problem(error, id_)
    own = [*response.raw_headers, (b"x-request-id", id_.encode()), *HEADERS, (b"content-security-policy", POLICY)]
    lines = [b"HTTP/1.1 429 Too Many Requests", *(name + b": " + value for name, value in own), b"", bytes(response.body)]
    return b"\r\n".join(lines)


@lru_cache(maxsize=64)
def _template(fact: str, retry_after: float) -> bytes:
    """Return the answer with a placeholder for the request's id, cached."""
    return _answer(BusyError(fact, retry_after), _ID_HERE.decode())
