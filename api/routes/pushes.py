"""A fast path for the commonest request: rows for one stream, or one input of a merged one, without options.

Routing, checking of parameters and of the answer by FastAPI cost a quarter of what a push of a thousand rows costs. A plain
`POST /v1/streams/{stream}/rows` or `POST /v1/merges/{merge}/inputs/{input}/rows`, without a query and an idempotency key, needs
none of it; everything else goes on to the application, whose routes say the same (`api/routes/rows.py`, `api/routes/merges.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from api.base.jsons import json_response
from api.base.limits import NAME_CHARACTERS
from api.core.service import Service
from api.edge.body_reader import Receive
from api.edge.guard import App, Scope, Send
from api.edge.problems import as_problem
from api.routes.merges import pushed_input
from api.routes.rows import pushed
from api.wire.models import MergeReceipt, Receipt
from eddy import EddyError

_BEFORE, _BEFORE_INPUT, _INPUT, _AFTER = "/v1/streams/", "/v1/merges/", "/inputs/", "/rows"
_FIELDS = tuple(Receipt.model_fields)
_INPUT_FIELDS = tuple(MergeReceipt.model_fields)


class PlainPush(NamedTuple):
    """The stream of a plain push, or the merge and its input."""

    stream: str
    input: str | None


def plain_push(scope: Scope) -> PlainPush | None:
    """Return where the rows of a plain push go; None for any other request."""
    if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
        return None
    path: str = scope["path"]
    if not path.endswith(_AFTER):
        return None
    if path.startswith(_BEFORE):
        stream = path[len(_BEFORE) : -len(_AFTER)]
        return PlainPush(stream, None) if _is_name(stream) else None
    if path.startswith(_BEFORE_INPUT):
        merge, _, of = path[len(_BEFORE_INPUT) : -len(_AFTER)].partition(_INPUT)
        return PlainPush(merge, of) if _is_name(merge) and _is_name(of) else None
    return None


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_CHARACTERS and "/" not in text


class Pushes:
    """Answers plain pushes, and passes other requests on."""

    def __init__(self, app: App, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        to = plain_push(scope)
        headers = {} if to is None else dict(scope["headers"])
        if to is None or b"idempotency-key" in headers:
            await self._app(scope, receive, send)
            return
        try:
            # the guard has read it whole
            body: bytes = (await receive()).get("body", b"")
            said = headers.get(b"content-type")
            media = None if said is None else said.decode("latin-1")
            if to.input is None:
                receipt, fields = await pushed(self._service, to.stream, media, body), _FIELDS
            else:
                receipt, fields = await pushed_input(self._service, to.stream, to.input, media, body), _INPUT_FIELDS
            response = json_response({name: receipt.get(name) for name in fields}, 202)
        except EddyError as error:
            response = as_problem(error, scope["state"]["request_id"])
        await response(scope, receive, send)
