"""Rows without room are refused by the head of their request, in the words of the guard."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import orjson
import pytest
from uvicorn.server import ServerState

from api.base.limits import Limits
from api.edge.room import SMALL
from tests.reference.in_process import InProcess, in_process
from tests.unit.api.base.test_limits import connect

PATH = "/v1/streams/s/rows"
HEAD = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"2")]


@pytest.fixture(scope="module")
def full() -> Iterator[InProcess]:
    with in_process(Limits(queue_calls=0)) as found:
        yield found


@pytest.fixture(scope="module")
def roomy() -> Iterator[InProcess]:
    with in_process() as found:
        yield found


def parsed(answer: bytes) -> httpx.Response:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    found = httpx.Response(
        int(first.split()[1]),
        headers=[tuple(line.split(b": ", 1)) for line in lines],
        content=body,  # type: ignore[misc]
    )
    assert int(found.headers["content-length"]) == len(body)
    return found


@pytest.mark.parametrize("id_", ["", "mine", "x" * 32])
def test_a_refusal_by_the_head_is_that_of_the_guard(full: InProcess, id_: str) -> None:
    given = [(b"x-request-id", id_.encode())] if id_ else []
    answer = full.app.state.room.refusal("POST", PATH, [*HEAD, *given])
    early, late = parsed(answer), full.post(PATH, content=b"[]", headers={"X-Request-ID": id_} if id_ else {})
    assert early.status_code == late.status_code == 429 and early.headers["retry-after"] == "1"
    ids = [one.json()["request_id"] for one in (early, late)]
    assert [one.headers["x-request-id"] for one in (early, late)] == ids
    assert ids == [id_, id_] if id_ else ids[0] != ids[1] and len(ids[0]) == 32
    assert early.json() | {"request_id": ""} == late.json() | {"request_id": ""}
    assert {**early.headers, "x-request-id": ""} == {**late.headers, "x-request-id": ""}


@pytest.mark.parametrize(
    ("method", "path", "head"),
    [
        ("GET", PATH, HEAD),
        ("POST", "/v1/queries", HEAD),
        ("POST", "/v1/nothing", HEAD),
        ("POST", PATH, HEAD[:2]),
        ("POST", PATH, [*HEAD[:2], (b"content-length", str(SMALL + 1).encode())]),
        ("POST", PATH, [*HEAD[:2], (b"content-length", b"x")]),
        ("POST", PATH, [*HEAD, (b"expect", b"100-continue")]),
        ("POST", PATH, [*HEAD[:2], (b"transfer-encoding", b"chunked")]),
    ],
)
def test_everything_else_is_let_through(full: InProcess, method: str, path: str, head: list[tuple[bytes, bytes]]) -> None:
    assert full.app.state.room.refusal(method, path, head) is None


def test_where_there_is_room_nothing_is_refused(roomy: InProcess) -> None:
    assert roomy.app.state.room.refusal("POST", PATH, HEAD) is None


def test_a_refusal_is_counted(full: InProcess) -> None:
    def refused() -> int:
        found: int = full.get("/v1/eddy").json()["queue"]["refused"]
        return found

    before = refused()
    full.app.state.room.refusal("POST", PATH, HEAD)
    assert refused() == before + 1


def test_a_refused_connection_is_used_again_and_what_still_comes_is_read_away() -> None:
    answers = iter([b"<no>", b"<no>", None])

    async def main() -> bytes:
        connection, transport = await connect(Limits(), ServerState(), lambda *head: next(answers))
        request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n"
        connection.data_received(request + b"abc")
        assert transport.written == b"<no>" and not transport.closed
        connection.data_received(b"def" + request)
        assert transport.written == b"<no><no>"
        connection.data_received(b"ghijkl")
        connection.data_received(request + b"mnopqr")
        for _ in range(20):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        return transport.written

    written = asyncio.run(main())
    assert written.startswith(b"<no><no>HTTP/1.1 200") and written.count(b"HTTP/1.1") == 1


def test_a_refused_connection_may_be_lost_at_once() -> None:
    async def main() -> None:
        connection, _ = await connect(Limits(), ServerState(), lambda *head: b"<no>")
        connection.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
        connection.connection_lost(None)

    asyncio.run(main())


def test_the_words_of_a_refusal_are_json(full: InProcess) -> None:
    answer = full.app.state.room.refusal("POST", PATH, HEAD)
    assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "busy"
