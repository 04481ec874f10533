"""Subscriptions on the side of the event loop: a bounded queue of changes for each reader.

A subscription has a cursor: the last commit whose changes are all in its queue. Parts are shared between subscriptions
(`api/core/parts.py`), so a queue holds references. When the queue of a slow reader is full, its `slow` policy decides; other
readers are not affected:

    block        nothing more is queued; once the reader has caught up, the rest is read from the engine's log
    conflate     what waits is dropped, and the reader gets a gap and the whole answer anew
    gap          what waits is dropped, and the reader gets a gap and goes on from there
    disconnect   the subscription ends

A reader that asks the log for more than it holds is told what it missed: a gap, and then the answer anew.

Only the event loop's thread uses this module.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from api.core.core import News
from api.core.parts import ChangePart

#: Words for what happens to a reader that is too slow.
SLOW = ("block", "conflate", "gap", "disconnect")


@dataclass(frozen=True, slots=True)
class Progress:
    """Message: everything up to a commit was sent, at these clocks."""

    seq: int
    times: dict[str, datetime | None]


@dataclass(frozen=True, slots=True)
class Gap:
    """Message: the changes of the commits after `after` up to `until` were not sent; `snapshot` if the whole answer follows."""

    after: int
    until: int
    snapshot: bool


@dataclass(frozen=True, slots=True)
class End:
    """Message: no more changes come, of one query or, if it is None, of all."""

    query: str | None
    reason: str


Delivery = ChangePart | Progress | Gap | End


@dataclass(eq=False, slots=True)
class Subscription:
    """One reader's queue and cursor over the changes of some queries."""

    slow: str
    max_bytes: int
    #: numbers and names of the queries
    queries: dict[int, str] = field(default_factory=dict)
    #: follows queries with these tags as they come and go
    tags: frozenset[str] = frozenset()
    #: of a table of its changes, if it reads one query
    schema: pa.Schema | None = None
    #: everything up to this commit is in the queue, or was sent
    cursor: int = 0
    #: no part is queued: the reader has to ask the engine for what came after `cursor`
    behind: bool = False
    #: while it is behind: the whole answer is what it gets next, not what changed
    anew: bool = False
    ended: bool = False
    queue: deque[Delivery] = field(default_factory=deque)
    n_bytes: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, delivery: Delivery) -> None:
        self.queue.append(delivery)
        if isinstance(delivery, ChangePart):
            self.n_bytes += delivery.n_bytes
        self.wake.set()

    def end(self, reason: str) -> None:
        """End the subscription with a reason."""
        if not self.ended:
            self.put(End(None, reason))
            self.ended = True

    def take(self) -> list[Delivery]:
        """Return the waiting messages and empty the queue."""
        found = list(self.queue)
        self.queue.clear()
        self.n_bytes = 0
        self.wake.clear()
        return found

    async def wait(self, timeout: float) -> bool:
        """Wait until a message is there; return False if none came in time."""
        try:
            async with asyncio.timeout(timeout):
                await self.wake.wait()
        except TimeoutError:
            return False
        return True


class Hub:
    """All subscriptions of a service."""

    def __init__(self) -> None:
        self.subscriptions: set[Subscription] = set()
        self._by_query: dict[int, set[Subscription]] = {}
        self.seq = 0
        self.times: dict[str, datetime | None] = {}
        #: parts that were dropped for slow readers, and how often a reader was too slow
        self.dropped = 0
        self.overflowed = 0
        #: told of a reader for which nothing need be read until it catches up
        self.on_behind: Callable[[Subscription], None] = lambda subscription: None
        self._closing = asyncio.Event()
        self._reason = ""

    @property
    def closed(self) -> bool:
        """Return whether all subscriptions have ended for good."""
        return self._closing.is_set()

    async def wait_closed(self) -> None:
        await self._closing.wait()

    def add(self, subscription: Subscription) -> None:
        """Register a subscription whose queue holds everything up to its cursor."""
        self.subscriptions.add(subscription)
        for id_ in subscription.queries:
            self._by_query.setdefault(id_, set()).add(subscription)
        if self.closed:
            subscription.end(self._reason)

    def remove(self, subscription: Subscription) -> None:
        self.subscriptions.discard(subscription)
        for id_ in subscription.queries:
            self._drop(id_, subscription)

    def _drop(self, id_: int, subscription: Subscription) -> None:
        readers = self._by_query.get(id_)
        if readers is not None:
            readers.discard(subscription)
            if not readers:
                del self._by_query[id_]

    def publish(self, news: News) -> None:
        """Put the changes of a group of calls into the queues of their readers."""
        self.seq, self.times = seq, times = news.seq, news.times
        for query, readers in news.came:
            for reader in readers:
                if isinstance(reader, Subscription) and reader in self.subscriptions:
                    reader.queries[query.id] = query.name
                    self._by_query.setdefault(query.id, set()).add(reader)
        touched: set[Subscription] = set()
        for part in news.parts:
            for subscription in self._by_query.get(part.id, ()):
                if not subscription.behind and not subscription.ended and part.seq > subscription.cursor:
                    subscription.put(part)
                    touched.add(subscription)
        progress = Progress(seq, times)
        for subscription in touched:
            if subscription.n_bytes > subscription.max_bytes:
                self._overflow(subscription, seq)
            else:
                subscription.put(progress)
        for query in news.gone:
            for subscription in list(self._by_query.get(query.id, ())):
                self.cancelled(subscription, query.id)
        for subscription in self.subscriptions:
            if not subscription.behind:
                subscription.cursor = max(subscription.cursor, seq)

    def cancelled(self, subscription: Subscription, id_: int) -> None:
        """Tell a reader that one of its queries is gone."""
        self._drop(id_, subscription)
        subscription.put(End(subscription.queries.pop(id_), "cancelled"))
        if not subscription.queries and not subscription.tags:
            subscription.ended = True

    def progress(self, subscription: Subscription) -> Progress:
        """Return the message that a reader was sent everything so far."""
        return Progress(subscription.cursor, self.times)

    def _overflow(self, subscription: Subscription, seq: int) -> None:
        """Apply the `slow` policy to a reader whose queue is full."""
        self.overflowed += 1
        queue = subscription.queue
        # what a commit began to send is taken back whole: a cursor stands between commits
        whole = max((one.seq for one in queue if isinstance(one, Progress)), default=None)
        if subscription.slow == "block":
            kept = [] if whole is None else [one for one in queue if not isinstance(one, ChangePart) or one.seq <= whole]
            self._restore(subscription, kept)
            subscription.cursor = whole if whole is not None else _before(queue, subscription.cursor)
            subscription.behind = True
            self.on_behind(subscription)
            return
        after = _before(queue, subscription.cursor)
        self.dropped += sum(isinstance(one, ChangePart) for one in queue)
        self._restore(subscription, [one for one in queue if isinstance(one, End)])
        if subscription.slow == "disconnect":
            subscription.end("too slow")
            return
        subscription.put(Gap(after, seq, subscription.slow == "conflate"))
        if subscription.slow == "conflate":
            # the answer as of now is read by the reader itself, when it is ready for it
            subscription.behind = subscription.anew = True
            subscription.cursor = seq
            self.on_behind(subscription)
        else:
            subscription.put(Progress(seq, self.times))

    @staticmethod
    def _restore(subscription: Subscription, kept: list[Delivery]) -> None:
        subscription.take()
        for delivery in kept:
            subscription.put(delivery)

    def close(self, reason: str) -> None:
        """End all subscriptions, present and future."""
        self._reason = reason
        self._closing.set()
        for subscription in self.subscriptions:
            subscription.end(reason)


def _before(queue: Sequence[Delivery], cursor: int) -> int:
    """Return the last commit before the first waiting part."""
    first = next((one.seq for one in queue if isinstance(one, ChangePart)), None)
    return cursor if first is None else min(cursor, first - 1)


def frame_facts(delivery: Progress | Gap | End) -> dict[str, Any]:
    """Return a message about the stream itself as a JSON object."""
    if isinstance(delivery, Progress):
        return {"progress": delivery.seq, "times": delivery.times}
    if isinstance(delivery, Gap):
        return {"gap": {"after": delivery.after, "until": delivery.until, "snapshot": delivery.snapshot}}
    return {"end": {"query": delivery.query, "reason": delivery.reason}}
