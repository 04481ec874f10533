"""The web application: all routes over one service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from api.core.service import Service
from api.edge import problems
from api.edge.access_tokens import Tokens
from api.edge.body_reader import BodyReader
from api.edge.guard import Guard
from api.edge.metrics import Metrics
from api.edge.room import Room
from api.experiment_runs import ExperimentRuns
from api.routes import changes, experiments, merges, operations, page, queries, rows, socket, streams
from api.routes.pushes import Pushes
from api.wire.models import Problem

_ABOUT = """Continuous SQL queries over live streams.

Declare a stream, submit queries, push rows, read answers, or follow their changes over SSE, NDJSON, Arrow or a WebSocket
(`/v1/ws`). Errors are problem documents (RFC 9457) with a stable `code` and, where there is one, a `hint`."""


def make_app(
    service: Service, opening: Callable[[], Awaitable[None]] | None = None, *,
    tokens: Tokens | None = None, hosts: frozenset[str] | None = None,
) -> FastAPI:  # fmt: skip
    """Return the web application of a service; its lifespan starts and stops the service.

    `opening` starts the service and goes on beside it, `tokens` says who may do what (None: everybody), `hosts` under which names
    it is reached (None: any).
    """

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        # recovery goes on beside: meanwhile /readyz says so
        starting = asyncio.ensure_future((opening or service.begin)())
        try:
            yield
        finally:
            starting.cancel()
            await asyncio.wait([starting])
            await app.state.experiments.stop()
            await service.stop()
            if not starting.cancelled():
                starting.result()

    app = FastAPI(
        title="Eddy", version="1", description=_ABOUT, lifespan=life, docs_url=None, redoc_url=None, telemetry=None,
        redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    app.state.experiments = ExperimentRuns(service.limits)
    app.state.metrics = metrics = Metrics(service)

    app.add_middleware(Pushes, service=service)
    reader = BodyReader(service.limits)
    app.state.room = room = Room(service, reader, metrics)
    app.add_middleware(
        Guard, limits=service.limits, reader=reader, tokens=tokens, hosts=hosts, admit=room.check, observe=metrics.observe
    )  # fmt: skip
    for nouns in (streams, merges, rows, queries, changes, socket, operations, experiments, page):
        app.include_router(nouns.router)
    problems.install(app)
    plain = app.openapi

    def openapi() -> dict[str, object]:
        document = plain()
        parts = document["components"]
        parts["schemas"]["Problem"] = Problem.model_json_schema()
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "if the server has a token file"}
        }
        document["security"] = [{}, {"token": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's own pages do it
    return app
