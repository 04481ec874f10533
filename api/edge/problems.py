"""Errors as clients see them: RFC 9457 problem documents with a stable `code`.

EddyError of kind           status
bad body                    400
turned away at the door     401, 403, 408, 413, 421, 429 (`api/base/refusals.py`)
not found                   404
in use, conflict            409
gone                        410
media type                  415
query, schema, row          422
limit                       429 when waiting helps (Retry-After), else 422
stopping or failed          503
"""

from __future__ import annotations

import logging
import math
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from api.base.jsons import json_response
from api.base.refusals import Refusal
from api.core.calls import WaitingError
from api.core.inbox import BusyError, ClosedError
from api.wire.bodies import BodyError, UnsupportedMediaError
from api.wire.formats import NotAcceptableError
from eddy import ConflictError, EddyError, GoneError, InUseError, LimitError, NotFoundError, QueryError, RowError, SchemaError

_log = logging.getLogger("eddy.api")

MEDIA = "application/problem+json"

_STATUS: tuple[tuple[type[EddyError], int], ...] = (
    (BodyError, 400),
    (NotFoundError, 404),
    (NotAcceptableError, 406),
    (InUseError, 409),
    (ConflictError, 409),
    (GoneError, 410),
    (UnsupportedMediaError, 415),
    (BusyError, 429),
    (WaitingError, 429),
    (ClosedError, 503),
)

#: The kinds of errors, by which clients know them; the first that fits.
_KINDS: tuple[tuple[type[EddyError], str], ...] = (
    (QueryError, "query"), (SchemaError, "schema"), (RowError, "row"), (NotFoundError, "not_found"), (InUseError, "in_use"),
    (ConflictError, "conflict"), (GoneError, "gone"), (LimitError, "limit"),
)  # fmt: skip

_TITLES = {
    400: "bad request", 401: "not authenticated", 403: "not allowed", 404: "not found", 405: "method not allowed",
    406: "not acceptable", 408: "too slow", 409: "conflict", 410: "gone", 413: "too large", 415: "unsupported media type",
    421: "misdirected", 422: "not acceptable as it is", 429: "too many requests", 431: "head too large",
    500: "internal error", 503: "not available",
}  # fmt: skip


def status_of(error: EddyError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, Refusal):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 422)


def problem(
    status: int, code: str, detail: str, *, hint: str = "", request_id: str = "", headers: dict[str, str] | None = None,
    **more: Any,
) -> Response:  # fmt: skip
    """Return a problem document as a response."""
    content = {"type": "about:blank", "title": _TITLES.get(status, "error"), "status": status, "detail": detail, "code": code}
    if hint:
        content["hint"] = hint
    if request_id:
        content["request_id"] = request_id
    content |= {name: value for name, value in more.items() if value is not None}
    return json_response(content, status, media=MEDIA, headers=headers)


def as_problem(error: EddyError, request_id: str = "") -> Response:
    """Return the response for an error of the engine or the service."""
    return problem(status_of(error), request_id=request_id, headers=headers_of(error), **facts(error))


def headers_of(error: EddyError) -> dict[str, str] | None:
    """Return the headers that an error needs, such as Retry-After."""
    if status_of(error) == 401:
        return {"WWW-Authenticate": "Bearer"}
    retry_after = getattr(error, "retry_after", None)
    return None if retry_after is None else {"Retry-After": str(math.ceil(retry_after))}


def facts(error: EddyError) -> dict[str, Any]:
    """Return the facts of an error by the field names of a problem document."""
    detail = error.fact + (f"; {error.detail}" if error.detail else "")
    found: dict[str, Any] = {"code": error.code, "detail": detail, "hint": error.hint}
    found["kind"] = next((kind for class_, kind in _KINDS if isinstance(error, class_)), None)
    if isinstance(error, QueryError) and error.line is not None:
        found["position"] = {"line": error.line, "column": error.column, "excerpt": error.excerpt}
    elif isinstance(error, RowError) and (error.row is not None or error.column is not None):
        found["position"] = {"row": error.row, "column": error.column}
    item = getattr(error, "item", None)
    if item is not None:
        found["item"] = item
    return found


def install(app: FastAPI) -> None:
    """Register the handlers that turn every error into a problem document."""

    def request_id(request: Request) -> str:
        return str(request.scope.get("state", {}).get("request_id", ""))

    async def on_eddy(request: Request, error: Exception) -> Response:
        assert isinstance(error, EddyError)
        return as_problem(error, request_id(request))

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = {404: "no_such_path", 405: "method_not_allowed"}.get(error.status_code, "http_error")
        headers = dict(error.headers) if error.headers else None
        return problem(error.status_code, code, str(error.detail), request_id=request_id(request), headers=headers)

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return problem(422, "bad_request", f"{place}: {first['msg']}", request_id=request_id(request))

    async def on_bug(request: Request, error: Exception) -> Response:
        _log.error("a bug in %s %s", request.method, request.url.path, exc_info=error)
        hint = "this is a bug; the log has the details"
        return problem(500, "internal", "the request could not be handled", hint=hint, request_id=request_id(request))

    app.add_exception_handler(EddyError, on_eddy)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(Exception, on_bug)
