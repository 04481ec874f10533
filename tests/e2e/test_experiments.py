"""An experiment for real, started over REST on a real server."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from tests.e2e.serving import serving, until


def _children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.long
def test_an_experiment_runs_beside_the_service_and_ends_with_it() -> None:
    with serving("--ephemeral") as server, httpx.Client(base_url=server.url, timeout=60.0) as client:
        answer = client.post("/v1/experiments/runs", json={"name": "tickets", "quick": True})
        assert answer.status_code == 202, answer.text
        location = answer.headers["location"]
        slowest = 0.0

        def done() -> bool:
            nonlocal slowest
            began = time.monotonic()
            client.put("/v1/streams/s", json={"columns": {"a": "int"}})
            slowest = max(slowest, time.monotonic() - began)
            return bool(client.get(location).json()["state"] != "running")

        until(done, 180, "the experiment is over")
        facts = client.get(location).json()
        assert facts["state"] == "done" and facts["verdict"]["holds"], facts
        # the engine was not kept from its work: far less than the seconds that the experiment takes
        assert slowest < 2.0, slowest
        assert client.get(f"{location}/plot.png").content.startswith(b"\x89PNG")
        assert client.get(f"{location}/rows.csv").text.startswith("workload,stage,filter")

        second = client.post("/v1/experiments/runs", json={"name": "routing", "quick": False}).headers["location"]
        until(lambda: client.get(second).json()["steps"] is not None, 120, "it has begun")
        (child,) = _children(server.process.pid)
        assert server.stop() == 0
        until(lambda: not Path(f"/proc/{child}").exists(), 10, "the child has ended")
        assert "Traceback" not in server.log, server.log
