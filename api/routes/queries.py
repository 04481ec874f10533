"""Routes of queries: submit, list, show, replace, pause, cancel; one by one, many at once, or by tag."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Header, Request, Response
from fastapi import Query as Parameter
from fastapi.responses import StreamingResponse

from api.base.jsons import json_response
from api.base.limits import PAGE_ITEMS
from api.core.calls import Call
from api.core.core import Core
from api.core.deletions import delete_tagged
from api.core.views import query_view
from api.edge.problems import facts, status_of
from api.routes.streams import Served, given
from api.wire.bodies import JSON
from api.wire.formats import MEDIA, choose, encode
from api.wire.models import (
    Answer,
    BatchFacts,
    Cancelled,
    Limited,
    Name,
    QueryBatch,
    QueryDefinition,
    QueryFacts,
    QueryOptions,
    QueryText,
    problems,
)
from eddy import EddyError, Query
from queries.guards import check_lengths

router = APIRouter(tags=["queries"])

_OBJECT = {"content": {"application/json": {"schema": {"type": "object"}}}}

#: Items of one page of a listing, unless it says how many.
PAGE = 100


@router.post("/v1/queries", status_code=201, response_model=QueryFacts, responses=problems(404, 409))
async def submit(service: Served, definition: QueryDefinition, response: Response) -> Any:
    """Start a query; it is in effect when the answer comes."""
    view = await service.ask(
        Call("submit", {"definition": given(definition)}), lambda query: query_view(service.core.holdings, query)
    )
    response.headers["Location"] = f"/v1/queries/{view['name']}"
    return view


@router.post("/v1/queries/batch", responses={200: {"model": BatchFacts}, **problems(404, 409)})
async def submit_batch(
    service: Served,
    batch: QueryBatch,
    partial: bool = Parameter(False, description="start those that can be, and say of the others why not"),
) -> Any:
    """Start many queries: all or, with the place of the one that is refused, none."""
    definitions = [given(definition) for definition in batch.queries]
    if not partial:
        check_lengths([definition["sql"] for definition in definitions])

    def view(found: list[Query | EddyError]) -> list[dict[str, Any]]:
        return [
            {"status": status_of(one), **facts(one)}
            if isinstance(one, EddyError)
            else {"status": 201, "id": one.id, "name": one.name}
            for one in found
        ]

    items = await service.ask(Call("submit_many", {"definitions": definitions, "partial": partial}), view)
    return json_response({"items": items})


@router.post("/v1/queries/validate", responses={200: {"description": "the plan it would get", **_OBJECT}, **problems(404)})
async def validate(service: Served, text: QueryText) -> Any:
    """The plan that a query would get, without starting it."""
    return json_response(
        await service.read(lambda core: core.engine.explain(f" {text.sql}\n" if text.sql.strip() else text.sql, text.params))
    )


@router.put("/v1/queries/{query}", response_model=QueryFacts, responses={201: {"model": QueryFacts}, **problems(404, 409)})
async def put_query(service: Served, query: Name, definition: QueryOptions, response: Response) -> Any:
    """Create a query, or give it another text in one commit. The same text changes nothing."""
    created, view = await service.ask(
        Call("put_query", {"name": query, "definition": given(definition)}),
        lambda done: (done["created"], query_view(service.core.holdings, done["query"])),
    )
    if created:
        response.status_code, response.headers["Location"] = 201, f"/v1/queries/{query}"
    return view


@router.get("/v1/queries", response_model=Limited, responses=problems())
async def list_queries(
    service: Served,
    state: Literal["running", "paused"] | None = None,
    stream: str | None = None,
    tag: str | None = None,
    search: str | None = Parameter(None, max_length=256, description="words that the name or the text has, in any case"),
    sort: Literal["id", "name", "-own_bytes"] = "id",
    limit: int = Parameter(PAGE, ge=1, le=PAGE_ITEMS),
    cursor: str | None = Parameter(None, description="`next_cursor` of the page before"),
) -> Any:
    """Queries, a page at a time."""
    words = (search or "").lower().split()

    def look(core: Core) -> dict[str, Any]:
        found = [
            query
            for query in core.engine.queries.values()
            if (state is None or query.state == state)
            and (stream is None or stream.lower() in query.streams)
            and (tag is None or tag in query.tags)
            and all(word in query.name.lower() or word in query.sql.lower() for word in words)
        ]
        keys = {
            "id": lambda q: (q.id,),
            "name": lambda q: (q.name.lower(),),
            "-own_bytes": lambda q: (-core.engine.own_bytes(q), q.id),
        }
        found.sort(key=keys[sort])
        first = _position(cursor, len(found))
        page = found[first : first + limit]
        items = [query_view(core.holdings, query) | _counters(core, query) for query in page]
        return {"items": items, "next_cursor": str(first + limit) if first + limit < len(found) else None}

    return await service.read(look)


def _counters(core: Core, query: Query) -> dict[str, int]:
    stats = core.engine.stats(query)
    return {name: stats[name] for name in ("results", "own_bytes", "errors")}


def _position(cursor: str | None, n: int) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise EddyError(f'the cursor "{cursor[:40]}" is none of ours', code="bad_cursor", hint="use next_cursor as it came")
    return min(int(cursor), n)


@router.delete("/v1/queries", response_model=Cancelled, responses=problems(409))
async def cancel_tag(service: Served, tag: str) -> Any:
    """Cancel the queries that have a tag now; refused if another query reads one of them. The answer comes when all are gone."""
    return {"cancelled": await delete_tagged(service, tag)}


@router.get("/v1/queries/{query}", response_model=QueryFacts, responses=problems(404))
async def get_query(service: Served, query: Name) -> Any:
    """The definition and state of a query."""
    return await service.read(lambda core: query_view(core.holdings, core.engine.query(query)))


@router.delete("/v1/queries/{query}", status_code=204, responses=problems(404, 409))
async def cancel(service: Served, query: Name) -> Response:
    """Stop a query for good."""
    await service.ask(Call("cancel", {"query": query}))
    return Response(status_code=204)


@router.post("/v1/queries/{query}/pause", response_model=QueryFacts, responses=problems(404, 409))
async def pause(service: Served, query: Name) -> Any:
    """Stop a query for now; it keeps its last answer."""
    return await service.ask(Call("pause", {"query": query}), lambda found: query_view(service.core.holdings, found))


@router.post("/v1/queries/{query}/resume", response_model=QueryFacts, responses=problems(404, 409))
async def resume(service: Served, query: Name) -> Any:
    """Start a paused query as if it were new."""
    return await service.ask(Call("resume", {"query": query}), lambda found: query_view(service.core.holdings, found))


@router.get("/v1/queries/{query}/plan", responses={200: {"description": "how it is run", **_OBJECT}, **problems(404)})
async def plan(service: Served, query: Name) -> Any:
    """How a query is run: shared modules, update patterns, state."""
    return json_response(await service.read(lambda core: core.engine.explain(core.engine.query(query))))


@router.get("/v1/queries/{query}/stats", responses={200: {"description": "its counters", **_OBJECT}, **problems(404)})
async def stats(service: Served, query: Name) -> Any:
    """The counters of a query, and the bytes that it takes."""
    return json_response(await service.read(lambda core: core.engine.stats(query)))


@router.get(
    "/v1/queries/{query}/answer", response_class=Response,
    responses={
        200: {
            "description": "the answer now",
            "model": Answer,
            "content": {media.split(";")[0]: {"schema": {"type": "string"}} for media in MEDIA.values() if media != JSON},
            "headers": {"ETag": {"schema": {"type": "string"}}, "Eddy-Time": {"schema": {"type": "string"}},
                "Eddy-Seq": {"schema": {"type": "string"}}},
        },
        304: {"description": "it is still what If-None-Match says"},
        **problems(404, 406),
    },
)  # fmt: skip
async def answer(
    service: Served,
    query: Name,
    request: Request,
    format: Literal["json", "columns", "ndjson", "csv", "arrow"] | None = None,
    if_none_match: str | None = Header(None),
) -> Response:
    """The answer of a query, exact at a commit."""
    format_ = choose(format, request.headers.get("accept"), MEDIA, "json")
    found, table = await service.read(lambda core: (core.engine.query(query), core.engine.answer(query)))
    facts = table.schema.metadata
    time, seq = facts[b"time"].decode(), int(facts[b"seq"])
    tag = f'"{found.id}-{seq}-{format_}"'
    headers = {"ETag": tag, "Eddy-Time": time, "Eddy-Seq": str(seq), "Cache-Control": "no-cache", "Vary": "Accept"}
    if if_none_match is not None and tag in if_none_match:
        return Response(status_code=304, headers=headers)
    head = {"query": found.name, "time": time or None, "seq": seq, "columns": found.columns}
    return StreamingResponse(encode(table, format_, head), headers=headers, media_type=MEDIA[format_])
