"""A service that somebody starts for the first time, and for the second."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.e2e.serving import Server, until


def start(data: Path, demo: bool | None = None) -> Server:
    """A server as `./serve` starts it, which is told nothing about the demo unless somebody wants it."""
    server = Server("--data", str(data), demo=demo)
    server.wait_ready()
    return server


def n_rows(server: Server) -> int:
    streams = httpx.get(f"{server.url}/v1/eddy?brief=true").json()["streams"]
    return sum(one["rows"] for name, one in streams.items() if name.startswith("demo_"))


def demo_queries(server: Server) -> list[object]:
    found: list[object] = httpx.get(f"{server.url}/v1/queries?tag=demo&limit=1000").json()["items"]
    return found


def journal_bytes(data: Path) -> int:
    return sum(path.stat().st_size for path in (data / "journal").iterdir())


@pytest.mark.slow
def test_the_demo_runs_in_a_new_directory_is_not_recorded_and_does_not_come_back_by_itself(tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = start(data)
    try:
        until(lambda: "Eddy is ready" in server.log, 60, "it says where to look")
        n_queries = len(demo_queries(server))
        assert n_queries > 200 and f"{n_queries} queries answer" in server.log and server.log.count("  curl ") == 3
        until(lambda: n_rows(server) > 500, 60, "rows stream")
        before = journal_bytes(data)
        rows = n_rows(server)
        until(lambda: n_rows(server) > rows + 500, 60, "more rows stream")
        assert journal_bytes(data) == before, "and none of them is recorded"
        page = httpx.get(server.url)
        assert page.status_code == 200 and "<title>Eddy</title>" in page.text
        assert server.stop() == 0, server.log
    finally:
        server.close()
    server = start(data)
    try:
        until(lambda: "demo is defined but not running" in server.log, 60, "it says that the demo does not run")
        rows = n_rows(server)
        httpx.get(f"{server.url}/v1/queries/demo_rooms/answer").raise_for_status()
        assert n_rows(server) == rows
        assert server.stop() == 0, server.log
    finally:
        server.close()
    server = start(data, demo=True)
    try:
        rows = n_rows(server)
        until(lambda: n_rows(server) > rows + 200, 60, "rows stream again")
        assert len(demo_queries(server)) == n_queries, "each query once"
        assert json.loads(httpx.delete(f"{server.url}/v1/queries?tag=demo").text) == {"cancelled": n_queries}
        assert server.stop() == 0, server.log
    finally:
        server.close()
