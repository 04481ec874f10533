"""The web application: the routes over one service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from api import problems
from api.guard import Guard
from api.metrics import Metrics
from api.models import Problem
from api.routes import changes, operations, queries, rows, socket, streams
from api.service import Service
from api.tokens import Tokens


def make_app(service: Service, *, tokens: Tokens | None = None, hosts: frozenset[str] | None = None) -> FastAPI:
    """The application of a service, which starts and stops with it.

    `tokens` says who may do what (None: everybody), `hosts` under which names it is reached (None: any).
    """

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        # recovery goes on beside: meanwhile /readyz says so
        starting = asyncio.create_task(service.begin())
        try:
            yield
        finally:
            if not starting.done():
                starting.cancel()
            await service.stop()

    app = FastAPI(
        title="Eddy", version="1", lifespan=life, docs_url="/docs", redoc_url=None, telemetry=None,
        swagger_ui_oauth2_redirect_url=None, redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    app.state.metrics = metrics = Metrics(service)
    app.add_middleware(Guard, limits=service.limits, tokens=tokens, hosts=hosts, observe=metrics.observe)
    for router in (streams.router, rows.router, queries.router, changes.router, socket.router, operations.router):
        app.include_router(router)
    problems.install(app)
    plain = app.openapi

    def openapi() -> dict[str, object]:
        document = plain()
        document["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's own pages do it
    return app
