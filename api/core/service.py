"""The service as request handlers see it: execute calls, read the engine, subscribe.

Everything here runs in the event loop's thread; the engine has its own (`api/core/core.py`). What the engine's thread releases
comes back by one call into the loop for each group.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from api.base.limits import Limits
from api.core.calls import Call
from api.core.core import Clock, Core, recover
from api.core.holdings import Holdings
from api.core.hub import Gap, Hub, Progress, Subscription
from api.core.inbox import ClosedError
from api.core.parts import ChangePart, parts_of
from eddy import Engine, GoneError, LimitError, NotFoundError, Query
from storage.directory import DataDirectory

_log = logging.getLogger("eddy.service")

T = TypeVar("T")

#: Seconds that the engine has to do what waits and to make a snapshot when the service stops.
STOP = 2.0


class Service:
    """One engine shared by all clients of a process."""

    def __init__(self, directory: DataDirectory | None, limits: Limits, *, policy: str = "auto", expiry: str = "auto") -> None:
        self.limits = limits
        self.hub = Hub()
        self._directory = directory
        self._policy, self._expiry = policy, expiry
        self._core: Core | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        #: whether the demo sends rows
        self.demo_runs = False
        #: why it could not start
        self._failure: BaseException | None = None
        #: whether a thread was still at work when `stop` gave up waiting for it
        self.unfinished = False
        #: called when it can do nothing any more
        self.on_failure: Callable[[BaseException], None] = lambda error: None

    # ---- life

    def _make(self, clock: Clock) -> Engine:
        return Engine(
            policy=self._policy, expiry=self._expiry, clock=clock, wall=clock.wall, log_rows=self.limits.log_rows,
            log_bytes=self.limits.log_bytes,
        )  # fmt: skip

    async def begin(self) -> None:
        """Start; on an error the service is failed, and nothing is raised."""
        try:
            await self.start()
        except Exception as error:
            self._failure = error
            self._fail(error)

    async def start(self) -> None:
        """Recover the state and start the engine's thread."""
        self._loop = asyncio.get_running_loop()
        if self._directory is None:
            clock = Clock()
            holdings = Holdings(self._make(clock))
        else:
            holdings, clock = await self._beside("eddy-recovery", partial(recover, self._directory, self._make))
        limits = self.limits
        holdings.engine.limit(
            state_bytes=limits.state_bytes, max_ahead=limits.max_ahead_seconds * 1000, log_rows=limits.log_rows,
            log_bytes=limits.log_bytes,
        )  # fmt: skip
        self._core = Core(holdings, clock, self._directory, self.limits, self.hub.publish, self._to_loop)
        self._core.on_failure = self._fail
        self.hub.on_behind = self._pause
        self.hub.seq = holdings.engine.seq
        self._core.start()

    async def stop(self) -> None:
        """End subscriptions, execute queued calls and save a snapshot; give up after `STOP` seconds: the journal holds all."""
        self.hub.close("the service stops")
        if self._core is None:
            self.unfinished = self._failure is None
            return
        try:
            await asyncio.wait_for(self._beside("eddy-stop", self._core.stop), STOP)
        except TimeoutError:
            self.unfinished = True
            _log.warning("stopped before the snapshot was written; the next start reads more of the journal")
            return
        if self._directory is not None:
            self._directory.close()

    async def _beside(self, name: str, do: Callable[[], T]) -> T:
        """Run a function in a daemon thread of its own and return its result."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def finish(result: T | None, error: BaseException | None) -> None:
            if not done.cancelled():
                if error is None:
                    done.set_result(result)  # type: ignore[arg-type]  # there is one when there is no error
                else:
                    done.set_exception(error)

        def run() -> None:
            try:
                result, error = do(), None
            except BaseException as broken:  # whoever waits gets it
                result, error = None, broken
            self._to_loop(partial(finish, result, error))

        threading.Thread(target=run, name=name, daemon=True).start()
        return await done

    def end_subscriptions(self) -> None:
        """End every stream of changes; may be called from any thread or a signal handler."""
        if self._loop is not None:
            self._to_loop(partial(self.hub.close, "the service stops"))

    @property
    def ready(self) -> bool:
        """Return whether calls are taken: the service has recovered, and has neither failed nor begun to stop."""
        return self.state == "ready"

    @property
    def state(self) -> str:
        """Return recovering, ready, stopping or failed."""
        if self.failure is not None:
            return "failed"
        if self._core is None:
            return "recovering"
        return "ready" if self._core.inbox.closed is None else "stopping"

    @property
    def failure(self) -> BaseException | None:
        """Return the error that ended the service, if any."""
        return self._failure if self._core is None else self._core.failure

    @property
    def core(self) -> Core:
        if self._core is None:
            raise ClosedError("the service is recovering", code="recovering", hint="/readyz says when it is ready")
        return self._core

    def _fail(self, error: BaseException) -> None:
        self.end_subscriptions()
        self.on_failure(error)

    def _to_loop(self, do: Callable[[], None]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(do)
        except RuntimeError:
            # the loop has ended: nobody is there to be told
            if not self._loop.is_closed():
                raise

    # ---- asking

    async def ask(self, call: Call, then: Callable[[Any], Any] | None = None) -> Any:
        """Execute a call; return once it is durable. `then` converts the result in the engine's thread."""
        return await self._put(call, then)

    async def read(self, look: Callable[[Core], Any]) -> Any:
        """Run a function in the engine's thread, after all earlier calls, and return its result."""
        return await self._put(look, None)

    async def _put(
        self, what: Call | Callable[[Core], Any], then: Callable[[Any], Any] | None, first: Callable[[Any], None] | None = None
    ) -> Any:
        """Queue a task and wait for its result; `first` gets the result before any later task's effects arrive."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def finish(result: Any, error: BaseException | None) -> None:
            if error is None and first is not None:
                first(result)
            if done.done():
                return  # whoever asked has gone
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        self.core.put(what, finish, then)
        return await done

    # ---- subscribing

    async def subscribe(self, names: list[str], tags: frozenset[str], since: str | int, slow: str) -> Subscription:
        """Return a new subscription to queries: from a snapshot, from now on, or after a commit."""
        if len(self.hub.subscriptions) >= self.limits.subscriptions:
            fact = f"there are {self.limits.subscriptions} subscriptions"
            raise LimitError(fact, code="too_many_subscriptions", hint="one stream can carry many queries: /v1/changes")
        unlogged = await self.read(lambda core: [query.name for query in _chosen(core.engine, names, tags) if query.unread])
        if unlogged:
            await self.ask(Call("read", {"queries": unlogged}))
        subscription = Subscription(slow, self.limits.subscription_bytes, tags=tags)

        def look(core: Core) -> tuple[list[ChangePart], list[Query], int]:
            chosen = _chosen(core.engine, names, tags)
            parts = _changes(core.engine, chosen, since)
            if len(chosen) == 1 and not tags:
                subscription.schema = core.engine.changes(chosen[0], "now").arrow().schema
            core.watches.add(subscription, chosen, tags)
            return parts, chosen, core.engine.seq

        def begin(found: tuple[list[ChangePart], list[Query], int]) -> None:
            parts, chosen, seq = found
            subscription.queries = {query.id: query.name for query in chosen}
            subscription.cursor = seq
            for part in parts:
                subscription.put(part)
            subscription.put(Progress(seq, self.hub.times))
            self.hub.add(subscription)

        await self._put(look, None, begin)
        return subscription

    async def catch_up(self, subscription: Subscription) -> None:
        """Queue the changes that a slow reader has missed."""
        snapshot = subscription.anew

        def look(core: Core) -> tuple[list[ChangePart], int, bool, list[int]]:
            chosen = [query for id_ in subscription.queries if (query := _still(core.engine, id_)) is not None]
            gone = [id_ for id_ in subscription.queries if id_ not in {query.id for query in chosen}]
            core.watches.resume(subscription, chosen)
            seq = core.engine.seq
            if not snapshot:
                try:
                    return _changes(core.engine, chosen, subscription.cursor), seq, False, gone
                except GoneError:
                    pass
            return _changes(core.engine, chosen, "snapshot"), seq, not snapshot, gone

        def go_on(found: tuple[list[ChangePart], int, bool, list[int]]) -> None:
            parts, seq, missed, gone = found
            if missed:
                subscription.put(Gap(subscription.cursor, seq, True))
            elif gone and not snapshot:
                # what they still did cannot be read any more
                subscription.put(Gap(subscription.cursor, seq, False))
            for id_ in gone:
                if id_ in subscription.queries:
                    self.hub.cancelled(subscription, id_)
            for part in parts:
                subscription.put(part)
            subscription.cursor = seq
            subscription.behind = subscription.anew = False
            subscription.put(Progress(seq, self.hub.times))

        await self._put(look, None, go_on)

    def _pause(self, subscription: Subscription) -> None:
        """Stop collecting changes for a slow reader. This only saves work, so a full inbox is ignored."""
        with contextlib.suppress(LimitError):
            self.core.put(lambda core: core.watches.pause(subscription), lambda result, error: None)

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        self.hub.remove(subscription)
        if self.ready:
            await self.read(lambda core: core.watches.remove(subscription))


def _chosen(engine: Engine, names: list[str], tags: frozenset[str]) -> list[Query]:
    """Return the queries that are named or have one of the tags."""
    chosen = {query.id: query for query in map(engine.query, names)}
    if tags:
        chosen |= {query.id: query for query in engine.queries.values() if tags.intersection(query.tags)}
    return list(chosen.values())


def _still(engine: Engine, id_: int) -> Query | None:
    try:
        return engine.query(id_)
    except NotFoundError:
        return None


def _changes(engine: Engine, queries: list[Query], since: str | int) -> list[ChangePart]:
    """Return the changes of some queries, by commit."""
    parts = [part for query in queries for part in parts_of(query.id, query.name, engine.changes(query, since).arrow())]
    parts.sort(key=lambda part: part.seq)
    return parts
