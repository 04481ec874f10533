"""The server process: comes up, answers, and ends in good order."""

from __future__ import annotations

import httpx

from tests.e2e.serving import serving


def test_a_server_comes_up_answers_and_ends_with_exit_code_0() -> None:
    with serving("--ephemeral") as server:
        assert httpx.get(server.url + "/healthz").json() == {"status": "ok"}
        assert httpx.get(server.url + "/v1/streams").json() == {"items": [], "next_cursor": None}
        assert server.stop() == 0
