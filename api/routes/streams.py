"""Routes of streams and tables: define, list, show, drop."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from api.core.calls import Call
from api.core.service import Service
from api.core.views import stream_view, table_view
from api.wire.models import (
    Limited,
    MergedStreamFacts,
    Name,
    StreamDefinition,
    StreamFacts,
    TableDefinition,
    TableFacts,
    problems,
)
from eddy import ConflictError, Stream

router = APIRouter()


def service_of(request: Request) -> Service:
    """Return the service of a request."""
    found: Service = request.app.state.service
    return found


#: The service, as a parameter of a handler.
Served = Annotated[Service, Depends(service_of)]


def given(model: Any) -> dict[str, Any]:
    """Return the fields that a client wrote in a definition, without defaults."""
    found: dict[str, Any] = model.model_dump(exclude_unset=True)
    return {name: value for name, value in found.items() if value is not None}


@router.put(
    "/v1/streams/{stream}", response_model=StreamFacts, responses={201: {"model": StreamFacts}, **problems(409)}, tags=["streams"]
)
async def put_stream(service: Served, stream: Name, definition: StreamDefinition, response: Response) -> Any:
    """Declare a stream. 201 if it is new, 200 if an equal one is there, 409 if another one is."""
    done = await service.ask(Call("create_stream", {"name": stream, "definition": given(definition)}))
    response.status_code = 201 if done["created"] else 200
    return stream_view(done["stream"])


@router.get("/v1/streams", response_model=Limited, responses=problems(), tags=["streams"])
async def list_streams(service: Served) -> Any:
    items = await service.read(lambda core: [stream_view(stream) for stream in core.engine.streams.values()])
    return {"items": items, "next_cursor": None}


@router.get("/v1/streams/{stream}", response_model=MergedStreamFacts | StreamFacts, responses=problems(404), tags=["streams"])
async def get_stream(service: Served, stream: Name) -> Any:
    return await service.read(lambda core: stream_view(core.engine.stream(stream)))


@router.delete("/v1/streams/{stream}", status_code=204, responses=problems(404, 409), tags=["streams"])
async def drop_stream(service: Served, stream: Name) -> Response:
    """Remove a stream that no query reads."""
    found: Stream = await service.read(lambda core: core.engine.stream(stream))
    if found.kind == "merge":
        hint = f"DELETE /v1/merges/{found.name}"
        raise ConflictError(f'"{found.name}" is a merged stream', code="is_merge", hint=hint)
    await service.ask(Call("drop", {"name": stream}))
    return Response(status_code=204)


@router.put(
    "/v1/tables/{table}", response_model=TableFacts, responses={201: {"model": TableFacts}, **problems(409)}, tags=["tables"]
)
async def put_table(service: Served, table: Name, definition: TableDefinition, response: Response) -> Any:
    """Declare a table. 201 if it is new, 200 if an equal one is there, 409 if another one is."""
    done = await service.ask(Call("create_table", {"name": table, "definition": given(definition)}))
    response.status_code = 201 if done["created"] else 200
    return table_view(done["table"])


@router.get("/v1/tables", response_model=Limited, responses=problems(), tags=["tables"])
async def list_tables(service: Served) -> Any:
    items = await service.read(lambda core: [table_view(table) for table in core.engine.tables.values()])
    return {"items": items, "next_cursor": None}


@router.get("/v1/tables/{table}", response_model=TableFacts, responses=problems(404), tags=["tables"])
async def get_table(service: Served, table: Name) -> Any:
    return await service.read(lambda core: table_view(core.engine.table(table)))


@router.delete("/v1/tables/{table}", status_code=204, responses=problems(404, 409), tags=["tables"])
async def drop_table(service: Served, table: Name) -> Response:
    """Remove a table that no query reads."""
    await service.read(lambda core: core.engine.table(table))
    await service.ask(Call("drop", {"name": table}))
    return Response(status_code=204)
