"""When a request is tried again, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from eddy import EddyError, LimitError
from eddy.client import AsyncClient, Client, UnreachableError, exchange

RECEIPT = {"accepted": 1, "late": 0, "rejected": 0, "first_row": 0, "last_row": 0, "expired": 0}
Outcome = httpx.Response | Exception


pytestmark = pytest.mark.usefixtures("short_waits")


class Script:
    """A service that is ready, does one thing after the other, and remembers what it was asked."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/readyz":
            return httpx.Response(200)
        self.requests.append(request)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def busy(after: str | None = None) -> httpx.Response:
    headers = {} if after is None else {"Retry-After": after}
    return httpx.Response(429, headers=headers, json={"detail": "full", "code": "busy", "kind": "limit"})


def closed(code: str) -> httpx.Response:
    return httpx.Response(503, json={"detail": "not now", "code": code, "kind": "limit"})


def client(script: Script, met: bool = True, patience: float = 5.0) -> Client:
    found = Client(transport=httpx.MockTransport(script), patience=patience)
    if met:
        found.wait_ready()
    return found


def run(script: Script, call: Callable[[Client], Any], **options: Any) -> Any:
    with client(script, **options) as found:
        return call(found)


def push(found: Client) -> Any:
    return found.push("s", [{"a": 1}])


def submit(found: Client) -> Any:
    return found.submit("SELECT a FROM s")


def test_rows_are_sent_again_with_the_same_key_and_bytes() -> None:
    script = Script(
        busy(), closed("stopping"), httpx.ReadError("cut"), httpx.ReadTimeout("silent"), httpx.Response(202, json=RECEIPT)
    )
    assert run(script, push).accepted == 1
    assert len({request.headers["idempotency-key"] for request in script.requests}) == 1
    assert len({request.content for request in script.requests}) == 1 and len(script.requests) == 5


def test_two_pushes_have_two_keys() -> None:
    script = Script(httpx.Response(202, json=RECEIPT), httpx.Response(202, json=RECEIPT))
    run(script, lambda found: [push(found), push(found)])
    assert len({request.headers["idempotency-key"] for request in script.requests}) == 2


def test_a_key_of_ones_own_is_used() -> None:
    script = Script(httpx.Response(202, json=RECEIPT))
    run(script, lambda found: found.push("s", [{"a": 1}], key="mine"))
    assert script.requests[0].headers["idempotency-key"] == "mine"


@pytest.mark.parametrize("error", [httpx.ReadError("cut"), httpx.ReadTimeout("silent"), httpx.RemoteProtocolError("cut")])
def test_what_may_have_been_done_is_not_asked_for_twice(error: Exception) -> None:
    script = Script(error)
    with pytest.raises(UnreachableError):
        run(script, submit)
    assert len(script.requests) == 1


def test_what_was_refused_or_never_sent_is_asked_for_again() -> None:
    script = Script(
        busy(), httpx.ConnectError("refused"), closed("recovering"), httpx.Response(422, json={"detail": "no", "kind": "query"})
    )
    with pytest.raises(EddyError, match="no"):
        run(script, submit)
    assert len(script.requests) == 4


def test_a_service_that_failed_is_not_asked_to_do_it_again() -> None:
    script = Script(closed("failed"))
    with pytest.raises(LimitError):
        run(script, submit)
    assert len(script.requests) == 1


def test_a_service_that_never_answered_is_not_waited_for() -> None:
    script = Script(httpx.ConnectError("refused"))
    with pytest.raises(UnreachableError, match="cannot be reached") as caught:
        run(script, push, met=False)
    assert caught.value.code == "unreachable" and "eddy serve" in caught.value.hint


def test_retry_after_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("threading.Event.wait", lambda self, seconds: slept.append(seconds))
    run(Script(busy("2"), httpx.Response(202, json=RECEIPT)), push)
    assert len(slept) == 1 and 2.0 <= slept[0] <= 2.5


def test_patience_ends() -> None:
    script = Script(*[busy() for _ in range(1000)])
    with pytest.raises(LimitError) as caught:
        run(script, push, patience=0.05)
    assert caught.value.code == "busy" and 2 <= len(script.requests) < 100


def test_a_wait_longer_than_the_patience_is_not_begun() -> None:
    script = Script(busy("60"))
    with pytest.raises(LimitError):
        run(script, push, patience=5.0)
    assert len(script.requests) == 1


@pytest.mark.parametrize("text", ["soon", "-1", "1e9", "Wed, 21 Oct 2015 07:28:00 GMT", "99999999"])
def test_a_retry_after_that_is_no_number_is_ignored(text: str) -> None:
    assert exchange.retry_after(exchange.Reply(429, {"retry-after": text})) == 0.0


def test_the_asynchronous_client_tries_again_too() -> None:
    script = Script(busy(), httpx.ReadError("cut"), httpx.Response(202, json=RECEIPT))

    async def go() -> int:
        async with AsyncClient(transport=httpx.MockTransport(script)) as found:
            await found.wait_ready()
            return (await found.push("s", [{"a": 1}])).accepted

    assert asyncio.run(go()) == 1 and len(script.requests) == 3


def test_tokens_and_addresses_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDDY_URL", "http://127.0.0.1:4711/")
    monkeypatch.setenv("EDDY_TOKEN", "secret")
    script = Script(httpx.Response(200, json={"a": 1}), httpx.Response(200, json={"a": 1}))
    with Client(transport=httpx.MockTransport(script)) as found:
        found.limits()
    with Client("http://localhost:1", token="mine", transport=httpx.MockTransport(script)) as found:
        found.limits()
    assert [str(request.url) for request in script.requests] == [
        "http://127.0.0.1:4711/v1/limits",
        "http://localhost:1/v1/limits",
    ]
    assert [request.headers["authorization"] for request in script.requests] == ["Bearer secret", "Bearer mine"]


@pytest.mark.parametrize("url", ["ftp://x", "127.0.0.1:8000", "http://", "nonsense"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(EddyError) as caught:
        Client(url)
    assert caught.value.code == "bad_url"


def test_names_are_quoted_in_paths() -> None:
    script = Script(httpx.Response(404, json={"detail": "no", "kind": "not_found"}))
    with pytest.raises(EddyError):
        run(script, lambda found: found.query("a/b ?#"))
    assert script.requests[0].url.raw_path == b"/v1/queries/a%2Fb%20%3F%23"
