"""Streams of changes of one or many queries: Server-Sent Events, NDJSON or Arrow.

A frame holds the changes of a commit, then progress says that everything up to a commit was sent; its number is the cursor with
which a reader goes on (`?since=`, `Last-Event-ID`). SSE carries the number as `id:` of progress only, so a reader that was cut
off inside a commit gets that commit again, whole. A reader that is too slow is dealt with as `?slow=` says (`api/core/hub.py`).
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Annotated, Any, Literal

import pyarrow as pa
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from api.base.jsons import to_json, to_line
from api.base.limits import SUBSCRIPTION_QUERIES
from api.core.hub import Delivery, End, Gap, Progress, Subscription, frame_facts
from api.core.parts import ChangePart
from api.core.service import Service
from api.routes.streams import Served
from api.wire.formats import NotAcceptableError, choose
from api.wire.models import Name, problems
from eddy import EddyError, NotFoundError

router = APIRouter(tags=["changes"])

#: Seconds of silence after which progress is sent, so that both sides see that the other is there.
HEARTBEAT = 10.0
#: Seconds after which a reader is told of commits that did not touch its queries.
IDLE_PROGRESS = 0.25
#: Bytes of one frame, about.
FRAME_BYTES = 256 << 10
#: Bytes that a reader is sent before others have their turn.
TURN_BYTES = 64 << 10

_MEDIA = {"sse": "text/event-stream", "ndjson": "application/x-ndjson", "arrow": "application/vnd.apache.arrow.stream"}
_RESPONSES: dict[int | str, Any] = {
    200: {"description": "changes as they happen", "content": {media: {} for media in _MEDIA.values()}},
    **problems(404, 406, 409, 410),
}
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Vary": "Accept"}

_SINCE = "snapshot: the answer as + rows, then changes; now; or the number of a commit"
Since = Annotated[str, Query(description=_SINCE, max_length=20)]
Format = Literal["sse", "ndjson", "arrow"] | None
Names = Query([], max_length=SUBSCRIPTION_QUERIES, description="names; may be repeated")
Tags = Query([], max_length=SUBSCRIPTION_QUERIES, description="all queries with such a tag, those that come later too")
SlowWord = Literal["block", "conflate", "gap", "disconnect"]
Slow = Annotated[SlowWord, Query(description="what happens when this reader is too slow")]
Follow = Annotated[bool, Query(description="false: end when everything up to now was sent")]
LastEventId = Annotated[str | None, Header(max_length=20)]


def since_of(since: str, last_event_id: str | None) -> str | int:
    """Return the starting point of a reader: a commit number, or a word."""
    text = last_event_id or since
    if text in ("snapshot", "now"):
        return text
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    raise EddyError(f'since is "{text}"', code="bad_option", hint='"snapshot", "now" or the number of a commit')


@router.get("/v1/queries/{query}/changes", response_class=Response, responses=_RESPONSES)
async def changes(
    service: Served, query: Name, request: Request, since: Since = "snapshot", format: Format = None, slow: Slow = "block",
    follow: Follow = True, last_event_id: LastEventId = None,
) -> StreamingResponse:  # fmt: skip
    """The changes of one query."""
    format_ = choose(format, request.headers.get("accept"), _MEDIA, "sse")
    subscription = await service.subscribe([query], frozenset(), since_of(since, last_event_id), slow)
    return _response(service, subscription, format_, follow)


@router.get("/v1/changes", response_class=Response, responses=_RESPONSES)
async def many_changes(
    service: Served, request: Request, query: list[str] = Names, tag: list[str] = Tags, since: Since = "snapshot",
    format: Format = None, slow: Slow = "block", follow: Follow = True, last_event_id: LastEventId = None,
) -> StreamingResponse:  # fmt: skip
    """The changes of many queries in one stream."""
    format_ = choose(format, request.headers.get("accept"), _MEDIA, "sse")
    if format_ == "arrow":
        raise NotAcceptableError("queries have different columns, an Arrow stream has one schema", hint="sse or ndjson")
    if not query and not tag:
        raise NotFoundError("no query is named", code="no_query", hint="?query=name or ?tag=name")
    subscription = await service.subscribe(query, frozenset(tag), since_of(since, last_event_id), slow)
    return _response(service, subscription, format_, follow)


def _response(service: Service, subscription: Subscription, format_: str, follow: bool) -> StreamingResponse:
    frames = {"sse": sse_frames, "ndjson": line_frames, "arrow": arrow_frames(subscription)}[format_]
    return StreamingResponse(_stream(service, subscription, frames, follow), headers=_HEADERS, media_type=_MEDIA[format_])


async def _stream(
    service: Service, subscription: Subscription, frames: Callable[[list[Delivery]], Iterable[bytes]], follow: bool
) -> AsyncIterator[bytes]:  # fmt: skip
    try:
        async for deliveries in deliveries_of(service, subscription, follow):
            waiting: list[bytes] = []
            n_bytes = 0
            for frame in frames(deliveries):
                waiting.append(frame)
                n_bytes += len(frame)
                if n_bytes >= TURN_BYTES:
                    # frames are made when they are sent: between some of them others have their turn
                    yield b"".join(waiting)
                    waiting, n_bytes = [], 0
                    await asyncio.sleep(0)
            if waiting:
                yield b"".join(waiting)
        for frame in frames([]):
            yield frame
    finally:
        await service.unsubscribe(subscription)


async def deliveries_of(service: Service, subscription: Subscription, follow: bool) -> AsyncIterator[list[Delivery]]:
    """Yield the messages of a subscription as they come, until it ends."""
    told, silent = subscription.cursor, 0.0
    while True:
        if subscription.queue:
            deliveries = subscription.take()
            yield deliveries
            told, silent = max((one.seq for one in deliveries if isinstance(one, Progress)), default=told), 0.0
            if any(isinstance(one, End) and one.query is None for one in deliveries):
                return
        elif subscription.ended or not follow:
            return
        elif subscription.behind:
            await service.catch_up(subscription)
        elif not await subscription.wait(IDLE_PROGRESS):
            silent += IDLE_PROGRESS
            if subscription.cursor > told or silent >= HEARTBEAT:
                subscription.put(service.hub.progress(subscription))


def together(deliveries: list[Delivery]) -> Iterator[bytes | Progress | Gap | End]:
    """Yield changes as JSON, several parts joined up to a frame's size, with other messages between them."""
    waiting: list[bytes] = []
    n_bytes = 0
    for delivery in deliveries:
        if isinstance(delivery, ChangePart):
            waiting.append(delivery.json)
            n_bytes += len(delivery.json)
        if waiting and (n_bytes >= FRAME_BYTES or not isinstance(delivery, ChangePart)):
            yield b",".join(waiting)
            waiting, n_bytes = [], 0
        if not isinstance(delivery, ChangePart):
            yield delivery
    if waiting:
        yield b",".join(waiting)


def sse_frames(deliveries: list[Delivery]) -> Iterator[bytes]:
    """Yield Server-Sent Events: an array of changes a frame, other messages alone."""
    for found in together(deliveries):
        if isinstance(found, bytes):
            yield b"data: [" + found + b"]\n\n"
            continue
        message = frame_facts(found)
        id_ = f"id: {message['progress']}\n".encode() if "progress" in message else b""
        yield id_ + b"data: " + to_json(message) + b"\n\n"


def line_frames(deliveries: list[Delivery]) -> Iterator[bytes]:
    """Yield NDJSON: a change a line."""
    for delivery in deliveries:
        yield delivery.lines if isinstance(delivery, ChangePart) else to_line(frame_facts(delivery))


def arrow_frames(subscription: Subscription) -> Callable[[list[Delivery]], list[bytes]]:
    """Return an encoder of changes as an Arrow IPC stream, which a call without deliveries ends; `seq` is a column."""
    sink = io.BytesIO()
    writer = pa.ipc.new_stream(sink, subscription.schema) if subscription.schema is not None else None

    def frames(deliveries: list[Delivery]) -> list[bytes]:
        assert writer is not None, "a reader of one query"
        for delivery in deliveries:
            if isinstance(delivery, ChangePart):
                writer.write_table(delivery.table.cast(subscription.schema))
        if not deliveries:
            writer.close()
        found = sink.getvalue()
        sink.seek(0)
        sink.truncate()
        return [found] if found else []

    return frames
