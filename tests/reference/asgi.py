"""An application that is asked without a server: requests in, answers out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from api.edge.guard import App


class Answer:
    """What an application sent."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages
        start = next((one for one in messages if one["type"].endswith("response.start")), None)
        self.status: int | None = None if start is None else start["status"]
        self.headers = {} if start is None else {name.decode().lower(): value.decode() for name, value in start["headers"]}
        self.body = b"".join(one.get("body", b"") for one in messages if one["type"].endswith("response.body"))

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = orjson.loads(self.body)
        assert found["status"] == self.status and found["request_id"] == self.headers["x-request-id"]
        return found


async def ask(
    app: App, method: str = "GET", path: str = "/v1/limits", *, headers: dict[str, str] | None = None, query: str = "",
    body: Iterable[bytes] = (), client: str = "10.0.0.1", kind: str = "http", receive: Callable[[], Any] | None = None,
) -> Answer:  # fmt: skip
    """Ask once; `body` comes in those pieces, with a length unless a header says otherwise."""
    pieces = list(body)
    given = {"host": "127.0.0.1:8000", **{name.lower(): value for name, value in (headers or {}).items()}}
    if pieces and "content-length" not in given and "transfer-encoding" not in given:
        given["content-length"] = str(sum(map(len, pieces)))
    scope: dict[str, Any] = {
        "type": kind, "path": path, "query_string": query.encode(), "client": (client, 5), "state": {}, "extensions": {},
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
        "scheme": "http", "server": ("127.0.0.1", 8000), "root_path": "", "http_version": "1.1", "raw_path": path.encode(),
    }  # fmt: skip
    if kind == "http":
        scope["method"] = method
    else:
        scope["extensions"] = {"websocket.http.response": {}}
    sent: list[dict[str, Any]] = []
    waiting = [
        {"type": "http.request", "body": piece, "more_body": n < len(pieces)} for n, piece in enumerate(pieces, 1)
    ] or [{"type": "http.request", "body": b"", "more_body": False}]  # fmt: skip

    async def give() -> Any:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive or give, send)
    return Answer(sent)
