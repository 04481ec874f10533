"""Rows in: pushes, upserts, deletes and retractions, in any format (`api/bodies.py`). 202: durable, and visible in answers."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal

from fastapi import APIRouter, Header, Query, Request

from api import bodies
from api.calls import Call
from api.limits import KEY_CHARACTERS
from api.models import Name, Receipt, TableReceipt, problems
from api.routes.streams import Served
from api.service import Service

router = APIRouter(tags=["rows"])

#: Seconds that `?wait=visible` waits at most.
MAX_WAIT = 30.0

_ROWS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
                "examples": {
                    "a row": {"value": {"sensor": 1, "temp": 31.5, "ts": 1000}},
                    "rows": {"value": [{"sensor": 1, "temp": 31.5, "ts": 1000}]},
                    "columns": {"value": {"sensor": [1, 2], "temp": [31.5, 20.0], "ts": [1000, 1000]}},
                },
            },
            "application/x-ndjson": {"schema": {"type": "string"}},
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_BUNDLE = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object"},
                "example": {"quotes": [{"symbol": "ACME", "price": 12.5}], "trades": {"symbol": ["ACME"], "size": [100]}},
            },
            "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_KEYS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object", "required": ["keys"], "additionalProperties": False,
                    "properties": {"keys": {"type": "array"}, "time": {}},
                },
                "example": {"keys": [1, 2]},
            }
        },
    }
}  # fmt: skip

Key = Header(None, alias="Idempotency-Key", min_length=1, max_length=KEY_CHARACTERS)
Wait = Query(None, description="visible: answer once the rows are released, which lateness delays")
Bad = Query("refuse", description="skip: take the good rows and name the others")


async def _rows(request: Request, service: Service, call: Call, columns: str) -> Call:
    """A call with the rows of a request, read in the format that it says."""
    media = bodies.media_type(request.headers.get("content-type"))
    call.body = await request.body()
    call.header["media"] = media
    known: dict[str, str] = {}
    if media == bodies.CSV:
        name = call.header[columns]
        known = await service.read(lambda core: dict(getattr(core.engine, columns)(name).columns))
    call.rows = bodies.parse_rows(call.body, media, known)
    return call


def _header(key: str | None, bad: str, **header: Any) -> dict[str, Any]:
    if key is not None:
        header["key"] = key
    if bad == "skip":
        header["bad"] = "skip"
    return header


@router.post(
    "/v1/streams/{stream}/rows", status_code=202, response_model=Receipt, response_model_exclude_none=False,
    responses=problems(404, 409), openapi_extra=_ROWS,
)  # fmt: skip
async def push(
    service: Served,
    stream: Name,
    request: Request,
    bad: Literal["refuse", "skip"] = Bad,
    wait: Literal["visible"] | None = Wait,
    idempotency_key: str | None = Key,
) -> Any:
    """Give a stream rows: all of them or, with an error that names the row, none."""
    call = await _rows(request, service, Call("push", _header(idempotency_key, bad, stream=stream)), "stream")
    receipt = await service.ask(call)
    if wait is None:
        return receipt
    return receipt | {"visible": await _visible(service, stream, receipt["last_row"])}


async def _visible(service: Service, stream: str, row: int | None) -> bool:
    """Wait until a row and those before it are released; False if that takes too long."""
    deadline = time.monotonic() + MAX_WAIT
    delay = 0.01
    while row is not None and not await service.read(lambda core: core.engine.released(stream, row)):
        if time.monotonic() + delay > deadline:
            return False
        await asyncio.sleep(delay)
        delay = min(2 * delay, 0.5)
    return True


@router.post("/v1/rows", status_code=202, response_model=dict[str, Receipt], responses=problems(404, 409), openapi_extra=_BUNDLE)
async def push_many(service: Served, request: Request, idempotency_key: str | None = Key) -> Any:
    """Give several streams of one timeline rows, in one commit, merged by time."""
    media = bodies.bundle_type(request.headers.get("content-type"))
    body = await request.body()
    header = _header(idempotency_key, "") | ({} if media == bodies.JSON else {"media": media})
    return await service.ask(Call("push_many", header, body, bodies.parse_bundle(body, media)))


@router.post(
    "/v1/tables/{table}/rows",
    status_code=202,
    response_model=TableReceipt,
    responses=problems(404, 409),
    openapi_extra=_ROWS,
)
async def upsert(
    service: Served,
    table: Name,
    request: Request,
    bad: Literal["refuse", "skip"] = Bad,
    idempotency_key: str | None = Key,
) -> Any:
    """Give a table rows, which take the place of those with their keys."""
    return await service.ask(await _rows(request, service, Call("upsert", _header(idempotency_key, bad, table=table)), "table"))


@router.post(
    "/v1/tables/{table}/rows/delete", status_code=202, response_model=TableReceipt, responses=problems(404, 409),
    openapi_extra=_KEYS,
)  # fmt: skip
async def delete(service: Served, table: Name, request: Request, idempotency_key: str | None = Key,) -> Any:  # fmt: skip
    """Take rows out of a table, by their keys."""
    bodies.expect_json(request.headers.get("content-type"))
    body = await request.body()
    return await service.ask(Call("delete", _header(idempotency_key, "", table=table), body, bodies.parse_keys(body)))


@router.post(
    "/v1/streams/{stream}/rows/retract", status_code=202, response_model=Receipt, responses=problems(404, 409),
    openapi_extra=_KEYS,
)  # fmt: skip
async def retract(service: Served, stream: Name, request: Request, idempotency_key: str | None = Key,) -> Any:  # fmt: skip
    """End the live rows of a stream with these keys, at a time."""
    bodies.expect_json(request.headers.get("content-type"))
    body = await request.body()
    call = Call("retract", _header(idempotency_key, "", stream=stream), body, bodies.parse_keys(body))
    return {"rejected": 0} | await service.ask(call)
