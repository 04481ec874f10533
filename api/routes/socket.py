"""A WebSocket with many subscriptions and with pushes.

    client                                                              server
    {"subscribe": {"id": .., "query": [..], "tag": [..],                {"subscribed": id, "queries": [..]}, then frames
        "since": .., "slow": ..}}                                        {"id": .., "changes": [..]}, {"id": .., "progress": ..}
    {"unsubscribe": id}                                                 {"unsubscribed": id}
    {"push": {"id": .., "stream": .., "rows": ..}}                      {"pushed": id, "receipt": {..}}
    {"push": {"id": .., "stream": .., "input": .., "rows": ..}}         the same, for one input of a merged stream
    anything that is wrong                                              {"error": {"id": .., "code": .., "detail": ..}}

Messages are carried out in the order in which they come. At most `MAX_PUSHES` pushes are under way: who sends more is not read
from until they are done, so the socket itself holds a fast sender back. A reader that does not read holds back its own queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from api.base.jsons import to_json
from api.base.limits import SUBSCRIPTION_QUERIES
from api.core.calls import Call
from api.core.hub import SLOW, Delivery, Subscription, frame_facts
from api.core.service import Service
from api.edge.access_tokens import expect
from api.edge.problems import facts
from api.routes.changes import TURN_BYTES, deliveries_of, since_of, together
from api.wire import bodies
from eddy import ConflictError, EddyError, LimitError, NotFoundError

router = APIRouter()

#: Pushes of one socket that are under way.
MAX_PUSHES = 16
#: What a socket is closed with when the service ends.
GOING_AWAY = 1001


@router.websocket("/v1/ws")
async def socket(websocket: WebSocket) -> None:
    """Subscriptions and pushes."""
    service: Service = websocket.app.state.service
    await websocket.accept()
    await _Conversation(websocket, service, websocket.scope["state"].get("role", "admin")).run()


class _Conversation:
    """One open WebSocket."""

    def __init__(self, websocket: WebSocket, service: Service, role: str) -> None:
        self._websocket = websocket
        self._role = role
        self._service = service
        #: one message at a time
        self._sending = asyncio.Lock()
        self._readers: dict[Any, asyncio.Task[None]] = {}
        self._pushes: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_PUSHES)

    async def run(self) -> None:
        """Exchange messages until one side closes."""
        closing = asyncio.create_task(self._service.hub.wait_closed())
        try:
            while True:
                receiving = asyncio.create_task(self._websocket.receive())
                await asyncio.wait({receiving, closing}, return_when=asyncio.FIRST_COMPLETED)
                if closing.done():
                    receiving.cancel()
                    await asyncio.wait([*self._readers.values(), receiving], timeout=1.0)
                    await self._websocket.close(GOING_AWAY, "the service stops")
                    return
                message = receiving.result()
                if message["type"] == "websocket.disconnect":
                    return
                await self._take(message.get("bytes") or (message.get("text") or "").encode())
        except (WebSocketDisconnect, RuntimeError):
            return  # the other side has gone while something was sent
        finally:
            closing.cancel()
            for task in (*self._readers.values(), *self._pushes):
                task.cancel()
            await asyncio.gather(*self._readers.values(), *self._pushes, closing, return_exceptions=True)

    async def _take(self, text: bytes) -> None:
        """Execute one message of the client."""
        id_ = None
        try:
            message = bodies.parse_object(text)
            if len(message) != 1:
                raise bodies.BodyError("a message has one field", hint="subscribe, unsubscribe or push")
            [(word, about)] = message.items()
            if word == "unsubscribe":
                id_ = about
                await self._unsubscribe(about)
                return
            if not isinstance(about, dict):
                raise bodies.BodyError(f'"{word}" is not followed by an object')
            id_ = about.get("id")
            if word == "subscribe":
                expect(self._role, "reader")
                await self._subscribe(id_, about)
            elif word == "push":
                expect(self._role, "device")
                await self._room.acquire()
                task = asyncio.create_task(self._push(id_, about))
                self._pushes.add(task)
                task.add_done_callback(self._pushes.discard)
            else:
                raise bodies.BodyError(f'there is no message "{word[:40]}"', hint="subscribe, unsubscribe or push")
        except EddyError as error:
            await self._send({"error": {"id": id_, **facts(error)}})

    async def _subscribe(self, id_: Any, about: dict[str, Any]) -> None:
        if not isinstance(id_, str | int) or isinstance(id_, bool):
            raise bodies.BodyError("a subscription needs an id", hint="a text or a number of your choice")
        if id_ in self._readers:
            raise ConflictError(f"there is a subscription {id_!r}", code="id_taken", hint="unsubscribe it first")
        if len(self._readers) >= self._service.limits.socket_subscriptions:
            fact = f"this socket has {len(self._readers)} subscriptions"
            raise LimitError(fact, code="too_many_subscriptions", hint="one subscription can carry many queries")
        names, tags, slow = _texts(about, "query"), _texts(about, "tag"), about.get("slow", "block")
        if slow not in SLOW:
            raise EddyError(f"slow is {slow!r}", code="bad_option", hint=f"one of {', '.join(SLOW)}")
        if not names and not tags:
            raise NotFoundError("no query is named", code="no_query", hint='"query": ["hot"] or "tag": ["demo"]')
        since = since_of(str(about.get("since", "snapshot")), None)
        subscription = await self._service.subscribe(names, frozenset(tags), since, slow)
        await self._send({"subscribed": id_, "queries": list(subscription.queries.values())})
        self._readers[id_] = asyncio.create_task(self._read(id_, subscription))

    async def _unsubscribe(self, id_: Any) -> None:
        task = self._readers.pop(id_, None) if isinstance(id_, str | int) else None
        if task is None:
            raise NotFoundError(f"there is no subscription {id_!r}", code="unknown_subscription")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._send({"unsubscribed": id_})

    async def _read(self, id_: Any, subscription: Subscription) -> None:
        """Send the messages of a subscription."""
        try:
            async for deliveries in deliveries_of(self._service, subscription, True):
                for frame in _frames(id_, deliveries):
                    await self._send_bytes(frame)
                    if len(frame) >= TURN_BYTES:
                        await asyncio.sleep(0)
        except (WebSocketDisconnect, RuntimeError):
            return  # the other side has gone
        finally:
            self._readers.pop(id_, None)
            await self._service.unsubscribe(subscription)

    async def _push(self, id_: Any, about: dict[str, Any]) -> None:
        try:
            stream = about.get("stream")
            if not isinstance(stream, str):
                raise bodies.BodyError("a push names its stream", hint='{"push": {"stream": "readings", "rows": ..}}')
            rows = bodies.as_rows(about.get("rows"))
            of = about.get("input")
            if of is not None and not isinstance(of, str):
                raise bodies.BodyError("the input of a push is no text", hint='"input": "gw1"')
            kind, header = ("push", {"stream": stream}) if of is None else ("push_input", {"merge": stream, "input": of})
            call = Call(kind, {**header, "media": bodies.JSON}, to_json(rows), rows)
            answer: dict[str, Any] = {"pushed": id_, "receipt": await self._service.ask(call)}
        except EddyError as error:
            answer = {"error": {"id": id_, **facts(error)}}
        finally:
            self._room.release()
        try:
            await self._send(answer)
        except (WebSocketDisconnect, RuntimeError):
            return  # the other side has gone

    async def _send(self, message: dict[str, Any]) -> None:
        await self._send_bytes(to_json(message))

    async def _send_bytes(self, text: bytes) -> None:
        async with self._sending:
            await self._websocket.send_text(text.decode())


def _texts(about: dict[str, Any], name: str) -> list[str]:
    """Return a text, or a list of texts, as a list."""
    value = about.get(name, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or len(texts) > SUBSCRIPTION_QUERIES or not all(isinstance(text, str) for text in texts):
        raise bodies.BodyError(f'"{name}" is not a list of at most {SUBSCRIPTION_QUERIES} texts')
    return texts


def _frames(id_: Any, deliveries: list[Delivery]) -> Iterator[bytes]:
    """Yield the frames of deliveries: changes together, other messages alone."""
    head = b'{"id":' + to_json(id_) + b","
    for found in together(deliveries):
        yield head + (b'"changes":[' + found + b"]}" if isinstance(found, bytes) else to_json(frame_facts(found))[1:])
