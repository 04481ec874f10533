"""Arguments of httpx made from the options of both clients: address, token, timeouts."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import httpx

from eddy.client.exchange import Reply, Request
from lineage.errors import EddyError

DEFAULT_URL = "http://127.0.0.1:8000"
#: Seconds to connect, and of silence after which a stream of changes counts as broken: the service speaks every ten.
CONNECT = 5.0
SILENCE = 30.0
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def options(url: str | None, token: str | None, timeout: float, verify: Any) -> dict[str, Any]:
    """Return the arguments of httpx's clients."""
    url = (url or os.environ.get("EDDY_URL") or DEFAULT_URL).rstrip("/")
    token = token or os.environ.get("EDDY_TOKEN")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EddyError(f'"{url}" is not the address of a service', code="bad_url", hint=f"such as {DEFAULT_URL}")
    headers = {"User-Agent": "eddy-client"} | ({"Authorization": f"Bearer {token}"} if token else {})
    return {
        "base_url": url,
        "headers": headers,
        "timeout": httpx.Timeout(timeout, connect=min(CONNECT, timeout)),
        "verify": verify,
        # a proxy of the environment does not lead back to this machine
        "mounts": {f"all://{name}": None for name in _LOOPBACK},
    }


def arguments(request: Request, timeout: float) -> dict[str, Any]:
    """Return the arguments of httpx's `build_request`."""
    wait = httpx.Timeout(timeout + request.slow, connect=min(CONNECT, timeout))
    # without a body the content type of none is sent
    return {
        "method": request.method, "url": request.path, "params": list(request.params) or None, "content": request.content,
        "headers": dict(request.headers), "timeout": wait,
    }  # fmt: skip


def reply_of(response: httpx.Response) -> Reply:
    return Reply(response.status_code, response.headers, response.content)
