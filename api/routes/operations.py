"""Routes of operation: health, readiness, metrics, limits, time, routing, trace."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from api.base.jsons import json_response
from api.core.calls import Call
from api.demo import runner
from api.edge.metrics import MEDIA, Metrics
from api.edge.problems import problem
from api.routes.streams import Served
from api.wire.models import Advanced, Name, Status, Strict, door_problems, example, problems

router = APIRouter()


class TraceRequest(Strict):
    stream: str
    row: Annotated[int, Field(ge=0, le=2**62)] | dict[str, Any]
    query: str | None = None

    model_config = example({"stream": "readings", "row": 0, "query": "hot"})


class Advance(Strict):
    time: int | float | str = Field(description="milliseconds since 1970, or ISO 8601", examples=["2026-01-31T12:00:00Z"])


class EddyPatch(Strict):
    policy: str = Field(examples=["auto"])


_OBJECT = {"content": {"application/json": {"schema": {"type": "object"}}}}


@router.get("/healthz", tags=["operations"], response_model=Status, response_model_exclude_none=True, responses=door_problems())
async def healthz() -> Any:
    """Whether the process answers."""
    return {"status": "ok"}


@router.get("/readyz", tags=["operations"], response_model=Status, responses=door_problems())
async def readyz(service: Served) -> Any:
    """Whether it takes calls: not while it recovers, stops, or has failed."""
    if service.ready:
        return json_response({"status": "ready", "seq": service.hub.seq})
    return problem(503, service.state, f"the service is {service.state}")


@router.get(
    "/metrics", tags=["operations"], response_class=Response,
    responses={200: {"description": "for Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}}, **problems()},
)  # fmt: skip
async def metrics(request: Request) -> Response:
    """Counters and gauges, in the text format of Prometheus."""
    found: Metrics = request.app.state.metrics
    return Response(await found.text(), media_type=MEDIA)


@router.get("/v1/limits", tags=["operations"], responses=problems())
async def limits(service: Served) -> dict[str, int | float]:
    """Every bound that is enforced."""
    return service.limits.as_dict()


@router.post(
    "/v1/timelines/{timeline}/advance", tags=["rows"], responses={200: {"model": Advanced}, **problems(404, 409)},
)  # fmt: skip
async def advance(service: Served, timeline: Name, body: Advance) -> Response:
    """Say that no later row of a timeline will carry a smaller time."""
    return json_response(await service.ask(Call("advance", {"timeline": timeline, "time": body.time})))


@router.post(
    "/v1/trace", tags=["operations"], responses={200: {"description": "what became of it", **_OBJECT}, **problems(404, 409)},
)  # fmt: skip
async def trace(service: Served, body: TraceRequest) -> Response:
    """Why a row did or did not match: of a row that came, by its number, or of one that never will.

    `matched` are the queries of which some leaf takes the row, the others are in `refused` or `waiting`; `above` tells by query
    what stands above the leaves that take it, and changes no verdict.
    """
    return json_response(await service.read(lambda core: core.engine.trace(body.stream, body.row, body.query)))


@router.get("/v1/eddy", tags=["operations"], responses={200: {"description": "as of now", **_OBJECT}, **problems()})
async def eddy(
    service: Served, brief: bool = Query(False, description="only counts and rates: cheap enough to ask every second")
) -> Response:
    """Modules, tickets and rates."""

    def look(core: Any) -> dict[str, Any]:
        pace: dict[str, Any] = core.pace() | {"demo": runner.state(service, core)}
        if brief:
            return pace
        found: dict[str, Any] = core.engine.stats()
        n_queries = len(found.pop("queries"))
        return found | {"n_queries": n_queries} | {name: pace[name] for name in ("queue", "rates", "demo")}

    return json_response(await service.read(look))


@router.patch("/v1/eddy", tags=["operations"], responses={200: {"model": EddyPatch}, **problems()})
async def patch_eddy(service: Served, body: EddyPatch) -> Response:
    """Route by another policy from the next batch on."""
    return json_response(await service.ask(Call("set_policy", {"policy": body.policy})))
