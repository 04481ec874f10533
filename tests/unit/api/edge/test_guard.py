"""The doors in front of the application: ids, hosts, tokens, rates, bodies."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest

from api.base.limits import Limits
from api.core.inbox import BusyError
from api.edge.access_tokens import ApiRoute, Tokens, add_token
from api.edge.body_reader import STEP
from api.edge.guard import SMALL, Guard
from tests.reference.asgi import Answer, ask

HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class Echo:
    """Answers with what it was given."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        message = await receive()
        assert not message["more_body"], "a body comes whole"
        self.bodies.append(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": message["body"]})


def answer(guard: Guard, *args: Any, **kwargs: Any) -> Answer:
    return asyncio.run(ask(guard, *args, **kwargs))


# ---- ids and headers


@pytest.mark.parametrize("id_", ["abc-1.2_3:4", "x" * 128])
def test_a_request_id_that_came_goes_back(id_: str) -> None:
    echo = Echo()
    assert answer(Guard(echo, Limits()), headers={"X-Request-ID": id_}).headers["x-request-id"] == id_
    assert echo.scopes[0]["state"]["request_id"] == id_


@pytest.mark.parametrize("id_", ["", "a b", "a\nb", "x" * 129, "é", '"'])
def test_one_that_is_none_is_replaced(id_: str) -> None:
    made = answer(Guard(Echo(), Limits()), headers={"X-Request-ID": id_}).headers["x-request-id"]
    assert made != id_ and len(made) == 32


def test_every_answer_says_what_a_browser_may_do_with_it() -> None:
    headers = answer(Guard(Echo(), Limits())).headers
    assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script-src 'self'" in answer(Guard(Echo(), Limits()), path="/").headers["content-security-policy"]


# ---- hosts


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "[::1]", "LOCALHOST:80", "localhost."]
)
def test_names_of_this_server_are_let_in(host: str) -> None:
    assert answer(Guard(Echo(), Limits(), hosts=HOSTS), headers={"Host": host}).status == 200


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:8000", "localhost.evil.example",
    "127.0.0.1.evil.example:8000",
    "localhost@evil.example", "127.0.0.2", "[::2]", "::1:8000x"])  # fmt: skip
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_other_names_are_not(host: str, kind: str) -> None:
    echo = Echo()
    refused = answer(Guard(echo, Limits(), hosts=HOSTS), headers={"Host": host}, kind=kind, path="/v1/ws")
    assert refused.status == 421 and refused.problem["code"] == "other_host" and not echo.scopes


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost:8000", 200), ("http://LOCALHOST:8000", 200), ("http://localhost:3000", 403), ("http://evil.example", 403),
     ("null", 403), ("http://localhost:8000.evil.example", 403), ("", 403), ("https://localhost:8000", 200),
     ("x://localhost:8000", 403), ("://localhost:8000", 403), ("localhost:8000", 403), ("http://x://localhost:8000", 403),
     ("http://localhost:8000/", 403), ("file://localhost:8000", 403), ("http://a@localhost:8000", 403)],
)  # fmt: skip
def test_pages_of_other_sites_are_turned_away(origin: str, status: int) -> None:
    guard = Guard(Echo(), Limits(), hosts=HOSTS)
    assert answer(guard, headers={"Host": "localhost:8000", "Origin": origin}).status == status
    if status == 403:
        refused = answer(guard, path="/v1/ws", kind="websocket", headers={"Host": "localhost:8000", "Origin": origin})
        assert refused.status == 403 and refused.problem["code"] == "other_origin"


def test_beyond_loopback_any_host_is_served() -> None:
    assert answer(Guard(Echo(), Limits()), headers={"Host": "eddy.example", "Origin": "https://a.example"}).status == 200


# ---- tokens


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, str]:
    return {role: add_token(tmp_path / "tokens", role, role) for role in ("device", "reader", "writer", "admin")}


@pytest.fixture
def guarded(secrets: dict[str, str], tmp_path: Path) -> Guard:
    return Guard(Echo(), Limits(), tokens=Tokens(tmp_path / "tokens"))


def test_a_token_is_asked_for(guarded: Guard, secrets: dict[str, str]) -> None:
    none = answer(guarded)
    assert none.status == 401 and none.headers["www-authenticate"] == "Bearer" and none.problem["code"] == "unauthorized"
    assert answer(guarded, headers={"Authorization": "Bearer nonsense"}).status == 401
    assert answer(guarded, headers={"Authorization": f"Basic {secrets['admin']}"}).status == 401
    assert answer(guarded, headers={"Authorization": f"bearer {secrets['reader']}"}).status == 200


def test_health_needs_none(guarded: Guard) -> None:
    assert answer(guarded, path="/healthz").status == 200 and answer(guarded, path="/readyz").status == 200


def test_a_role_that_may_not_is_told_which_may(guarded: Guard, secrets: dict[str, str]) -> None:
    refused = answer(guarded, "PUT", "/v1/streams/s", headers={"Authorization": f"Bearer {secrets['device']}"})
    assert refused.status == 403 and "writer or admin" in refused.problem["hint"]
    pushed = answer(guarded, "POST", "/v1/streams/s/rows", headers={"Authorization": f"Bearer {secrets['device']}"})
    assert pushed.status == 200


def test_the_address_has_a_token_only_where_no_header_can_be_set(guarded: Guard, secrets: dict[str, str]) -> None:
    query = f"since=3&token={secrets['reader']}&tag=a"
    echo: Any = guarded._app
    assert answer(guarded, path="/v1/changes", query=query).status == 401
    assert answer(guarded, path="/v1/changes", query=query, headers={"Accept": "text/event-stream"}).status == 200
    assert echo.scopes[-1]["query_string"] == b"since=3&tag=a", "nobody else sees it"
    opened = answer(guarded, path="/v1/ws", query=query, kind="websocket")
    assert opened.messages[0]["type"] == "websocket.accept" and echo.scopes[-1]["state"]["role"] == "reader"
    assert answer(guarded, path="/v1/ws", kind="websocket").status == 401


def test_secrets_are_in_no_answer_and_no_log(
    guarded: Guard, secrets: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:  # fmt: skip
    caplog.set_level("DEBUG")
    wrong = "eddy_" + "w" * 43
    for secret in (*secrets.values(), wrong):
        found = answer(guarded, "PATCH", "/v1/eddy", query=f"token={secret}", headers={"Authorization": f"Bearer {secret}"})
        assert secret.encode() not in found.body and secret not in caplog.text
    assert "answered" in caplog.text, "there is a log to look at"


# ---- bodies


def test_a_body_comes_whole_whatever_its_pieces() -> None:
    echo = Echo()
    answer(Guard(echo, Limits()), "POST", "/v1/rows", body=[b"a" * 10, b"", b"b" * 20])
    assert echo.bodies == [b"a" * 10 + b"b" * 20]


PLAIN = b'{"a": 1}\n' * 400_000  # more than one step


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(PLAIN)),
        ("GZIP", gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:])),
        ("deflate", zlib.compress(PLAIN)),
        ("deflate", zlib.compress(PLAIN)[2:-4]),
        ("identity", PLAIN),
    ],
)
def test_a_compressed_body_is_read_in_any_pieces(encoding: str, packed: bytes) -> None:
    echo = Echo()
    assert len(PLAIN) > 2 * STEP
    for size in (len(packed), 1000):
        pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
        got = answer(Guard(echo, Limits()), "POST", "/v1/rows", body=pieces, headers={"Content-Encoding": encoding})
        assert got.status == 200 and echo.bodies.pop() == PLAIN


# with a fixed time in its header: the bytes are part of the test's name and every process must collect the same
_PACKED = gzip.compress(b"abc", mtime=0)


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", b"not gzip", 400),
        ("gzip", _PACKED[:-1], 400),
        ("gzip", _PACKED + b"x", 400),
        ("deflate", zlib.compress(b"abc")[:-1], 400),
        ("deflate", zlib.compress(b"abc") + b"x", 400),
        ("br", b"abc", 415),
        ("gzip, gzip", b"abc", 415),
    ],
)
def test_broken_or_unknown_compression_is_said(encoding: str, body: bytes, status: int) -> None:
    echo = Echo()
    refused = answer(Guard(echo, Limits()), "POST", "/v1/rows", body=[body], headers={"Content-Encoding": encoding})
    assert refused.status == status and refused.problem["detail"] and not echo.bodies


def test_an_empty_body_that_says_it_is_compressed_is_empty() -> None:
    echo = Echo()
    headers = {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
    assert answer(Guard(echo, Limits()), "POST", "/v1/rows", headers=headers).status == 200 and echo.bodies == [b""]


def test_a_bomb_costs_its_bound() -> None:
    limits = Limits(body_bytes=3 * STEP)
    packed = gzip.compress(bytes(200 << 20), 9)
    echo = Echo()
    guard = Guard(echo, limits)
    refused = answer(guard, "POST", "/v1/rows", body=[packed], headers={"Content-Encoding": "gzip"})
    assert refused.status == 413 and not echo.bodies and guard.reader.held == 0


def test_a_body_without_an_end_is_cut_off_at_the_bound() -> None:
    reads = 0

    async def endless() -> Any:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"x" * 1000, "more_body": reads < 500}

    headers = {"Transfer-Encoding": "chunked"}
    refused = answer(Guard(Echo(), Limits(body_bytes=10_000)), "POST", "/v1/rows", headers=headers, receive=endless)
    assert refused.status == 413 and refused.headers["connection"] == "close"
    assert refused.messages[1]["more_body"], "the answer is there while the rest is read away"
    assert refused.messages[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


def test_a_body_that_dribbles_is_refused() -> None:
    async def dribble() -> Any:
        await asyncio.sleep(0.03)
        return {"type": "http.request", "body": b"x", "more_body": True}

    limits = Limits(read_seconds=0.2)
    refused = answer(Guard(Echo(), limits), "POST", "/v1/rows", headers={"Content-Length": str(SMALL)}, receive=dribble)
    assert refused.status == 408 and refused.problem["code"] == "too_slow"


def test_rows_for_which_there_is_no_room_are_refused_before_they_are_read() -> None:
    def full(route: ApiRoute) -> None:
        if route.role == "device":
            raise BusyError("the input queue is full", 2.5)

    async def never() -> Any:
        raise AssertionError("read")

    guard = Guard(Echo(), Limits(), admit=full)
    refused = answer(guard, "POST", "/v1/rows", headers={"Content-Length": "5"}, receive=never)
    assert refused.status == 429 and refused.headers["retry-after"] == "3"
    assert answer(guard, "POST", "/v1/queries", body=[b"{}"]).status == 200


def test_a_client_that_goes_is_not_answered() -> None:
    async def gone() -> Any:
        return {"type": "http.disconnect"}

    guard = Guard(Echo(), Limits())
    assert answer(guard, "POST", "/v1/rows", headers={"Content-Length": "5"}, receive=gone).messages == []
    assert guard.reader.held == 0


def test_what_was_read_is_held_until_the_answer_and_no_longer() -> None:
    guard: Guard

    async def look(scope: Any, receive: Any, send: Any) -> None:
        assert guard.reader.held == 7
        raise ValueError("a bug")

    guard = Guard(look, Limits())
    with pytest.raises(ValueError, match="a bug"):
        answer(guard, "POST", "/v1/rows", body=[b"1234567"])
    assert guard.reader.held == 0
