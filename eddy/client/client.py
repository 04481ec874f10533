"""The blocking client.

    with Client("http://127.0.0.1:8000") as client:
        client.push("readings", [{"sensor": 1, "temp": 31.5}])

Any number of threads may use one. It carries out the effects of calls (`eddy/client/exchange.py`); what a call is, is in
`eddy/client/calls.py`.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import httpx

from eddy.base.description import MergedStream, Stream, Table
from eddy.client import calls, http
from eddy.client.changes import Changes
from eddy.client.exchange import Call, Effect, Give, Open, Patience, Read, Reply, Send, Sleep, Steps, performed, until_ready
from eddy.client.facts import Query
from eddy.client.following import ChangeCursor, Message, cursor_of, follow

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(call: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """Return a method that executes a call."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(performed(call(*args, **kwargs), self._patience))

    calls.dressed(method, call)
    return method


class Client:
    """Blocking client of a service, with the engine's calls.

    `url` and `token` are by default `EDDY_URL` and `EDDY_TOKEN`. A call waits at most `timeout` seconds for an answer, and is
    tried again for `patience` seconds where that helps: when the service is busy or restarts.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
        verify: Any = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.timeout = timeout
        self._patience = Patience(patience)
        self._http = httpx.Client(**http.options(url, token, timeout, verify), transport=transport)

    # ---- calls

    create_stream = _blocking(calls.create_stream)
    create_table = _blocking(calls.create_table)
    create_merge = _blocking(calls.create_merge)
    merge_stats = _blocking(calls.merge_stats)
    attach = _blocking(calls.attach)
    detach = _blocking(calls.detach)
    adjust = _blocking(calls.adjust)
    stable = _blocking(calls.stable)
    stream = _blocking(calls.stream)
    table = _blocking(calls.table)
    drop = _blocking(calls.drop)
    push = _blocking(calls.push)
    push_body = _blocking(calls.push_body)
    push_many = _blocking(calls.push_many)
    upsert = _blocking(calls.upsert)
    delete = _blocking(calls.delete)
    retract = _blocking(calls.retract)
    advance = _blocking(calls.advance)
    submit = _blocking(calls.submit)
    submit_many = _blocking(calls.submit_many)
    replace = _blocking(calls.replace)
    put = _blocking(calls.put)
    query = _blocking(calls.query)
    find_queries = _blocking(calls.find_queries)
    pause = _blocking(calls.pause)
    resume = _blocking(calls.resume)
    cancel = _blocking(calls.cancel)
    answer = _blocking(calls.answer)
    explain = _blocking(calls.explain)
    trace = _blocking(calls.trace)
    stats = _blocking(calls.stats)
    totals = _blocking(calls.totals)
    route_by = _blocking(calls.route_by)
    limits = _blocking(calls.limits)
    ready = _blocking(calls.ready)

    @property
    def streams(self) -> dict[str, Stream]:
        """All streams by name, as they are now."""
        return self._run(performed(calls.streams(), self._patience))

    @property
    def merges(self) -> dict[str, MergedStream]:
        """All merged streams by name, as they are now."""
        return self._run(performed(calls.merges(), self._patience))

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name, as they are now."""
        return self._run(performed(calls.tables(), self._patience))

    @property
    def queries(self) -> dict[str, Query]:
        """All queries by name, as they are now."""
        return self._run(performed(calls.queries(), self._patience))

    def changes(
        self,
        query: Query | int | str | Iterable[Query | int | str] = (),
        since: str | int = "snapshot",
        *,
        tags: Iterable[str] = (),
        follow: bool = False,
        slow: str = "block",
    ) -> Changes:
        """A cursor over the changes of queries, up to now or, with `follow`, as they happen.

        It goes on by itself when the connection breaks or the service restarts: each change comes once, in order.
        """
        return Changes(self._cursor(query, since, tags, slow, follow), self._follow, self.query)

    def _cursor(self, query: Any, since: str | int, tags: Iterable[str], slow: str, follow: bool) -> ChangeCursor:
        one = isinstance(query, Query | int | str)
        names = [self._run(performed(calls.name_of(each), self._patience)) for each in ([query] if one else query)]
        return cursor_of(names, tags, since, slow, follow)

    def _follow(self, cursor: ChangeCursor) -> Driver[None]:
        return Driver(self._http, follow(cursor, self._patience), self.timeout)

    def wait_ready(self, seconds: float = 60.0) -> None:
        """Wait until the service takes calls."""
        self._run(until_ready(seconds, self._patience))

    def _run(self, steps: Steps[T]) -> T:
        driver = Driver(self._http, steps, self.timeout)
        for _ in driver:
            raise AssertionError("a call gives nothing but its result")
        return driver.result

    # ---- life

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._http.base_url}>"


class Driver(Generic[T]):
    """Executes effects in the thread that iterates and yields the messages of `Give`; any thread may `stop` it."""

    def __init__(self, client: httpx.Client, steps: Steps[T], timeout: float) -> None:
        self._http = client
        self._steps = steps
        #: what the effects came to, once all are done
        self.result: T
        self._timeout = timeout
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[Message]:
        try:
            effect = next(self._steps)
            while not self._stopped.is_set():
                if isinstance(effect, Give):
                    yield effect.message
                    effect = self._steps.send(None)
                    continue
                try:
                    reply = self._perform(effect)
                except httpx.TransportError as error:
                    self._hang_up()
                    effect = self._steps.throw(error)
                else:
                    effect = self._steps.send(reply)
        except StopIteration as end:
            self.result = end.value
        finally:
            self._hang_up()

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Read):
            chunk = next(self._chunks, b"")
            if not chunk:
                self._hang_up()
            return chunk
        if isinstance(effect, Open):
            return self._open(effect)
        if isinstance(effect, Send):
            return http.reply_of(self._http.send(self._http.build_request(**http.arguments(effect.request, self._timeout))))
        assert isinstance(effect, Sleep)
        self._stopped.wait(effect.seconds)
        return None

    def _open(self, effect: Open) -> Reply:
        request = self._http.build_request(**http.arguments(effect.request, http.SILENCE))
        response = self._http.send(request, stream=True)
        if response.status_code >= 400:
            response.read()
            return http.reply_of(response)
        self._response, self._chunks = response, response.iter_bytes()
        return Reply(response.status_code, response.headers)

    def _hang_up(self) -> None:
        self._chunks = iter(())
        if self._response is not None:
            self._response.close()
            self._response = None

    def close(self) -> None:
        """Stop reading; for the thread that iterates."""
        self._stopped.set()
        self._steps.close()
        self._hang_up()

    def stop(self) -> None:
        """Make the iterating thread return soon; for any thread."""
        self._stopped.set()
        response = self._response
        if response is None:
            return
        stream = response.extensions.get("network_stream")
        connection = None if stream is None else stream.get_extra_info("socket")
        if connection is not None:
            try:
                # wakes the reader; the plain socket's way, for TLS has nothing more to say either
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
            except OSError:
                pass  # it has gone already
