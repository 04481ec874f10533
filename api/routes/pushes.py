"""A fast path for the commonest request: rows for one stream, without options.

Routing, checking of parameters and of the answer by FastAPI cost a quarter of what a push of a thousand rows costs. A plain
`POST /v1/streams/{stream}/rows`, without a query and an idempotency key, needs none of it; everything else goes on to the
application, whose route says the same (`api/routes/rows.py`).
"""

from __future__ import annotations

from api.base.jsons import json_response
from api.base.limits import NAME_CHARACTERS
from api.core.service import Service
from api.edge.body_reader import Receive
from api.edge.guard import App, Scope, Send
from api.edge.problems import as_problem
from api.routes.rows import pushed
from api.wire.models import Receipt
from eddy import EddyError

_BEFORE, _AFTER = "/v1/streams/", "/rows"
_FIELDS = tuple(Receipt.model_fields)


def stream_of(scope: Scope) -> str | None:
    """Return the stream of a plain push; None for any other request."""
    if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
        return None
    path: str = scope["path"]
    if not path.startswith(_BEFORE) or not path.endswith(_AFTER):
        return None
    stream = path[len(_BEFORE) : -len(_AFTER)]
    return stream if 0 < len(stream) <= NAME_CHARACTERS and "/" not in stream else None


class Pushes:
    """Answers plain pushes, and passes other requests on."""

    def __init__(self, app: App, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = stream_of(scope)
        headers = {} if stream is None else dict(scope["headers"])
        if stream is None or b"idempotency-key" in headers:
            await self._app(scope, receive, send)
            return
        try:
            # the guard has read it whole
            body: bytes = (await receive()).get("body", b"")
            media = headers.get(b"content-type")
            receipt = await pushed(self._service, stream, None if media is None else media.decode("latin-1"), body)
            response = json_response({name: receipt.get(name) for name in _FIELDS}, 202)
        except EddyError as error:
            response = as_problem(error, scope["state"]["request_id"])
        await response(scope, receive, send)
