"""Routes of rows: push, upsert, delete and retract, in any format (`api/wire/bodies.py`). 202: durable, and in answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request

from api.base.limits import KEY_CHARACTERS
from api.core.calls import Call
from api.core.core import Core
from api.core.service import Service
from api.routes.streams import Served
from api.wire import bodies
from api.wire.models import Name, Receipt, TableReceipt, problems

router = APIRouter(tags=["rows"])

#: Seconds that `?wait=visible` waits at most.
MAX_WAIT = 30.0


def _body(content: dict[str, Any]) -> dict[str, Any]:
    """Return what the OpenAPI document says of a required body, by media type."""
    return {"requestBody": {"required": True, "content": content}}


_TEXT = {"schema": {"type": "string"}}
_ARROW = {"schema": {"type": "string", "format": "binary"}}
ROWS = _body({
    "application/json": {
        "schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
        "examples": {
            "a row": {"value": {"sensor": 1, "temp": 31.5, "ts": 1000}},
            "rows": {"value": [{"sensor": 1, "temp": 31.5, "ts": 1000}]},
            "columns": {"value": {"sensor": [1, 2], "temp": [31.5, 20.0], "ts": [1000, 1000]}},
        },
    },
    "application/x-ndjson": _TEXT,
    "text/csv": _TEXT,
    "application/vnd.apache.arrow.stream": _ARROW,
})  # fmt: skip
_BUNDLE = _body({
    "application/json": {
        "schema": {"type": "object"},
        "example": {"quotes": [{"symbol": "ACME", "price": 12.5}], "trades": {"symbol": ["ACME"], "size": [100]}},
    },
    "application/vnd.apache.arrow.stream": _ARROW,
})  # fmt: skip
_KEYS = _body({
    "application/json": {
        "schema": {
            "type": "object", "required": ["keys"], "additionalProperties": False,
            "properties": {"keys": {"type": "array"}, "time": {}},
        },
        "example": {"keys": [1, 2]},
    }
})  # fmt: skip

Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=KEY_CHARACTERS)]
Wait = Annotated[
    Literal["visible"] | None, Query(description="visible: answer once the rows are released, which lateness delays")
]
Bad = Annotated[Literal["refuse", "skip"], Query(description="skip: take the good rows and name the others")]


def _csv_texts(
    delimiter: str | None = Query(None, description="CSV: the character between cells, or tab", max_length=16),
    names: str | None = Query(None, description="CSV: a,b,c for one without a line of names", max_length=16_384),
    rename: Sequence[str] = Query((), description="CSV: old=new, for a column", max_length=512),
    null: Sequence[str] = Query((), description="CSV: a word that is NULL in every column", max_length=100),
    time: str | None = Query(None, description="CSV: ts=year,month,day makes a time of other columns", max_length=4096),
    time_format: str | None = Query(None, description="CSV: how times are written, as in strptime", max_length=256),
    tz: str | None = Query(None, description="CSV: the IANA zone of times that do not say theirs", max_length=128),
    decimal: str | None = Query(None, description="CSV: a comma, if that stands before decimals", max_length=1),
) -> dict[str, Any]:
    """Return the parameters of a request that describe a CSV (`lineage/csv_form.py`)."""
    given = {
        "delimiter": delimiter, "names": names, "rename": list(rename), "null": list(null), "time": time,
        "time_format": time_format, "tz": tz, "decimal": decimal,
    }  # fmt: skip
    # checked before anything waits; and written in one way, for a key is of one call
    return bodies.csv_form({name: value for name, value in given.items() if value}).texts()


CsvTexts = Annotated[dict[str, Any], Depends(_csv_texts)]


async def pushed(
    service: Service, stream: str, content_type: str | None, body: bytes, key: str | None = None, bad: str = "refuse",
    csv: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Push a body of rows and return the receipt. Rows are parsed in the engine's thread, so that the queue stays small and the
    event loop free."""
    media = bodies.media_type(content_type)
    receipt: dict[str, Any] = await service.ask(Call("push", header_of(key, bad, csv, stream=stream, media=media), body))
    return receipt


def header_of(key: str | None, bad: str, csv: dict[str, Any] | None = None, **header: Any) -> dict[str, Any]:
    """Return the header of a call with rows."""
    if key is not None:
        header["key"] = key
    if bad == "skip":
        header["bad"] = "skip"
    if csv:
        if header["media"] != bodies.CSV:
            raise bodies.BodyError(f'"{min(csv)}" is said of CSV only', detail=f"the rows are {header['media']}", hint=bodies.CSV)
        header["csv"] = csv
    return header


@router.post(
    "/v1/streams/{stream}/rows", status_code=202, response_model=Receipt, response_model_exclude_none=False,
    responses=problems(404, 409, 431), openapi_extra=ROWS,
)  # fmt: skip
async def push(
    service: Served, stream: Name, request: Request, csv: CsvTexts, bad: Bad = "refuse", wait: Wait = None, key: Key = None
) -> Any:
    """Give a stream rows: all of them or, with an error that names the row, none."""
    content_type = request.headers.get("content-type")
    receipt = await pushed(service, stream, content_type, await request.body(), key, bad, csv)
    if wait is None:
        return receipt
    row = receipt["last_row"]
    shown = row is None or await visible(service, lambda core: core.engine.released(stream, row))
    return receipt | {"visible": shown}


async def visible(service: Service, look: Callable[[Core], bool]) -> bool:
    """Wait until results show some rows, by what `look` says; return False if that takes too long."""
    deadline = time.monotonic() + MAX_WAIT
    delay = 0.01
    while not await service.read(look):
        if time.monotonic() + delay > deadline:
            return False
        await asyncio.sleep(delay)
        delay = min(2 * delay, 0.5)
    return True


@router.post("/v1/rows", status_code=202, response_model=dict[str, Receipt], responses=problems(404, 409), openapi_extra=_BUNDLE)
async def push_many(service: Served, request: Request, key: Key = None) -> Any:
    """Give several streams of one timeline rows, in one commit, merged by time."""
    media = bodies.bundle_type(request.headers.get("content-type"))
    header = header_of(key, "") | ({} if media == bodies.JSON else {"media": media})
    return await service.ask(Call("push_many", header, await request.body()))


@router.post(
    "/v1/tables/{table}/rows", status_code=202, response_model=TableReceipt, responses=problems(404, 409, 431),
    openapi_extra=ROWS,
)  # fmt: skip
async def upsert(service: Served, table: Name, request: Request, csv: CsvTexts, bad: Bad = "refuse", key: Key = None) -> Any:
    """Give a table rows, which take the place of those with their keys."""
    media = bodies.media_type(request.headers.get("content-type"))
    header = header_of(key, bad, csv, table=table, media=media)
    return await service.ask(Call("upsert", header, await request.body()))


@router.post(
    "/v1/tables/{table}/rows/delete", status_code=202, response_model=TableReceipt, responses=problems(404, 409),
    openapi_extra=_KEYS,
)  # fmt: skip
async def delete(service: Served, table: Name, request: Request, key: Key = None) -> Any:
    """Take rows out of a table, by their keys."""
    bodies.expect_json(request.headers.get("content-type"))
    return await service.ask(Call("delete", header_of(key, "", table=table), await request.body()))


@router.post(
    "/v1/streams/{stream}/rows/retract", status_code=202, response_model=Receipt, responses=problems(404, 409),
    openapi_extra=_KEYS,
)  # fmt: skip
async def retract(service: Served, stream: Name, request: Request, key: Key = None) -> Any:
    """End the live rows of a stream with these keys, at a time."""
    bodies.expect_json(request.headers.get("content-type"))
    call = Call("retract", header_of(key, "", stream=stream), await request.body())
    return {"rejected": 0} | await service.ask(call)
