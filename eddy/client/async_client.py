"""The asynchronous client: the calls of `Client`, awaited.

async with AsyncClient() as client:
    await client.push("readings", [{"sensor": 1, "temp": 31.5}])
    async for change in client.changes("hot", follow=True): ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import httpx

from eddy.base.description import MergedStream, Stream, Table
from eddy.client import calls, http
from eddy.client.changes import AsyncChanges
from eddy.client.exchange import Call, Effect, Give, Open, Patience, Read, Reply, Send, Sleep, Steps, performed, until_ready
from eddy.client.facts import Query
from eddy.client.following import ChangeCursor, Message, cursor_of, follow

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(call: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """Return a method of the asynchronous client that makes a call."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(performed(call(*args, **kwargs), self._patience))

    calls.dressed(method, call)
    return method


class AsyncClient:
    """Asynchronous client of a service, with the engine's calls; the options are those of `Client`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
        verify: Any = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.timeout = timeout
        self._patience = Patience(patience)
        self._http = httpx.AsyncClient(**http.options(url, token, timeout, verify), transport=transport)

    # ---- calls

    create_stream = _awaited(calls.create_stream)
    create_table = _awaited(calls.create_table)
    create_merge = _awaited(calls.create_merge)
    merge_stats = _awaited(calls.merge_stats)
    attach = _awaited(calls.attach)
    detach = _awaited(calls.detach)
    adjust = _awaited(calls.adjust)
    stable = _awaited(calls.stable)
    stream = _awaited(calls.stream)
    table = _awaited(calls.table)
    drop = _awaited(calls.drop)
    push = _awaited(calls.push)
    push_body = _awaited(calls.push_body)
    push_many = _awaited(calls.push_many)
    upsert = _awaited(calls.upsert)
    delete = _awaited(calls.delete)
    retract = _awaited(calls.retract)
    advance = _awaited(calls.advance)
    submit = _awaited(calls.submit)
    submit_many = _awaited(calls.submit_many)
    replace = _awaited(calls.replace)
    put = _awaited(calls.put)
    query = _awaited(calls.query)
    find_queries = _awaited(calls.find_queries)
    pause = _awaited(calls.pause)
    resume = _awaited(calls.resume)
    cancel = _awaited(calls.cancel)
    answer = _awaited(calls.answer)
    explain = _awaited(calls.explain)
    trace = _awaited(calls.trace)
    stats = _awaited(calls.stats)
    totals = _awaited(calls.totals)
    route_by = _awaited(calls.route_by)
    limits = _awaited(calls.limits)
    ready = _awaited(calls.ready)

    @property
    def streams(self) -> Awaitable[dict[str, Stream]]:
        """Return all streams by name: `await client.streams`."""
        return self._run(performed(calls.streams(), self._patience))

    @property
    def merges(self) -> Awaitable[dict[str, MergedStream]]:
        """Return all merged streams by name: `await client.merges`."""
        return self._run(performed(calls.merges(), self._patience))

    @property
    def tables(self) -> Awaitable[dict[str, Table]]:
        """Return all tables by name: `await client.tables`."""
        return self._run(performed(calls.tables(), self._patience))

    @property
    def queries(self) -> Awaitable[dict[str, Query]]:
        """Return all queries by name: `await client.queries`."""
        return self._run(performed(calls.queries(), self._patience))

    def changes(
        self,
        query: Query | str | Iterable[Query | str] = (),
        since: str | int = "snapshot",
        *,
        tags: Iterable[str] = (),
        follow: bool = False,
        slow: str = "block",
    ) -> AsyncChanges:
        """Return a cursor over the changes of queries, up to now or, with `follow`, as they happen; see `Client.changes`."""
        names = [
            each.name if isinstance(each, Query) else each for each in ([query] if isinstance(query, Query | str) else query)
        ]
        return AsyncChanges(cursor_of(names, tags, since, slow, follow), self._follow, self.query)

    def _follow(self, cursor: ChangeCursor) -> AsyncDriver[None]:
        return AsyncDriver(self._http, follow(cursor, self._patience), self.timeout)

    async def wait_ready(self, seconds: float = 60.0) -> None:
        """Wait until the service takes calls."""
        await self._run(until_ready(seconds, self._patience))

    async def _run(self, steps: Steps[T]) -> T:
        driver = AsyncDriver(self._http, steps, self.timeout)
        async for _ in driver:
            raise AssertionError("a call gives nothing but its result")
        return driver.result

    # ---- life

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient of {self._http.base_url}>"


class AsyncDriver(Generic[T]):
    """Executes effects; iterating over it yields the messages of `Give`."""

    def __init__(self, client: httpx.AsyncClient, steps: Steps[T], timeout: float) -> None:
        self._http = client
        self._steps = steps
        #: what the effects came to, once all are done
        self.result: T
        self._timeout = timeout
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def __aiter__(self) -> AsyncIterator[Message]:
        try:
            effect = next(self._steps)
            while True:
                if isinstance(effect, Give):
                    yield effect.message
                    effect = self._steps.send(None)
                    continue
                try:
                    reply = await self._perform(effect)
                except httpx.TransportError as error:
                    await self._hang_up()
                    effect = self._steps.throw(error)
                else:
                    effect = self._steps.send(reply)
        except StopIteration as end:
            self.result = end.value
        finally:
            await self._hang_up()

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Read):
            chunk = b"" if self._chunks is None else await anext(self._chunks, b"")
            if not chunk:
                await self._hang_up()
            return chunk
        if isinstance(effect, Open):
            return await self._open(effect)
        if isinstance(effect, Send):
            request = self._http.build_request(**http.arguments(effect.request, self._timeout))
            return http.reply_of(await self._http.send(request))
        assert isinstance(effect, Sleep)
        await asyncio.sleep(effect.seconds)
        return None

    async def _open(self, effect: Open) -> Reply:
        request = self._http.build_request(**http.arguments(effect.request, http.SILENCE))
        response = await self._http.send(request, stream=True)
        if response.status_code >= 400:
            await response.aread()
            return http.reply_of(response)
        self._response, self._chunks = response, response.aiter_bytes()
        return Reply(response.status_code, response.headers)

    async def _hang_up(self) -> None:
        self._chunks = None
        if self._response is not None:
            await self._response.aclose()
            self._response = None

    async def close(self) -> None:
        """Stop reading."""
        self._steps.close()
        await self._hang_up()
