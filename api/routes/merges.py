"""Routes of merged streams: define, list, show, drop; attach and detach their inputs; rows and points of one input."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from api.core.calls import Call
from api.core.core import Core
from api.core.service import Service
from api.core.views import merge_view
from api.routes.rows import ROWS, Bad, CsvTexts, Key, Wait, header_of, visible
from api.routes.streams import Served, given
from api.wire import bodies
from api.wire.models import Attachment, Limited, MergeDefinition, MergeFacts, MergeReceipt, Name, StablePoint, problems

router = APIRouter(tags=["merges"])


@router.put("/v1/merges/{merge}", response_model=MergeFacts, responses={201: {"model": MergeFacts}, **problems(409)})
async def put_merge(service: Served, merge: Name, definition: MergeDefinition, response: Response) -> Any:
    """Declare a stream whose rows several inputs give, each all of them. 201 if it is new, 200 if an equal one is there."""
    done = await service.ask(Call("create_merge", {"name": merge, "definition": given(definition)}))
    response.status_code = 201 if done["created"] else 200
    return await service.read(lambda core: merge_view(core.engine, done["merge"]))


@router.get("/v1/merges", response_model=Limited, responses=problems())
async def list_merges(service: Served) -> Any:
    def look(core: Core) -> list[dict[str, Any]]:
        engine = core.engine
        names = [stream.name for stream in engine.streams.values() if stream.kind == "merge"]
        return [merge_view(engine, engine.merge(name)) for name in names]

    return {"items": await service.read(look), "next_cursor": None}


@router.get("/v1/merges/{merge}", response_model=MergeFacts, responses=problems(404, 409))
async def get_merge(service: Served, merge: Name) -> Any:
    """A merged stream, and what its inputs have given."""
    return await service.read(lambda core: merge_view(core.engine, core.engine.merge(merge)))


@router.delete("/v1/merges/{merge}", status_code=204, responses=problems(404, 409))
async def drop_merge(service: Served, merge: Name) -> Response:
    """Remove a merged stream that no query reads."""
    await service.read(lambda core: core.engine.merge(merge))
    await service.ask(Call("drop", {"name": merge}))
    return Response(status_code=204)


@router.put("/v1/merges/{merge}/inputs/{input}", status_code=204, responses=problems(404, 409))
async def attach(service: Served, merge: Name, input: Name, attachment: Attachment) -> Response:
    """Attach an input, which has all rows from a time on; 409 if it is attached."""
    await service.ask(Call("attach", {"merge": merge, "input": input, **given(attachment)}))
    return Response(status_code=204)


@router.delete("/v1/merges/{merge}/inputs/{input}", status_code=204, responses=problems(404, 409))
async def detach(service: Served, merge: Name, input: Name) -> Response:
    """Detach an input: it has no say any more."""
    await service.ask(Call("detach", {"merge": merge, "input": input}))
    return Response(status_code=204)


async def pushed_input(
    service: Service, merge: str, input: str, content_type: str | None, body: bytes, key: str | None = None, bad: str = "refuse",
    csv: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Push a body of rows of one input and return the receipt."""
    media = bodies.media_type(content_type)
    header = header_of(key, bad, csv, merge=merge, input=input, media=media)
    receipt: dict[str, Any] = await service.ask(Call("push_input", header, body))
    return receipt


@router.post(
    "/v1/merges/{merge}/inputs/{input}/rows", status_code=202, response_model=MergeReceipt, responses=problems(404, 409, 431),
    openapi_extra=ROWS,
)  # fmt: skip
async def push_input(
    service: Served,
    merge: Name,
    input: Name,
    request: Request,
    csv: CsvTexts,
    bad: Bad = "refuse",
    wait: Wait = None,
    key: Key = None,
) -> Any:
    """Give a merged stream rows of one input: all of them or, with an error that names the row, none.

    A line of NDJSON may also be `{"adjust": {..}}`, which changes the end of an event, or `{"stable": time}`. The rows of a
    call count first, then its adjusts, then its largest point. The answer tells the sender what it need not keep.
    """
    content_type = request.headers.get("content-type")
    receipt = await pushed_input(service, merge, input, content_type, await request.body(), key, bad, csv)
    if wait is None:
        return receipt
    until: int = await service.read(lambda core: core.engine.given_until(merge, input))
    return receipt | {"visible": await visible(service, lambda core: core.engine.entered(merge, until))}


@router.post(
    "/v1/merges/{merge}/inputs/{input}/stable", status_code=202, response_model=MergeReceipt, responses=problems(404, 409)
)
async def stable(service: Served, merge: Name, input: Name, point: StablePoint, key: Key = None) -> Any:
    """Promise that an input gives no more rows with a smaller time."""
    header = header_of(key, "", merge=merge, input=input, time=point.time)
    return await service.ask(Call("stable", header))
